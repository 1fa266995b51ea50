"""Arrays between the steps of a workgroup lie where their accesses allow, and have room."""

from __future__ import annotations

from shaderad.ir import composing as c
from shaderad.ir import nodes
from shaderad.ir.types import FLOAT, INT
from shaderad.plan.nest.loops.placement import Use, decide
from shaderad.plan.nest.loops.shares import Share, in_turns
from shaderad.plan.nest.memory import MemoryKind
from shaderad.plan.nest.places import Visit, guarded
from shaderad.plan.positions import Positions, add, constant, times

THREADS = 32


def visit(positions: Positions, count: int) -> Visit:
    thread, counter = c.variable("i", INT), c.variable("k", INT)
    own = [positions.of(thread)]
    return Visit(positions, in_turns(count, THREADS), (count,), thread, THREADS, own, counter)


def share(positions: Positions, count: int) -> Share:
    of_thread = visit(positions, count)
    ((at, _),) = of_thread.places()
    return Share(of_thread.nest, at, of_thread.turn, count)


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
    (position,) = own.at
    side = positions.of(c.variable("side", INT))
    assert own.part_at(position) == constant(0)
    assert own.part_at(add(position, times(side, 70))) == side
    assert own.part_at(add(position, constant(1))) is None
    assert own.index(side) == add(times(side, 3), own.turn)


def test_threads_without_an_element_are_left_out() -> None:
    body = [nodes.Assign(name="x", value=c.zero(FLOAT))]

    def whole(count: int) -> nodes.Stmt:
        of_thread = visit(Positions(), count)
        ((_, tests),) = of_thread.places()
        (statement,) = of_thread.statements(guarded(tests, body))
        return statement

    assert whole(THREADS) == body[0]
    assert isinstance(whole(5), nodes.If)
    loop = whole(70)
    assert isinstance(loop, nodes.For)
    assert isinstance(loop.body[0], nodes.If)
    loop = whole(2 * THREADS)
    assert isinstance(loop, nodes.For)
    assert loop.body[0] == body[0]
