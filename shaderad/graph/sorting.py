"""Sorts and searches of rows, in terms of nodes that plans have steps for.

A search for an extreme is a reduction of pairs of value and position. A sort orders blocks of
`BLOCK` elements by counting, then merges runs of twice the length in each round: an element finds
its place in the neighbouring run by bisection. Invariant: equal keys keep their order, NaN is last.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from shaderad.graph.kernels import Writer, write_kernel
from shaderad.graph.plan import RunKernel
from shaderad.ir import arrays, nodes, ops, sizes
from shaderad.ir.arrays import ArrayType, Graph, Node, Value
from shaderad.ir.nodes import Assign, Expr, Function, If, Parameter, Return, Stmt
from shaderad.ir.sizes import Size
from shaderad.ir.types import BOOL, INT, Access, Struct, Type, is_float
from shaderad.rules import composing as c
from shaderad.rules.arrays import building as b

IsStored = Callable[[Value], bool]
BLOCK_BITS = 5
BLOCK = 1 << BLOCK_BITS
_INDEX_BITS = 31


@dataclass(frozen=True, kw_only=True, eq=False)
class SortedBlocks(Node):
    """The positions of the elements of a row, sorted within each block of `BLOCK`."""

    def result_types(self) -> tuple[ArrayType, ...]:
        return (ArrayType(INT, self.operands[0].shape),)


@dataclass(frozen=True, kw_only=True, eq=False)
class MergedRuns(Node):
    """Sorted runs of ``BLOCK << k`` positions, merged by two. Operands: k, positions, keys."""

    def result_types(self) -> tuple[ArrayType, ...]:
        return (self.operands[1].type,)


def sort_in_rounds(keys: Value) -> Value:
    """The stable order of each row."""
    blocks = SortedBlocks(operands=(keys,)).result
    inputs = (Value(ArrayType(INT, ())), Value(blocks.type), Value(keys.type))
    loop = arrays.Loop(
        operands=(blocks, keys),
        body=Graph(inputs, MergedRuns(operands=inputs).results),
        count=_round_count(keys.shape[-1]),
        carry_count=1,
        constant_count=1,
        checkpoint="none",
    )
    return loop.result


def _round_count(extent: Size) -> Size:
    """How often a block doubles until it holds `extent` elements."""
    count: Size = 0
    for k in range(BLOCK_BITS, _INDEX_BITS):
        over = sizes.maximum(0, sizes.subtract(extent, 1 << k))
        at_most_one = sizes.subtract(sizes.add(over, 1), sizes.maximum(over, 1))
        count = sizes.add(count, at_most_one)
    return count


def extreme_by_reduction(x: Value, kind: str) -> Value:
    """The position of the first smallest or largest of each row."""
    t = Struct(f"{b.type_name(x.element)}_place", (("value", x.element), ("position", INT)))
    pairs = b.struct(t, (x, b.iota(x.shape, len(x.shape) - 1)))
    return b.field(b.reduce(_first_extreme(t, kind), pairs), "position")


def _first_extreme(t: Struct, kind: str) -> Function:
    first, second = c.variable("first", t), c.variable("second", t)
    a, then = c.field(first, "value"), c.field(second, "value")
    wins = c.apply(ops.LT if kind == "min" else ops.GT, then, a)
    if is_float(a.type):
        is_number = c.apply(ops.NOT, c.apply(ops.ISNAN, then))
        wins = _both(is_number, _either(c.apply(ops.ISNAN, a), wins))
    found = nodes.Conditional(type=t, condition=wins, if_true=second, if_false=first)
    local_types: dict[str, Type] = {}
    return Function(
        name=f"first_{kind}",
        parameters=(Parameter(name="first", type=t), Parameter(name="second", type=t)),
        result=t,
        body=(Return(value=found),),
        local_types=local_types,
    )


# -- kernels ----------------------------------------------------------------------------------


def sorted_blocks(node: SortedBlocks, is_stored: IsStored) -> RunKernel:
    """Each thread counts what comes before its element in its block."""
    (keys,) = node.operands

    def body(writer: Writer) -> Sequence[Stmt]:
        kernel = _Kernel(writer, keys)
        place = writer.positions.expr(writer.own[-1])
        shift = c.whole(BLOCK_BITS)
        block = c.apply(ops.SHIFT_LEFT, c.apply(ops.SHIFT_RIGHT, place, shift), shift)
        start, rank = kernel.local("start", INT), kernel.local("rank", INT)
        own, other = kernel.local("own_key", keys.element), kernel.local("key", keys.element)
        step = kernel.local("step", INT)
        stop = c.apply(ops.MIN, c.apply(ops.ADD, start, c.whole(BLOCK)), kernel.extent)
        tie = _both(c.apply(ops.NOT, _less(own, other)), c.apply(ops.LT, step, place))
        more = _assign(rank, c.apply(ops.ADD, rank, c.whole(1)))
        count = (
            _assign(other, kernel.key(step)),
            If(condition=_either(_less(other, own), tie), then=(more,)),
        )
        return [
            _assign(start, block),
            _assign(own, kernel.key(place)),
            _assign(rank, c.whole(0)),
            nodes.For(variable="step", start=start, stop=stop, step=c.whole(1), body=count),
            kernel.store(node.result, c.apply(ops.ADD, start, rank), place),
        ]

    return _kernel("sorted_blocks", node, body, is_stored)


def merged_runs(node: MergedRuns, is_stored: IsStored) -> RunKernel:
    """Each thread brings one position to its place in the merged run."""
    k, order, keys = node.operands

    def body(writer: Writer) -> Sequence[Stmt]:
        kernel = _Kernel(writer, keys)
        place = writer.positions.expr(writer.own[-1])
        (round_number,) = writer.values([k], ())
        bits = c.apply(ops.ADD, round_number, c.whole(BLOCK_BITS))
        width, run, start = (kernel.local(n, INT) for n in ("width", "run", "start"))
        low, high, middle = (kernel.local(n, INT) for n in ("low", "high", "middle"))
        position = kernel.local("position", INT)
        own, other = kernel.local("own_key", keys.element), kernel.local("key", keys.element)
        is_second = c.apply(ops.EQ, c.apply(ops.BIT_AND, run, c.whole(1)), c.whole(1))
        after = c.apply(ops.ADD, c.apply(ops.SHIFT_LEFT, run, bits), width)
        left = c.apply(ops.MIN, width, c.apply(ops.SUB, kernel.extent, after))
        # Of equal keys, those of the first run come first.
        comes_before = nodes.Conditional(
            type=BOOL, condition=is_second, if_true=c.apply(ops.NOT, _less(own, other)),
            if_false=_less(other, own),
        )  # fmt: skip
        half = c.apply(ops.SHIFT_RIGHT, c.apply(ops.SUB, high, low), c.whole(1))
        search = (
            _assign(middle, c.apply(ops.ADD, low, half)),
            _assign(other, kernel.key(kernel.read(order, c.apply(ops.ADD, start, middle)))),
            If(
                condition=comes_before,
                then=(_assign(low, c.apply(ops.ADD, middle, c.whole(1))),),
                otherwise=(_assign(high, middle),),
            ),
        )
        own_start = c.apply(ops.SHIFT_LEFT, run, bits)
        first = c.apply(ops.SUB, own_start, width)
        pair = c.apply(ops.SUB, own_start, _times(is_second, width))
        target = c.apply(ops.ADD, c.apply(ops.ADD, pair, c.apply(ops.SUB, place, own_start)), low)
        return [
            _assign(width, c.apply(ops.SHIFT_LEFT, c.whole(1), bits)),
            _assign(run, c.apply(ops.SHIFT_RIGHT, place, bits)),
            _assign(start, c.select(is_second, first, after)),
            _assign(position, kernel.read(order, place)),
            _assign(own, kernel.key(position)),
            _assign(low, c.whole(0)),
            _assign(high, c.select(is_second, width, c.apply(ops.MAX, left, c.whole(0)))),
            nodes.While(condition=c.apply(ops.LT, low, high), body=search),
            kernel.store(node.result, target, position),
        ]

    return _kernel("merged_runs", node, body, is_stored)


class _Kernel:
    """What both kernels are written with."""

    def __init__(self, writer: Writer, keys: Value) -> None:
        self._writer = writer
        self._keys = keys
        self.extent = writer.positions.size(keys.shape[-1])

    def local(self, name: str, t: Type) -> Expr:
        self._writer.local_types[name] = t
        return c.variable(name, t)

    def read(self, value: Value, at: Expr) -> Expr:
        """An element of the thread's row."""
        own = (*self._writer.own[:-1], self._writer.positions.of(at))
        return self._writer.values([value], own)[0]

    def key(self, at: Expr) -> Expr:
        return self.read(self._keys, at)

    def store(self, result: Value, at: Expr, value: Expr) -> Stmt:
        place = (*self._writer.own[:-1], self._writer.positions.of(at))
        indices = self._writer.indices_in(result, place)
        return nodes.Store(buffer="y0", indices=indices, value=value, is_unique=True)


def _kernel(
    name: str, node: Node, body: Callable[[Writer], Sequence[Stmt]], is_stored: IsStored
) -> RunKernel:
    outputs = [("y0", node.result, Access.OUT)]
    return RunKernel(write_kernel(name, node.result.shape, is_stored, body, outputs))


def _assign(target: Expr, value: Expr) -> Stmt:
    assert isinstance(target, nodes.Var)
    return Assign(name=target.name, value=value)


def _times(condition: Expr, value: Expr) -> Expr:
    return c.select(condition, value, c.whole(0))


def _less(left: Expr, right: Expr) -> Expr:
    """Whether `left` comes before `right`; NaN comes last, after infinity."""
    found = c.apply(ops.LT, left, right)
    if not is_float(left.type):
        return found
    is_number = c.apply(ops.NOT, c.apply(ops.ISNAN, left))
    return _either(found, _both(is_number, c.apply(ops.ISNAN, right)))


def _both(left: Expr, right: Expr) -> Expr:
    return nodes.Logical(type=BOOL, is_and=True, left=left, right=right)


def _either(left: Expr, right: Expr) -> Expr:
    return nodes.Logical(type=BOOL, is_and=False, left=left, right=right)
