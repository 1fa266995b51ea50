"""Derivatives of the interpreter against central differences of itself, whatever the types."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import pytest

from shaderad.interpret import KernelRun, interpret
from tests.lower import function_cases, typed_cases
from tests.oracle import oracle

STEP = 1e-6
CLOSE = {"rtol": 1e-5, "atol": 1e-7}
KERNELS = {
    kernel.__name__: (kernel, args)
    for kernel, args in (function_cases.ARGUMENTS | typed_cases.ARGUMENTS).items()
}


def wide(value: Any) -> Any:
    """Floats in double precision; structured arrays as dicts."""
    names = getattr(getattr(value, "dtype", None), "names", None)
    if names:
        return {name: wide(value[name]) for name in names}
    array = np.asarray(value)
    return array.astype(np.float64) if array.dtype.kind == "f" else array


def combined(change: Callable[..., Any], *trees: Any) -> Any:
    if isinstance(trees[0], dict):
        return {name: combined(change, *(t[name] for t in trees)) for name in trees[0]}
    return change(*trees)


def product(a: Any, b: Any) -> float:
    if isinstance(a, dict):
        return sum(product(a[name], b[name]) for name in b)
    return float(np.sum(a * b)) if b.dtype.kind == "f" else 0.0


@pytest.mark.parametrize("name", KERNELS)
def test_tangents_are_central_differences_and_cotangents_their_transpose(name: str) -> None:
    kernel, args = KERNELS[name]
    judge = oracle(kernel, *args, dim=7)
    given = {n: wide(v) for n, v in judge.given.items()}
    rng = np.random.default_rng(5)

    def drawn(x: np.ndarray) -> np.ndarray:
        return rng.uniform(-1, 1, x.shape) if x.dtype.kind == "f" else np.zeros_like(x)

    def run(values: dict[str, Any]) -> KernelRun:
        return interpret(judge.kernel, dim=7, arrays=values)

    moves = {n: combined(drawn, v) for n, v in given.items()}

    def moved(x: np.ndarray, move: np.ndarray, sign: int) -> np.ndarray:
        return x + sign * STEP * move if x.dtype.kind == "f" else x

    ends = [run(combined(partial(moved, sign=sign), given, moves)) for sign in (1, -1)]
    here = run(given)
    dots = here.push(moves)
    slopes = {
        n: combined(
            lambda a, b: (a - b) / (2 * STEP) if a.dtype.kind == "f" else np.zeros_like(a),
            *(end.outputs[n] for end in ends),
        )
        for n in dots
    }
    combined(lambda dot, slope: np.testing.assert_allclose(dot, slope, **CLOSE), dots, slopes)
    bars = {n: combined(drawn, dot) for n, dot in dots.items()}
    gradients = here.pull(bars)
    backward = sum(product(moves[n], gradient) for n, gradient in gradients.items())
    np.testing.assert_allclose(backward, product(dots, bars), rtol=1e-9, atol=1e-12)
