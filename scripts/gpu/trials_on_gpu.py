"""One part of the report on one device, its trials shared by processes.

    SHADERAD_DEVICE=wgpu:0 python -m scripts.gpu.trials_on_gpu conformance [--shape workgroup=256]

With `--shape` the trials judge other launch shapes: benchmarks/launch_shapes.py and kernel_times.py
compare their times. Prints one JSON line with counts, the trials that did not pass, and slow ones.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import time
from collections import Counter
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from scripts.gpu.launch_rows import add_shape_option
from scripts.gpu.parts import PARTS, SILENT_SECONDS
from shaderad.deep import Outcome, outcomes_of
from shaderad.runtime.devices import DEVICE_VARIABLE

SLOW_SECONDS = 8.0


def main() -> int:
    options = _arguments()
    end = time.time() + 60 * options.minutes
    with TemporaryDirectory() as folder, ThreadPoolExecutor(options.processes) as pool:
        share = partial(_outcomes, options, Path(folder), end)
        outcomes = [o for each in pool.map(share, range(options.processes)) for o in each]
    print(json.dumps({"device": os.environ[DEVICE_VARIABLE]} | summary(outcomes)))
    return int(any(outcome.status == "failed" for outcome in outcomes))


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m scripts.gpu.trials_on_gpu", description=__doc__
    )
    parser.add_argument("part", choices=[*PARTS])
    parser.add_argument("--processes", type=int, default=1, help="how many share the trials")
    parser.add_argument("--minutes", type=float, default=5.0, help="no trial begins later")
    parser.add_argument("--small", action="store_true", help="small sizes, as `gpu --quick` has")
    add_shape_option(parser)
    options = parser.parse_args()
    if DEVICE_VARIABLE not in os.environ:
        parser.error(f"set {DEVICE_VARIABLE} to the device, such as wgpu:0")
    return options


def _outcomes(options: argparse.Namespace, folder: Path, end: float, number: int) -> list[Outcome]:
    """The trials of one process, which is started again after a trial that ends it."""
    log = folder / f"{number}.jsonl"
    command = [sys.executable, "-m", "scripts.gpu.parts", "--part", options.part]
    command += ["--share", f"{number}/{options.processes}", "--shape", options.shape]
    command += ["--log", str(log), "--end", f"{end:.0f}"]
    command += ["--quick"] if options.small else []
    return outcomes_of(command, log, {}, SILENT_SECONDS)


def summary(outcomes: Sequence[Outcome]) -> dict[str, Any]:
    """Counts by status, and the outcomes that a reader looks at."""
    not_passed = [o for o in outcomes if o.status in ("failed", "refused")]
    return {
        **Counter(outcome.status for outcome in outcomes),
        "not passed": [[o.name, o.status, o.detail[:400]] for o in not_passed],
        "slow": [[o.name, round(o.seconds, 1)] for o in outcomes if o.seconds > SLOW_SECONDS],
    }


if __name__ == "__main__":
    sys.exit(main())
