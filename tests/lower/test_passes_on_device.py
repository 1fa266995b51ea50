"""Reductions and scans of rows agree with NumPy on every runtime, alone and together."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import shaderad as sad
from shaderad.ir import ops
from shaderad.ir.types import FLOAT
from shaderad.lower.passes import lower_reduce, lower_scan
from tests.lower.row_passes import elements_of, run, variant_of

pytestmark = pytest.mark.gpu

SHAPES = [(n,) for n in (0, 1, 2, 63, 64, 65, 255, 256, 257, 1000, 8193, 100_003)]
SHAPES += [(1, 300), (300, 1), (7, 1000), (1000, 7), (3, 0), (0, 3), (2, 3, 130), (2, 20_000)]
SUMS = 1e-6
"""Sums of up to 1e5 floats in trees lose about as much as each element did."""


@pytest.fixture(params=[False, True], ids=["alone", "together"])
def is_parallel(request: pytest.FixtureRequest) -> bool:
    return request.param


def drawn(shape: tuple[int, ...], seed: int = 0) -> np.ndarray[Any, Any]:
    return np.random.default_rng(seed).uniform(0.5, 1.5, shape).astype(np.float32)


def test_rows_are_summed(device: sad.Device, is_parallel: bool) -> None:
    variant = variant_of(device, is_parallel=is_parallel)
    by_rank = {k: lower_reduce(elements_of(FLOAT, k), ops.ADD, variant) for k in (1, 2, 3)}
    for shape in SHAPES:
        x = drawn(shape)
        given = sad.array(x, device=device)
        found = run(device, by_rank[len(shape)], (FLOAT, shape[:-1]), given)
        np.testing.assert_allclose(found, x.astype(np.float64).sum(-1), rtol=SUMS, err_msg=shape)


def test_rows_are_scanned(device: sad.Device, is_parallel: bool) -> None:
    variant = variant_of(device, is_parallel=is_parallel)
    by_rank = {k: lower_scan(elements_of(FLOAT, k), ops.ADD, variant) for k in (1, 2, 3)}
    for shape in SHAPES:
        x = drawn(shape)
        given = sad.array(x, device=device)
        found = run(device, by_rank[len(shape)], (FLOAT, shape), given)
        np.testing.assert_allclose(found, x.astype(np.float64).cumsum(-1), rtol=SUMS, err_msg=shape)
