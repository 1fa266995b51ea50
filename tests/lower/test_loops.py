"""Loops as functions: what they carry, what they capture, how their states are kept."""

from __future__ import annotations

import pytest

import shaderad as sad
from shaderad.bodies.trip_counts import trip_count
from shaderad.ir.nodes import For, Stmt, While
from shaderad.ir.types import FLOAT, INT
from shaderad.lower.bindings import Mode, Variant
from shaderad.lower.kernels import lower_kernel
from shaderad.lower.loops import Keeping, LoopFunction, Outliner, RunLoop
from tests.lower.bodies import add, number, positive, put, repeat, times, var, when

TYPES = {"s": FLOAT, "t": FLOAT, "a": FLOAT, "n": INT, "k": INT, "m": INT}


def outlined(*body: Stmt, live: str = "s") -> list[LoopFunction]:
    outliner = Outliner("f", TYPES, [])
    outliner.block(body, frozenset(live.split()))
    return outliner.loops


GROWS = put("s", times(var("s"), var("a")))
SUMS = put("s", add(var("s"), var("a")))


def test_state_is_what_is_written_and_needed_again_and_the_rest_is_captured() -> None:
    loop = repeat("k", 4, put("t", times(var("a"), var("a"))), put("s", times(var("s"), var("t"))))
    (f,) = outlined(loop)
    assert f.state == (("s", FLOAT),)
    assert f.captured == (("a", FLOAT),)
    assert f.carries_floats


def test_loops_nest_inner_ones_first() -> None:
    inner, outer = outlined(repeat("k", 4, repeat("m", 3, GROWS)))
    assert (inner.loop.variable, outer.loop.variable) == ("m", "k")
    assert isinstance(outer.body[0], RunLoop)
    assert outer.captured == (("a", FLOAT),)


@pytest.mark.parametrize(
    ("loop", "keeping"),
    [
        (repeat("k", 4, GROWS), Keeping.ALL),
        (repeat("k", 256, GROWS), Keeping.ALL),
        (repeat("k", 257, GROWS), Keeping.CHECKPOINTS),
        (repeat("k", var("n", INT), GROWS, limit=300), Keeping.CHECKPOINTS),
        (repeat("k", var("n", INT), GROWS), Keeping.UNBOUNDED),
        (repeat("k", var("n", INT), SUMS), Keeping.NOTHING),
        (repeat("k", var("n", INT), when("s", SUMS)), Keeping.UNBOUNDED),
        (repeat("k", var("n", INT), when("a", SUMS)), Keeping.NOTHING),
        (repeat("k", var("n", INT), put("t", var("s")), SUMS), Keeping.UNBOUNDED),
        (While(condition=positive("s"), body=(SUMS,)), Keeping.UNBOUNDED),
        (While(condition=positive("s"), limit=9, body=(SUMS,)), Keeping.ALL),
    ],
)
def test_states_are_kept_as_the_loop_needs(loop: For | While, keeping: Keeping) -> None:
    (f,) = outlined(loop)
    assert f.keeping is keeping


@pytest.mark.parametrize("limit", [257, 300, 5000, 10**6])
def test_checkpoints_cover_the_limit_in_two_similar_levels(limit: int) -> None:
    (f,) = outlined(repeat("k", limit, GROWS))
    count, length = f.segments
    assert (count - 1) * length < limit <= count * length
    assert abs(count - length) <= 2


@pytest.mark.parametrize(
    ("start", "stop", "step"), [(0, 5, 1), (5, 0, -2), (5, 5, 1), (0, -3, 1), (-3, 4, 3)]
)
def test_constant_bounds_give_pythons_count(start: int, stop: int, step: int) -> None:
    loop = For(variable="k", start=number(start), stop=number(stop), step=number(step), body=())
    assert trip_count(loop) == len(range(start, stop, step))


@pytest.mark.parametrize(("trips", "limit", "may"), [(4, 4, False), (5, 4, True), (4, None, False)])
def test_a_loop_with_known_bounds_within_its_limit_cannot_overrun(
    trips: int, limit: int | None, may: bool
) -> None:
    (f,) = outlined(repeat("k", trips, GROWS, limit=limit))
    assert f.may_overrun is may


@sad.kernel
def without_iterations(i: sad.Index, x: sad.In[float], y: sad.Out[float]):
    total = x[i]
    for k in range(3, 3):
        total += x[k]
    for k in range(2, 0, 1):
        total *= 2.0 + k
    y[i] = total


def test_a_loop_without_iterations_is_left_out() -> None:
    """Slang warns of them, which slangpy prints."""
    variant = Variant(launch_shaped=frozenset({"y"}))
    (lowered,) = lower_kernel(without_iterations.specialise({}), Mode.PRIMAL, variant)
    assert "for (" not in lowered.program.slang
