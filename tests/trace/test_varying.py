"""Traces that differ in float numbers alone share plan and programs."""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import shaderad as sad
from shaderad.interpret.arrays import evaluate as in_numpy
from shaderad.trace.varying import VaryingNumbers

X = np.float32([0.5, 1.0, 2.0])


def test_numbers_that_change_together_are_one_input() -> None:
    varying = VaryingNumbers()
    expected = [
        ([0.1, 0.1, 2.0, 0.1], {}),
        ([0.1, 0.2, 2.0, 0.2], {1: 1, 3: 1}),
        ([0.1, 0.1, 2.0, 0.1], {1: 1, 3: 1}),
        ([0.1, 0.4, 2.0, -0.4], {1: 1, 3: 3}),
        ([0.1, float("nan"), 2.0, -0.0], {1: 1, 3: 3}),
        ([0.1, float("nan"), 2.0, 0.0], {1: 1, 3: 3}),
    ]
    for numbers, groups in expected:
        assert dict(varying._noted(numbers)) == groups


class Settings(SimpleNamespace):
    rate: float
    scale: float


Graph = Callable[[Any], Any]
S = Settings(rate=0.5, scale=0.5)


def _arithmetic(x: Any) -> Any:
    y = S.rate * x + x / S.rate - (S.rate - x) * 2.0
    return sad.where(y > S.scale, sad.min(y, 3.0 * S.rate), S.scale) + sad.atan2(x, S.scale)


def _derivative(x: Any) -> Any:
    return sad.grad(lambda x: sad.sum(S.rate * sad.sin(S.scale * x) / (x + S.scale)))(x)


def _loop(x: Any) -> Any:
    return sad.fori_loop(2, lambda _, y: S.rate * y + S.scale, x + sad.full(x.shape, S.scale))


def _nested(x: Any) -> Any:
    rule = sad.custom_vjp(lambda x: x * S.rate)
    rule.defvjp(lambda x: (x * S.rate, x), lambda x, bar: (bar * (S.scale * x),))
    mapped = sad.vmap(lambda y: sad.checkpoint(lambda y: y * S.rate)(y) + S.scale)
    return sad.grad(lambda x: sad.sum(rule(x)))(x) + mapped(x)


def _halves(x: Any) -> Any:
    half = sad.cast(x, np.float16) * S.rate
    return sad.cast(half, float) + sad.cast(sad.cast(x, np.float64) * S.scale, float)


def _vectors(x: Any) -> Any:
    return sad.length(sad.float3(x, S.rate, S.scale) * S.rate)


@pytest.mark.gpu
def test_a_schedule_compiles_nothing_and_computes_what_a_fresh_trace_does(
    device: sad.Device,
) -> None:
    """Rate and scale are equal at first, then rate alone changes, then both."""
    functions = (_arithmetic, _derivative, _loop, _nested, _vectors, _halves)
    if "double" not in device.capabilities.features or "half" not in device.capabilities.features:
        functions = functions[:-1]
    settings = [(0.5, 0.5), (0.25, 0.5), (0.75, 1.5), (1.0, 0.25), (2.0, 0.0), (-0.3, 3.0)]

    def all_of(x: Any) -> Any:
        return [function(x) for function in functions]

    kept = sad.graph(all_of)
    counts: list[int] = []
    with device:
        x = sad.array(X)
        for S.rate, S.scale in settings:
            found = [y.numpy() for y in kept(x)]
            counts.append(len(device.runtime.routes()))
            # As constants, in NumPy.
            fresh = sad.graph(all_of).bound((x,), {})
            inputs = [one.numpy() for one in fresh.operands]
            expected, _ = in_numpy(fresh.variant.graph, inputs, fresh.form.size_by_name)
            for function, y, wanted in zip(functions, found, expected, strict=True):
                message = f"{function.__name__} at {S}"
                np.testing.assert_allclose(y, wanted, rtol=2e-3, atol=1e-5, err_msg=message)
    # The first change of a number makes it an input; no later one compiles.
    assert counts[2:] == [counts[2]] * 4
