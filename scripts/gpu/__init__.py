"""All that this machine's devices can run: checked, measured, and written to a report."""

import sys
from pathlib import Path

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"
"""Its scripts import each other by short names, and so do the modules here."""
if str(BENCHMARKS) not in sys.path:
    sys.path.append(str(BENCHMARKS))
