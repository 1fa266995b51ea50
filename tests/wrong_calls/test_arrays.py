"""Arrays used in ways that they do not support."""

from __future__ import annotations

import copy
import pickle

import numpy as np
import pytest

import shaderad as sad
from tests.wrong_calls.kernels import X, check, square

WRONG = [
    ("x[10]", "SR0665", "position 10", "length 4"),
    ("x[-10]", "SR0665", "position -10"),
    ("x[1.5]", "SR0380", "found `1.5`"),
    ("x['a']", "SR0380", "found `'a'`"),
    ("x[True]", "SR0380", "found `True`"),
    ("x[::0]", "SR0380", "a step of `0`"),
    ("x[1 : float('nan')]", "SR0380", "found `nan`"),
    ("x[..., ...]", "SR0380", "`...` twice"),
    ("x[0, 0]", "SR0381", "2 indices", "shape (4,)"),
    ("x[0][0]", "SR0381", "1 index", "shape ()"),
    ("x.__setitem__(0, 1.0)", "SR0384", "written to from Python", "`sad.Out`"),
    ("len(x[0])", "SR0360", "`len()`"),
    ("list(x[0])", "SR0360", "iteration", "`.item()`"),
    ("float(x)", "SR0361", "exactly one number", "shape=(4,)"),
    ("bool(x)", "SR0361", "shape=(4,)"),
    ("x.item()", "SR0361", "shape=(4,)"),
    ("sad.array([]).item()", "SR0361", "shape=(0,)"),
    ("f'{x:.2f}'", "SR0361", "shape=(4,)"),
    ("x + np.ones(3)", "SR0379", "(4,) and (3,)"),
    (
        "sad.array([PARTICLE], dtype=Particle) * 2.0",
        "SR0304",
        "`*` does not take `Particle` and `2.0`",
    ),
    ("sad.array([1, 2]) & 1.5", "SR0304", "`&` does not take `int` and `1.5`"),
    ("~x", "SR0316", "`~` does not take `float`"),
    ("pickle.dumps(x)", "SR0384", "pickled", "`x.numpy()`"),
]


@pytest.mark.parametrize("wrong", WRONG, ids=lambda w: w[0])
def test_wrong_uses_of_arrays_are_named(wrong: tuple[str, ...], device: sad.Device) -> None:
    check(*wrong, x=sad.array(X), pickle=pickle)


NO_ARRAYS = [
    ("sad.pointer(5)", "SR0392", "got a `int`"),
    ("sad.pointer('abc')", "SR0392", "got a `str`"),
    ("sad.pointer(x[0])", "SR0392", "got a `Array`"),
    ("sad.pointer(np.float32(1.0))", "SR0392", "got a `float32`"),
    ("sad.pointer(PARTICLE)", "SR0392", "got a `Particle`"),
    ("sad.pointer(float)", "SR0392", "got a `type`"),
]


@pytest.mark.parametrize("wrong", NO_ARRAYS, ids=lambda w: w[0])
def test_a_pointer_to_what_is_no_array_is_refused_when_made(
    wrong: tuple[str, ...], device: sad.Device
) -> None:
    check(*wrong, x=sad.array(X))


def test_the_shape_of_an_array_cannot_be_assigned(device: sad.Device) -> None:
    x = sad.array(X)
    with pytest.raises(AttributeError, match="shape"):
        x.shape = (2, 2)  # pyright: ignore[reportAttributeAccessIssue]
    assert x.shape == (4,)


def test_copies_have_content_of_their_own(device: sad.Device) -> None:
    x = sad.array(X)
    _, pull = sad.vjp(square, x, dim=4)
    sums = pull(X)
    before = copy.copy(sums[0]), copy.deepcopy(sums)[0]
    pull(X, accumulate=sums)
    for one in before:
        np.testing.assert_array_equal(one.numpy(), 2 * X * X)
    assert f"{x[1]:.2f}" == "2.00"
