"""Seconds from the start of Python to the first gradient, and what `import shaderad` takes.

    python benchmarks/cold_start.py [wgpu|slangpy ...]

Each run is a process of its own; the first, which fills the disk cache and writes bytecode, is not
counted.
"""

from __future__ import annotations

import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from timing import report_seconds, with_bytecode

RUNS = 7
GOALS = {"import": 0.3, "wgpu": 1.2, "slangpy": 1.0}

FIRST_GRADIENT = """
import sys
import shaderad as sad

@sad.kernel
def energy(i: sad.Index, x: sad.In[float], total: sad.Add[float]):
    total[0] += sad.sin(x[i]) * x[i]

with sad.open_device(sys.argv[1]):
    gradient = sad.grad(energy)([0.5, 1.0, 2.0], dim=3, shapes={"total": (1,)}).numpy()
assert abs(gradient[0] - 0.9182) < 1e-3, gradient
"""


def seconds(*command: str, runs: int = RUNS) -> list[float]:
    """The time from the start of a process to its end, for each run but the first."""
    times: list[float] = []
    for _ in range(runs + 1):
        start = time.perf_counter()
        subprocess.run([sys.executable, *command], check=True, env=with_bytecode())
        times.append(time.perf_counter() - start)
    return times[1:]


def main() -> None:
    bare = statistics.median(seconds("-c", "pass"))
    imported = seconds("-c", "import shaderad")
    report_seconds("import", [whole - bare for whole in imported], GOALS["import"])
    with tempfile.TemporaryDirectory() as folder:
        script = Path(folder) / "first_gradient.py"
        script.write_text(FIRST_GRADIENT)
        for runtime in sys.argv[1:] or ("wgpu", "slangpy"):
            report_seconds(runtime, seconds(str(script), runtime), GOALS[runtime])


if __name__ == "__main__":
    main()
