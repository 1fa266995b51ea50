"""Results do not depend on how work is laid out: conformance cases with drawn numbers."""

from __future__ import annotations

import numpy as np
import pytest

from shaderad.compiler.launch_shapes import TABLE
from tests.conformance import checks
from tests.devices import entered
from tests.launch_shapes import drawn_row

pytestmark = pytest.mark.gpu

NAMES = (
    "warp-mesh-point",
    "fut-gather0-dup",
    "own-spmv-csr",
    "warp-atomic-add-dup",
    "own-sum-large-f32",
    "own-sum-large-f32/arrays",
    "fut-scan6-affine/arrays",
    "own-scan-exclusive-reverse/arrays",
    "own-hist-one-bin/arrays",
    "fut-matmul/arrays",
    "fut-lotka-rk4/arrays",
    "own-f64-cancel/arrays",
)
"""Programs whose sums, rows, tiles and loops the numbers lay out."""
PER_RUNTIME = 3


@pytest.mark.parametrize("runtime", ["wgpu", "slangpy"])
def test_gradients_are_right_for_drawn_rows(runtime: str, monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(len(runtime))
    for name in rng.choice(NAMES, PER_RUNTIME, replace=False):
        row = drawn_row(rng)
        for kind in TABLE:
            monkeypatch.setitem(TABLE, kind, row)
        with entered(runtime) as device:
            try:
                checks.check_vjp(str(name), device)
            except AssertionError as failure:
                raise AssertionError(f"{name} with {row}") from failure
