"""`vjp`, `jvp`, `grad`, `value_and_grad`, `jacobian` over kernels and functions that call them.

Every transform linearises the function at its arguments once (`differentiate/linearised.py`) and
then pulls cotangents back or pushes tangents forward. Invariant: gradients come in the form of the
arguments, and nothing is dispatched that the answer does not need.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any, cast

import numpy as np

from shaderad.arrays import trees
from shaderad.arrays.arrays import Array, array, copied, zeros
from shaderad.arrays.containers import is_data
from shaderad.arrays.tape import When
from shaderad.device.devices import Device
from shaderad.diagnostics import Error, error, text_of
from shaderad.diagnostics.tracebacks import api_boundary
from shaderad.differentiate.argnums import (
    as_arguments,
    check_differentiable,
    positions_of,
    spread_tangents,
)
from shaderad.differentiate.leaves import Linearised
from shaderad.differentiate.linearised import linearised, linearised_as_graph
from shaderad.ir import types
from shaderad.language.signatures import Launchable
from shaderad.trace.traced import TracedArray, current_trace

__all__ = ["grad", "hvp", "jacobian", "jvp", "value_and_grad", "vjp"]

Function = Callable[..., Any]


class Pullback:
    """The pullback of a function at its arguments: cotangents of the result -> gradients.

    ``x_bar = out_bar @ J`` with the Jacobian ``J = d out / d x``, which is never formed. It is
    linear, may be called again, and holds the arrays that the function read until it is dropped.
    """

    __slots__ = ("_at", "_is_one", "_positions")

    def __init__(self, at: Linearised, positions: Sequence[int], *, is_one: bool = False) -> None:
        # is_one: gives the gradient of the only position itself, not in a tuple.
        self._at = at
        self._positions = positions
        self._is_one = is_one

    @api_boundary
    def __call__(self, out_bar: Any, accumulate: Any = None) -> Any:
        """Pulls `out_bar` back.

        Args:
            out_bar: Cotangents in the structure of the result: arrays, NumPy arrays, or `None`
                for zero.
            accumulate: The result of an earlier call; the gradients are added to it in place.

        Returns:
            A tuple of one gradient for each positional argument, in its form and element type;
            `None` for what holds no float. With an int as the ``argnums`` of `vjp`, the one
            gradient.

        Raises:
            ShapeError: SR0382, where a cotangent does not have its result's shape.
            DerivativeError: SR0452, where the structure differs, or the function cannot be
                differentiated; SR0458, SR0469, where `accumulate` is not what a call returned.
        """
        count, into = len(self._positions), cast("Sequence[Any] | None", accumulate)
        if accumulate is not None and self._is_one:
            into = [accumulate]
        if into is not None and not isinstance(into, tuple | list):
            found = trees.described(into)
            raise error("SR0452", name="accumulate", found=found, wanted=f"tuple of {count}")
        if into is not None and len(into) != count:
            raise error("SR0458", found=len(into), wanted=count)
        gradients = self._at.pull(out_bar, self._positions, into)
        return gradients[0] if self._is_one else tuple(gradients)


@api_boundary
def vjp(
    function: Function, *args: Any, argnums: int | Sequence[int] | None = None, **call: Any
) -> tuple[Any, Pullback]:
    """Runs `function`, and gives its result with the pullback of cotangents (reverse mode).

    ``pullback(out_bar) = out_bar @ J`` with ``J = d function(args) / d args``, at the cost of a
    small multiple of `function`.

    Args:
        function: A kernel, a graph, or any Python function that calls kernels and functions on
            arrays.
        args: Its positional arguments: arrays, NumPy arrays, numbers, structs, pointers, and
            tuples, lists and dicts of them. A gradient is taken of everything in them that is
            float.
        argnums: The positional arguments whose gradients a pullback gives, by default all. With an
            int it gives one gradient, with a tuple it gives a tuple of gradients.
        call: Call keywords such as ``dim``; a differentiable argument here is an error.

    Returns:
        ``(out, pullback)`` with ``pullback(out_bar)`` a tuple of one entry for each argument.

    Raises:
        DerivativeError: SR0451 for what a transform around this one does not follow, SR0453 for a
            differentiable keyword, SR0455 and SR0456 for argnums.

    Differentiable itself: transforms nest to any order.
    See docs/conventions.md for ties, jumps and singular points.

    Source: Griewank, Walther, *Evaluating Derivatives*, 2nd ed. (2008), section 3.2.
    """
    positions = range(len(args)) if argnums is None else positions_of(argnums, len(args))
    at = linearised(function, args, call, when=When.BEFORE_PULLBACK)
    if argnums is not None:
        check_differentiable(at, positions)
    is_one = argnums is not None and not isinstance(argnums, tuple | list)
    return at.out, Pullback(at, positions, is_one=is_one)


@api_boundary
def jvp(
    function: Function,
    primals: Any,
    tangents: Any,
    *,
    argnums: int | Sequence[int] | None = None,
    **call: Any,
) -> tuple[Any, Any]:
    """Runs `function` at `primals`, and pushes `tangents` forward with it (forward mode).

    ``out_dot = J @ tangents`` with ``J = d function(primals) / d primals``, in one run and without
    keeping what is computed on the way.

    Args:
        function: A kernel, a graph, or any Python function that calls kernels and functions on
            arrays.
        primals: The positional arguments; a single one may stand without its tuple.
        tangents: One entry for each primal, in its form; `None` is zero.
        argnums: The primals that move, by default all. With an int, `tangents` is the tangent of
            that primal; with a tuple, it is a tuple of tangents.
        call: Call keywords such as ``dim``.

    Returns:
        ``(out, out_dot)``: `out_dot` in the structure of `out`, `None` for results without floats.

    Raises:
        DerivativeError: SR0451 for what a transform around this one does not follow, SR0452 for a
            tangent of another form, SR0453 for a differentiable keyword, SR0455 for argnums,
            SR0459 where counts differ, SR0472 through a `custom_vjp`.

    Differentiable itself, as `vjp` is.

    Source: Griewank, Walther, *Evaluating Derivatives*, 2nd ed. (2008), section 3.1.
    """
    primals = as_arguments(primals)
    if argnums is None:
        tangents = as_arguments(tangents)
    else:
        tangents = spread_tangents(tangents, argnums, len(primals))
    if len(primals) != len(tangents):
        raise error("SR0459", primals=len(primals), tangents=len(tangents))
    at = linearised(function, primals, call, when=When.NOW)
    return at.out, at.push(tangents)


@api_boundary
def grad(function: Function, argnums: int | Sequence[int] = 0, has_aux: bool = False) -> Function:
    """The gradient of a function whose result holds exactly one float.

    ``grad(f)(x) = d f(x) / d x``: the pullback of 1. The primal is dispatched only as far as the
    gradient needs its results.

    Args:
        function: A kernel, a graph, or any Python function that calls kernels and functions on
            arrays.
        argnums: Positional arguments to differentiate by. An int gives one gradient, and a tuple
            gives a tuple of gradients.
        has_aux: True if `function` returns ``(loss, aux)``, where only the loss is differentiated.

    Returns:
        A function of the same arguments and call keywords. A gradient has the form and element type
        of its argument; it is `None` for what holds no float. With `has_aux` it returns
        ``(gradient, aux)``.

    Raises:
        DerivativeError: When called: SR0455 and SR0456 for argnums, SR0457 for the result, SR0481
            with `has_aux`, unless the result is a tuple of two.

    Differentiable itself, as `vjp` is.
    """

    @api_boundary
    def gradient(*args: Any, **call: Any) -> Any:
        out, found = _value_and_grad(
            function, argnums, args, call, when=When.IF_NEEDED, has_aux=has_aux
        )
        return (found, out[1]) if has_aux else found

    return gradient


@api_boundary
def value_and_grad(
    function: Function, argnums: int | Sequence[int] = 0, has_aux: bool = False
) -> Function:
    """Like `grad`, returning ``(value, gradient)``, or with `has_aux` ``((value, aux), gradient)``.

    A kernel whose threads write elements of their own, or add to elements that all of them share,
    computes both by one dispatch, unless what its result becomes is needed before.

    Args:
        function: As of `grad`.
        argnums: As of `grad`.
        has_aux: As of `grad`.

    Returns:
        A function of the same arguments and call keywords.

    Raises:
        DerivativeError: When called: SR0455 and SR0456 for argnums, SR0457 for the result, SR0481
            with `has_aux`, unless the result is a tuple of two.
    """

    @api_boundary
    def value_and_gradient(*args: Any, **call: Any) -> Any:
        return _value_and_grad(
            function, argnums, args, call, when=When.WITH_GRADIENTS, has_aux=has_aux
        )

    return value_and_gradient


def _value_and_grad(
    function: Function,
    argnums: int | Sequence[int],
    args: Sequence[Any],
    call: dict[str, Any],
    *,
    when: When,
    has_aux: bool,
) -> tuple[Any, Any]:
    """The result and the gradients by `argnums`."""
    positions = positions_of(argnums, len(args))
    at = linearised(function, args, call, when=when)
    check_differentiable(at, positions)
    ones = _ones_and_none if has_aux else _ones
    cotangent = ones(function, at.out)
    found = at.pull(cotangent, positions, None)
    if current_trace() is None:
        found = _apart(found, cotangent)
    if when is When.WITH_GRADIENTS:
        for leaf in trees.leaves(at.out):
            if isinstance(leaf, Array):
                leaf.settle()
    return at.out, found[0] if isinstance(argnums, int) else tuple(found)


@api_boundary
def hvp(function: Function, primals: Any, tangents: Any, **call: Any) -> Any:
    """The product of the Hessian of a function that gives one float with a vector.

    ``d/dt grad(function)(primals + t tangents)`` at t = 0, by one backward dispatch of each kernel
    with its tangents, in place of a Hessian.

    Args:
        function: A kernel, a graph, or any Python function that calls kernels and functions on
            arrays; its result holds exactly one float.
        primals: A tuple or list of the positional arguments; a single array or number may stand
            without one.
        tangents: The vector: one entry per primal, in its form; `None` is zero.
        call: Call keywords such as ``dim``.

    Returns:
        One value for one primal, else a tuple, in the form of the primals; `None` for what holds no
        float.

    Raises:
        DerivativeError: SR0457 for the result, SR0459 where counts differ, and where there is no
            second derivative: SR0411, SR0412, SR0429, SR0472.

    Winners of ties stay, and a jump does not move; where a first derivative is infinite, a second
    one is infinite or NaN (docs/conventions.md, "Second derivatives").

    Source: Pearlmutter, *Fast exact multiplication by the Hessian*, Neural Computation 6 (1994).
    """
    primals, tangents = as_arguments(primals), as_arguments(tangents)
    if len(primals) != len(tangents):
        raise error("SR0459", primals=len(primals), tangents=len(tangents))

    def gradient(*args: Any) -> tuple[Any, ...]:
        at = linearised(function, args, call, when=When.IF_NEEDED)
        return tuple(at.pull(_ones(function, at.out), range(len(args)), None))

    found = linearised_as_graph(gradient, primals, {}, when=When.IF_NEEDED).push(tangents)
    return found[0] if len(primals) == 1 else found


@api_boundary
def jacobian(
    function: Function, argnums: int | Sequence[int] = 0, mode: str = "reverse"
) -> Function:
    """All partial derivatives of a function.

    ``J[i..., j...] = d out[i...] / d x[j...]``, of shape ``out.shape + x.shape``, where vectors and
    matrices count as trailing axes.

    Args:
        function: A kernel, a graph, or any Python function with one array of floats as its result.
        argnums: Positional arguments. An int gives one Jacobian, and a tuple gives a tuple of
            Jacobians. For a struct, texture or container the Jacobian is built like the argument,
            with one array for each of its arrays and numbers.
        mode: ``"reverse"`` pulls back once for each scalar of the result, ``"forward"`` pushes
            forward once for each scalar of the arguments. They run as batches of up to 64 MiB.

    Returns:
        A function of the same arguments and call keywords; its arrays hold floats, doubles where
        the result or the argument does.

    Raises:
        DerivativeError: SR0461 for the mode; when called, SR0455 and SR0456 for argnums, SR0460 for
            the result, SR0468 for arrays of structs.

    Differentiable itself, as `vjp` is.
    """
    if mode not in ("reverse", "forward"):
        raise error("SR0461", found=text_of(mode))

    @api_boundary
    def jacobian_at(*args: Any, **call: Any) -> Any:
        positions = positions_of(argnums, len(args))
        # A tuple that stands for a vector is one argument: its columns are those of an array.
        given = [_as_one_array(x) if k in positions else x for k, x in enumerate(args)]
        found = _jacobians(function, given, call, positions, mode)
        return found[0] if isinstance(argnums, int) else tuple(found)

    return jacobian_at


def _jacobians(
    function: Function, args: Sequence[Any], call: dict[str, Any], positions: list[int], mode: str
) -> list[Any]:
    is_outermost = current_trace() is None

    def jacobians(*args: Any, **call: Any) -> tuple[list[Any], Array]:
        at = linearised(function, args, call, when=When.NOW)
        check_differentiable(at, positions)
        if not isinstance(at.out, Array) or not types.is_float(at.out.element):
            raise error("SR0460", found=trees.described(at.out))
        # Imported here: a kernel alone needs no functions on arrays.
        from shaderad.differentiate.jacobian_rows import jacobians_at

        return jacobians_at(at, args, positions, mode, is_silent=is_outermost), at.out

    if is_outermost:
        # What no graph follows, such as values read on the host, has derivatives outside of graphs.
        with suppress(Error):
            return linearised_as_graph(jacobians, args, call, when=When.NOW).out[0]
    return jacobians(*args, **call)[0]


def _as_one_array(given: Any) -> Any:
    """A tuple or list of numbers and of arrays of one number as an array; all else as it is."""
    if not isinstance(given, tuple | list) or not given:
        return cast("Any", given)
    parts = cast("Sequence[Any]", given)
    if is_data(parts):
        return np.asarray(parts)
    is_number = [x.shape == () if isinstance(x, Array) else is_data([x]) for x in parts]
    if not all(is_number):
        return parts
    # Imported here: a kernel alone needs no functions on arrays.
    from shaderad.functions import layout

    return layout.stack(parts)


_IN_KERNEL = 'sum in the kernel: `total: sad.Add[float]` with `shapes={"total": 1}`'
_OF_ARRAYS = "sum the result: `sad.sum(...)`"


def _ones(function: Function, out: Any) -> Any:
    """1 as the cotangent of a result that is one float."""
    result = _one_float(function, out)
    one = _one_like(result)

    def cotangent(_: Any) -> Array:
        return one

    return trees.mapped(cotangent, out)


def _ones_and_none(function: Function, out: Any) -> Any:
    """1 as the cotangent of the first of two results, and none of the second."""
    if not isinstance(out, tuple) or len(cast("tuple[Any, ...]", out)) != 2:
        raise error("SR0481", found=trees.described(out))
    loss, _ = cast("tuple[Any, Any]", out)
    return _ones(function, loss), None


def _one_float(function: Function, out: Any) -> Array:
    leaves = trees.leaves(out)
    result = leaves[0] if len(leaves) == 1 else None
    is_one_float = (
        isinstance(result, Array)
        and _holds_one(result)
        and isinstance(result.element, types.Scalar)
        and types.is_float(result.element)
    )
    if not is_one_float:
        reduced = _IN_KERNEL if isinstance(function, Launchable) else _OF_ARRAYS
        help_ = f"{reduced}, or use `sad.vjp` with a cotangent of the result"
        if isinstance(result, Array) and isinstance(result.element, types.Vector):
            help_ = (
                "make one number of the vectors, such as `sad.sum(sad.dot(v, v))` or "
                "`sad.sum(v.x)`, or use `sad.vjp` with a cotangent of the result"
            )
        raise error("SR0457", found=", ".join(map(_shown, leaves)) or "nothing", help=help_)
    assert isinstance(result, Array)
    return result


def _one_like(result: Array) -> Array:
    """The cotangent 1."""
    if isinstance(result, TracedArray):
        from shaderad.functions.creation import full
        from shaderad.trace.elements import conform

        return full(result.shape, conform(1.0, result.element, "out_bar"))
    return result.device.kept(Ones).of(result.element, result.shape)


def _apart(gradients: Sequence[Any], cotangent: Any) -> list[Any]:
    """`gradients`, copied where one is the cotangent 1 itself, which others start from, too."""
    shared = [x for x in trees.leaves(cotangent) if isinstance(x, Array)]

    def own(leaf: Any) -> Any:
        is_there = isinstance(leaf, Array) and not leaf.is_pending
        if not (is_there and any(leaf.buffer is x.buffer for x in shared)):
            return leaf
        copy = zeros(leaf.device, leaf.element, leaf.shape)
        copied(leaf, copy)
        return copy

    return [trees.mapped(own, gradient) for gradient in gradients]


class Ones:
    """The cotangents 1 on one device, which every gradient starts from."""

    def __init__(self, device: Device) -> None:
        self._device = device
        self._known: dict[tuple[types.Type, tuple[int, ...]], Array] = {}

    def of(self, element: types.Type, shape: tuple[int, ...]) -> Array:
        """An array of ones; it has one element."""
        ones = self._known.get((element, shape))
        if ones is None:
            ones = array(np.ones(shape), dtype=element, device=self._device)
            self._known[element, shape] = ones
        return ones


def _holds_one(result: Array) -> bool:
    extents = result.extents if isinstance(result, TracedArray) else result.shape
    return all(extent == 1 for extent in extents)


def _shown(leaf: Any) -> str:
    if isinstance(leaf, Array):
        return f"{leaf.element} of shape {leaf.shape}"
    return type(leaf).__name__
