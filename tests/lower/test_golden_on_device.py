"""The golden kernels on every runtime: results, vjp and jvp are those of the oracle."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import shaderad as sad
from tests.agreement import check_against_oracle
from tests.lower import golden_kernels as golden
from tests.lower.loop_cases import floats

pytestmark = pytest.mark.gpu

FACES = np.array([[0, 1, 2], [2, 1, 3], [3, 0, 1]], np.int32)
CALLS: dict[str, tuple[tuple[Any, ...], dict[str, Any]]] = {
    "shade": (
        (golden.Mesh(floats(4, 3), FACES, 1.5), np.int32([0, 2, 1, 2, 0]), floats(5, 2)),
        {"dim": 5},
    ),
    "fit_line": ((floats(70), floats(70, high=2.0), floats(2)), {"dim": 70, "shapes": {"loss": 1}}),
    "march": ((floats(7), 0.4), {"dim": 7}),
    "blur": ((floats(3, 6), 0), {"dim": (3, 6)}),
    "split": ((floats(5, 3),), {"dim": 5, "shapes": {"parts": 15, "lowest": 2}}),
    "roots": ((floats(6, high=3.0),), {"dim": 6}),
    "histogram": ((floats(6), floats(9)), {"dim": 6}),
}


@pytest.mark.parametrize("name", CALLS)
def test_golden_kernels_agree_with_the_oracle(name: str, device: sad.Device) -> None:
    args, call = CALLS[name]
    check_against_oracle(getattr(golden, name), *args, **call)
    device.synchronize()
