"""One kernel of a scan, as kernel IR: see `scans.py`."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence

from shaderad.ir import composing as c
from shaderad.ir import nodes, ops, sizes
from shaderad.ir.arrays import Value
from shaderad.ir.nodes import Assign, Expr, For, If, Stmt, Store
from shaderad.ir.sizes import Size
from shaderad.ir.types import BOOL, INT, Access, Type
from shaderad.plan.kernels import PlanKernel, number_writer
from shaderad.plan.nest.exchange import each, of_lane_below, of_last_lane, scan_of_wave, thread_of
from shaderad.plan.nest.look_back import GOAL, STATES, scans_until_known
from shaderad.plan.nest.memory import SharedArray, shared_array
from shaderad.plan.nest.scan_sharing import Level, ScanSharing, ScanWork
from shaderad.plan.nest.statements import appended, counted, guarded
from shaderad.plan.nest.vectors import ThreadElements, stores_of
from shaderad.plan.positions import Indices, Position, add, constant, number, times
from shaderad.plan.reductions import combined_by
from shaderad.plan.statements import Written


class ScanWriter:
    """Writes one kernel.

    Args:
        work: What it scans.
        sharing: How threads share rows.
    """

    def __init__(self, work: ScanWork, sharing: ScanSharing) -> None:
        self._work, self._sharing = work, sharing
        self._rows = sizes.product(work.x.shape[:-1])
        self._length = work.x.shape[-1]
        self._total: Type = work.x.element
        parts = () if work.part_count == 1 else (work.part_count,)
        available = work.reads | {work.scanned}
        if work.start is not None:
            available |= {work.start}
        rows = sizes.multiply(self._rows, sharing.is_chosen)
        shape = (rows, *parts, sharing.team.lanes)
        self._writer = writer = number_writer(shape, lambda v: v in available)
        row, *own_part, self._lane = writer.own
        self._row = Position() if self._rows == 1 else row
        (self._own_part,) = own_part or [Position()]
        self._part = self._own_part
        if work.states is not None:
            self._part = writer.positions.of(self._int(GOAL))
        self._steps = [writer.positions.of(self._int(f"step{r}")) for r in range(sharing.depth)]
        """The number of the elements that a lane takes in each step, among all of the row."""
        self._own = [(r, k) for r in range(sharing.depth) for k in range(sharing.width)]
        """The step and number of each element of a lane."""
        self._scan_by_number = self._scans_by_number()
        requests = [(work.x, self._in(work.x, *own)) for own in self._own]
        requests += [(v, self._of_result(v, *own)) for v in work.results for own in self._own]
        self.elements = ThreadElements(writer, lambda v: v in available, requests, self._scanned)

    # -- positions -----------------------------------------------------------------------------

    def _along(self, r: int, k: int) -> Position:
        """The position in its row of element `k` of step `r`."""
        if self._length == 1:
            return Position()
        return add(times(self._steps[r], self._sharing.width), constant(k))

    def _in(self, value: Value, r: int, k: int) -> Indices:
        """The indices in `value` of element `k` of step `r`."""
        at = (self._row, self._along(r, k))
        return self._writer.positions.reshaped(at, (self._rows, self._length), value.shape)

    def _of_result(self, value: Value, r: int, k: int) -> Indices:
        """The indices in a result of what is computed of the scan of an element."""
        if not self._work.is_mirrored:
            return self._in(value, r, k)
        last = constant(sizes.subtract(self._length, 1))
        return (add(last, times(self._along(r, k), -1)),)

    def _scans_by_number(self) -> dict[Position, nodes.Var]:
        """The totals up to each element of a lane, and before each step, by number in the scan."""
        scanned = self._work.scanned
        scans: dict[Position, nodes.Var] = {}
        for r, k in self._own:
            at = number(self._in(scanned, r, k), scanned.shape)
            scans[at] = self._scan(r, k)
            if k == 0:
                scans[add(at, constant(-1))] = self._before(r)
        return scans

    def _scanned(self, value: Value, at: Indices) -> Expr | None:
        """An element of the scan; `None` for other values."""
        is_scan = value is self._work.scanned
        return self._scan_by_number[number(at, value.shape)] if is_scan else None

    # -- locals --------------------------------------------------------------------------------

    def _int(self, name: str) -> nodes.Var:
        return self._writer.local(name, INT)

    def _scan(self, r: int, k: int) -> nodes.Var:
        """The total up to element `k` of step `r`, first of those in the same step and lane."""
        return self._writer.local(f"scan{r}_{k}", self._total)

    def _before(self, r: int) -> nodes.Var:
        """The total of the elements before those of step `r`, first of those in the same wave."""
        return self._writer.local(f"before{r}", self._total)

    @property
    def _start(self) -> nodes.Var:
        """The total of the elements before the part."""
        return self._writer.local("before_part", self._total)

    @property
    def _carry(self) -> nodes.Var:
        """The total of the elements before the tile, in the same part."""
        return self._writer.local("carry", self._total)

    @property
    def _wave_before(self) -> nodes.Var:
        """The total of the elements before the wave."""
        return self._writer.local("wave_before", self._total)

    # -- kernels -------------------------------------------------------------------------------

    def scan(self, name: str, fits: Collection[tuple[Size, ...]]) -> PlanKernel:
        """The kernel that stores results.

        Args:
            name: Its name.
            fits: Sizes of `ThreadElements.loads` that are multiples of 4.
        """
        body = self._body(fits)
        outputs = [(f"y{k}", v, Access.OUT) for k, v in enumerate(self._work.results)]
        if self._work.states is not None:
            outputs.append((STATES, self._work.states, Access.STATES))
        return self._writer.finish(name, body, outputs)

    def totals(self, name: str, totals: Value, fits: Collection[tuple[Size, ...]]) -> PlanKernel:
        """The kernel that stores the totals of parts."""
        body = self._body(fits)
        indices = self._writer.indices_in(totals, (self._row, self._part))
        store = Store(buffer="y0", indices=indices, value=self._carry, is_unique=True)
        body.append(each(self._sharing.team.lanes, [store]))
        return self._writer.finish(name, body, [("y0", totals, Access.OUT)])

    def _body(self, fits: Collection[tuple[Size, ...]]) -> list[Stmt]:
        positions, tile = self._writer.positions, self._int("tile")
        body = [*self._begin()]
        if self._work.states is not None:
            body += self._by_look_back(fits)
        elif self._sharing.is_repeated:
            stop = positions.size(self._work.tiles)
            body.append(counted(tile, c.whole(0), stop, [*self._of_tile(positions.of(tile), fits)]))
        else:
            body += self._of_tile(Position(), fits)
        return body

    def _begin(self) -> Iterator[Stmt]:
        """Computes what comes before the first tile."""
        positions, start = self._writer.positions, self._work.start
        yield Assign(name=self._carry.name, value=c.zero(self._total))
        if start is None:
            return
        at = c.apply(ops.MAX, positions.expr(add(self._part, constant(-1))), c.whole(0))
        indices = (self._row, positions.of(at))
        load = self._writer.read_number(start, number(indices, start.shape))
        yield Assign(name=self._start.name, value=load)

    def _of_tile(self, tile: Position, fits: Collection[tuple[Size, ...]]) -> Iterator[Stmt]:
        written = self._elements_in(fits)
        yield from self._scan_tile(tile, written)
        if self._work.results:
            yield from self._finish_tile(tile, written)
        yield from self._append(self._carry, self._tile_total, self._has_carry(tile))
        if self._sharing.is_repeated and self._sharing.slots:
            yield nodes.Barrier()

    def _by_look_back(self, fits: Collection[tuple[Size, ...]]) -> Iterator[Stmt]:
        """Scans the part, and before it those whose totals are missing."""
        positions, written = self._writer.positions, self._elements_in(fits)
        first, part = times(self._row, self._work.part_count), positions.expr(self._own_part)
        scan, by_wave = self._scan_tile(Position(), written), self._sharing.team.wave > 1
        loop, before = scans_until_known(
            self._writer, positions.expr(first), part, self._tile_total, scan, is_by_wave=by_wave
        )
        yield from loop
        yield Assign(name=self._start.name, value=before)
        yield from self._finish_tile(Position(), written)

    def _elements_in(self, fits: Collection[tuple[Size, ...]]) -> Written:
        """The elements of a tile, and what is stored for them."""
        return self.elements.written([extents in fits for extents in self.elements.loads])

    @property
    def _tile_total(self) -> nodes.Var:
        return self._writer.local("total", self._total)

    def _scan_tile(self, tile: Position, written: Written) -> Iterator[Stmt]:
        """Scans the elements of each wave, and then its total in the tile."""
        yield from self._place(tile)
        count = len(self._own)
        yield from written.body[: max(written.ends[:count])]
        yield from self._scan_own(written.values[:count])
        yield from self._scan_steps(self._tile_total)
        yield from self._scan_group(self._tile_total, [*self._sharing.levels()])

    def _finish_tile(self, tile: Position, written: Written) -> Iterator[Stmt]:
        """Lets what comes before the waves come before their elements, and stores results."""
        count = len(self._own)
        yield from self._before_wave(tile, [*self._sharing.levels()])
        yield from self._finish_scans()
        yield from written.body[max(written.ends[:count]) :]
        yield from self._stores(written.values[count:])

    def _place(self, tile: Position) -> Iterator[Stmt]:
        """Computes where the steps of a lane are in their row; the last ones in place of beyond."""
        threads, positions = self._sharing.team, self._writer.positions
        depth, wave = self._sharing.depth, threads.wave
        own_wave, lane = Position(), self._lane
        if wave < threads.lanes:
            own_wave, lane = positions.divided(self._lane, wave)
            lane = lane if wave > 1 else Position()
        tiles = add(times(self._part, self._work.tiles), tile)
        scanned = tiles if self._work.is_of_parts else tile
        place = positions.expr(add(times(scanned, threads.lanes), self._lane))
        yield Assign(name=self._place_in_scan.name, value=place)
        waves = add(times(tiles, threads.lanes // wave), own_wave)
        start = positions.expr(add(times(waves, wave * depth), lane))
        yield Assign(name=self._int("start").name, value=start)
        last = positions.expr(add(self._count, constant(-1)))
        for r in range(depth):
            step = c.apply(ops.MIN, self._unlimited(r), last)
            yield Assign(name=f"step{r}", value=step)

    @property
    def _place_in_scan(self) -> nodes.Var:
        """The number of the lane among those of all tiles that are scanned, here or before."""
        return self._int("place")

    def _has_before(self, threads: int) -> Expr:
        """True if elements come before those of the lane's team of so many threads."""
        is_one_tile = not self._work.is_of_parts and not self._sharing.is_repeated
        if is_one_tile and threads == self._sharing.team.lanes:
            return c.truth(BOOL, False)
        return c.apply(ops.GE, self._place_in_scan, c.whole(threads))

    @property
    def _count(self) -> Position:
        """The steps of all lanes in a row."""
        return constant(sizes.floor_divide(self._length, self._sharing.width))

    def _unlimited(self, r: int) -> Expr:
        """The number of the elements of step `r` in the row, which may be beyond its end."""
        start = self._writer.positions.of(self._int("start"))
        return self._writer.positions.expr(add(start, constant(r * self._sharing.team.wave)))

    # -- scans ---------------------------------------------------------------------------------

    def _combined(self, left: Expr, right: Expr) -> Expr:
        return combined_by(self._work.op, left, right)

    def _append(self, total: nodes.Var, value: Expr, has_total: Expr) -> Iterator[Stmt]:
        """Lets `value` come after `total`, or be the total if there is none."""
        return appended(self._combined, total, value, has_total)

    def _scan_own(self, values: Sequence[Expr]) -> Iterator[Stmt]:
        """Scans the elements of each step in their lane."""
        for (r, k), value in zip(self._own, values, strict=True):
            total = value if k == 0 else self._combined(self._scan(r, k - 1), value)
            yield Assign(name=self._scan(r, k).name, value=total)

    def _scan_steps(self, total: nodes.Var) -> Iterator[Stmt]:
        """Scans the totals of lanes in their wave, step by step; `total` becomes that of all."""
        wave, last = self._sharing.team.wave, self._sharing.width - 1
        lane = self._int("lane")
        if wave > 1:
            yield Assign(name=lane.name, value=thread_of(wave))
        for r in range(self._sharing.depth):
            own, before = self._writer.local(f"own{r}", self._total), self._before(r)
            yield Assign(name=own.name, value=self._scan(r, last))
            yield from scan_of_wave(self._writer, self._combined, own, lane, wave)
            whole = of_last_lane(own, wave) if wave > 1 else own
            if r and self._work.results:
                yield Assign(name=before.name, value=total)
            if wave > 1 and self._work.results:
                left = self._writer.local(f"left{r}", self._total)
                yield Assign(name=left.name, value=of_lane_below(own, 1))
                append = self._append(before, left, c.truth(BOOL, r > 0))
                yield from guarded(_is_later(lane), append)
            yield from self._append(total, whole, c.truth(BOOL, r > 0))

    def _has_carry(self, tile: Position) -> Expr:
        """True if elements of the same part or row come before a tile."""
        if not self._sharing.is_repeated:
            return c.truth(BOOL, False)
        return c.apply(ops.GT, self._writer.positions.expr(tile), c.whole(0))

    def _before_tile(self, tile: Position) -> Iterator[Stmt]:
        """Lets what comes before the part come before what comes before the tile in it."""
        before, carry = self._wave_before, self._carry
        if not self._work.is_of_parts:
            yield Assign(name=before.name, value=carry)
            return
        yield Assign(name=before.name, value=self._start)
        both = self._combined(self._start, carry)
        is_first = c.apply(ops.EQ, self._writer.positions.expr(self._part), c.whole(0))
        alone = Assign(name=before.name, value=carry)
        after = Assign(name=before.name, value=both)
        choice = If(condition=is_first, then=(alone,), otherwise=(after,))
        yield from guarded(self._has_carry(tile), [choice])

    def _scan_group(self, total: nodes.Var, levels: Sequence[Level]) -> Iterator[Stmt]:
        """Scans the totals of waves; `total` becomes that of the tile."""
        if levels:
            slots = shared_array(self._writer, "slots", self._total, self._sharing.slots)
            thread = self._int("thread")
            yield Assign(name=thread.name, value=thread_of(self._sharing.team.workgroup))
            for level in levels:
                yield from self._scan_level(slots, level, total)

    def _before_wave(self, tile: Position, levels: Sequence[Level]) -> Iterator[Stmt]:
        """Computes the total of the elements before the wave."""
        yield from self._before_tile(tile)
        for level in reversed(levels):
            has_before = self._has_before(level.threads * level.count)
            append = self._append(self._wave_before, self._mine(level), has_before)
            yield from guarded(_is_later(self._team(level)), append)

    def _team(self, level: Level) -> nodes.Var:
        """The number of the thread's team among those of a level that are scanned at once."""
        return self._int(f"team{level.threads}")

    def _mine(self, level: Level) -> nodes.Var:
        """The total of the teams before the thread's, among those that are scanned at once."""
        return self._writer.local(f"teams_before{level.threads}", self._total)

    def _scan_level(self, slots: SharedArray, level: Level, total: nodes.Var) -> Iterator[Stmt]:
        """Makes `total`, that of a team, that of all teams that are scanned at once."""
        positions, k = self._writer.positions, self._int(f"k{level.threads}")
        thread = positions.of(self._int("thread"))
        own, _ = positions.divided(thread, level.threads)
        block, _ = positions.divided(thread, level.threads * level.count)
        start = times(block, level.count)
        first = constant(level.first)
        yield each(level.threads, [slots.put(add(first, own), total)])
        yield nodes.Barrier()
        at = add(first, start)
        yield Assign(name=total.name, value=slots.get(at))
        other = slots.get(add(at, positions.of(k)))
        body: list[Stmt] = [Assign(name=total.name, value=self._combined(total, other))]
        if self._work.results:
            team, keep = self._team(level), Assign(name=self._mine(level).name, value=total)
            yield Assign(name=team.name, value=positions.expr(add(own, times(start, -1))))
            yield keep
            is_own = c.apply(ops.EQ, k, team)
            body.insert(0, If(condition=is_own, then=(keep,), otherwise=()))
        yield For(
            variable=k.name, start=c.whole(1), stop=c.whole(level.count), step=c.whole(1),
            is_unrolled=True, body=tuple(body),
        )  # fmt: skip

    # -- results -------------------------------------------------------------------------------

    def _finish_scans(self) -> Iterator[Stmt]:
        """Lets what comes before each step come before its elements."""
        wave, width = self._sharing.team.wave, self._sharing.width
        lane = self._int("lane")
        for r in range(self._sharing.depth):
            before, both = self._before(r), self._writer.local(f"all{r}", self._total)
            has_before = self._has_before(wave)
            if not r or c.number_of(has_before) is None:
                yield Assign(name=both.name, value=self._wave_before)
                if r or wave > 1:
                    append = self._append(both, before, has_before)
                    yield from append if r else guarded(_is_later(lane), append)
                yield Assign(name=before.name, value=both)
            scans = [self._scan(r, k) for k in range(width)]
            joined = (Assign(name=scan.name, value=self._combined(before, scan)) for scan in scans)
            yield from joined if r else guarded(self._has_before(1), joined)

    def _stores(self, values: Sequence[Expr]) -> Iterator[Stmt]:
        """Stores the results of each step that is not beyond the end of the row."""
        width, count = self._sharing.width, len(self._own)
        end = self._writer.positions.expr(self._count)
        for r in range(self._sharing.depth):
            stores: list[Stmt] = []
            for j, value in enumerate(self._work.results):
                places = [self._of_result(value, r, k) for k in range(width)]
                first = j * count + r * width
                own = values[first : first + width]
                stores += stores_of(self._writer, f"y{j}", value, places, own)
            is_there = c.apply(ops.LT, self._unlimited(r), end)
            yield from guarded(is_there, stores)


def _is_later(number: Expr) -> Expr:
    """True if a number is not the first."""
    return c.apply(ops.GT, number, c.whole(0))
