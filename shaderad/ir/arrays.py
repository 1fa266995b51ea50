"""Array-level IR: values with an element type and a shape, and the nodes that compute them.

A graph is a directed acyclic graph of nodes. This file holds data and meaning, no passes: a node
does what its docstring says on every device. Shapes are symbolic (ir/sizes.py) and already agree:
broadcasting is explicit, and positions are in range unless the docstring of the node defines the
result outside of it.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from dataclasses import dataclass, field, fields, replace
from functools import cached_property
from typing import ClassVar, Literal

from shaderad.diagnostics import Span
from shaderad.ir import nodes, ops, sizes
from shaderad.ir.nodes import NO_SPAN
from shaderad.ir.sizes import Shape, Size
from shaderad.ir.types import INT, Type


@dataclass(frozen=True, slots=True)
class ArrayType:
    """Element type and shape of an array."""

    element: Type
    shape: Shape

    def __str__(self) -> str:
        return f"{self.element}[{', '.join(map(str, self.shape))}]"


@dataclass(frozen=True, slots=True, eq=False)
class Value:
    """An input of a graph (`producer` is `None`), or one result of a node."""

    type: ArrayType
    producer: Node | None = None
    position: int = 0

    @property
    def element(self) -> Type:
        return self.type.element

    @property
    def shape(self) -> Shape:
        return self.type.shape


@dataclass(frozen=True, kw_only=True, eq=False)
class Node:
    """An array operation."""

    operands: tuple[Value, ...]
    span: Span = field(default=NO_SPAN)

    def result_types(self) -> tuple[ArrayType, ...]:
        """Element type and shape of each result; by default those of the first operand."""
        return (self.operands[0].type,)

    @cached_property
    def results(self) -> tuple[Value, ...]:
        return tuple(Value(t, self, k) for k, t in enumerate(self.result_types()))

    @property
    def result(self) -> Value:
        """The only result."""
        (only,) = self.results
        return only


@dataclass(frozen=True, eq=False)
class Graph:
    """A function over arrays."""

    inputs: tuple[Value, ...]
    outputs: tuple[Value, ...]
    is_built: ClassVar[bool] = False
    """True if it was built before, and has no nodes."""

    @cached_property
    def derived(self) -> dict[Hashable, Graph]:
        """Graphs made of this one, such as its gradients, which live as long as it does."""
        return {}

    @cached_property
    def nodes(self) -> tuple[Node, ...]:
        """Every node that the outputs need, operands before users.

        Effects come first, so calls that print keep the order of the Python code.
        """
        return needed_by(sorted(self.outputs, key=lambda v: not is_effect(v)))


def is_effect(value: Value) -> bool:
    """True for what stands for calls that print or check: an array of ints without elements."""
    return value.element == INT and 0 in value.shape


def with_operands(node: Node, operands: tuple[Value, ...]) -> Node:
    """`node` on other operands of the same types; `node` itself if they are already its own."""
    return node if operands == node.operands else replace(node, operands=operands)


def graphs_in(node: Node) -> dict[str, Graph]:
    """The graphs inside a node, by field name."""
    values = {f.name: getattr(node, f.name) for f in fields(node)}
    return {name: value for name, value in values.items() if isinstance(value, Graph)}


def needed_by(outputs: Iterable[Value]) -> tuple[Node, ...]:
    """Every node that `outputs` depend on, operands first. Iterative, because graphs are deep."""
    ordered: dict[Node, None] = {}
    stack: list[tuple[Node, bool]] = [
        (v.producer, False) for v in reversed([*outputs]) if v.producer is not None
    ]
    while stack:
        node, is_ready = stack.pop()
        if node in ordered:
            continue
        if is_ready:
            ordered[node] = None
            continue
        stack.append((node, True))
        stack += [
            (v.producer, False)
            for v in reversed(node.operands)
            if v.producer is not None and v.producer not in ordered
        ]
    return tuple(ordered)


# -- elementwise ------------------------------------------------------------------------------


def operand_name(position: int) -> str:
    """Name of the variable that stands for operand `position` in `Elementwise.expr`."""
    return f"a{position}"


@dataclass(frozen=True, kw_only=True, eq=False)
class Elementwise(Node):
    """``result[i] = expr(a0[i], a1[i], ...)``; every operand has the shape of the result.

    `expr` is an expression of the kernel IR over the variables `a0`, `a1`, ...
    """

    expr: nodes.Expr
    shape: Shape

    def result_types(self) -> tuple[ArrayType, ...]:
        return (ArrayType(self.expr.type, self.shape),)


@dataclass(frozen=True, kw_only=True, eq=False)
class Iota(Node):
    """``result[i0, i1, ...] = i_axis``: the position along `axis`, an int."""

    shape: Shape
    axis: int = 0

    def result_types(self) -> tuple[ArrayType, ...]:
        return (ArrayType(INT, self.shape),)


@dataclass(frozen=True, kw_only=True, eq=False)
class SizeOf(Node):
    """A symbolic size as an int of shape ()."""

    size: Size

    def result_types(self) -> tuple[ArrayType, ...]:
        return (ArrayType(INT, ()),)


# -- layout: each element of the result is one element of an operand, or zero -------------------


@dataclass(frozen=True, kw_only=True, eq=False)
class _WithShape(Node):
    """A node whose result has the elements of its operand and another shape."""

    shape: Shape

    def result_types(self) -> tuple[ArrayType, ...]:
        return (ArrayType(self.operands[0].element, self.shape),)


@dataclass(frozen=True, kw_only=True, eq=False)
class Broadcast(_WithShape):
    """``result[i0, i1, ...] = x[i_axes[0], i_axes[1], ...]``; an extent of 1 is read at 0."""

    axes: tuple[int, ...]
    """Maps each axis of the operand to an axis of the result; ascending."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Reshape(_WithShape):
    """The elements of the operand, in row-major order, under another shape."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Transpose(Node):
    """Axis `k` of the result is axis `permutation[k]` of the operand."""

    permutation: tuple[int, ...]

    def result_types(self) -> tuple[ArrayType, ...]:
        (x,) = self.operands
        return (ArrayType(x.element, tuple(x.shape[k] for k in self.permutation)),)


@dataclass(frozen=True, kw_only=True, eq=False)
class Slice(_WithShape):
    """``result[i, ...] = x[starts[0] + steps[0] * i, ...]``; a step may be negative, never 0."""

    starts: Shape
    steps: tuple[int, ...]


@dataclass(frozen=True, kw_only=True, eq=False)
class Place(_WithShape):
    """The transpose of `Slice`: ``result[starts[0] + steps[0] * i, ...] = x[i, ...]``, else 0."""

    starts: Shape
    steps: tuple[int, ...]


@dataclass(frozen=True, kw_only=True, eq=False)
class Roll(Node):
    """``result[..., i, ...] = x[..., (i + start) mod n, ...]`` along `axis`, of n elements.

    ``0 <= start <= n``.
    """

    axis: int
    start: Size


@dataclass(frozen=True, kw_only=True, eq=False)
class Concatenate(Node):
    """The operands, concatenated along `axis`."""

    axis: int

    def result_types(self) -> tuple[ArrayType, ...]:
        first = self.operands[0]
        extent: Size = 0
        for x in self.operands:
            extent = sizes.add(extent, x.shape[self.axis])
        shape = (*first.shape[: self.axis], extent, *first.shape[self.axis + 1 :])
        return (ArrayType(first.element, shape),)


# -- by index array ---------------------------------------------------------------------------


@dataclass(frozen=True, kw_only=True, eq=False)
class Gather(Node):
    """``result[j..., r...] = x[index0[j...], index1[j...], ..., r...]``.

    The first operand is `x`; one int array follows for each indexed leading axis. An index out of
    range reads 0, and is reported if `is_reported`.
    """

    is_reported: bool = True
    is_inside: bool = False
    """True if no index is out of range."""

    def result_types(self) -> tuple[ArrayType, ...]:
        x, first, *_ = self.operands
        rest = x.shape[len(self.operands) - 1 :]
        return (ArrayType(x.element, (*first.shape, *rest)),)


@dataclass(frozen=True, kw_only=True, eq=False)
class ScatterAdd(Node):
    """``result = base; result[index0[j...], ..., r...] += values[j..., r...]``, in any order.

    Operands: base, values, then the index arrays. An index out of range adds nothing. In plans
    several values of one shape, each followed by its index arrays, are added at once.
    """

    part_count: int = 1

    @property
    def parts(self) -> tuple[tuple[Value, ...], ...]:
        """The values and index arrays of each part."""
        added = self.operands[1:]
        width = len(added) // self.part_count
        return tuple(added[k : k + width] for k in range(0, len(added), width))


@dataclass(frozen=True, kw_only=True, eq=False)
class LastWriter(Node):
    """``result[k] = the largest j with index[j] == k``, and -1 if there is none.

    The operand is the index, of rank 1. Fixes the winner when several writers share an element.
    """

    count: Size

    def result_types(self) -> tuple[ArrayType, ...]:
        return (ArrayType(INT, (self.count,)),)


@dataclass(frozen=True, kw_only=True, eq=False)
class ArgSort(Node):
    """Stable argsort of each row of the last axis, ascending, NaN last."""

    limit: Size | None = None
    """If it is known, all keys are ints from 0 to this size."""

    def result_types(self) -> tuple[ArrayType, ...]:
        return (ArrayType(INT, self.operands[0].shape),)


# -- reductions -------------------------------------------------------------------------------


Reducer = ops.Op | nodes.Function
"""ADD, MUL, MIN, MAX, AND, OR by component, or an associative function of two elements.

