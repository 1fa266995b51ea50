"""The kernels of sorts by digits, a workgroup per tile: see `digits.py`."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from shaderad.ir import composing as c
from shaderad.ir import nodes, ops
from shaderad.ir.arrays import Value
from shaderad.ir.nodes import Expr, For, Stmt
from shaderad.ir.types import INT, UINT, WORD_BYTES, Access
from shaderad.plan.elements import base_of
from shaderad.plan.kernels import IsStored, number_writer
from shaderad.plan.nest.memory import ThreadArray, shared_array
from shaderad.plan.nest.statements import assigned, counted, guarded, plus, store, zeroed
from shaderad.plan.positions import Position, add, constant, number, times
from shaderad.plan.sorts.digits import DigitCounts, DigitSharing, SortedByDigit
from shaderad.plan.sorts.keys import DIGIT_BITS, DIGITS, digit_of, ordered_word
from shaderad.plan.sorts.thread_sums import ThreadSums, slots_of
from shaderad.plan.steps import RunKernel

_PART_BITS = 2
"""Bits by which a tile is sorted at a time."""
_PARTS = DIGIT_BITS // _PART_BITS
_SLOT_BITS = 16
"""Bits of the place of a key in its tile; its digit is above them."""
_COUNT_BITS = 8
"""Bits of each count of a thread; it has one for each value of a part."""


def group_bytes(sharing: DigitSharing) -> int:
    """The bytes of group memory."""
    return (sharing.tile + DIGITS + 2 * max(1, slots_of(sharing.team))) * WORD_BYTES


class _Tile:
    """Statements and expressions of both kernels."""

    def __init__(self, node: DigitCounts | SortedByDigit) -> None:
        self.sharing, self._digit = node.sharing, node.digit
        self.keys = node.operands[0]
        self.threads = self.sharing.team.workgroup
        self.tile_count = self.sharing.tile_count(self.keys)
        shape = (self.keys.shape[0], self.tile_count, self.threads)
        self.writer = number_writer(shape, lambda v: True)
        self.positions, self.local = self.writer.positions, self.writer.local
        self.row, self.number, self.thread = self.writer.own
        self._start = times(self.number, self.sharing.tile)
        self._shift = self.positions.uniform(self._digit.place * DIGIT_BITS)
        self._loop_count = 0

    def each_item(self, body: Callable[[Position], Sequence[Stmt]]) -> Stmt:
        """Does `body` for the number of each item of the thread."""
        return self._each(self.sharing.item_count, body)

    def each_digit(self, body: Callable[[Position], Sequence[Stmt]]) -> Stmt:
        """Does `body` for digits, of which each thread takes some."""

        def turn(k: Position) -> Sequence[Stmt]:
            digit = add(self.thread, times(k, self.threads))
            is_digit = c.apply(ops.LT, self.positions.expr(digit), c.whole(DIGITS))
            return guarded(None if DIGITS % self.threads == 0 else is_digit, body(digit))

        return self._each(-(-DIGITS // self.threads), turn)

    def _each(self, count: int, body: Callable[[Position], Sequence[Stmt]]) -> Stmt:
        self._loop_count += 1
        k = self.local(f"k{self._loop_count}", INT)
        return For(
            variable=k.name, start=c.whole(0), stop=c.whole(count), step=c.whole(1),
            is_unrolled=True, is_in_registers=True, body=(*body(self.positions.of(k)),),
        )  # fmt: skip

    def slot(self, k: Position) -> Position:
        """The place in the tile of item `k`, when adjacent threads have adjacent items."""
        return add(self.thread, times(k, self.threads))

    def is_there(self, slot: Position) -> Expr:
        """True if a place in the tile is in the row."""
        return c.apply(ops.LT, self.expr(self.in_row(slot)), self.length)

    def in_row(self, slot: Position) -> Position:
        """The place in the row of a place in the tile."""
        return add(self._start, slot)

    def read(self, value: Value, at: Expr) -> Expr:
        """An element of the row."""
        place = number((self.row, self.positions.of(at)), value.shape)
        return self.writer.read_number(base_of(value), place)

    def word(self, at: Expr) -> Expr:
        """The word of a key of the row that has the digit."""
        return ordered_word(self.read(self.keys, at), self._digit.word)

    def digit(self, word: Expr) -> Expr:
        """The digit of a word."""
        return digit_of(word, self._shift)

    @property
    def length(self) -> Expr:
        """The length of a row."""
        return self.positions.size(self.keys.shape[-1])

    def expr(self, at: Position) -> Expr:
        """A position as an expression."""
        return self.positions.expr(at)

    def run(self, name: str, body: Sequence[Stmt], results: Sequence[Value]) -> RunKernel:
        """The step of the kernel."""
        outputs = [(f"y{k}", v, Access.OUT) for k, v in enumerate(results)]
        return RunKernel(self.writer.finish(name, body, outputs), tile=(self.sharing.tile,))


def digit_counts(node: DigitCounts, is_stored: IsStored) -> RunKernel:
    """Each workgroup counts the digits of its tile in group memory."""
    tile = _Tile(node)
    counts = shared_array(tile.writer, "counts", INT, DIGITS)

    def add_one(k: Position) -> Sequence[Stmt]:
        slot = tile.slot(k)
        digit = tile.digit(tile.word(tile.expr(tile.in_row(slot))))
        adding = counts.add_to(tile.positions.of(digit), c.whole(1))
        return guarded(tile.is_there(slot), [adding])

    def stored(digit: Position) -> Sequence[Stmt]:
        indices = tile.writer.indices_in(node.result, (tile.row, digit, tile.number))
        return [store("y0", indices, counts.get(digit))]

    body = [
        tile.each_digit(lambda digit: [counts.put(digit, c.whole(0))]),
        nodes.Barrier(),
        tile.each_item(add_one),
        nodes.Barrier(),
        tile.each_digit(stored),
    ]
    return tile.run("digit_counts", body, node.results)


def sorted_by_digit(node: SortedByDigit, is_stored: IsStored) -> RunKernel:
    """Each workgroup sorts its tile, then stores it where the counts say."""
    return _TileSort(node).run()


class _TileSort:
    """Writes the kernel that sorts tiles."""

    def __init__(self, node: SortedByDigit) -> None:
        self._node, self._tile = node, _Tile(node)
        tile, writer = self._tile, self._tile.writer
        self._items = ThreadArray(writer, "items", INT, node.sharing.item_count)
        self._stage = shared_array(writer, "stage", INT, node.sharing.tile)
        self._offsets = shared_array(writer, "offsets", INT, DIGITS)
        self._item, self._at = tile.local("item", INT), tile.local("at", INT)
        self._counts = tile.local("counts", INT)
        self._low, self._high = tile.local("low", INT), tile.local("high", INT)
        self._sums = ThreadSums(writer, node.sharing.team, tile.thread, (self._low, self._high))

    def run(self) -> RunKernel:
        """The step of the kernel."""
        part = self._tile.local("part", INT)
        body = [
            self._tile.each_item(self._load),
            counted(part, c.whole(0), c.whole(_PARTS), [*self._sort_by_part(part)]),
            nodes.Barrier(),
            self._tile.each_item(self._find_offsets),
            nodes.Barrier(),
            *self._stores(),
        ]
        return self._tile.run("sorted_by_digit", body, self._node.results)

    # -- the tile ------------------------------------------------------------------------------

    def _load(self, k: Position) -> Sequence[Stmt]:
        """Loads a key. Those past the end of the row come last in the tile."""
        tile, slot = self._tile, self._tile.slot(k)
        own = tile.digit(tile.word(self._at))
        digit = c.select(tile.is_there(slot), own, c.whole(DIGITS - 1))
        item = _joined(c.apply(ops.SHIFT_LEFT, digit, c.whole(_SLOT_BITS)), tile.expr(slot))
        return [assigned(self._at, self._inside(slot)), self._stage.put(slot, item)]

    def _inside(self, slot: Position) -> Expr:
        """A place in the row: the last one for those past its end."""
        last = c.apply(ops.SUB, self._tile.length, c.whole(1))
        return c.apply(ops.MIN, self._tile.expr(self._tile.in_row(slot)), last)

    def _sort_by_part(self, part: Expr) -> Iterator[Stmt]:
        """Sorts the tile by some bits of digits.

        A thread has adjacent items. It counts the values of these bits in a word of four counts,
        then the threads add the counts, two to a word.
        """
        shift = self._tile.local("shift", INT)
        bits = c.apply(ops.MUL, part, c.whole(_PART_BITS))
        yield assigned(shift, c.apply(ops.ADD, bits, c.whole(_SLOT_BITS)))
        yield nodes.Barrier()
        yield zeroed(self._counts)
        yield self._tile.each_item(lambda k: self._count(k, shift))
        yield assigned(self._low, _joined(_count_of(self._counts, 0), _upper(self._counts, 1)))
        yield assigned(self._high, _joined(_count_of(self._counts, 2), _upper(self._counts, 3)))
        yield from self._sums.statements()
        yield from self._starts()
        yield self._tile.each_item(lambda k: self._move(k, shift))

    def _count(self, k: Position, shift: Expr) -> Sequence[Stmt]:
        mine = times(self._tile.thread, self._node.sharing.item_count)
        count_shift = c.apply(ops.MUL, _value(self._item, shift), c.whole(_COUNT_BITS))
        return [
            assigned(self._item, self._stage.get(add(mine, k))),
            self._items.put(k, self._item),
            plus(self._counts, c.apply(ops.SHIFT_LEFT, c.whole(1), count_shift)),
        ]

    def _starts(self) -> Iterator[Stmt]:
        """Computes where the items of the thread with each value go: `low` and `high`."""
        tile = self._tile
        below = [tile.local(f"below{k}", INT) for k in (1, 2, 3)]
        low, high = self._sums.totals
        counts = (_lower(low), _half(low), _lower(high))
        total: Expr = c.whole(0)
        for place, count in zip(below, counts, strict=True):
            yield assigned(place, c.apply(ops.ADD, total, count))
            total = place
        first, second, third = below
        starts = (_shifted(first), _joined(second, _shifted(third)))
        pairs = zip((self._low, self._high), self._sums.before, starts, strict=True)
        for place, before, start in pairs:
            yield assigned(place, c.apply(ops.ADD, before, start))

    def _move(self, k: Position, shift: Expr) -> Sequence[Stmt]:
        tile = self._tile
        value, place, one = (tile.local(name, INT) for name in ("value", "place", "one"))
        odd = c.apply(ops.BIT_AND, value, c.whole(1))
        half_shift = c.apply(ops.MUL, odd, c.whole(_SLOT_BITS))
        is_high = c.apply(ops.GT, value, c.whole(1))
        starts = c.select(is_high, self._high, self._low)
        return [
            assigned(self._item, self._items.get(k)),
            assigned(value, _value(self._item, shift)),
            assigned(place, _lower(c.apply(ops.SHIFT_RIGHT, starts, half_shift))),
            assigned(one, c.apply(ops.SHIFT_LEFT, c.whole(1), half_shift)),
            plus(self._low, c.select(is_high, c.whole(0), one)),
            plus(self._high, c.select(is_high, one, c.whole(0))),
            self._stage.put(tile.positions.of(place), self._item),
        ]

    # -- the row -------------------------------------------------------------------------------

    def _find_offsets(self, k: Position) -> Sequence[Stmt]:
        """Computes the distance from the tile to the row where the keys of a digit begin."""
        tile, slot = self._tile, self._tile.slot(k)
        digit = tile.local("own_digit", INT)
        at = tile.expr(slot)
        left = c.apply(ops.MAX, c.apply(ops.SUB, at, c.whole(1)), c.whole(0))
        other = _half(self._stage.get(tile.positions.of(left)))
        is_first = c.apply(ops.EQ, at, c.whole(0))
        starts = c.apply(ops.BIT_OR, is_first, c.apply(ops.NE, other, digit))
        begins = c.apply(ops.BIT_AND, starts, tile.is_there(slot))
        place = add(times(tile.positions.of(digit), tile.tile_count), tile.number)
        end = c.apply(ops.MAX, tile.expr(add(place, constant(-1))), c.whole(0))
        has_end = c.apply(ops.GT, tile.expr(place), c.whole(0))
        before = c.select(has_end, tile.read(self._node.operands[1], end), c.whole(0))
        offset = self._offsets.put(tile.positions.of(digit), c.apply(ops.SUB, before, at))
        return [
            assigned(self._item, self._stage.get(slot)),
            self._items.put(k, self._item),
            assigned(digit, _half(self._item)),
            *guarded(begins, [offset]),
        ]

    def _stores(self) -> Iterator[Stmt]:
        """Stores the words and positions, which group memory brings into order."""
        tile, positions = self._tile, self._node.operands[2:]
        if self._node.keeps_words:
            word = nodes.Bitcast(type=INT, value=tile.word(self._at))
            yield tile.each_item(lambda k: self._bring(k, word))
            yield nodes.Barrier()
            yield tile.each_item(lambda k: self._store(k, "y1", self._word_at))
        if not positions:
            yield tile.each_item(lambda k: self._store(k, "y0", self._own_place))
            return
        if self._node.keeps_words:
            yield nodes.Barrier()
        position = tile.read(positions[0], self._at)
        yield tile.each_item(lambda k: self._bring(k, position))
        yield nodes.Barrier()
        yield tile.each_item(lambda k: self._store(k, "y0", self._stage.get))

    def _word_at(self, slot: Position) -> Expr:
        return nodes.Bitcast(type=UINT, value=self._stage.get(slot))

    def _own_place(self, slot: Position) -> Expr:
        return self._tile.expr(self._tile.in_row(slot))

    def _bring(self, k: Position, value: Expr) -> Sequence[Stmt]:
        """Brings a value, read at `_at` in the row, to group memory."""
        slot = self._tile.slot(k)
        return [assigned(self._at, self._inside(slot)), self._stage.put(slot, value)]

    def _store(self, k: Position, name: str, value: Callable[[Position], Expr]) -> Sequence[Stmt]:
        """Stores the value of the key that comes to a place of the sorted tile."""
        tile, slot = self._tile, self._tile.slot(k)
        result = self._node.results[int(name == "y1")]
        source = tile.positions.of(_lower(self._item))
        offset = self._offsets.get(tile.positions.of(_half(self._item)))
        place = c.apply(ops.ADD, offset, tile.expr(slot))
        indices = tile.writer.indices_in(result, (tile.row, tile.positions.of(self._at)))
        stores = [assigned(self._at, place), store(name, indices, value(source))]
        return [assigned(self._item, self._items.get(k)), *guarded(tile.is_there(slot), stores)]


def _joined(low: Expr, high: Expr) -> Expr:
    return c.apply(ops.BIT_OR, low, high)


def _lower(word: Expr) -> Expr:
    """The lower half of a word."""
    return c.apply(ops.BIT_AND, word, c.whole((1 << _SLOT_BITS) - 1))


def _half(word: Expr) -> Expr:
    """The upper half of a word."""
    return c.apply(ops.SHIFT_RIGHT, word, c.whole(_SLOT_BITS))


def _shifted(value: Expr) -> Expr:
    return c.apply(ops.SHIFT_LEFT, value, c.whole(_SLOT_BITS))


def _count_of(counts: Expr, k: int) -> Expr:
    shifted = c.apply(ops.SHIFT_RIGHT, counts, c.whole(k * _COUNT_BITS))
    return c.apply(ops.BIT_AND, shifted, c.whole((1 << _COUNT_BITS) - 1))


def _upper(counts: Expr, k: int) -> Expr:
    return _shifted(_count_of(counts, k))


def _value(item: Expr, shift: Expr) -> Expr:
    """The bits of an item by which a tile is sorted at a time."""
    bits = c.apply(ops.SHIFT_RIGHT, item, shift)
    return c.apply(ops.BIT_AND, bits, c.whole((1 << _PART_BITS) - 1))
