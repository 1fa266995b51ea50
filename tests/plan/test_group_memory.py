"""Arrays between the steps of a workgroup lie where their accesses allow, and have room."""

from __future__ import annotations

from shaderad.ir import composing as c
from shaderad.ir import nodes
from shaderad.ir.types import FLOAT, INT
from shaderad.plan.nest.loops.memory import MemoryKind, Share, Use, decide, share_of
from shaderad.plan.positions import Positions, add, constant, times

THREADS = 32


def share(positions: Positions, count: int) -> Share:
    thread, counter = c.variable("i", INT), c.variable("k", INT)
    return share_of(positions, thread, count, THREADS, counter)


def used(count: int, *, is_own: bool = False, times: int = 1, parts: int = 1) -> Use:
    use = Use(FLOAT, count * parts)
    use.note(share(Positions(), count), times, is_own=is_own)
    return use


def test_elements_that_only_their_thread_accesses_are_local_to_it() -> None:
    own, others = used(70, is_own=True), used(70)
    decide([own, others], 1 << 14)
    assert (own.memory, own.thread_count) == (MemoryKind.THREAD, 3)
    assert others.memory is MemoryKind.GROUP


def test_a_part_for_each_state_of_a_carry_is_local() -> None:
    own = used(70, is_own=True, parts=2)
    assert own.thread_count == 6


def test_group_memory_goes_to_the_arrays_with_most_accesses_by_word() -> None:
    few, many = used(300), used(300, times=9)
    decide([few, many], 4 * 300)
    assert (few.memory, many.memory) == (MemoryKind.BUFFER, MemoryKind.GROUP)


def test_sums_and_arrays_of_open_sizes_lie_in_buffers() -> None:
    summed, open_size = used(8, is_own=True), Use(FLOAT, None)
    summed.is_summed = True
    decide([summed, open_size], 1 << 14)
    assert {summed.memory, open_size.memory} == {MemoryKind.BUFFER}


def test_steps_of_different_sizes_share_no_local_array() -> None:
    use = used(64, is_own=True)
    use.note(share(Positions(), 32), 1, is_own=True)
    decide([use], 0)
    assert use.memory is MemoryKind.BUFFER


def test_the_parts_of_an_element_are_a_step_apart() -> None:
    positions = Positions()
    own = share(positions, 70)
    side = positions.of(c.variable("side", INT))
    assert own.part_at(own.position) == constant(0)
    assert own.part_at(add(own.position, times(side, 70))) == side
    assert own.part_at(add(own.position, constant(1))) is None
    assert own.index(side) == add(times(side, 3), own.turn)


def test_threads_without_an_element_are_left_out() -> None:
    positions, thread = Positions(), c.variable("i", INT)
    body = [nodes.Assign(name="x", value=c.zero(FLOAT))]
    (whole,) = share(positions, THREADS).each(positions, thread, body)
    assert whole == body[0]
    (guarded,) = share(positions, 5).each(positions, thread, body)
    assert isinstance(guarded, nodes.If)
    (loop,) = share(positions, 70).each(positions, thread, body)
    assert isinstance(loop, nodes.For)
    assert isinstance(loop.body[0], nodes.If)
