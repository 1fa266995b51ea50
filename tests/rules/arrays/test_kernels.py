"""Derivatives of kernel calls in graphs: the kernel's own, once."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import pytest

import shaderad as sad
from shaderad.ir.arrays import ArrayType, Graph, KernelCall
from shaderad.ir.types import FLOAT
from shaderad.rules.arrays import jvp, vjp
from tests.array_check import array, check


@sad.kernel
def scaled(i: sad.Index, x: sad.In[float], factor: float, y: sad.Out[float], n: sad.Add[float]):
    y[i] = factor * sad.sin(x[i])
    n[0] += x[i] * x[i]


def graph() -> Graph:
    inputs = (array((5,)), array(()))
    written = (("y", ArrayType(FLOAT, (5,))), ("n", ArrayType(FLOAT, (1,))))
    kernel = scaled.specialise({})
    node = KernelCall(operands=inputs, kernel=kernel, dim=(5,), names=("x", "factor"),
                      written=written, bounds="raise")  # fmt: skip
    return Graph(inputs, node.results)


def test_both_modes_agree_with_differences_twice() -> None:
    check(graph(), [np.random.default_rng(1).normal(size=5), np.array(1.5)], order=2)


Transform = Callable[[Graph, Sequence[bool]], Graph]


@pytest.mark.parametrize("first", [jvp, vjp])
@pytest.mark.parametrize("second", [jvp, vjp])
def test_a_tangent_pulled_back_or_pushed_agrees_with_differences(
    first: Transform, second: Transform
) -> None:
    rng = np.random.default_rng(2)
    inputs = [rng.normal(size=5), np.array(1.5), rng.normal(size=5), np.array(0.5)]
    check(jvp(graph(), [True, True]), inputs, order=1)
    twice = second(first(graph(), [True, True]), [True] * 4)
    more = [rng.normal(size=getattr(i.type, "shape", ())) for i in twice.inputs[len(inputs) :]]
    check(twice, [*inputs, *more], order=1)
