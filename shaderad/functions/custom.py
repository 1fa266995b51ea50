"""`custom_vjp`, the user's own reverse mode of a function, and `checkpoint`."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any, cast

from shaderad.arrays import trees
from shaderad.arrays.arrays import Array
from shaderad.arrays.containers import container_of
from shaderad.arrays.textures import ByLevels
from shaderad.calls.array_function import array_function
from shaderad.device.lines import user_span
from shaderad.diagnostics import error
from shaderad.diagnostics.tracebacks import api_boundary
from shaderad.functions.layout import texels_from_form
from shaderad.ir import building as b
from shaderad.ir import nodes
from shaderad.ir.arrays import ArrayType, CustomPullback, Elementwise, Graph, Subgraph, Value
from shaderad.ir.types import INT, Type, is_differentiable
from shaderad.language.host import LikeFunction
from shaderad.runtime.buffers import base_of
from shaderad.trace.bodies import (
    TracedBody,
    array_leaves,
    arrays_in,
    is_constant,
    keep_effects,
    matched,
    merged,
    outer_values,
    rebuilt,
    refuse_effects,
)
from shaderad.trace.components import spelled_out
from shaderad.trace.elements import as_element, conform
from shaderad.trace.primitives import known_shape, made, repeats_to, spread
from shaderad.trace.traced import TracedArray, traces, tracing

__all__ = ["checkpoint", "custom_vjp"]


@api_boundary
def checkpoint(function: Callable[..., Any]) -> Callable[..., Any]:
    """`function`, whose intermediate values reverse mode recomputes instead of keeping them.

    Args:
        function: Takes and gives arrays, numbers, and tuples, lists, dicts and structs of them.

    Returns:
        A function of the same arguments, with the same value and derivatives.

    Source: Griewank, Walther, *Evaluating Derivatives*, 2nd ed. (2008), chapter 12.
    """

    @api_boundary
    def checkpointed(*args: Any) -> Any:
        return _checkpointed(function, *args)

    return checkpointed


@array_function
def _checkpointed(function: Callable[..., Any], *args: Any) -> Any:
    """``function(*args)`` as one node, which reverse mode recomputes."""
    arrays = arrays_in(args)
    body = TracedBody()
    out = body.lifted(body.call(function, *rebuilt(args, body.arguments_like(arrays))))
    leaves = array_leaves(out)
    outputs = [*(body.value(leaf) for leaf in leaves), *body.effects]
    constants = body.constants
    node = Subgraph(
        operands=outer_values([*arrays, *constants]),
        body=body.graph(constants, outputs),
        span=user_span(),
    )
    keep_effects(node.results[len(leaves) :])
    return rebuilt(out, list(map(made, node.results[: len(leaves)])))


@api_boundary
def custom_vjp(function: Callable[..., Any]) -> CustomVjp:
    """`function` with a pullback of its own: ``f.defvjp(forward, backward)``.

    ``forward(*args)`` gives the result and residuals. ``backward(residuals, result_bar)`` gives a
    tuple with one cotangent per argument.

    Args:
        function: Takes and gives arrays, numbers, and tuples, lists, dicts and structs of them.

    Returns:
        A function of the same arguments, with reverse mode by `defvjp` and no forward mode.

    Raises:
        DerivativeError: When called, SR0473 without `defvjp`, SR0474 where the functions capture an
            array that may carry derivatives, SR0475 where one of them calls this one; SR0472 in
            forward mode.
        LanguageError: SR0333 if one of them returns another form.
    """
    return CustomVjp(function)


class CustomVjp(LikeFunction):
    """A function with a reverse mode of its own, given by `defvjp`."""

    _followed = ("function", "forward", "backward")

    def __init__(self, function: Callable[..., Any]) -> None:
        self.function = function
        self.forward: Callable[..., Any] | None = None
        self.backward: Callable[..., Any] | None = None
        self._name = getattr(function, "__name__", "the function")
        self._called = array_function(self._traced)
        functools.update_wrapper(self, function)

    @api_boundary
    def defvjp(self, forward: Callable[..., Any], backward: Callable[..., Any]) -> None:
        """Sets the functions that pull cotangents back.

        Neither function may call the decorated one; `function` is the plain one.

        Args:
            forward: Takes the function's arguments; returns ``(result, residuals)``.
            backward: Takes ``(residuals, result_bar)``; returns a tuple with one cotangent per
                argument, with `None` for zero.
        """
        self.forward, self.backward = forward, backward

    @api_boundary
    def __call__(self, *args: Any) -> Any:
        return self._called(*args)

    def _traced(self, *args: Any) -> Any:
        """The call as one node of the trace.

        Raises:
            DerivativeError: SR0473 without `defvjp`, SR0474 where the functions capture an array
                that may carry derivatives, SR0475 where one of them calls this one.
        """
        if self.forward is None or self.backward is None:
            raise error("SR0473", user_span(), name=self._name)
        if any(trace.belongs_to is self for trace in traces()):
            raise error("SR0475", user_span(), name=self._name)
        arrays = arrays_in(args)
        body = TracedBody(self)
        out = body.lifted(body.call(self.function, *rebuilt(args, body.arguments_like(arrays))))
        leaves: list[TracedArray] = array_leaves(out)
        forward = _Forward(TracedBody(self), self.forward, args, arrays, out)
        backward = _Backward(TracedBody(self), self.backward, forward.residuals, out)
        bars = backward.cotangents(args, arrays)
        refuse_effects(backward.body, "the backward function of a `custom_vjp`")
        passed = backward.body.constants
        operands = merged(body, forward.body, backward.body)
        _check_captured(self._name, operands)
        custom = CustomPullback(
            name=self._name,
            forward=forward.graph(operands, passed, _effects(forward.body, body)),
            backward=backward.graph(passed, [*bars, *_zeros(operands)]),
        )
        node = Subgraph(
            operands=outer_values([*arrays, *operands]),
            body=body.graph(
                operands, [*(body.value(leaf) for leaf in leaves), *_effects(body, forward.body)]
            ),
            custom=custom,
            span=user_span(),
        )
        keep_effects(node.results[len(leaves) :])
        return rebuilt(out, list(map(made, node.results[: len(leaves)])))


def _effects(body: TracedBody, other: TracedBody) -> list[Value]:
    """The effects of `body`, as many as of `other`, which may run in its place."""
    missing = len(other.effects) - len(body.effects)
    return [*body.effects, *(b.zeros(ArrayType(INT, (0,))) for _ in range(missing))]


class _Forward:
    """The forward function at its arguments: results, and residuals for the backward function."""

    def __init__(
        self,
        body: TracedBody,
        function: Callable[..., Any],
        args: Any,
        arrays: Sequence[TracedArray],
        out: Any,
    ) -> None:
        self.body = body
        pair = self.body.call(function, *rebuilt(args, self.body.arguments_like(arrays)))
        if not isinstance(pair, tuple) or len(pair) != 2:  # pyright: ignore[reportUnknownArgumentType]
            raise error("SR0333", user_span(), what="the result of the forward function",
                        found=trees.described(pair),
                        wanted="tuple of 2: (result, residuals)")  # fmt: skip
        result: Any = pair[0]  # pyright: ignore[reportUnknownVariableType]
        self.residuals: Any = pair[1]
        self._results = self.body.trace.run(_conformed_to, out, result)

    def graph(
        self,
        operands: Sequence[TracedArray],
        passed: Sequence[TracedArray],
        effects: Sequence[Value],
    ) -> Graph:
        """The graph of the results, effects, residuals, and other inputs of the backward graph."""
        kept = [self.body.value(x) for x in _arrays(self.residuals)]
        beside = self.body.constant_inputs(passed)
        return self.body.graph(operands, [*self._results, *effects, *kept, *beside])


class _Backward:
    """The backward function at residuals and cotangents."""

    def __init__(
        self,
        body: TracedBody,
        function: Callable[..., Any],
        residuals: Any,
        out: Any,
    ) -> None:
        self.body = body
        kept = self.body.arguments_like(_arrays(residuals))
        leaves, structure = trees.flatten(out)
        bars = [self._bar(leaf) for leaf in leaves]
        remaining = iter(kept)

        def stand_in(leaf: Any) -> Any:
            return next(remaining) if isinstance(leaf, TracedArray) else leaf

        read = trees.mapped(stand_in, residuals)
        self._kept = kept
        self._bars = [bar for bar in bars if bar is not None]
        self._result = self.body.call(function, read, structure.unflatten(bars))

    def _bar(self, leaf: Any) -> TracedArray | None:
        """The cotangent of a leaf of the result; `None` if it holds no float."""
        if is_constant(leaf) or not is_differentiable(leaf.element):
            return None
        return self.body.argument(leaf.value.type, leaf)

    def cotangents(self, args: tuple[Any, ...], arrays: Sequence[TracedArray]) -> list[Value]:
        """The cotangent of each argument that holds floats."""
        leaves: list[Any] = []
        result = self._result
        if not isinstance(result, tuple) or len(result) != len(args):  # pyright: ignore[reportUnknownArgumentType]
            raise error("SR0333", user_span(), what="the result of the backward function",
                        found=trees.described(result), wanted=f"tuple of {len(args)}")  # fmt: skip

        def collect(leaf: Any, bar: Any) -> None:
            if not is_constant(leaf):
                leaves.append(bar)

        bars = self.body.trace.run(lambda: tuple(map(_in_parts, args, cast("Any", result))))
        trees.mapped(collect, args, bars, name="cotangent")

        def value_of(x: TracedArray, bar: Any) -> Value:
            return b.zeros(x.value.type) if bar is None else conformed(bar, x, "the cotangent")

        return [
            self.body.trace.run(value_of, x, bar)
            for x, bar in zip(arrays, leaves, strict=True)
            if is_differentiable(x.element)
        ]

    def graph(self, passed: Sequence[TracedArray], outputs: Sequence[Value]) -> Graph:
        inputs = [x.value for x in self._kept]
        bars = [x.value for x in self._bars]
        return Graph((*inputs, *self.body.constant_inputs(passed), *bars), tuple(outputs))


def _arrays(tree: Any) -> list[TracedArray]:
    return [leaf for leaf in trees.leaves(tree) if isinstance(leaf, TracedArray)]


def conformed(x: Any, like: TracedArray, what: str, *, is_tangent: bool = False) -> Value:
    """`x` in the element type and shape of `like`; vectors become trailing axes if needed.

    `is_tangent` matters for the derivatives of textures.

    Raises:
        ShapeError: SR0330, SR0334 if it does not fit.
    """
    if isinstance(x, ByLevels):
        x = texels_from_form(x, what, _level_like, is_tangent=is_tangent)
    is_of_vectors = isinstance(x, TracedArray) and base_of(x.element) == like.element != x.element
    leaf = conform(spelled_out(x) if is_of_vectors else x, like.element, what)
    if len(leaf.extents) > len(like.extents) or not repeats_to(leaf.extents, like.extents):
        raise error("SR0334", user_span(), found=known_shape(leaf.extents),
                    wanted=known_shape(like.extents))  # fmt: skip
    return spread(leaf, like.extents)


def _level_like(part: Any, element: Type, shape: tuple[int, ...], name: str) -> Array:
    """A derivative by a level of a texture."""
    level = made(b.zeros(ArrayType(element, shape)))
    return made(conformed(part, level, name))


def _in_parts(argument: Any, bar: Any) -> Any:
    """The cotangent `bar`, with a vector split up if its argument is a tuple of components."""
    is_leaf = container_of(bar) is None
    if not isinstance(argument, tuple | list) or container_of(argument) is None:
        return bar
    if bar is None or not is_leaf:
        return bar
    components = spelled_out(as_element(bar))
    if components.shape != (len(argument),):  # pyright: ignore[reportUnknownArgumentType]
        return bar
    return [components[k] for k in range(len(argument))]  # pyright: ignore[reportUnknownArgumentType]


def _zeros(operands: Sequence[TracedArray]) -> list[Value]:
    return [b.zeros(x.value.type) for x in operands if is_differentiable(x.element)]


def _check_captured(name: str, captured: Sequence[TracedArray]) -> None:
    """Raises SR0474 for an array whose derivative the backward function does not give."""
    trace = tracing()
    for x in map(trace.origin_of, captured):
        is_constant = _is_detached(x.value) or x.value in x.owner.number_values
        if not is_differentiable(x.element) or is_constant:
            continue
        outside = x.owner.source_of(x.value)
        is_followed = isinstance(outside, Array) and outside.trace is not None
        if outside is None or isinstance(outside, TracedArray) or is_followed:
            raise error("SR0474", user_span(), name=name)


def _is_detached(value: Value) -> bool:
    node = value.producer
    return isinstance(node, Elementwise) and isinstance(node.expr, nodes.Detach)


def _conformed_to(out: Any, result: Any) -> list[Value]:
    """The content of `result`, in the form of `out`."""
    pairs = zip(array_leaves(out), matched(out, result, "the result"), strict=True)
    return [conformed(leaf, like, "the result") for like, leaf in pairs]
