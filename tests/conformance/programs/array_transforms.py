"""Derivatives of derivatives, and derivatives that the user gives."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

import shaderad as sad
from tests.conformance.programs.program import over_arrays


def derivative(f: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """Of a function by element."""
    return sad.grad(lambda x: sad.sum(f(x)))


def second_derivative(x: Any) -> Any:
    return derivative(derivative(lambda one: one**4))(x)


def pulled_through_gather(x: Any, idx: Any) -> Any:
    _, pullback = sad.vjp(lambda one: one[idx] ** 3, x)
    return pullback(np.ones(3))[0]


def not_confused(x: Any, z: Any) -> Any:
    return sad.grad(lambda outer: sad.grad(lambda inner: outer * inner)(z))(x)


def mixed(a: Any, b: Any) -> Any:
    return sad.grad(lambda one: (one - b) ** 2)(a)


def rosenbrock(x: Any) -> Any:
    return sad.sum(100.0 * (x[1:] - x[:-1] ** 2) ** 2 + (1.0 - x[:-1]) ** 2)


def curvature(x: Any, v: Any) -> Any:
    return sad.hvp(rosenbrock, (x,), (v,))


@sad.custom_vjp
def doubled(x: Any) -> Any:
    return 2.0 * x


def _doubled_forward(x: Any) -> Any:
    c = 2.0 * x
    return c, c


def _doubled_backward(c: Any, c_bar: Any) -> Any:
    return (c_bar + sad.sqrt(c),)


doubled.defvjp(_doubled_forward, _doubled_backward)


def matrix_product(A: Any, B: Any) -> Any:
    return A @ B


PROGRAMS = {
    "fut-nested0/arrays": over_arrays(second_derivative),
    "fut-nested1-gather/arrays": over_arrays(pulled_through_gather),
    "fut-perturbation-confusion/arrays": over_arrays(not_confused),
    "fut-mixed-2229/arrays": over_arrays(mixed),
    "own-hvp-rosenbrock/arrays": over_arrays(curvature),
    "fut-with-vjp/arrays": over_arrays(doubled, "c"),
    "fut-matmul/arrays": over_arrays(matrix_product, "C"),
}
