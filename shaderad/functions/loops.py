"""`fori_loop`, `loop`, `while_loop`: a body traced once, and repeated when the graph runs.

Invariant: a carry keeps its element type and shape. If its initial value is a number, it takes the
type that the body returns.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any, Literal, TypeVar, overload

from shaderad.arrays import trees
from shaderad.arrays.arrays import Array
from shaderad.arrays.traced_sizes import shown, size_of, size_or_none
from shaderad.calls.array_function import array_function
from shaderad.device.lines import user_span
from shaderad.diagnostics import Error, LanguageError, error, text_of
from shaderad.diagnostics.call_errors import bound_arguments, fitting_call
from shaderad.diagnostics.tracebacks import api_boundary
from shaderad.functions.layout import whole_number
from shaderad.ir import building as b
from shaderad.ir import sizes
from shaderad.ir.arrays import ArrayType, Loop, Value, WhileLoop
from shaderad.ir.sizes import Size
from shaderad.ir.types import BOOL, DOUBLE, FLOAT, INT, is_float
from shaderad.runtime.buffers import base_of
from shaderad.trace.bodies import (
    TracedBody,
    array_leaves,
    arrays_in,
    keep_effects,
    matched,
    merged,
    outer_values,
    rebuilt,
    refuse_effects,
    refuse_textures,
)
from shaderad.trace.components import packed
from shaderad.trace.elements import as_element, binary, cast_to, conform
from shaderad.trace.primitives import (
    as_number,
    known_shape,
    made,
    repeats_to,
    spread,
)
from shaderad.trace.traced import TracedArray, tracing

__all__ = ["fori_loop", "loop", "while_loop"]

Checkpoint = Literal["sqrt", "all", "none"]
_K = ArrayType(INT, ())
_MIXED_TYPES = ("SR0303", "SR0304", "SR0312")
T = TypeVar("T")


@overload
def fori_loop(
    count: Any,
    body: Callable[[Array, Any], Any],
    init: Any,
    checkpoint: Literal["sqrt", "all", "none"] = "sqrt",
) -> Any: ...
@overload
def fori_loop(
    lower: Any,
    upper: Any,
    body: Callable[[Array, Any], Any],
    init: Any,
    checkpoint: Literal["sqrt", "all", "none"] = "sqrt",
) -> Any: ...
@api_boundary
def fori_loop(*args: Any, **keywords: Any) -> Any:  # noqa: D417 - of both forms
    """``carry = body(k, carry)`` for k in ``range(count)``, or in ``range(lower, upper)``.

    Args:
        count: A number, or a size such as ``x.shape[0]``.
        lower: The first k, a whole number or a size; it may be negative.
        upper: The end of the range, likewise; below `lower` there are no iterations.
        body: Called once, on traced arrays; k is an int array without axes.
        init: A number, array, struct, or tuple, list or dict of them. Each keeps its element type
            and shape; a number takes the type that the body returns.
        checkpoint: The carries that reverse mode keeps. ``"all"`` keeps every one. ``"sqrt"`` keeps
            about sqrt(count) of them and recomputes the others, if all of them take more than 16
            MiB. ``"none"`` keeps none, so there is no reverse mode.

    Returns:
        The last carry, in the form of `init`.

    Raises:
        LanguageError: SR0333, where the body gives another form, SR0335 for another `checkpoint`,
            SR0402 for a texture in the carry.
        ShapeError: SR0330, SR0334, where a carry changes its type or shape, SR0370 and SR0371 for
            the count, `lower` or `upper`.
        DerivativeError: SR0471 for reverse mode through ``checkpoint="none"``.

    Differentiable in `init` and in what the body captures.

    Source: Griewank, Walther, *Evaluating Derivatives*, 2nd ed. (2008), chapter 12; Chen, Xu,
    Zhang, Guestrin, *Training deep nets with sublinear memory cost*, arXiv:1604.06174, for
    sqrt(count).
    """
    has_bounds = not {"lower", "upper"}.isdisjoint(keywords) or (
        len(args) > 1
        and not callable(args[1])
        and (any(map(callable, args[2:3])) or size_or_none(args[1]) is not None)
    )
    loop_of_form = _loop_between if has_bounds else _loop_counted
    form = inspect.signature(loop_of_form)
    return loop_of_form(**bound_arguments(fori_loop, form, args, keywords).arguments)


@array_function
def _loop_counted(
    count: Any, body: Callable[[Array, Any], Any], init: Any, checkpoint: Checkpoint = "sqrt"
) -> Any:
    return _carried(size_of(count, "count"), 0, body, init, checkpoint)


@array_function
def _loop_between(
    lower: Any,
    upper: Any,
    body: Callable[[Array, Any], Any],
    init: Any,
    checkpoint: Checkpoint = "sqrt",
) -> Any:
    first = whole_number(lower, "lower")
    length = sizes.subtract(whole_number(upper, "upper"), first)
    count = size_of(shown(sizes.maximum(length, 0)), "upper")
    return _carried(count, first, body, init, checkpoint)


fori_loop.__signature__ = inspect.signature(_loop_counted)  # type: ignore[attr-defined]


def _carried(
    count: Size, first: Size, body: Callable[[Array, Any], Any], init: Any, checkpoint: str
) -> Any:
    """The last carry of `count` iterations, whose k starts at `first`."""
    if checkpoint not in ("sqrt", "all", "none"):
        raise error("SR0335", user_span(), found=text_of(checkpoint))

    def step(k: TracedArray, carry: Any, _: Any) -> tuple[Any, Any]:
        place = k if first == 0 else binary("add", shown(first), k)
        return fitting_call(body, place, carry), ()

    carry, _ = _repeated(step, count, init, (), checkpoint)
    return carry


@array_function
def loop(
    body: Callable[[Any, Any], tuple[Any, Any]], init: Any, xs: Any = None, length: Any = None
) -> tuple[Any, Any]:
    """``carry, ys[k] = body(carry, xs[k])`` for all rows of `xs`.

    Args:
        body: Called once, on traced arrays; gives ``(carry, y)``. `y` may be `None`.
        init: The first carry, as of `fori_loop`.
        xs: Arrays whose first axes have one size, in any tuple, list or dict. `None` gives the body
            `None`, and needs `length`.
        length: The number of iterations, a whole number or a size; that of `xs` by default.

    Returns:
        The last carry and the ys, stacked along a new first axis.

    Raises:
        LanguageError: SR0333, where the body gives another form, SR0402 for textures.
        ShapeError: SR0330, SR0334, where a carry changes its type or shape, SR0336 where the xs do
            not have one count, or another than `length`; SR0370 and SR0371 for `length`.

    Differentiable in `init`, `xs` and what the body captures, with the carries kept of
    ``checkpoint="sqrt"``: see `fori_loop`.
    """
    rows = [] if xs is None else arrays_in(xs)
    shapes = ", ".join(known_shape(x.extents) for x in rows) or "none"
    if (not rows and length is None) or not all(x.extents for x in rows):
        raise error("SR0336", user_span(), found=shapes)
    count = size_of(length, "length") if length is not None else rows[0].extents[0]
    if not all(tracing().are_equal(count, x.extents[0]) for x in rows):
        raise error("SR0336", user_span(), found=shapes)

    def step(_: TracedArray, carry: Any, x: Any) -> tuple[Any, Any]:
        pair: Any = fitting_call(body, carry, None if xs is None else x)
        if not isinstance(pair, tuple) or len(pair) != 2:  # pyright: ignore[reportUnknownArgumentType]
            raise error("SR0333", user_span(), what="the result of the body",
                        found=trees.described(pair), wanted="tuple of 2: (carry, y)")  # fmt: skip
        return pair  # pyright: ignore[reportUnknownVariableType]

    return _repeated(step, count, init, () if xs is None else xs, "sqrt")


def _repeated(
    step: Callable[..., tuple[Any, Any]], count: Size, init: Any, xs: Any, checkpoint: Checkpoint
) -> tuple[Any, Any]:
    refuse_textures(xs, "`xs`")
    rows = arrays_in(xs)
    carries = _Carries(init)

    def once() -> tuple[TracedBody, list[TracedArray], Any, list[Value] | None]:
        body = TracedBody()
        k = body.argument(_K)
        carry_inputs = body.arguments_like(carries.arrays)
        parts = [body.argument(ArrayType(x.element, x.extents[1:]), x) for x in rows]
        new_carry, ys = body.call(step, k, rebuilt(init, carry_inputs), rebuilt(xs, parts))
        return body, carry_inputs, ys, carries.conformed(body, new_carry)

    while True:
        body, carry_inputs, ys, new = carries.traced(once)
        if new is not None:
            break
    refuse_textures(ys, "the result of the body")
    ys = body.lifted(ys)
    kept = array_leaves(ys)
    constants = body.constants
    graph = body.graph(constants, [*new, *map(body.value, kept), *body.effects])
    # The inputs of the traced body are k, carries, xs, constants; a `Loop` needs the xs last.
    first = 1 + len(carry_inputs)
    own, behind = graph.inputs[first : first + len(rows)], graph.inputs[first + len(rows) :]
    node = Loop(
        operands=(
            *carries.values,
            *outer_values(constants),
            *(b.reshape(x.value, (count, *x.extents[1:])) for x in rows),
        ),
        body=type(graph)((*graph.inputs[:first], *behind, *own), graph.outputs),
        count=count,
        carry_count=len(carry_inputs),
        constant_count=len(constants),
        checkpoint=checkpoint,
        span=user_span(),
    )
    keep_effects(node.results[len(new) + len(kept) :])
    results = list(map(made, node.results))
    return rebuilt(init, results), rebuilt(ys, results[len(new) :])


class _Carries:
    """The carries of a loop, in types that its body does not change."""

    def __init__(self, init: Any) -> None:
        refuse_textures(init, "the carry")
        self._init = init
        leaves = array_leaves(init)
        self.arrays = [as_element(leaf) for leaf in leaves]
        self._is_number = [as_number(leaf) is not None for leaf in leaves]
        self._leaves = leaves

    @property
    def values(self) -> tuple[Value, ...]:
        return outer_values(self.arrays)

    def traced(self, once: Callable[[], T]) -> T:
        """``once()``; if types do not match, once more with Python floats as doubles."""
        try:
            return once()
        except LanguageError as failure:
            before = self.arrays
            pairs = zip(before, self._leaves, strict=True)
            self.arrays = [self._as_double(x, leaf) for x, leaf in pairs]
            is_tried = all(a is b for a, b in zip(before, self.arrays, strict=True))
            if is_tried or failure.code not in _MIXED_TYPES:
                raise
            try:
                return once()
            except Error as again:
                if again.code in _MIXED_TYPES:
                    raise failure from None
                raise

    def _as_double(self, first: TracedArray, leaf: Any) -> TracedArray:
        """The initial carry as a double, if it is a Python float."""
        is_float_number = isinstance(as_number(leaf), float) and first.element == FLOAT
        return conform(leaf, DOUBLE, "init") if is_float_number else first

    def conformed(self, body: TracedBody, carry: Any) -> list[Value] | None:
        """The new carries; `None` if the body must be retraced with wider initial carries.

        Raises:
            LanguageError: SR0333 if they are built differently.
            ShapeError: SR0330, SR0334 if an element type or shape changes.
        """
        leaves = trees.leaves(body.lifted(tuple(matched(self._init, carry, "the carry"))))
        widened = [self._widened(k, leaf) for k, leaf in enumerate(leaves)]
        if any(widened):
            return None
        pairs = zip(self.arrays, leaves, strict=True)
        return [body.trace.run(self._conformed, x, leaf) for x, leaf in pairs]

    def _widened(self, position: int, new: TracedArray) -> bool:
        """Widens an initial carry to the float or vector of `new`; true if it changes."""
        first = self.arrays[position]
        is_changed = False
        if self._is_number[position] and first.element == INT and is_float(new.element):
            first, is_changed = cast_to(first, new.element), True
        if self._is_number[position] and first.element == FLOAT and new.element == DOUBLE:
            first, is_changed = self._as_double(first, self._leaves[position]), True
        if base_of(new.element) == first.element != new.element:
            first = packed(first, new.element)
            is_changed = first is not self.arrays[position]
        self.arrays[position] = first
        return is_changed

    def _conformed(self, first: TracedArray, new: TracedArray) -> Value:
        leaf = conform(new, first.element, "the carry")
        rank = len(first.extents)
        if len(leaf.extents) != rank or not repeats_to(leaf.extents, first.extents):
            raise error("SR0334", user_span(), found=known_shape(leaf.extents),
                        wanted=known_shape(first.extents))  # fmt: skip
        return spread(leaf, first.extents)


@array_function
def while_loop(
    cond: Callable[[Any], Any], body: Callable[[Any], Any], init: Any, limit: int
) -> Any:
    """``carry = body(carry)`` while ``cond(carry)``, `limit` times at most.

    Args:
        cond: Called once, on traced arrays; gives a bool without axes.
        body: Called once, likewise.
        init: The first carry, as of `fori_loop`.
        limit: The largest number of iterations; reverse mode keeps room for so many carries.

    Returns:
        The last carry, in the form of `init`.

    Raises:
        LimitError: SR0661 at the next synchronisation, where the condition still holds at the
            limit.
        LanguageError: SR0320 for a limit that is a symbolic size, SR0333 where the body gives
            another form, SR0402 for a texture in the carry.
        ShapeError: SR0330, SR0334, where a carry changes its type or shape, SR0337 for another
            condition, SR0370 and SR0371 for the limit.

    Differentiable in `init` and in what the body captures, with the number of iterations as it is.
    """
    most = size_of(limit, "limit")
    if not isinstance(most, int):
        raise error("SR0320", user_span(), size=most, what="`limit=`")
    carries = _Carries(init)

    def once() -> tuple[TracedBody, list[Value] | None]:
        step = TracedBody()
        new_carry = step.call(body, rebuilt(init, step.arguments_like(carries.arrays)))
        return step, carries.conformed(step, new_carry)

    while True:
        step, new = carries.traced(once)
        if new is not None:
            break
    nothing = [value.type for value in step.effects]
    for t in nothing:
        step.argument(t)
    test = TracedBody()
    holds = test.lifted(test.call(cond, rebuilt(init, test.arguments_like(carries.arrays))))
    if not isinstance(holds, TracedArray) or holds.element != BOOL or holds.value.shape:
        raise error("SR0337", user_span(), found=trees.described(holds))
    refuse_effects(test, "the condition of `sad.while_loop`")
    for t in nothing:
        test.argument(t)
    holds_value = test.value(holds)
    constants = merged(test, step)
    node = WhileLoop(
        operands=(*carries.values, *map(b.zeros, nothing), *outer_values(constants)),
        condition=test.graph(constants, [holds_value]),
        body=step.graph(constants, [*new, *step.effects]),
        carry_count=len(new) + len(nothing),
        limit=most,
        span=user_span(),
    )
    keep_effects(node.results[len(new) : node.carry_count])
    last = [made(v) for v, _ in zip(node.results, carries.arrays, strict=False)]
    return rebuilt(init, last)
