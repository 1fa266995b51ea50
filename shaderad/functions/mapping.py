"""`sad.map`: a function of one element, for every element of arrays of one shape."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from shaderad.arrays import trees
from shaderad.calls.array_function import array_function
from shaderad.device.lines import user_span
from shaderad.diagnostics import Span, error, text_of
from shaderad.frontend import conversions
from shaderad.ir import building as b
from shaderad.ir import composing as c
from shaderad.ir import nodes
from shaderad.ir.arrays import ArrayType, Graph
from shaderad.ir.nodes import Expr
from shaderad.ir.sizes import Size
from shaderad.ir.types import Matrix, Tuple, Vector, Void
from shaderad.language.host import UserFunction
from shaderad.language.values import Value as Argument
from shaderad.rules.arrays.subgraphs import instantiate
from shaderad.rules.batching import batched
from shaderad.rules.batching.operands import Batch, Operand
from shaderad.trace.bodies import TracedBody, is_constant, keep_effects, outer_values, rebuilt
from shaderad.trace.elements import as_array, conform
from shaderad.trace.operators import value_function
from shaderad.trace.primitives import broadcast_shapes, elementwise, made
from shaderad.trace.traced import TracedArray

__all__ = ["map"]


@array_function
def map(function: Callable[..., Any], *arrays: Any) -> Any:  # noqa: A001 - the public name
    """``function`` of each element.

    ``result[i] = function(x[i], y[i], ...)`` for arrays x, y, ... that broadcast to one shape.

    Args:
        function: A ``@sad.function``, or any Python function of arrays without axes. It is called
            once, on traced arrays, and may call and capture what a function under `vmap` may:
            kernels, loops, derivatives. Work that needs no element runs once.
        arrays: One for each parameter.

    Returns:
        An array, or one for each leaf of the tuples, lists and dicts that the function gives.

    Raises:
        LanguageError: SR0231 for another number of parameters, SR0331 for a parameter that is no
            value, SR0332 for a function without a result, SR0399 for kernels that read elements
            through pointers or were loaded from a build.
        ShapeError: SR0379, where the shapes do not broadcast.

    Differentiable in the arrays and in what a Python function captures.
    """
    if isinstance(function, UserFunction):
        return _called(function, arrays)
    return _traced_through(function, arrays)


# -- functions of the kernel language ---------------------------------------------------------


def _called(function: UserFunction, operands: tuple[Any, ...]) -> Any:
    read = value_function(function)
    if len(operands) != len(read.parameters):
        raise error("SR0231", user_span(), name=function.shown_name, found=len(operands),
                    wanted=len(read.parameters))  # fmt: skip
    if isinstance(read.result, Void):
        raise error("SR0332", user_span(), name=function.shown_name, found="nothing")

    def call(span: Span, values: Sequence[Argument]) -> nodes.Call:
        args = [conversions.coerce(value, p.type, span)
                for value, p in zip(values, read.parameters, strict=True)]  # fmt: skip
        return nodes.Call(type=read.result, function=read, args=tuple(args), span=span)

    def field_of(part: str, span: Span, values: Sequence[Argument]) -> Expr:
        return c.field(call(span, values), part)

    arrays_ = [_operand(x, p) for x, p in zip(operands, read.parameters, strict=True)]
    if not isinstance(read.result, Tuple):
        return elementwise(call, *arrays_)
    return tuple(
        elementwise(partial(field_of, str(k)), *arrays_) for k in range(len(read.result.elements))
    )


def _operand(x: Any, parameter: nodes.Parameter) -> TracedArray:
    """An operand as an array. A vector or matrix parameter also takes the components of one."""
    if isinstance(parameter.type, Vector | Matrix):
        return conform(x, parameter.type, parameter.name)
    return as_array(x, parameter.name)


# -- functions of Python ----------------------------------------------------------------------


def _traced_through(function: Any, operands: tuple[Any, ...]) -> Any:
    """Traces the function for one element, and adds the graph of all elements to the trace."""
    mapped_arrays = [as_array(x) for x in operands]
    shape = broadcast_shapes(*(x.extents for x in mapped_arrays))
    body = TracedBody()
    elements = [body.argument(ArrayType(x.element, ()), x) for x in mapped_arrays]
    out = body.call(function, *elements)
    for leaf in filter(is_constant, trees.leaves(out)):
        raise error("SR0332", user_span(), name="the mapped function", found=f"`{text_of(leaf)}`")
    leaves = trees.leaves(body.lifted(out))
    constants = body.constants
    graph = body.graph(constants, [*(leaf.value for leaf in leaves), *body.effects])
    axes = [*(_axes(x, len(shape)) for x in mapped_arrays), *([] for _ in constants)]
    for axis in reversed(range(len(shape))):
        graph = _repeated(graph, [axis in own for own in axes], shape[axis])
    rows = (
        b.reshape(x.value, tuple(shape[axis] for axis in own))
        for x, own in zip(mapped_arrays, axes, strict=False)
    )
    results = instantiate(graph, (*rows, *outer_values(constants)))
    keep_effects(results[len(leaves) :])
    return rebuilt(out, [made(value) for value in results[: len(leaves)]])


def _axes(x: TracedArray, rank: int) -> list[int]:
    """The axes of a shape of `rank` axes along which `x`, which broadcasts to it, differs."""
    first = rank - len(x.extents)
    return [first + k for k, extent in enumerate(x.extents) if extent != 1]


def _repeated(graph: Graph, is_mapped: Sequence[bool], extent: Size) -> Graph:
    """The graph of a batch of `extent`, whose outputs all have its axis."""
    whole, are_mapped = batched(graph, is_mapped, extent)
    pairs = zip(whole.outputs, are_mapped, strict=True)
    return Graph(whole.inputs, tuple(Batch(extent).spread(Operand(*pair)) for pair in pairs))
