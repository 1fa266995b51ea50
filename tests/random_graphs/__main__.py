"""The long run: ``python -m tests.random_graphs --count 500 --seed 1 --runtime wgpu --log F``.

The log has one JSON line per graph; a run continues where its log ends. Graphs of nodes take turns
with functions that call kernels; ``--kinds`` chooses.
"""

from __future__ import annotations

import argparse
import json
import os
import tempfile
import time
from contextlib import nullcontext
from pathlib import Path

import shaderad as sad
from tests.random_graphs.comparison import fault
from tests.random_graphs.function_comparison import function_fault
from tests.random_graphs.generation import case
from tests.random_graphs.interpreted import interpreted

SEEDS_PER_RUN = 1_000_000
FAULTS = {
    "nodes": lambda seed, device: fault(case(seed), device),
    "functions": function_fault,
}


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.random_graphs", description=__doc__)
    parser.add_argument("--count", type=int, default=100)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--runtime", choices=("wgpu", "slangpy"), default="wgpu")
    parser.add_argument(
        "--device-kind", help="`discrete`: the layouts of a GPU, also on a processor"
    )
    parser.add_argument("--log", type=Path, default=Path("random_graphs.jsonl"))
    parser.add_argument(
        "--interpreted", action="store_true", help="functions in NumPy, which is much faster"
    )
    parser.add_argument("--kinds", nargs="+", choices=tuple(FAULTS), default=tuple(FAULTS))
    given = parser.parse_args()
    done = given.log.read_text().splitlines() if given.log.exists() else []
    faults = [found for line in done if (found := json.loads(line)["fault"])]
    with tempfile.TemporaryDirectory() as cache, given.log.open("a") as log:
        os.environ["SHADERAD_CACHE"] = cache  # Graphs never repeat: nothing is worth keeping.
        limits = {"kind": given.device_kind} if given.device_kind else None
        device = sad.open_device(given.runtime, limits=limits)
        for number in range(len(done), given.count):
            start = time.perf_counter()
            kind = given.kinds[number % len(given.kinds)]
            seed = given.seed * SEEDS_PER_RUN + number
            with interpreted(device) if given.interpreted else nullcontext():
                found = FAULTS[kind](seed, device)
            entry = {"number": number, "seconds": time.perf_counter() - start, "fault": found}
            log.write(json.dumps(entry) + "\n")
            log.flush()
            faults += [found] if found else []
    print(*faults, f"{given.count} graphs on {given.runtime}, {len(faults)} at fault", sep="\n")
    return 1 if faults else 0


if __name__ == "__main__":
    raise SystemExit(main())
