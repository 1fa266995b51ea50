"""Array-level IR: values with an element type and a shape, and the nodes that make them.

A graph is a directed acyclic graph of nodes. Data and meaning, no passes: what a node says is
what it does on every device. Shapes are symbolic (ir/sizes.py) and already agree: broadcasting
is explicit, positions are in range unless a node says what happens otherwise.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Literal

from shaderad.diagnostics import Span
from shaderad.ir import nodes, ops, sizes
from shaderad.ir.nodes import NO_SPAN
from shaderad.ir.sizes import Shape, Size
from shaderad.ir.types import INT, Type


@dataclass(frozen=True, slots=True)
class ArrayType:
    """What an array holds and how many of it along each axis."""

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
class Node(ABC):
    """One array construct."""

    operands: tuple[Value, ...]
    span: Span = field(default=NO_SPAN)

    @abstractmethod
    def result_types(self) -> tuple[ArrayType, ...]:
        """Element type and shape of each result; they follow from the operands."""

    @cached_property
    def results(self) -> tuple[Value, ...]:
        return tuple(Value(t, self, k) for k, t in enumerate(self.result_types()))

    @property
    def result(self) -> Value:
        """The result of a node that has one."""
        (only,) = self.results
        return only


@dataclass(frozen=True, eq=False)
class Graph:
    """A function over arrays."""

    inputs: tuple[Value, ...]
    outputs: tuple[Value, ...]

    @cached_property
    def nodes(self) -> tuple[Node, ...]:
        """Every node that the outputs need, operands before users."""
        return needed_by(self.outputs)


def with_operands(node: Node, operands: tuple[Value, ...]) -> Node:
    """`node` on other operands of the same types; itself, results too, where they are its own."""
    return node if operands == node.operands else replace(node, operands=operands)


def needed_by(outputs: Iterable[Value]) -> tuple[Node, ...]:
    """Every node that `outputs` depend on, operands first; no recursion, graphs are deep."""
    found: dict[Node, None] = {}
    stack: list[tuple[Node, bool]] = [
        (v.producer, False) for v in reversed([*outputs]) if v.producer is not None
    ]
    while stack:
        node, is_ready = stack.pop()
        if node in found:
            continue
        if is_ready:
            found[node] = None
            continue
        stack.append((node, True))
        stack += [
            (v.producer, False)
            for v in reversed(node.operands)
            if v.producer is not None and v.producer not in found
        ]
    return tuple(found)


# -- by element -------------------------------------------------------------------------------


def operand_name(position: int) -> str:
    """The variable by which `Elementwise.expr` reads its operand at `position`."""
    return f"a{position}"


@dataclass(frozen=True, kw_only=True, eq=False)
class Elementwise(Node):
    """``result[i] = expr(a0[i], a1[i], ..)``; every operand has the shape of the result.

    `expr` is one expression of the kernel IR whose operands are the variables `a0`, `a1`, ..
    """

    expr: nodes.Expr
    shape: Shape

    def result_types(self) -> tuple[ArrayType, ...]:
        return (ArrayType(self.expr.type, self.shape),)


@dataclass(frozen=True, kw_only=True, eq=False)
class Iota(Node):
    """``result[i, ..] = the position along axis``, an int."""

    shape: Shape
    axis: int = 0

    def result_types(self) -> tuple[ArrayType, ...]:
        return (ArrayType(INT, self.shape),)


@dataclass(frozen=True, kw_only=True, eq=False)
class SizeOf(Node):
    """A size as an int of shape ()."""

    size: Size

    def result_types(self) -> tuple[ArrayType, ...]:
        return (ArrayType(INT, ()),)


# -- layout: each element of the result is one element of an operand, or zero -------------------


@dataclass(frozen=True, kw_only=True, eq=False)
class Broadcast(Node):
    """``result[i0, i1, ..] = x[those of the i named by axes]``; an extent of 1 is read at 0."""

    shape: Shape
    axes: tuple[int, ...]
    """For each axis of the operand, the axis of the result that it becomes; ascending."""

    def result_types(self) -> tuple[ArrayType, ...]:
        return (ArrayType(self.operands[0].element, self.shape),)


@dataclass(frozen=True, kw_only=True, eq=False)
class Reshape(Node):
    """The same elements in row-major order under another shape."""

    shape: Shape

    def result_types(self) -> tuple[ArrayType, ...]:
        return (ArrayType(self.operands[0].element, self.shape),)


@dataclass(frozen=True, kw_only=True, eq=False)
class Transpose(Node):
    """Axis `k` of the result is axis `permutation[k]` of the operand."""

    permutation: tuple[int, ...]

    def result_types(self) -> tuple[ArrayType, ...]:
        (x,) = self.operands
        return (ArrayType(x.element, tuple(x.shape[k] for k in self.permutation)),)


@dataclass(frozen=True, kw_only=True, eq=False)
class Slice(Node):
    """``result[i, ..] = x[starts[0] + steps[0] * i, ..]``; a step may be negative, never 0."""

    starts: Shape
    steps: tuple[int, ...]
    shape: Shape

    def result_types(self) -> tuple[ArrayType, ...]:
        return (ArrayType(self.operands[0].element, self.shape),)


@dataclass(frozen=True, kw_only=True, eq=False)
class Place(Node):
    """The transpose of `Slice`: ``result[starts[0] + steps[0] * i, ..] = x[i, ..]``, else 0."""

    starts: Shape
    steps: tuple[int, ...]
    shape: Shape

    def result_types(self) -> tuple[ArrayType, ...]:
        return (ArrayType(self.operands[0].element, self.shape),)


@dataclass(frozen=True, kw_only=True, eq=False)
class Concatenate(Node):
    """The operands one after the other along `axis`."""

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
    """``result[j.., r..] = x[index0[j..], index1[j..], .., r..]``.

    The first operand is `x`; one int array follows for each of its leading axes that is
    indexed. Out of range reads 0, and is reported where `is_reported`.
    """

    is_reported: bool = True

    def result_types(self) -> tuple[ArrayType, ...]:
        x, first, *_ = self.operands
        rest = x.shape[len(self.operands) - 1 :]
        return (ArrayType(x.element, (*first.shape, *rest)),)


@dataclass(frozen=True, kw_only=True, eq=False)
class ScatterAdd(Node):
    """``result = base; result[index0[j..], .., r..] += values[j.., r..]``, in any order.

    Operands: base, values, then the index arrays. Out of range is ignored.
    """

    def result_types(self) -> tuple[ArrayType, ...]:
        return (self.operands[0].type,)


@dataclass(frozen=True, kw_only=True, eq=False)
class LastWriter(Node):
    """``result[k] = the largest j with index[j] == k``, and -1 where there is none.

    The one operand is the index, of rank 1; which of several writers lasts is thereby fixed.
    """

    count: Size

    def result_types(self) -> tuple[ArrayType, ...]:
        return (ArrayType(INT, (self.count,)),)


@dataclass(frozen=True, kw_only=True, eq=False)
class ArgSort(Node):
    """The stable order of each row of the last axis: positions of ascending keys, NaN last."""

    def result_types(self) -> tuple[ArrayType, ...]:
        return (ArrayType(INT, self.operands[0].shape),)


# -- reductions -------------------------------------------------------------------------------


Reducer = ops.Op | nodes.Function


@dataclass(frozen=True)
class SharedTotals:
    """How a scan of one row takes what its chunks come to, which is found with another's."""

    state: Type
    """What both come to, which decides how rows are cut."""
    is_mirrored: bool
    """Whether its chunks are those of the other scan, seen from the end."""


