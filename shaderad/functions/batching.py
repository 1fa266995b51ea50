"""`vmap`: a function of arrays -> the function of a batch of them.

The function is traced for one element; its graph then becomes that of the whole batch
(`rules/batching`), so a mapped function may call anything, derivatives and kernels included.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, cast

from shaderad.arrays import trees
from shaderad.arrays.containers import container_of
from shaderad.arrays.textures import Texture
from shaderad.calls.array_function import array_function
from shaderad.device.lines import user_span
from shaderad.diagnostics import error, text_of
from shaderad.diagnostics.tracebacks import api_boundary
from shaderad.ir import building as b
from shaderad.ir import sizes
from shaderad.ir.arrays import ArrayType, Value
from shaderad.ir.sizes import Size
from shaderad.rules.arrays.subgraphs import instantiate
from shaderad.rules.batching import batched
from shaderad.rules.batching.operands import Batch, Operand
from shaderad.trace.bodies import (
    TracedBody,
    array_leaves,
    is_constant,
    keep_effects,
    outer_values,
    rebuilt,
)
from shaderad.trace.elements import as_array
from shaderad.trace.primitives import as_number, made
from shaderad.trace.traced import TracedArray, tracing

__all__ = ["vmap"]


@api_boundary
def vmap(function: Callable[..., Any], in_axes: Any = 0, out_axes: Any = 0) -> Callable[..., Any]:
    """`function` of each element of a batch, in one run, as in JAX.

    ``result[k] = function(x[k], y[k], ...)``: the function sees its arguments without the axis that
    `in_axes` names, and its results get one at `out_axes`. Work that does not depend on
    a mapped argument runs once.

    Args:
        function: A kernel, a graph, a derivative such as ``sad.grad(f)``, or any Python function
            of arrays, which is called once, on traced arrays. A kernel becomes one launch with
            another Index in front.
        in_axes: The axis of each array that runs over the batch: one axis for all arguments, or a
            tuple with one entry per positional argument. An entry is an axis, `None` for an
            argument that all elements share, or a tree of them built like the first levels of the
            argument.
        out_axes: Where the axis stands in each result: an axis, or a tree built like the first
            levels of the result; `None` for a result that is the same for all elements.

    Returns:
        A function of the same arguments and call keywords. Keywords are shared by all elements; the
            ``dim`` and ``shapes`` of a kernel are those of one element.

    Raises:
        ShapeError: When called: SR0394 for an axis that an array does not have, SR0395 where
            nothing is mapped, SR0396 where mapped axes differ in size, SR0397 for `out_axes` of
            `None` for a result that differs between elements.
        LanguageError: SR0398 for axes that are built differently, SR0400 for a texture that is
            mapped; SR0399 for kernels that follow pointers to mapped arrays or were loaded from a
            build, in a `while_loop` that elements leave at different times.

    Differentiable as `function` is. If the condition of a `while_loop` is mapped, the loop runs
    until it holds for no element; elements that are done keep their carries.

    Source: Bradbury et al., *JAX: composable transformations of Python+NumPy programs* (2018).
    """
    if not callable(function):
        raise error("SR0466", found=text_of(function))
    name = getattr(function, "__name__", "function")

    @api_boundary
    @functools.wraps(function, updated=())
    def mapped(*args: Any, **call: Any) -> Any:
        bound = partial(function, **call) if call else function
        return _run(_Batched(bound, name, in_axes, out_axes), *args)

    return mapped


@array_function
def _run(function: Callable[..., Any], *args: Any) -> Any:
    return function(*args)


@dataclass(frozen=True, slots=True)
class _Batched:
    """A function of traced arrays -> the function of a batch of them."""

    function: Callable[..., Any]
    name: str
    in_axes: Any
    out_axes: Any

    def __call__(self, *args: Any) -> Any:
        """Traces the function for one element, and adds the graph of the batch to the trace."""
        lifted = [_lifted(*entry) for entry in _paired(args, self.in_axes, "in_axes")]
        mapped = [x for x in lifted if isinstance(x, _Rows)]
        extent = self._extent(mapped)
        body = TracedBody()
        arguments = [x.element(body) if isinstance(x, _Rows) else x for x in lifted]
        out = body.lifted(body.call(self.function, *trees.flatten(args)[1].unflatten(arguments)))
        leaves = array_leaves(out)
        constants = body.constants
        graph = body.graph(constants, [*(x.value for x in leaves), *body.effects])
        flags = [k < len(mapped) for k in range(len(graph.inputs))]
        whole, are_mapped = batched(graph, flags, extent)
        operands = (*(x.in_front(extent) for x in mapped), *outer_values(constants))
        values = zip(instantiate(whole, operands), are_mapped, strict=True)
        results = [
            _placed(x, Operand(*next(values)), axis, place, Batch(extent))
            for x, axis, place in _paired(out, self.out_axes, "out_axes")
            if not is_constant(x)
        ]
        keep_effects([value for value, _ in values])
        return rebuilt(out, results)

    def _extent(self, mapped: Sequence[_Rows]) -> Size:
        """The size of the batch.

        Raises:
            ShapeError: SR0395 where nothing is mapped, SR0396 where sizes differ.
        """
        if not mapped:
            raise error("SR0395", user_span(), name=self.name)
        first = mapped[0].extent
        for x in mapped:
            if not tracing().are_equal(first, x.extent):
                left, right = (sizes.evaluate(n, tracing().size_by_name) for n in (first, x.extent))
                raise error("SR0396", user_span(), left=mapped[0].place, right=x.place,
                            first=left, second=right)  # fmt: skip
        return first


@dataclass(frozen=True, slots=True)
class _Rows:
    """A mapped argument."""

    array: TracedArray
    axis: int
    """The axis of the batch in `array.value`."""
    place: str

    @property
    def extent(self) -> Size:
        return self.array.value.shape[self.axis]

    def element(self, body: TracedBody) -> TracedArray:
        """An argument of `body` that stands for one element of the batch."""
        shape = self.array.value.shape
        t = ArrayType(self.array.element, (*shape[: self.axis], *shape[self.axis + 1 :]))
        return body.argument(t, self.array).noted_as(self.array.given_vector)

    def in_front(self, extent: Size) -> Value:
        """The array with the batch axis moved to the front; `extent` is its size."""
        value = tracing().value_of(self.array)
        others = (k for k in range(len(value.shape)) if k != self.axis)
        moved = b.transpose(value, [self.axis, *others])
        return b.reshape(moved, (extent, *moved.shape[1:]))


def _lifted(leaf: Any, axis: int | None, place: str) -> Any:
    """A mapped leaf; the leaf itself if all elements share it, such as a sampler."""
    if axis is None or is_constant(leaf):
        return leaf
    array = as_array(leaf)
    return _Rows(array, _position("in_axes", axis, len(array.extents), place), place)


def _position(name: str, axis: int, rank: int, place: str) -> int:
    """The axis, counted from the front.

    Raises:
        ShapeError: SR0394 if there is no such axis.
    """
    if not -rank <= axis < rank:
        raise error("SR0394", user_span(), name=name, axis=axis, place=place, rank=rank)
    return axis % rank


def _placed(
    x: TracedArray, result: Operand, axis: int | None, place: str, batch: Batch
) -> TracedArray:
    """The `result` of the batch, which replaces that of one element, `x`; its batch axis is `axis`.

    Raises:
        ShapeError: SR0397 if `axis` is `None` but elements differ.
    """
    if axis is None:
        if result.is_mapped:
            raise error("SR0397", user_span(), place=place)
        return made(result.value)
    position = _position("out_axes", axis, len(x.extents) + 1, place)
    value = batch.spread(result)
    behind = range(position + 1, len(value.shape))
    return made(b.transpose(value, [*range(1, position + 1), 0, *behind]))


# -- trees of axes ------------------------------------------------------------------------------


def _paired(
    tree: Any, axes: Any, name: str, place: str = ""
) -> Iterator[tuple[Any, int | None, str]]:
    """Each leaf of `tree`, its axis according to `axes`, and its place in messages.

    Raises:
        LanguageError: SR0398 if `axes` is neither an axis nor built like `tree`; SR0400 for an
            axis of a texture.
    """
    parts, axis = trees.children(tree), as_number(axes)
    is_axis = axes is None or type(axis) is int
    place = place or _WHOLE[name]
    if isinstance(tree, Texture) and axes is not None:
        raise error("SR0400", user_span(), place=place)
    if parts is None and is_axis:
        yield tree, cast("int | None", axis), place
        return
    own = dict.fromkeys(parts or (), axes) if is_axis else _built_like(tree, axes, name, place)
    stem = place.removeprefix("the ")
    for key, part in (parts or {}).items():
        inside = f"argument {key}" if place == _WHOLE["in_axes"] else f"{stem}[{key!r}]"
        yield from _paired(part, own[key], name, inside)


_WHOLE = {"in_axes": "the arguments", "out_axes": "the result"}


def _built_like(tree: Any, axes: Any, name: str, place: str) -> dict[Any, Any]:
    """The parts of `axes` under the keys of `tree`."""
    kind = container_of(tree)
    if kind is not None and axes is not None:
        detail, parts = kind.taken_apart(tree)
        own = kind.parts_of(detail, len(parts), axes)
        if own is not None:
            return dict(zip(kind.keys(detail, len(parts)), own, strict=True))
    axes_text = text_of(axes) if trees.children(axes) is None else trees.described(axes)
    wanted = "" if kind is None else f": {trees.described(tree)}"
    raise error("SR0398", user_span(), name=name, found=axes_text, wanted=f"{place}{wanted}")
