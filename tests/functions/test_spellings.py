"""One vector in each of its spellings, to whatever takes one: the same value, the same gradient.

The table of spellings stands in docs/concepts.md. Everything here computes half the square of
(1, 2, 3), once for each of two threads, so that the gradient is (2, 4, 6).
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import product
from typing import Any

import numpy as np
import pytest

import shaderad as sad
from shaderad import float3
from shaderad.arrays import trees

SPELLINGS: dict[str, Callable[[], Any]] = {
    "list": lambda: [1.0, 2.0, 3.0],
    "float3": lambda: float3(1, 2, 3),
    "numpy": lambda: np.float32([1, 2, 3]),
    "array of numbers": lambda: sad.array([1.0, 2.0, 3.0]),
    "array of one vector": lambda: sad.array([1.0, 2.0, 3.0], dtype=float3),
    "tuple": lambda: (1.0, 2.0, 3.0),
    "tuple of arrays": lambda: tuple(map(sad.array, (1.0, 2.0, 3.0))),
    "mixed tuple": lambda: (1.0, sad.array(2.0), np.float32(3.0)),
}
GRADIENT = [2.0, 4.0, 6.0]


@sad.struct
class Ball:
    centre: float3
    radius: float


@sad.kernel
def half_square(i: sad.Index, p: float3, y: sad.Out[float]):
    y[i] = 0.5 * sad.dot(p, p)


@sad.kernel
def of_ball(i: sad.Index, ball: Ball, y: sad.Out[float]):
    y[i] = 0.5 * sad.dot(ball.centre, ball.centre) * ball.radius


@sad.function
def square(v: float3) -> float:
    return sad.dot(v, v)


def energy(p: Any) -> Any:
    return sad.sum(half_square(p, dim=2))


def ball_energy(ball: Any) -> Any:
    return sad.sum(of_ball(ball, dim=2))


@sad.graph
def annotated(p: float3) -> sad.Array[float]:
    return square(p) + 0.0 * p.x


@sad.custom_vjp
def ruled(p: Any) -> Any:
    return energy(p)


ruled.defvjp(
    lambda p: (energy(p), p),
    lambda p, bar: (sad.array(GRADIENT, dtype=float3) * bar,),
)


def numbers(tree: Any) -> list[float]:
    return np.concatenate([np.ravel(np.asarray(leaf)) for leaf in trees.leaves(tree)]).tolist()


GRADIENTS: dict[str, Callable[[Any], Any]] = {
    "kernel": lambda p: sad.vjp(half_square, p, dim=2)[1]([1.0, 1.0])[0],
    "function": sad.grad(energy),
    "graph": lambda p: sad.grad(sad.graph(lambda p: energy(p)))(p),
    "annotated graph": lambda p: sad.grad(annotated)(p),
    "annotated graph in a function": sad.grad(lambda p: annotated(p)),
    "annotated graph in a graph": lambda p: sad.grad(sad.graph(lambda p: annotated(p)))(p),
    "gradient in a graph": lambda p: sad.graph(lambda p: sad.grad(energy)(p))(p),
    "second derivative": lambda p: sad.hvp(energy, (p,), (p,)),
    "struct of a kernel": lambda p: sad.grad(ball_energy)(Ball(p, 1.0)).centre,
    "struct of a graph": lambda p: (
        sad.grad(sad.graph(lambda b: ball_energy(b)))(Ball(p, 1.0)).centre
    ),
    "struct made in a function": sad.grad(lambda p: ball_energy(Ball(p, 1.0))),
    "loop": sad.grad(lambda p: energy(sad.fori_loop(2, lambda k, q: q, p))),
    "custom rule": sad.grad(lambda p: ruled(p)),
    "checkpoint": sad.grad(sad.checkpoint(energy)),
    "function of kernels": sad.grad(lambda p: square(p)),
}
"""Each gives the gradient, in the form of its argument."""

ADAM = sad.optim.Adam(0.5)
VALUES: dict[str, tuple[Callable[[Any], Any], list[float]]] = {
    "constant of a gradient": (lambda p: sad.grad(lambda w: w * energy(p))(1.0), [14.0]),
    "tangent": (lambda p: sad.jvp(energy, (p,), (p,))[1], [28.0]),
    "start of a reduction": (
        lambda p: sad.reduce(sad.add, sad.zeros(4, dtype=float3), p),
        [1.0, 2.0, 3.0],
    ),
    "optimiser": (
        lambda p: ADAM.step(p, sad.grad(energy)(p), ADAM.init(p))[0],
        [0.5, 1.5, 2.5],
    ),
    "optimiser of structs": (
        lambda p: (
            ADAM.step(Ball(p, 1.0), sad.grad(ball_energy)(Ball(p, 1.0)), ADAM.init(Ball(p, 1.0)))[
                0
            ].centre
        ),
        [0.5, 1.5, 2.5],
    ),
    "jacobian": (sad.jacobian(energy), GRADIENT),
}
"""Each gives numbers that are the same for all spellings."""
SAMPLES = {"wgpu": (3, 0), "slangpy": (6, 1)}
"""Of so many pairs a runtime runs one, from the first on: each caller and each spelling comes
several times, in other pairs on each runtime.
"""


def test_a_vector_means_the_same_in_every_spelling(device: sad.Device) -> None:
    step, first = SAMPLES[device.capabilities.runtime]
    pairs = product(enumerate((*GRADIENTS, *VALUES)), enumerate(SPELLINGS))
    for (row, caller), (column, spelling) in pairs:
        if (row + column) % step != first:
            continue
        p = SPELLINGS[spelling]()
        if caller in VALUES:
            function, wanted = VALUES[caller]
            np.testing.assert_allclose(numbers(function(p)), wanted, 1e-5, 1e-6, err_msg=caller)
            continue
        found = GRADIENTS[caller](p)
        np.testing.assert_allclose(numbers(found), GRADIENT, 1e-5, err_msg=f"{caller}: {spelling}")
        # A gradient has the form of its argument: a tuple for a tuple.
        assert isinstance(found, tuple) == isinstance(p, tuple), (caller, spelling)
        if isinstance(p, sad.Array):
            assert (found.element, found.shape) == (p.element, p.shape), (caller, spelling)


def test_a_step_of_descent_keeps_a_vector(device: sad.Device) -> None:
    p: Any = float3(1, 2, 3)
    for _ in range(2):
        p = p - 0.25 * sad.grad(energy)(p)
    assert (p.element, p.shape) == (float3.ir_type, ())
    np.testing.assert_allclose(p.numpy(), [0.25, 0.5, 0.75])


def test_ints_and_matrices_have_spellings_too(device: sad.Device) -> None:
    fill = sad.graph(lambda: energy((1, 2, 3)) + energy([1, 2, 3]))
    assert fill().item() == 28.0

    @sad.function
    def turned(m: sad.float2x2, v: sad.float2) -> sad.float2:
        return m @ v

    rows = ((0.0, -1.0), (1.0, 0.0))
    for m in (rows, [*map(list, rows)], sad.float2x2(0, -1, 1, 0), sad.array(rows)):
        np.testing.assert_array_equal(np.asarray(sad.map(turned, m, (2.0, 3.0))), [-3.0, 2.0])

    def loss(m: Any) -> Any:
        return sad.sum(
            sad.dot(turned(m, sad.array((2.0, 3.0), dtype=sad.float2)), sad.float2(1, 2))
        )

    assert [numbers(row) for row in sad.grad(loss)(rows)] == [[2.0, 3.0], [4.0, 6.0]]


def test_what_has_another_count_is_no_vector() -> None:
    for wrong in ((1.0, 2.0), (sad.array(1.0), 2.0), [1.0, 2.0, 3.0, 4.0]):
        with pytest.raises(sad.ShapeError):
            sad.grad(energy)(wrong)
