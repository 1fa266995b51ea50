"""The comparison notices what is wrong, in every mode, and forgives rounding only."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import shaderad as sad
from shaderad.interpret import RunReport
from shaderad.ir.types import FLOAT, Access, BufferType
from tests.oracle import Oracle, oracle
from tests.random_programs import comparison
from tests.random_programs.comparison import Outcome, compare
from tests.random_programs.inputs import Argument
from tests.random_programs.leaves import Leaves, floats_in
from tests.random_programs.programs import Program
from tests.random_programs.roundings import rounded_otherwise

pytestmark = pytest.mark.gpu

SOURCE = """
import shaderad as sad

@sad.kernel
def kernel(i: sad.Index, x: sad.In[float], y: sad.Out[float]):
    y[i] = x[i] * x[(i + 1) % 3] + sad.sin(x[i])
"""
ZERO_SOURCE = """
import shaderad as sad

@sad.kernel
def kernel(i: sad.Index, x: sad.In[float], y: sad.Out[float]):
    y[i] = sad.copysign(x[i], sad.lerp(y[i], -1.25, x[i + 3]))
"""
ARGUMENTS = (Argument("x", BufferType(Access.IN, FLOAT), (3,)),)
PROGRAM = Program(SOURCE, (3,), ARGUMENTS, seed=3)


def scaled(value: Any) -> Any:
    return tuple(scaled(v) for v in value) if isinstance(value, tuple) else value * 1.002


class Slanted:
    """The oracle, wrong by two in a thousand in one mode."""

    def __init__(self, real: Oracle, mode: str) -> None:
        self._real = real
        self._mode = mode

    def _answer(self, mode: str, value: Any) -> Any:
        return scaled(value) if mode == self._mode else value

    @property
    def out(self) -> Any:
        return self._answer("primal", self._real.out)

    @property
    def reports(self) -> list[RunReport]:
        return self._real.reports

    def vjp(self, bars: Any) -> Any:
        return self._answer("vjp", self._real.vjp(bars))

    def jvp(self, dots: Any) -> Any:
        return self._answer("jvp", self._real.jvp(dots))


@pytest.mark.parametrize("mode", ["primal", "vjp", "jvp"])
def test_a_wrong_answer_in_one_mode_is_a_mismatch(
    mode: str, device: sad.Device, monkeypatch: pytest.MonkeyPatch
) -> None:
    def slanted(*args: Any, **options: Any) -> Any:
        return Slanted(oracle(*args, **options), mode)

    assert compare(PROGRAM, device).outcome is Outcome.AGREES
    monkeypatch.setattr(comparison, "oracle", slanted)
    verdict = compare(PROGRAM, device)
    assert verdict.outcome is Outcome.MISMATCH
    assert verdict.detail.startswith(mode)


def test_derivatives_are_compared_by_their_floats() -> None:
    leaves: Leaves = {"[0].x": np.zeros(2), "[0].k": np.zeros(2, np.int32)}
    assert list(floats_in(leaves)) == ["[0].x"]


def test_the_sign_of_a_zero_is_nobodys_fault(device: sad.Device) -> None:
    """The kernel adds -0 to a constant 0: by IEEE 754 that is 0, compilers have -0."""
    program = Program(ZERO_SOURCE, (3,), ARGUMENTS, seed=4)
    with device:
        assert not compare(program, device).is_fault


MIRRORED = """
import shaderad as sad
from shaderad import float2

@sad.kernel
def kernel(i: sad.Index, x: sad.In[float2], y: sad.Out[float2], z: sad.Out[float2]):
    y[i] = sad.clamp(sad.reflect(x[i], sad.normalize(x[i])), -1.5, 1.5)
    z[i] = sad.clamp(-x[i], -1.5, 1.5)
"""
AT_BOUND = (np.array([[-1.5, -0.6467632055282593]], np.float32),)
"""Mirrored, 1.5 comes back: exactly so, or a little beyond the bound in float32."""


class MirroredProgram(Program):
    def values(self, nudge: float = 0.0) -> tuple[Any, ...]:
        return AT_BOUND


def test_a_bound_that_rounding_alone_passes_is_no_mismatch(device: sad.Device) -> None:
    program = MirroredProgram(MIRRORED, (1,), (), seed=2)
    assert not compare(program, device).is_fault


def test_other_roundings_pass_a_bound_and_keep_exact_ties() -> None:
    kernel = MirroredProgram(MIRRORED, (1,), (), seed=2).kernel()
    ones = np.ones((1, 2), np.float32)
    slopes: list[np.ndarray] = []
    for relative in (2.4e-7, -2.4e-7):
        with rounded_otherwise(relative):
            moved = oracle(kernel, *AT_BOUND, dim=1, precision=np.float64)
        slopes.append(np.concatenate([moved.vjp((b, ones - b))[0][0] for b in (ones, 0 * ones)]))
    passed, kept = sorted(slopes, key=lambda found: abs(float(found[0])))
    np.testing.assert_allclose(passed, [0.0, -1.0, -1.0, -1.0], atol=1e-5)
    np.testing.assert_allclose(kept, [-1.0, -1.0, -1.0, -1.0], atol=1e-5)