@dataclass(frozen=True)
class Ending:
    """What the end of a scan of one row computes, index by index, and stores in its place."""

    function: nodes.Function
    """Takes what the scan finds there, the index, and uniforms by name."""
    is_mirrored: bool
    """Whether the result belongs as far from the end as the index is from the start."""
    is_exclusive: bool
    """Whether it takes what comes before the element instead, anything for the first, and gives
    the element as well: what both are computed from is read once."""


"""ADD, MUL, MIN, MAX, AND, OR by component, or an associative function of two elements.

ADD, which sums cotangents of any type, also by field of structs and element of local arrays.
"""


@dataclass(frozen=True, kw_only=True, eq=False)
class Reduce(Node):
    """``result[r..] = x[r.., 0] op x[r.., 1] op ..`` along the last axis, grouped in trees.

    `init`, where it is given as a second operand of the result's type, comes first. Without it
    an empty row is the op's neutral element; for a function the row must not be empty.
    """

    op: Reducer

    def result_types(self) -> tuple[ArrayType, ...]:
        x = self.operands[0]
        return (ArrayType(x.element, x.shape[:-1]),)


@dataclass(frozen=True, kw_only=True, eq=False)
class ArgExtreme(Node):
    """The position of the first smallest or largest of each row of the last axis.

    A NaN is neither, as long as the row holds a number. Elements are scalars. An empty row has 0.
    """

    kind: Literal["min", "max"]

    def result_types(self) -> tuple[ArrayType, ...]:
        return (ArrayType(INT, self.operands[0].shape[:-1]),)


