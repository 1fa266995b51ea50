"""The interpreter against the kernel's own Python text, and against central differences of it."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from shaderad.interpret import KernelRun, interpret
from tests.lower import loop_cases, output_cases
from tests.lower.reference import Case, directional, primal, widened

CASES = {**loop_cases.CASES, **output_cases.CASES}
# Central differences of float64 with step 1e-6 lose nine digits at worst.
CLOSE = {"rtol": 1e-5, "atol": 1e-7}


def run_of(case: Case) -> tuple[KernelRun, list[str]]:
    """The launch, and the names of its arguments in order."""
    ir = case.kernel.specialise({})
    written = {b.name for b in ir.buffers if b.access.value != "In"}
    names = [p.name for p in case.kernel.signature.parameters if p.name not in written]
    given: dict[str, Any] = dict(zip(names, widened(case.args), strict=True))
    run = interpret(ir, dim=case.dim, arrays=given, shapes=case.shapes, rounds_constants=False)
    return run, names


@pytest.mark.parametrize("name", CASES)
def test_results_are_those_of_the_python_text(name: str) -> None:
    case = CASES[name]
    run, _ = run_of(case)
    for found, wanted in zip(run.outputs.values(), primal(case, widened(case.args)), strict=True):
        np.testing.assert_allclose(np.float64(found), wanted, rtol=1e-9, atol=1e-12)


@pytest.mark.filterwarnings("ignore:invalid value:RuntimeWarning")
@pytest.mark.parametrize("name", CASES)
def test_tangents_are_central_differences_and_cotangents_their_transpose(name: str) -> None:
    case = CASES[name]
    run, names = run_of(case)
    rng = np.random.default_rng(3)
    moves = {k: rng.uniform(-1, 1, np.shape(case.args[k])) for k in case.float_positions}
    by_result = dict(zip(run.outputs, directional(case, moves), strict=True))
    dots = run.push({names[k]: move for k, move in moves.items()})
    bars: dict[str, np.ndarray] = {}
    for result, dot in dots.items():
        np.testing.assert_allclose(dot, by_result[result], **CLOSE)
        bars[result] = rng.uniform(-1, 1, np.shape(dot))
    gradients = run.pull(bars)
    forward = sum(float(np.sum(bars[r] * dots[r])) for r in dots)
    backward = sum(float(np.sum(gradients[names[k]] * m)) for k, m in moves.items())
    np.testing.assert_allclose(backward, forward, rtol=1e-10, atol=1e-12)


def test_single_precision_differs_as_much_as_rounding_does() -> None:
    case = CASES["triple_nesting"]
    ir = case.kernel.specialise({})
    runs = [
        interpret(
            ir, dim=case.dim, precision=precision,
            arrays=dict(zip([p.name for p in ir.parameters], case.args, strict=False)),
        )
        for precision in (np.float64, np.float32)
    ]  # fmt: skip
    exact, rounded = (next(iter(run.outputs.values())) for run in runs)
    assert rounded.dtype == np.float32
    assert np.any(exact != rounded)
    np.testing.assert_allclose(rounded, exact, rtol=1e-4)
