"""Times of two checkouts of the project, pair after pair: the rows of docs/figures.md.

    python benchmarks/two_checkouts.py OLDER [NAME ...] [--runtime wgpu slangpy] [--pairs 15]

OLDER is the folder of another checkout, such as one of ``git worktree add``. Each row runs in
two processes, one per checkout; while one takes its step, the other waits. Both run the programs of
their own `benchmarks/`. A ratio is the median of the pairs, this checkout's time divided by the
other's: below 1, this one is faster. NAME is a part of a row's name, such as ``many_steps``. With
``--processor``, a time is that of the processor: for software drivers on a busy machine.
"""

from __future__ import annotations

import argparse
import contextlib
import importlib
import json
import math
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

HERE = Path(__file__).resolve().parent
OTHERS = ("by hand", "by_hand", "alone", "jax", "JAX", "torch", "PyTorch", "copy", "thread",
          "render pass")  # fmt: skip
"""Parts of the names of sides that are not ours."""
SECONDS, FEWEST = 30.0, 5
"""After so many seconds a side gets no further pairs, if it had as many as this."""


class Row(NamedTuple):
    """A call in a script of `benchmarks/`."""

    script: str
    function: str
    arguments: tuple[Any, ...]

    @property
    def name(self) -> str:
        return " ".join(map(str, (self.script, *self.arguments)))


def rows(runtimes: Sequence[str]) -> list[Row]:
    """Every row, by the programs of this checkout."""
    sys.path.insert(0, str(HERE.parent))
    names = {
        "arrays": importlib.import_module("arrays").PRODUCTS,
        "many_steps": importlib.import_module("many_steps").PROGRAMS,
        "rendering": importlib.import_module("rendering").CONTESTS,
    }
    found = [Row("compare", "compare", (name,)) for name in ("W1", "W2", "W3", "W4")]
    for runtime in runtimes:
        found += [Row("arrays", "run_product", (name, runtime)) for name in names["arrays"]]
        found.append(Row("arrays", "run_network", (runtime,)))
        found += [Row("many_steps", "compare", (name, runtime)) for name in names["many_steps"]]
        found.append(Row("mesh_step", "compare", (runtime,)))
        found += [Row("rendering", "compare", (name, runtime)) for name in names["rendering"]]
    return found


# -- a process per checkout -----------------------------------------------------------------------


def serve(checkout: str, row: str, clock_name: str) -> None:
    """Runs a row of `checkout`; each step that `alternated` gets waits for a line of input."""
    script, function, arguments = json.loads(row)
    clock: Callable[[], float] = getattr(time, clock_name)
    answers = os.fdopen(os.dup(1), "w", buffering=1)
    sys.path[:0] = [checkout, str(Path(checkout) / "benchmarks")]
    # Opponents would only take time.
    sys.modules["jax"] = None  # type: ignore[assignment]
    timing = importlib.import_module("timing")

    def alternated(
        sides: Mapping[str, Callable[[], object]], rounds: int = 1, waits: Any = None
    ) -> dict[str, list[float]]:
        for name, step in sides.items():
            if any(other in name for other in OTHERS):
                continue
            step()
            step()
            print(json.dumps(name), file=answers)
            while sys.stdin.readline().strip() == "step":
                step()
                start = clock()
                step()
                print(json.dumps(1e3 * (clock() - start)), file=answers)
        return {name: [1.0] * rounds for name in sides}

    timing.alternated = alternated  # type: ignore[attr-defined]
    with contextlib.redirect_stdout(sys.stderr):
        getattr(importlib.import_module(script), function)(*arguments)


class Checkout:
    """The process of one checkout."""

    def __init__(self, folder: Path, row: Row, clock: str) -> None:
        command = [sys.executable, str(HERE / "two_checkouts.py"), "--serve", str(folder)]
        self._process = subprocess.Popen(
            [*command, json.dumps(row), clock],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True,
            env={**os.environ, "PYTHONPATH": str(folder)}, cwd=folder,
        )  # fmt: skip

    def side(self) -> str | None:
        """The name of the next side; `None` after the last one, or where the row failed."""
        line = self._read()
        return None if line is None else str(line)

    def milliseconds(self) -> float:
        self._say("step")
        return float(self._read())

    def go_on(self) -> None:
        self._say("next")

    def _say(self, text: str) -> None:
        assert self._process.stdin is not None
        self._process.stdin.write(text + "\n")
        self._process.stdin.flush()

    def _read(self) -> Any:
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        return json.loads(line) if line else None

    def end(self) -> None:
        self._process.kill()
        with self._process:  # Closes its pipes, and waits for its end.
            pass


def compared(
    row: Row, older: Path, pairs: int, clock: str
) -> Iterator[tuple[str, float, float, float]]:
    """The name, both medians, and the ratio of each side of a row."""
    checkouts = [Checkout(folder, row, clock) for folder in (older, HERE.parent)]
    try:
        while True:
            sides = [checkout.side() for checkout in checkouts]
            if None in sides:
                return
            times: list[list[float]] = [[], []]
            start = time.perf_counter()
            for pair in range(pairs):
                if pair >= FEWEST and time.perf_counter() - start > SECONDS:
                    break
                for k in (0, 1) if pair % 2 == 0 else (1, 0):
                    times[k].append(checkouts[k].milliseconds())
            old, new = map(statistics.median, times)
            ratio = statistics.median(b / a for a, b in zip(*times, strict=True))
            yield f"{row.name} {sides[0]}", old, new, ratio
            for checkout in checkouts:
                checkout.go_on()
    finally:
        for checkout in checkouts:
            checkout.end()


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("older", type=Path, metavar="OLDER")
    parser.add_argument("names", nargs="*", metavar="NAME")
    parser.add_argument("--runtime", nargs="*", default=["wgpu", "slangpy"])
    parser.add_argument("--pairs", type=int, default=15)
    parser.add_argument("--processor", action="store_true", help="time of the processor")
    given = parser.parse_args()
    clock = "process_time" if given.processor else "perf_counter"
    ratios: list[float] = []
    for row in rows(given.runtime):
        if given.names and not any(name in row.name for name in given.names):
            continue
        found = [*compared(row, given.older.resolve(), given.pairs, clock)]
        for name, old, new, ratio in found:
            print(f"{name:50} {old:9.2f} ms {new:9.2f} ms   {ratio:.2f}x", flush=True)
            ratios.append(ratio)
        if not found:
            print(f"{row.name:50} not measured: it ended without a step", flush=True)
    if ratios:
        mean = math.exp(statistics.mean(map(math.log, ratios)))
        print(f"{len(ratios)} rows: geometric mean {mean:.3f}x, largest {max(ratios):.2f}x")


if __name__ == "__main__":
    if sys.argv[1:2] == ["--serve"]:
        serve(*sys.argv[2:])
    else:
        main()
