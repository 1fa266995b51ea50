"""The long run: ``python -m tests.spoiled_builds --count 5000 --seed 1 --runtime wgpu --log F``.

The log is one JSON line a mutation; a run continues where its log ends.
"""

from __future__ import annotations

import argparse
import json
import tempfile
from collections import Counter
from pathlib import Path
from typing import Any

from tests.spoiled_builds.trials import Trials, built

SEEDS_PER_RUN = 1_000_000


def fault(found: dict[str, Any]) -> str:
    """What must not come of a mutation; empty where all is well."""
    outcome = found["outcome"]
    is_told = outcome.startswith(("load: SR", "call: SR", "right"))
    # Whoever forges hashes may make code say other numbers, or nothing for ever.
    may_differ = found.get("forged", True) and outcome in ("other numbers", "endless on the device")
    return "" if is_told or may_differ else outcome


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.spoiled_builds", description=__doc__)
    parser.add_argument("--count", type=int, default=200)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--runtime", choices=("wgpu", "slangpy"), default="wgpu")
    parser.add_argument("--targets", default="spirv,wgsl")
    parser.add_argument("--log", type=Path, default=Path("spoiled_builds.jsonl"))
    given = parser.parse_args()
    lines = given.log.read_text().splitlines() if given.log.exists() else []
    done = [json.loads(line) for line in lines]
    first = given.seed * SEEDS_PER_RUN
    with tempfile.TemporaryDirectory() as folder, given.log.open("a") as log:
        sound = built(Path(folder) / "sound", given.targets)
        with Trials(sound, given.runtime) as trials:
            for found in trials.outcomes(range(first + len(done), first + given.count)):
                log.write(json.dumps(found) + "\n")
                log.flush()
                done.append(found)
    counts = Counter(one["outcome"] for one in done)
    print(*(f"{count:6} {outcome}" for outcome, count in counts.most_common()), sep="\n")
    faults = [one for one in done if fault(one)]
    print(*faults, f"{len(done)} mutations on {given.runtime}, {len(faults)} at fault", sep="\n")
    return 1 if faults else 0


if __name__ == "__main__":
    raise SystemExit(main())
