"""Transforms of what has no derivative, and cotangents, tangents and settings that do not fit."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import shaderad as sad
from tests.wrong_calls.kernels import X, check, evaluate, square, two

WANTED = "wanted tuple of 2"
COTANGENTS = [
    ("pull(np.ones(3))", "SR0382", "`out_bar` has the shape (3,), but must have (4,)"),
    ("pull(np.ones((4, 1)))", "SR0382", "(4, 1)"),
    ("pull(1.0)", "SR0382", "has the shape ()"),
    ("pull((X,))", "SR0382", "(1, 4)"),
    ("pull(np.ones(4, bool))", "SR0353", "`out_bar` takes `float`", "`bool` values"),
    ("pull(np.ones(4, complex))", "SR0351", "`complex128` values"),
    ("pull('abc')", "SR0351", "`out_bar` is not an array", "found a `str`"),
    ("pull({'y': X})", "SR0351", "found a `dict`"),
    ("pull(sad.array(np.ones(4, np.int32)))", "SR0367", "device array of `int`"),
    ("pull(X, X)", "SR0452", "`accumulate`", "found ndarray, wanted tuple of 1"),
    ("pull(X, accumulate=5)", "SR0452", "found int"),
    ("pull(X, accumulate=[])", "SR0458", "`accumulate` has 0 entries", "1 argument"),
    ("pull(X, accumulate=(X,))", "SR0469", "found a `ndarray`", "`float` with shape (4,)"),
    ("pull(X, accumulate=('a',))", "SR0469", "found a `str`"),
    ("pull(X, accumulate=(sad.array(X[:3]),))", "SR0469", "shape=(3,)", "shape (4,)"),
    ("pull(X, accumulate=(sad.array([1, 2, 3, 4]),))", "SR0469", "Array(int"),
    ("pull_two(X)", "SR0452", "`out_bar`", "found ndarray", WANTED),
    ("pull_two((X,))", "SR0452", "found tuple of 1", WANTED),
    ("pull_two((X, None, None))", "SR0452", "found tuple of 3", WANTED),
    ("pull_two({'y': X})", "SR0452", "found dict with y", WANTED),
]
TANGENTS = [
    ("sad.jvp(square, (X,), (), dim=4)", "SR0459", "1 primal, but 0 tangents"),
    ("sad.jvp(square, (X,), (X[:3],), dim=4)", "SR0382", "`x` has the shape (3,)"),
    ("sad.jvp(square, (X,), (1.0,), dim=4)", "SR0382", "has the shape ()"),
    ("sad.jvp(square, (X,), ('a',), dim=4)", "SR0351", "found a `str`"),
    ("sad.jvp(square, (X,), {'x': X}, dim=4)", "SR0351", "found a `dict`"),
    ("sad.jvp(square, None, None, dim=4)", "SR0351", "found a `NoneType`"),
    ("sad.jvp(one_particle, (PARTICLE,), (5.0,), dim=1)", "SR0355", "found a `float`"),
    ("sad.jvp(one_particle, (PARTICLE,), ({'weight': 1.0},), dim=1)", "SR0355", "found weight"),
    ("sad.jvp(one_particle, (PARTICLE,), (Particle(1.0, (1, 2), 0),), dim=1)", "SR0352", ".place"),
    ("sad.jvp(cloud, (CLOUD,), (3.0,), dim=1)", "SR0452", "`c`", "found float", "points, gain"),
    ("sad.jvp(cloud, (CLOUD,), ({'gian': 1.0},), dim=1)", "SR0452", "found dict with gian"),
]
GRADIENTS = [
    (
        "sad.grad(square)(X, dim=4)",
        "SR0457",
        "exactly one float",
        "float of shape (4,)",
        "total: sad.Add[float]",
    ),
    ("sad.grad(total)(X, dim=4, shapes={'t': 2})", "SR0457", "float of shape (2,)"),
    ("sad.grad(lambda x: x * x)(X)", "SR0457", "float of shape (4,)", "`sad.sum(...)`"),
    ("sad.grad(lambda x: 'text')(X)", "SR0457", "the result is str"),
    ("sad.grad(lambda x: None)(X)", "SR0457", "the result is NoneType"),
    ("sad.grad(lambda x: {'y': square(x, dim=4), 'n': 3})(X)", "SR0457", "shape (4,), int"),
    ("sad.grad(total, argnums=1)(X, dim=4, shapes={'t': 1})", "SR0455", "found 1, of 1 argument"),
    ("sad.grad(total, argnums=-1)(X, dim=4, shapes={'t': 1})", "SR0455", "found -1"),
    ("sad.grad(total, argnums=0.5)(X, dim=4, shapes={'t': 1})", "SR0455", "found 0.5"),
    ("sad.grad(total, argnums='x')(X, dim=4, shapes={'t': 1})", "SR0455", "found 'x'"),
    ("sad.grad(total, argnums=None)(X, dim=4, shapes={'t': 1})", "SR0455", "found None"),
    ("sad.grad(total, argnums=True)(X, dim=4, shapes={'t': 1})", "SR0455", "found True"),
    ("sad.grad(total, argnums=(0, 5))(X, dim=4, shapes={'t': 1})", "SR0455", "found 5"),
    ("sad.grad(integers)([1], dim=1)", "SR0456", "argument 0 holds no float"),
    ("sad.grad(5)(X)", "SR0466", "found 5"),
    ("sad.grad(total(X, dim=4, shapes={'t': 1}))(X)", "SR0466", "found Array(float"),
    ("sad.vjp(None, X)", "SR0466", "found None"),
    ("sad.vjp(square, x=X, dim=4)", "SR0453", "`x` is given by keyword"),
    (
        "sad.jvp(lambda x: pull_at(x)(X, accumulate=pull_at(x)(X))[0], [X], [X])",
        "SR0451",
        "arrays of the same function",
    ),
    ("sad.grad(lambda x: float(total(x, dim=4, shapes={'t': 1})))(X)", "SR0450", "`float()`"),
    ("sad.grad(lambda x: np.asarray(x).sum())(X)", "SR0450", "conversion to NumPy of an array"),
    (
        "sad.grad(lambda x: sad.sum(square([x, x], dim=2)))(2.0)",
        "SR0450",
        "NumPy of `x`, a `list` that holds an array, while",
        "`sad.float3(x, y, z)`",
    ),
    ("sad.grad(lambda x: sad.sum(sad.array((x, x))))(2.0)", "SR0450", "of `data`, a `tuple`"),
    ("sad.grad(lambda x: total(np.float32(x), dim=4, shapes={'t': 1}))(X)", "SR0450", "to NumPy"),
    ("sad.vjp(lambda p: particles(p, dim=1), np.zeros(1, [('mass', 'f4')]))", "SR0454", "struct"),
    ("sad.jacobian(two)(X, dim=4)", "SR0460", "the result is tuple of 2"),
    ("sad.jacobian(square, mode='sideways')", "SR0461", "found 'sideways'"),
    ("sad.jacobian(particles)([PARTICLE], dim=1)", "SR0468", "argument 0 holds `Particle`"),
    ("sad.jacobian(particles, mode='forward')([PARTICLE], dim=1)", "SR0468", "`list of 1`"),
    ("sad.gradcheck(square, X, dim=4, eps=0.0)", "SR0465", "`eps`", "above 0", "found 0.0"),
    ("sad.gradcheck(square, X, dim=4, eps=float('nan'))", "SR0465", "found nan"),
    ("sad.gradcheck(square, X, dim=4, eps='small')", "SR0465", "found 'small'"),
    ("sad.gradcheck(square, X, dim=4, rtol='a')", "SR0465", "`rtol`", "from 0 on"),
    ("sad.gradcheck(square, X, dim=4, atol=-1.0)", "SR0465", "`atol`", "found -1.0"),
    ("sad.gradcheck(square, [1.0, float('nan')], dim=2)", "SR0467", "`x` holds nan"),
    ("sad.gradcheck(5, X)", "SR0466", "found 5"),
]


def pull_at(x: Any) -> Any:
    return sad.vjp(lambda y: square(y, dim=4), x)[1]


def pullbacks() -> dict[str, Callable[..., Any]]:
    return {"pull": sad.vjp(square, X, dim=4)[1], "pull_two": sad.vjp(two, X, dim=4)[1]}


@pytest.mark.parametrize("wrong", COTANGENTS, ids=lambda w: w[0])
def test_cotangents_that_do_not_fit_are_named(wrong: tuple[str, ...], device: sad.Device) -> None:
    check(*wrong, **pullbacks())


@pytest.mark.parametrize("wrong", TANGENTS, ids=lambda w: w[0])
def test_tangents_that_do_not_fit_are_named(wrong: tuple[str, ...], device: sad.Device) -> None:
    check(*wrong)


@pytest.mark.parametrize("wrong", GRADIENTS, ids=lambda w: w[0])
def test_what_has_no_gradient_is_refused(wrong: tuple[str, ...], device: sad.Device) -> None:
    check(*wrong, pull_at=pull_at)


def test_the_functions_own_exceptions_pass_through(device: sad.Device) -> None:
    def fails(x: Any) -> Any:
        raise KeyError("mine")

    with pytest.raises(KeyError, match="mine"):
        sad.grad(fails)(X)
    assert evaluate("sad.grad(total)(X, dim=4, shapes={'t': 1})", {}).numpy().tolist() == [
        2.0, 4.0, 6.0, 8.0,
    ]  # fmt: skip


def test_structure_in_other_containers_and_none_are_accepted(device: sad.Device) -> None:
    pull = pullbacks()["pull_two"]
    for bar in [(X, None), [X, None], (X, X)]:
        np.testing.assert_array_equal(pull(bar)[0].numpy(), X)
    assert pull((None, None))[0].numpy().tolist() == [0.0] * 4


def test_sums_of_gradients_grow_in_place(device: sad.Device) -> None:
    pull = pullbacks()["pull"]
    sums = pull(X)
    pull(X, accumulate=sums)
    np.testing.assert_array_equal(sums[0].numpy(), 4 * X * X)
