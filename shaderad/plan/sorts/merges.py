"""Sorts by merges: those of short rows, and of all rows on processors.

A kernel orders blocks of `BLOCK` elements by counting. Then each round merges runs of twice the
length, where a thread finds by bisection the elements of its share. Invariant: equal keys keep
their order, and NaN is last.

Source of the merge: Green, McColl, Bader, *GPU Merge Path*, ICS 2012.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from shaderad.ir import arrays, nodes, ops, sizes
from shaderad.ir import composing as c
from shaderad.ir.arrays import ArrayType, Graph, Node, Value
from shaderad.ir.nodes import Assign, Expr, If, Stmt
from shaderad.ir.sizes import Shape, Size
from shaderad.ir.types import BOOL, INT, Access
from shaderad.plan.kernels import IsStored, Writer, write_kernel
from shaderad.plan.sorts.order import both, either, less, negated
from shaderad.plan.steps import RunKernel

BLOCK_BITS = 4
BLOCK = 1 << BLOCK_BITS
SHARE = 2 * BLOCK
"""Elements that a thread merges: as many as two of the shortest runs have."""
_INDEX_BITS = 31
RESULT_NAMES = ("order", "sorted")


@dataclass(frozen=True, kw_only=True, eq=False)
class SortedBlocks(Node):
    """The positions of the keys of a row, sorted within each block of `BLOCK`, and the keys."""

    def result_types(self) -> tuple[ArrayType, ...]:
        (keys,) = self.operands
        return ArrayType(INT, keys.shape), keys.type


@dataclass(frozen=True, kw_only=True, eq=False)
class MergedRuns(Node):
    """Sorted runs of ``BLOCK << k``, merged in pairs. Operands: k, positions, their keys."""

    def result_types(self) -> tuple[ArrayType, ...]:
        return self.operands[1].type, self.operands[2].type


def sort_in_rounds(keys: Value) -> Value:
    """The stable order of each row."""
    blocks = SortedBlocks(operands=(keys,)).results
    inputs = (Value(ArrayType(INT, ())), *(Value(v.type) for v in blocks))
    loop = arrays.Loop(
        operands=blocks,
        body=Graph(inputs, MergedRuns(operands=inputs).results),
        count=_round_count(keys.shape[-1]),
        carry_count=2,
        constant_count=0,
        checkpoint="none",
    )
    return loop.results[0]


def _round_count(extent: Size) -> Size:
    """The number of times a block doubles until it holds `extent` elements."""
    count: Size = 0
    for k in range(BLOCK_BITS, _INDEX_BITS):
        over = sizes.maximum(0, sizes.subtract(extent, 1 << k))
        at_most_one = sizes.subtract(sizes.add(over, 1), sizes.maximum(over, 1))
        count = sizes.add(count, at_most_one)
    return count


# -- kernels ----------------------------------------------------------------------------------


def sorted_blocks(node: SortedBlocks, is_stored: IsStored) -> RunKernel:
    """Each thread counts the elements of its block that come before its own."""
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
        tie = both(negated(less(own, other)), c.apply(ops.LT, step, place))
        more = _assign(rank, c.apply(ops.ADD, rank, c.whole(1)))
        count = (
            _assign(other, kernel.key(step)),
            If(condition=either(less(other, own), tie), then=(more,)),
        )
        return [
            _assign(start, block),
            _assign(own, kernel.key(place)),
            _assign(rank, c.whole(0)),
            nodes.For(variable="step", start=start, stop=stop, step=c.whole(1), body=count),
            *kernel.stores(node.results, c.apply(ops.ADD, start, rank), (place, own)),
        ]

    return _kernel("sorted_blocks", node, keys.shape, body, is_stored)


def merged_runs(node: MergedRuns, is_stored: IsStored) -> RunKernel:
    """Each thread writes `SHARE` elements of two merged runs."""
    k, order, keys = node.operands

    def body(writer: Writer) -> Sequence[Stmt]:
        kernel = _Kernel(writer, keys)
        merge = _Merge(kernel, order, keys)
        (round_number,) = writer.values([k], ())
        share = c.apply(ops.MUL, writer.positions.expr(writer.own[-1]), c.whole(SHARE))
        return [*merge.search(round_number, share), *merge.steps(node.results)]

    threads = (*keys.shape[:-1], sizes.divide_up(keys.shape[-1], SHARE))
    return _kernel("merged_runs", node, threads, body, is_stored)


class _Merge:
    """Merges two runs, of which `first` to `middle` and `second` to `end` are left."""

    def __init__(self, kernel: _Kernel, order: Value, keys: Value) -> None:
        self._kernel = kernel
        self._order = order
        names = ("share", "middle", "end", "first", "second")
        self.share, self.middle, self.end, self.first, self.second = (
            kernel.local(name, INT) for name in names
        )
        self.first_key = kernel.local("first_key", keys.element)
        self.second_key = kernel.local("second_key", keys.element)

    def search(self, round_number: Expr, share: Expr) -> list[Stmt]:
        """Skips the `before` elements that come before the thread's share.

        Bisection finds how many of these belong to the first run: the least number for which the
        next element of that run comes after the last one skipped in the second run.
        """
        kernel, extent = self._kernel, self._kernel.extent
        names = ("start", "before", "low", "high", "half")
        start, before, low, high, half = (kernel.local(name, INT) for name in names)
        bits = c.apply(ops.ADD, round_number, c.whole(BLOCK_BITS))
        width = c.apply(ops.SHIFT_LEFT, c.whole(1), bits)
        pair_bits = c.apply(ops.ADD, bits, c.whole(1))
        pair = c.apply(ops.SHIFT_RIGHT, self.share, pair_bits)
        in_first = c.apply(ops.ADD, start, half)
        in_second = c.apply(ops.ADD, self.middle, _minus_one(c.apply(ops.SUB, before, half)))
        search = (
            _assign(half, c.apply(ops.SHIFT_RIGHT, c.apply(ops.ADD, low, high), c.whole(1))),
            _assign(self.first_key, kernel.key(in_first)),
            _assign(self.second_key, kernel.key(in_second)),
            If(
                condition=less(self.second_key, self.first_key),
                then=(_assign(high, half),),
                otherwise=(_assign(low, c.apply(ops.ADD, half, c.whole(1))),),
            ),
        )
        second_length = c.apply(ops.SUB, self.end, self.middle)
        return [
            _assign(self.share, share),
            _assign(start, c.apply(ops.SHIFT_LEFT, pair, pair_bits)),
            _assign(self.middle, c.apply(ops.MIN, c.apply(ops.ADD, start, width), extent)),
            _assign(self.end, c.apply(ops.MIN, c.apply(ops.ADD, self.middle, width), extent)),
            _assign(before, c.apply(ops.SUB, self.share, start)),
            _assign(low, c.apply(ops.MAX, c.apply(ops.SUB, before, second_length), c.whole(0))),
            _assign(high, c.apply(ops.MIN, before, c.apply(ops.SUB, self.middle, start))),
            nodes.While(condition=c.apply(ops.LT, low, high), body=search),
            _assign(self.first, c.apply(ops.ADD, start, low)),
            _assign(self.second, c.apply(ops.ADD, self.middle, c.apply(ops.SUB, before, low))),
        ]

    def steps(self, results: Sequence[Value]) -> list[Stmt]:
        """Writes the share, element by element; no step branches, so that threads stay together."""
        kernel, first, second = self._kernel, self.first, self.second
        takes_first = kernel.local("takes_first", BOOL)
        place, source, step = (kernel.local(name, INT) for name in ("place", "source", "step"))
        key = kernel.local("key", self.first_key.type)
        # Of equal keys, those of the first run come first.
        precedes = either(
            c.apply(ops.GE, second, self.end), negated(less(self.second_key, self.first_key))
        )
        taken = (kernel.read(self._order, source), key)
        body = (
            _assign(takes_first, both(c.apply(ops.LT, first, self.middle), precedes)),
            _assign(source, c.select(takes_first, first, second)),
            _assign(key, c.select(takes_first, self.first_key, self.second_key)),
            *kernel.stores(results, place, taken),
            _assign(step, c.select(takes_first, c.whole(1), c.whole(0))),
            _assign(first, c.apply(ops.ADD, first, step)),
            _assign(second, c.apply(ops.ADD, second, c.apply(ops.SUB, c.whole(1), step))),
            _assign(key, self._key_or_last(c.apply(ops.ADD, source, c.whole(1)))),
            _assign(self.first_key, c.select(takes_first, key, self.first_key)),
            _assign(self.second_key, c.select(takes_first, self.second_key, key)),
        )
        stop = c.apply(ops.MIN, c.apply(ops.ADD, self.share, c.whole(SHARE)), kernel.extent)
        return [
            _assign(self.first_key, self._key_or_last(first)),
            _assign(self.second_key, self._key_or_last(second)),
            nodes.For(variable="place", start=self.share, stop=stop, step=c.whole(1), body=body),
        ]

    def _key_or_last(self, at: Expr) -> Expr:
        """The key at a place; some other key, which is not used, if that lies behind the row."""
        return self._kernel.key(c.apply(ops.MIN, at, _minus_one(self._kernel.extent)))


class _Kernel:
    """Statements and expressions of both kernels."""

    def __init__(self, writer: Writer, keys: Value) -> None:
        self._writer, self.local = writer, writer.local
        self._keys = keys
        self.extent = writer.positions.size(keys.shape[-1])

    def read(self, value: Value, at: Expr) -> Expr:
        """An element of the thread's row."""
        own = (*self._writer.own[:-1], self._writer.positions.of(at))
        return self._writer.values([value], own)[0]

    def key(self, at: Expr) -> Expr:
        return self.read(self._keys, at)

    def stores(self, results: Sequence[Value], at: Expr, values: Sequence[Expr]) -> list[Stmt]:
        """An element of each result, which no other thread writes."""
        place = (*self._writer.own[:-1], self._writer.positions.of(at))
        return [
            nodes.Store(buffer=name, indices=self._writer.indices_in(result, place), value=value,
                        is_unique=True)
            for name, result, value in zip(RESULT_NAMES, results, values, strict=True)
        ]  # fmt: skip


def _kernel(
    name: str,
    node: Node,
    threads: Shape,
    body: Callable[[Writer], Sequence[Stmt]],
    is_stored: IsStored,
) -> RunKernel:
    outputs = [(name, v, Access.OUT) for name, v in zip(RESULT_NAMES, node.results, strict=True)]
    return RunKernel(write_kernel(name, threads, is_stored, body, outputs))


def _assign(target: Expr, value: Expr) -> Stmt:
    assert isinstance(target, nodes.Var)
    return Assign(name=target.name, value=value)


def _minus_one(value: Expr) -> Expr:
    return c.apply(ops.SUB, value, c.whole(1))
