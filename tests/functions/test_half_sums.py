"""Sums, means and products of halves are computed in 32 bits, and rounded once."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import shaderad as sad

pytestmark = pytest.mark.gpu

H = np.float16
LONG = 5000
"""More ones than halves can count one by one: they stop at 2048."""
HUGE = 70_000
"""A sum of ones that no half holds."""
ROUNDED = 1e-3
"""A half has 11 bits."""


@pytest.fixture(autouse=True)
def _has_halves(device: sad.Device) -> None:
    if "half" not in device.capabilities.features:
        pytest.skip("no halves")


@sad.graph
def sums(x: Any, columns: Any, huge: Any, signed: Any) -> Any:
    pairs = sad.where(columns[:, 0] > H(0), columns[:, 0], columns[:, 1])
    return {
        "sum": sad.sum(x),
        "axis 0": sad.sum(columns, axis=0),
        "from init": sad.reduce(sad.add, x, H(7)),
        "large parts": sad.sum(signed),
        "mean": sad.mean(huge),
        "logsumexp": sad.logsumexp(huge - H(1)),
        "cumsum": sad.cumsum(x)[-3:],
        "product": sad.prod(sad.where(x > H(0), H(1.001), x)),
        "square error": sad.mean((110 * pairs - H(100)) ** 2),
        "rows": sad.transpose(columns) @ columns,
    }


EXPECTED = {
    "sum": LONG,
    "axis 0": [LONG, LONG],
    "from init": LONG + 7,
    "large parts": 0.0,
    "mean": 1.0,
    "logsumexp": np.log(HUGE),
    "cumsum": [LONG - 2, LONG - 1, LONG],
    "product": float(H(1.001)) ** LONG,
    "square error": 100.0,
    "rows": np.full((2, 2), LONG),
}


def test_halves_are_added_in_float(device: sad.Device) -> None:
    signed = np.r_[np.full(4, 32000), np.full(4, -32000)].astype(H)
    found = sums(np.ones(LONG, H), np.ones((LONG, 2), H), np.ones(HUGE, H), signed)
    for name, expected in EXPECTED.items():
        np.testing.assert_allclose(found[name].numpy(), expected, rtol=ROUNDED, err_msg=name)


def test_gradients_of_halves_are_added_in_float(device: sad.Device) -> None:
    w, ones = sad.array(H([0.5, 2.0])), sad.array(np.ones((LONG, 2), H))

    def loop(w: Any) -> Any:
        return sad.sum(sad.fori_loop(LONG, lambda k, c: c * H(1) + w, w * H(0)))

    def while_loop(w: Any) -> Any:
        start = (w * H(0), 0)
        step = sad.while_loop(
            lambda c: c[1] < LONG, lambda c: (c[0] * H(1) + w, c[1] + 1), start, limit=LONG
        )
        return sad.sum(step[0])

    fs = [loop, while_loop, lambda w: sad.sum(w * ones), lambda w: sad.sum(ones @ w)]
    for f in fs:
        np.testing.assert_allclose(sad.grad(sad.graph(f))(w).numpy(), LONG, rtol=ROUNDED)
    scaled = sad.grad(lambda x: sad.mean(x) * H(1000))(sad.array(np.full(HUGE, 0.5, H)))
    np.testing.assert_allclose(scaled.numpy(), 1000 / HUGE, rtol=ROUNDED)
    one = sad.array(np.ones(HUGE, H))
    assert sad.jvp(sad.mean, (one,), (one,))[1].numpy() == 1.0
