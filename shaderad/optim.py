"""Optimisers over arrays, structs and containers of them: from gradients to new parameters.

Each step is elementwise arithmetic in a graph. It is one submission, or part of the graph of the
user in which it is called.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any, cast

import numpy as np

from shaderad.arrays import trees
from shaderad.arrays.arrays import Array, array
from shaderad.arrays.dtypes import shown_dtype
from shaderad.calls.graphs import graph
from shaderad.device.devices import Device
from shaderad.device.lines import user_span
from shaderad.diagnostics import error, text_of
from shaderad.diagnostics.tracebacks import api_boundary, api_class
from shaderad.functions import elements
from shaderad.ir import building as b
from shaderad.ir.arrays import ArrayType
from shaderad.ir.types import (
    DOUBLE,
    FLOAT,
    HALF,
    Struct,
    Type,
    is_differentiable,
    scalar_of,
    scalars,
    with_scalar,
)
from shaderad.trace.components import packed
from shaderad.trace.elements import as_element, struct_of_fields
from shaderad.trace.primitives import as_number, known_shape, made, repeats_to
from shaderad.trace.traced import TracedArray, current_trace

State = Mapping[str, Any]
"""Containers of arrays that one step passes to the next."""


@api_class
class SGD:
    """Gradient descent, with momentum where that is not 0.

    ``velocity = momentum * velocity + gradient``; ``parameter -= lr * velocity``.

    Args:
        lr: The learning rate, in units of the parameters by units of their gradients.
        momentum: From 0 to below 1.

    Raises:
        ShapeError: SR0393, where `lr` or `momentum` is out of range.

    Source: Polyak, *Some methods of speeding up the convergence of iteration methods*, USSR
    Computational Mathematics and Mathematical Physics 4 (1964).
    """

    _followed = ("lr", "momentum")

    @api_boundary
    def __init__(self, lr: float, *, momentum: float = 0.0) -> None:
        self.lr = _checked("lr", lr, low=0.0)
        self.momentum = _checked("momentum", momentum, low=0.0, high=1.0)

    def init(self, params: Any) -> State:
        """The state before the first step.

        Args:
            params: Arrays, structs of them, or tuples, lists and dicts of such.
        """
        return {"velocity": _zeros_like(params)} if self.momentum else {}

    def step(self, params: Any, gradients: Any, state: State, lr: Any = None) -> tuple[Any, State]:
        """New parameters and state; `gradients` are built like `params`.

        Args:
            params: Arrays, structs of them, or tuples, lists and dicts of such; integers are
                returned as they are.
            gradients: The gradients of `sad.grad` by `params`.
            state: The state that `init` or the last step returned.
            lr: The learning rate of this step, which may be an array of shape ().

        Raises:
            DerivativeError: SR0452, where `gradients` or `state` are built differently.
            ShapeError: SR0334, where an array in them has another shape than its parameter.
        """
        rate, momentum = _rates_for(params, self.lr if lr is None else lr, self.momentum)
        if not self.momentum:
            return _descended(params, gradients, rate), {}
        _check_names("state", state, ["velocity"])
        return _pushed(params, gradients, state["velocity"], rate, momentum)


@api_class
class Adam:
    """Adam: steps by the mean of gradients over the root of the mean of their squares.

    ``m = beta1 m + (1 - beta1) g``; ``v = beta2 v + (1 - beta2) g**2``;
    ``parameter -= lr (m / w1) / (sqrt(v / w2) + epsilon)``, where w1 and w2 are the sums of the
    weights of m and v, which are ``1 - beta**step``.

    Args:
        lr: The learning rate, in units of the parameters.
        beta1: How much of the mean of gradients each step keeps.
        beta2: How much of the mean of squares.
        epsilon: Added to the root.

    Raises:
        ShapeError: SR0393, where one of them is out of range.

    Source: Kingma, Ba, *Adam: a method for stochastic optimization*, ICLR 2015, algorithm 1.
    """

    _followed = ("lr", "beta1", "beta2", "epsilon")

    @api_boundary
    def __init__(
        self, lr: float, *, beta1: float = 0.9, beta2: float = 0.999, epsilon: float = 1e-8
    ) -> None:
        self.lr = _checked("lr", lr, low=0.0)
        self.beta1 = _checked("beta1", beta1, low=0.0, high=1.0)
        self.beta2 = _checked("beta2", beta2, low=0.0, high=1.0)
        self.epsilon = _checked("epsilon", epsilon, low=0.0)

    def init(self, params: Any) -> State:
        """The state before the first step.

        Args:
            params: Arrays, structs of them, or tuples, lists and dicts of such.
        """
        mean, square = _zeros_like(params), _zeros_like(params)
        return {"mean": mean, "square": square, "mean_weight": 0.0, "square_weight": 0.0}

    def step(self, params: Any, gradients: Any, state: State, lr: Any = None) -> tuple[Any, State]:
        """New parameters and state: see `SGD.step`."""
        _check_names("state", state, ["mean", "square", "mean_weight", "square_weight"])
        weights = [state["mean_weight"], state["square_weight"]]
        lr = self.lr if lr is None else lr
        rates = _rates_for(params, lr, self.beta1, self.beta2, self.epsilon, *weights)
        return _adam(params, gradients, {"mean": state["mean"], "square": state["square"]}, *rates)


@graph
def _zeros_like(params: Any) -> Any:
    return trees.mapped(_zeros, params, name="params")


def _zeros(p: Any) -> Any:
    """The state of an array: zeros in at least 32 bits, by field if it has fields."""
    p = as_element(p)
    if isinstance(p.element, Struct):
        return {name: _zeros(cast("TracedArray", p[name])) for name in _float_fields(p.element)}
    if not is_differentiable(p.element):
        return 0.0
    return made(b.zeros(ArrayType(_widened(p.element), p.value.shape)))


@graph
def _descended(params: Any, gradients: Any, lr: Any) -> Any:
    def step(p: Array, g: Array) -> Array:
        return p - _like(p, lr) * g

    return _stepped(step, params, gradients)


@graph
def _pushed(
    params: Any, gradients: Any, velocity: Any, lr: Any, momentum: Any
) -> tuple[Any, State]:
    def step(p: Array, _: Array, v: Array) -> Array:
        return p - _like(p, lr) * v

    velocity = _renewed(lambda v, g: _like(v, momentum) * v + g, params, gradients, velocity)
    return _stepped(step, params, gradients, velocity), {"velocity": velocity}


@graph
def _adam(
    params: Any,
    gradients: Any,
    state: Any,
    lr: Any,
    beta1: Any,
    beta2: Any,
    epsilon: Any,
    mean_weight: Any,
    square_weight: Any,
) -> tuple[Any, State]:
    # The mean of ones so far: the sum of the weights.
    mean_weight = beta1 * mean_weight + (1.0 - beta1)
    square_weight = beta2 * square_weight + (1.0 - beta2)

    def mean_of(m: Array, g: Array) -> Array:
        return _like(m, beta1) * m + _like(m, 1.0 - beta1) * g

    def square_of(v: Array, g: Array) -> Array:
        return _like(v, beta2) * v + _like(v, 1.0 - beta2) * g * g

    def step(p: Array, _: Array, m: Array, v: Array) -> Array:
        root = (v / _like(v, square_weight)) ** 0.5
        return p - _like(p, lr) * (m / _like(m, mean_weight)) / (root + _like(v, epsilon))

    mean = _renewed(mean_of, params, gradients, state["mean"])
    square = _renewed(square_of, params, gradients, state["square"])
    weights = {"mean_weight": mean_weight, "square_weight": square_weight}
    stepped = _stepped(step, params, gradients, mean, square)
    return stepped, {"mean": mean, "square": square} | weights


# -- elements ----------------------------------------------------------------------------------


def _stepped(update: Callable[..., Array], params: Any, gradients: Any, *states: Any) -> Any:
    """`params`, with ``update(p, g, *states)`` in at least 32 bits for arrays with a gradient."""

    def leaf(parameter: Any, g: Any, *states: Any) -> Array:
        p = as_element(parameter)
        t = p.element
        if g is None or not is_differentiable(t):
            return parameter
        if isinstance(t, Struct):
            fields = {name: p[name] for name, _ in t.fields}
            for name in _float_fields(t):
                fields[name] = leaf(p[name], g[name], *(state[name] for state in states))
            return struct_of_fields(t, fields)
        g = _of_elements("gradients", g, p)
        for state in states:
            _check_shape("state", state, p)
        return _cast(update(_cast(p, _widened(t)), _cast(g, _widened(t)), *states), t)

    return trees.mapped(leaf, params, gradients, *states, name="params")


def _renewed(
    update: Callable[[Array, Array], Array], params: Any, gradients: Any, states: Any
) -> Any:
    """`states`, with ``update(state, g)`` for arrays with a gradient."""

    def leaf(parameter: Any, g: Any, state: Any) -> Any:
        p = as_element(parameter)
        t = p.element
        if g is None or not is_differentiable(t):
            return state
        if isinstance(t, Struct):
            _check_names("state", state, _float_fields(t))
            return {name: leaf(p[name], g[name], state[name]) for name in _float_fields(t)}
        g = _of_elements("gradients", g, p)
        _check_shape("state", state, p)
        return update(state, _cast(g, _widened(t)))

    return trees.mapped(leaf, params, gradients, states, name="params")


def _float_fields(t: Struct) -> list[str]:
    return [name for name, field in t.fields if is_differentiable(field)]


def _widened(t: Type) -> Type:
    """The type with floats in place of halves, because squares of small halves underflow."""
    return with_scalar(t, FLOAT) if scalar_of(t) == HALF else t


def _cast(x: Array, t: Type) -> Array:
    return x if x.element == t else elements.cast(x, shown_dtype(t))


def _like(x: Array, value: Any) -> Any:
    """A number, or an array of shape () that holds one, in the float type of `x`."""
    # A number in a graph already takes the type of the other operand.
    if not isinstance(value, Array) or DOUBLE not in (value.element, scalar_of(x.element)):
        return value
    return _cast(value, scalar_of(x.element) or FLOAT)


def _rates_for(params: Any, *rates: Any) -> tuple[Any, ...]:
    """Rates as doubles if a parameter holds doubles, because a graph takes numbers as floats."""
    if current_trace() is not None:
        return rates
    arrays = (p for p in trees.leaves(params) if isinstance(p, Array))
    double = next((p for p in arrays if DOUBLE in scalars(p.element)), None)
    return rates if double is None else tuple(_in_double(rate, double.device) for rate in rates)


def _in_double(rate: Any, device: Device) -> Array:
    if as_number(rate) is not None:
        return array(np.asarray(rate, np.float64), dtype=DOUBLE, device=device)
    return _cast(rate if isinstance(rate, Array) else array(rate, device=device), DOUBLE)


def _check_names(name: str, state: Any, wanted: Sequence[str]) -> None:
    if not isinstance(state, Mapping) or set(cast("State", state)) != set(wanted):
        whole = dict.fromkeys(wanted)
        raise error("SR0452", name=name, found=trees.described(state),
                    wanted=trees.described(whole))  # fmt: skip


def _check_shape(name: str, x: Any, p: Any) -> None:
    """Raises if arithmetic would broadcast `x` or the parameter."""
    if not isinstance(x, TracedArray):
        raise error("SR0452", user_span(), name=name, found=trees.described(x), wanted="array")
    extents, wanted = x.extents, p.extents
    if (
        len(extents) != len(wanted)
        or not repeats_to(extents, wanted)
        or not repeats_to(wanted, extents)
    ):
        raise error("SR0334", user_span(), found=known_shape(extents), wanted=known_shape(wanted))


def _of_elements(name: str, x: Any, p: TracedArray) -> Any:
    """`x` in the shape of a parameter; trailing axes become vectors if the parameter has them."""
    is_of_scalars = isinstance(x, TracedArray) and x.element == scalar_of(p.element)
    shaped = packed(x, p.element) if is_of_scalars else x
    _check_shape(name, shaped, p)
    return shaped


def _checked(name: str, value: Any, low: float, high: float = math.inf) -> float:
    number = as_number(value)
    if number is None or not low <= number < high:
        limits = f"from {low:g} to below {high:g}" if high < math.inf else f"from {low:g} on"
        raise error("SR0393", name=name, found=text_of(value), limits=limits)
    return float(number)
