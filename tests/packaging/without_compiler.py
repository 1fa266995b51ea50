"""Runs in an environment without slangpy, beside the build of `model.py`."""

from __future__ import annotations

import sys
from importlib.util import find_spec

import numpy as np

import shaderad as sad

ROUNDING = 1e-5
"""Of float32 sums of a few terms, and of sines on a device."""


@sad.kernel
def twice(i: sad.Index, x: sad.In[float], y: sad.Out[float]):
    y[i] = 2.0 * x[i]


def check(found: sad.Array, wanted: object) -> None:
    np.testing.assert_allclose(found.numpy(), wanted, rtol=ROUNDING)


def refused(what: object) -> sad.Error:
    try:
        what()  # type: ignore[operator]
    except sad.Error as failure:
        return failure
    raise AssertionError("it ran without the compiler")


assert find_spec("slangpy") is None
x = np.array([1.0, 2.0, 3.0], np.float32)


def check_build(folder: str) -> None:
    built = sad.load(folder)
    y, pullback = sad.vjp(built.square, x, dim=3)
    check(y, x * x)
    check(pullback([1.0, 0.5, 1.0])[0], [2.0, 2.0, 6.0])
    value, gradient = sad.value_and_grad(built.loss)(x)
    check(value, np.sum(np.sin(x) * x))
    check(gradient, np.sin(x) + x * np.cos(x))
    # A Python function that calls both.
    gradient = sad.grad(lambda x: built.loss(built.square(x, dim=3)))(x)
    check(gradient, 2.0 * x * (np.sin(x * x) + x * x * np.cos(x * x)))
    empty, pullback = sad.vjp(built.square, x[:0], dim=0)
    assert pullback(empty)[0].shape == (0,)


for folder in sys.argv[1:]:
    check_build(folder)
for call in (
    lambda: twice(x, dim=3),
    lambda: sad.vjp(twice, x, dim=3),
    lambda: sad.sum(sad.array(x)),
    lambda: sad.build("model.py", "again"),
):
    failure = refused(call)
    assert failure.code == "SR0505", failure
    assert isinstance(failure, ImportError)
    assert "pip install slangpy" in str(failure)
failure = refused(lambda: sad.open_device("slangpy"))
assert isinstance(failure, ImportError), failure
assert "pip install slangpy" in str(failure)
print({info.runtime for info in sad.devices()})