@dataclass(frozen=True, kw_only=True, eq=False)
class Scan(Node):
    """``result[r.., i] = x[r.., 0] op .. op x[r.., i]`` along the last axis, grouped in trees."""

    op: Reducer

    def result_types(self) -> tuple[ArrayType, ...]:
        return (self.operands[0].type,)


# -- control flow -----------------------------------------------------------------------------


@dataclass(frozen=True, kw_only=True, eq=False)
class Loop(Node):
    """``carry, ys[k] = body(k, carry, constants, xs[k])`` for ``k`` in ``range(count)``.

    Operands: the carries, the constants, the xs. Inputs of `body`: k (an int of shape ()), then
    the same three, the xs without their first axis. Outputs of `body`: the new carries, then
    the ys of one iteration. Results: the last carries, then the ys with `count` in front.
    """

    body: Graph
    count: Size
    carry_count: int
    constant_count: int
    is_reversed: bool = False
    """Whether k runs from ``count - 1`` down to 0."""
    checkpoint: Literal["sqrt", "all", "none"] = "sqrt"
    """Which carries reverse mode keeps: at the ends of about sqrt(count) segments, whose inside it
    computes again, those of every iteration, or none, and then there is no reverse mode."""

    def result_types(self) -> tuple[ArrayType, ...]:
        carries = self.body.outputs[: self.carry_count]
        ys = self.body.outputs[self.carry_count :]
        stacked = (ArrayType(y.element, (self.count, *y.shape)) for y in ys)
        return (*(carry.type for carry in carries), *stacked)


@dataclass(frozen=True, kw_only=True, eq=False)
class WhileLoop(Node):
    """``carry = body(carry, constants)`` while ``cond(carry, constants)``, `limit` times at most.

    Operands and inputs of both graphs: the carries, then the constants. Results: the last
    carries, then how many iterations ran (an int of shape ()). Stopping at the limit is reported.
    """

    condition: Graph
    body: Graph
    carry_count: int
    limit: int

    def result_types(self) -> tuple[ArrayType, ...]:
        return (*(carry.type for carry in self.body.outputs), ArrayType(INT, ()))


# -- graphs as one step -----------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class CustomPullback:
    """The user's own reverse mode of a `Subgraph`, from ``f.defvjp(forward, backward)``."""

    name: str
    forward: Graph
    """In: the operands. Out: the results, then residuals."""
    backward: Graph
    """In: the residuals, then the cotangents of the results that hold floats. Out: the
    cotangents of the operands that do."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Subgraph(Node):
    """``results = body(operands)``.

    Reverse mode keeps the operands alone and computes the body again, in a subgraph of its own
    (`sad.checkpoint`), or follows `custom`. So a subgraph is not to be merged with what stands
    around it before common subexpressions have been found; then its nodes are like any others.
    """

    body: Graph
    custom: CustomPullback | None = None

    def result_types(self) -> tuple[ArrayType, ...]:
        return tuple(v.type for v in self.body.outputs)


# -- kernels ----------------------------------------------------------------------------------


@dataclass(frozen=True, kw_only=True, eq=False)
class KernelCall(Node):
    """A kernel over `dim` threads: operands are its inputs by name, results what it writes."""

    kernel: nodes.Kernel
    dim: Shape
    names: tuple[str, ...]
    """Name of the buffer or uniform that each operand is; uniforms have shape ()."""
    written: tuple[tuple[str, ArrayType], ...]
    bounds: str
    checks: str = ""

    def result_types(self) -> tuple[ArrayType, ...]:
        return tuple(t for _, t in self.written)


@dataclass(frozen=True, kw_only=True, eq=False)
class KernelPull(Node):
    """Gradients of a `KernelCall`: operands are those of the call, then the cotangents.

    Results: one gradient for each name of `wanted`.
    """

    call: KernelCall
    wanted: tuple[str, ...]
    given: tuple[str, ...]
    """Names of the written arrays whose cotangents follow; the others' are zero."""

    def result_types(self) -> tuple[ArrayType, ...]:
        by_name = dict(zip(self.call.names, self.call.operands, strict=True))
        return tuple(by_name[name].type for name in self.wanted)


@dataclass(frozen=True, kw_only=True, eq=False)
class KernelPush(Node):
    """Tangents of the float results of a `KernelCall`: its operands, then their tangents."""

    call: KernelCall
    given: tuple[str, ...]
    """Names of the operands whose tangents follow; the others' are zero."""
    wanted: tuple[str, ...]
    """Names of the results whose tangents are asked for."""

    def result_types(self) -> tuple[ArrayType, ...]:
        by_name = dict(self.call.written)
        return tuple(by_name[name] for name in self.wanted)