ADD sums cotangents, so it also takes structs (by field) and local arrays (by element).
"""


@dataclass(frozen=True, kw_only=True, eq=False)
class Reduce(Node):
    """``result[r...] = x[r..., 0] op x[r..., 1] op ...`` along the last axis, in tree order.

    An optional second operand, the initial value, comes first. Without it an empty row gives the
    neutral element of an op; a function requires rows that are not empty.
    """

    op: Reducer

    def result_types(self) -> tuple[ArrayType, ...]:
        x = self.operands[0]
        return (ArrayType(x.element, x.shape[:-1]),)


@dataclass(frozen=True, kw_only=True, eq=False)
class ArgExtreme(Node):
    """Argmin or argmax of each row of the last axis: the first position that attains the extreme.

    Elements are scalars. NaN is skipped unless the row holds nothing else. An empty row gives 0.
    """

    kind: Literal["min", "max"]

    def result_types(self) -> tuple[ArrayType, ...]:
        return (ArrayType(INT, self.operands[0].shape[:-1]),)


@dataclass(frozen=True, kw_only=True, eq=False)
class Scan(Node):
    """``result[r..., i] = x[r..., 0] op ... op x[r..., i]`` along the last axis, in tree order."""

    op: Reducer

    def result_types(self) -> tuple[ArrayType, ...]:
        return (self.operands[0].type,)


@dataclass(frozen=True, kw_only=True, eq=False)
class Convolution(Node):
    """``result[g, b, o, p...] = sum over c, k... of x[g, b, c, t...] * w[g, o, c, k...]``.

    Along each spatial axis ``spacing * t = stride * p + dilation * k - padding``; where `x` has no
    such position t, the addend is 0. Operands: x, w, of numbers. Strides and dilations may be
    negative, never 0; `spacing` is positive. Derivatives are convolutions again.
    """

    extents: Shape
    """The spatial axes of the result."""
    strides: tuple[int, ...]
    dilations: tuple[int, ...]
    spacings: tuple[int, ...]
    padding: Shape

    def result_types(self) -> tuple[ArrayType, ...]:
        x, w = self.operands
        return (ArrayType(x.element, (*x.shape[:2], w.shape[1], *self.extents)),)


# -- control flow -----------------------------------------------------------------------------


@dataclass(frozen=True, kw_only=True, eq=False)
class Loop(Node):
    """``carry, ys[k] = body(k, carry, constants, xs[k])`` for ``k`` in ``range(count)``.

    Operands: carries, constants, xs. Inputs of `body`: k (an int of shape ()), then the carries,
    the constants, and one row of each x. Outputs of `body`: the new carries, then one row of each
    y. Results: the last carries, then the ys, whose first axis has extent `count`.
    """

    body: Graph
    count: Size
    carry_count: int
    constant_count: int
    is_reversed: bool = False
    """True if k runs from ``count - 1`` down to 0."""
    checkpoint: Literal["sqrt", "all", "none"] = "sqrt"
    """The carries that reverse mode keeps. ``sqrt``: those between about sqrt(count) segments,
    which it recomputes, unless all carries take up little memory. ``all``: those of every
    iteration. ``none``: none, which makes reverse mode an error."""

    def result_types(self) -> tuple[ArrayType, ...]:
        carries = self.body.outputs[: self.carry_count]
        ys = self.body.outputs[self.carry_count :]
        stacked = (ArrayType(y.element, (self.count, *y.shape)) for y in ys)
        return (*(carry.type for carry in carries), *stacked)


@dataclass(frozen=True, kw_only=True, eq=False)
class WhileLoop(Node):
    """``carry = body(carry, constants)`` while ``cond(carry, constants)``, `limit` times at most.

    Operands and inputs of both graphs: carries, then constants. Results: the last carries, then
    the iteration count (an int of shape ()). Reaching the limit is reported.
    """

    condition: Graph
    body: Graph
    carry_count: int
    limit: int

    def result_types(self) -> tuple[ArrayType, ...]:
        return (*(carry.type for carry in self.body.outputs), ArrayType(INT, ()))


# -- subgraphs --------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class CustomPullback:
    """A user-defined vjp of a `Subgraph`, from ``f.defvjp(forward, backward)``."""

    name: str
    forward: Graph
    """In: the operands. Out: the results, then the residuals."""
    backward: Graph
    """In: the residuals, then the cotangents of the differentiable results. Out: the cotangents of
    the differentiable operands."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Subgraph(Node):
    """``results = body(operands)``.

    Reverse mode keeps only the operands and recomputes the body in another subgraph
    (`sad.checkpoint`), or applies `custom`. Inlining a subgraph before common subexpressions are
    merged would undo the recomputation; afterwards it is safe.
    """

    body: Graph
    custom: CustomPullback | None = None

    def result_types(self) -> tuple[ArrayType, ...]:
        return tuple(v.type for v in self.body.outputs)


