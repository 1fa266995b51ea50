"""Lengths and directions where squares would overflow or vanish."""

from __future__ import annotations

import numpy as np
import pytest

import shaderad as sad
from shaderad import float3

pytestmark = pytest.mark.gpu

SMALLEST = float(np.finfo(np.float32).tiny)
VECTORS = np.float32([
    [0, 0, 0], [3, 4, 0], [-2, 1, -2], [3e38, 0, 0], [1e38, -1e38, 1e38], [3e38, 3e38, 0],
    [1e-30, 1e-30, 0], [2e-37, 0, 1e-37], [0, SMALLEST, 0], [np.inf, 1, 0], [1, np.nan, 0],
])  # fmt: skip


def test_lengths_neither_overflow_nor_vanish(device: sad.Device) -> None:
    found = np.asarray(sad.length(sad.array(VECTORS, dtype=float3, device=device)))
    with np.errstate(over="ignore"):
        wanted = np.linalg.norm(VECTORS.astype(np.float64), axis=1).astype(np.float32)
    np.testing.assert_allclose(found, wanted, rtol=3e-7)


def test_directions_have_length_one_wherever_there_is_one(device: sad.Device) -> None:
    finite = VECTORS[np.isfinite(VECTORS).all(1)].astype(np.float64)
    found = np.asarray(sad.normalize(sad.array(finite, dtype=float3, device=device)))
    lengths = np.linalg.norm(finite, axis=1, keepdims=True)
    np.testing.assert_allclose(found, finite / np.where(lengths, lengths, 1), rtol=5e-7)
