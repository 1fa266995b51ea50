"""Loops as Slang text, and how often they run."""

from __future__ import annotations

import pytest

import shaderad as sad
from shaderad.bodies.loops import trip_count
from shaderad.ir.nodes import For
from shaderad.lower.bindings import Mode, Variant
from shaderad.lower.kernels import lower_kernel
from tests.lower.bodies import number


@pytest.mark.parametrize(
    ("start", "stop", "step"), [(0, 5, 1), (5, 0, -2), (5, 5, 1), (0, -3, 1), (-3, 4, 3)]
)
def test_constant_bounds_give_pythons_count(start: int, stop: int, step: int) -> None:
    loop = For(variable="k", start=number(start), stop=number(stop), step=number(step), body=())
    assert trip_count(loop) == len(range(start, stop, step))


@sad.kernel
def without_iterations(i: sad.Index, x: sad.In[float], y: sad.Out[float]):
    total = x[i]
    for k in range(3, 3):
        total += x[k]
    for k in range(2, 0, 1):
        total *= 2.0 + k
    y[i] = total


def test_a_loop_without_iterations_is_left_out() -> None:
    """Slang warns of them, which slangpy prints."""
    variant = Variant(launch_shaped=frozenset({"y"}))
    (lowered,) = lower_kernel(without_iterations.specialise({}), Mode.PRIMAL, variant)
    assert "for (" not in lowered.program.slang