# -- kernels ----------------------------------------------------------------------------------


@dataclass(frozen=True, kw_only=True, eq=False)
class KernelCall(Node):
    """A kernel over `dim` threads. Operands: its inputs. Results: the arrays that it writes.

    A call that prints, or only checks, has an empty array as its last result. It is an output of
    each graph around the call, so that none drops it.
    """

    kernel: nodes.Kernel
    dim: Shape
    names: tuple[str, ...]
    """The buffer or uniform of the kernel that each operand binds; uniforms have shape ()."""
    written: tuple[tuple[str, ArrayType], ...]
    bounds: str
    checks: str = ""
    effect: int = 0
    """The number of a call that prints, or only checks, which tells it from equal ones; else 0."""

    def result_types(self) -> tuple[ArrayType, ...]:
        written = tuple(t for _, t in self.written)
        return (*written, ArrayType(INT, (0,))) if self.effect or not written else written


@dataclass(frozen=True, kw_only=True, eq=False)
class KernelPull(Node):
    """Vjp of a `KernelCall`. Operands: those of the call, then cotangents of `derivative_names`,
    then, if it accumulates, one array for each name of `wanted`.

    Results: one gradient for each name of `wanted`.
    """

    call: KernelCall
    wanted: tuple[str, ...]
    derivative_names: tuple[str, ...]
    """Written arrays whose cotangents are operands; all other cotangents are zero."""
    accumulates: bool = False
    """True if gradients are added in place to the last operands, whose memory the results are."""

    def result_types(self) -> tuple[ArrayType, ...]:
        by_name = dict(zip(self.call.names, self.call.operands, strict=True))
        return tuple(by_name[name].type for name in self.wanted)


@dataclass(frozen=True, kw_only=True, eq=False)
class KernelPush(Node):
    """Jvp of a `KernelCall`. Operands: those of the call, then tangents of `derivative_names`.

    Results: one tangent for each name of `wanted`.
    """

    call: KernelCall
    derivative_names: tuple[str, ...]
    """Operands of the call whose tangents are operands here; all other tangents are zero."""
    wanted: tuple[str, ...]
    """Written arrays whose tangents are computed."""

    def result_types(self) -> tuple[ArrayType, ...]:
        by_name = dict(self.call.written)
        return tuple(by_name[name] for name in self.wanted)


def _kinds(node: type[Node]) -> list[type[Node]]:
    kinds = [kind for subclass in node.__subclasses__() for kind in (subclass, *_kinds(subclass))]
    return [kind for kind in kinds if not kind.__name__.startswith("_")]


NODES = tuple(_kinds(Node))
"""The nodes above, for tables with a row for each."""
