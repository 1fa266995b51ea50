"""Names that a body needs from before it; statements that nobody needs are left out."""

from __future__ import annotations

from shaderad.bodies.liveness import live_before, live_in_loop, without_dead
from shaderad.ir.nodes import Assign, Call, Evaluate, FieldStep, Function, If, Return, Stmt, While
from shaderad.ir.types import VOID
from tests.lower.bodies import add, number, positive, put, repeat, var, when

NOTHING = frozenset[str]()


def test_a_name_bound_whole_is_not_needed_before() -> None:
    assert live_before((put("s", var("a")),), frozenset({"s"})) == {"a"}


def test_a_part_written_needs_the_rest() -> None:
    write = Assign(name="s", path=(FieldStep(name="x"),), value=var("a"))
    assert live_before((write,), NOTHING) == {"s", "a"}


def test_one_branch_that_binds_leaves_the_other_path_open() -> None:
    assert live_before((when("c", put("s", number(1.0))),), frozenset({"s"})) == {"c", "s"}
    both = when("c", put("s", number(1.0)), otherwise=(put("s", number(2.0)),))
    assert live_before((both,), frozenset({"s"})) == {"c"}


def test_a_loop_may_not_run_at_all() -> None:
    loop = repeat("k", var("n"), put("s", number(1.0)))
    assert live_before((loop,), frozenset({"s"})) == {"n", "s"}


def test_what_one_iteration_leaves_for_the_next_is_needed_in_the_loop() -> None:
    loop = repeat("k", 3, put("t", var("s")), put("s", add(var("t"), var("k"))))
    assert live_in_loop(loop, NOTHING) == {"s"}
    assert live_in_loop(loop, frozenset({"t"})) == {"s", "t"}


def test_a_condition_is_asked_again_after_the_last_iteration() -> None:
    loop = While(condition=positive("c"), body=(put("c", number(0.0)),))
    assert live_in_loop(loop, NOTHING) == {"c"}


def test_nothing_after_a_return_is_needed() -> None:
    assert live_before((Return(value=var("a")),), frozenset({"s"})) == {"a"}


# -- dead code --------------------------------------------------------------------------------


def test_what_only_dead_assignments_read_is_dead() -> None:
    body = (put("a", number(1.0)), put("b", var("a")), put("c", number(2.0)))
    assert without_dead(body, frozenset({"c"})) == body[2:]


def test_a_call_of_a_function_without_statements_is_dead() -> None:
    def call(*body: Stmt) -> Evaluate:
        function = Function(name="f", parameters=(), result=VOID, body=body, local_types={})
        return Evaluate(call=Call(type=VOID, function=function, args=()))

    kept = call(put("a", number(1.0)))
    assert without_dead((call(), kept), frozenset()) == (kept,)


def test_an_if_keeps_the_branch_that_does_something() -> None:
    (kept,) = without_dead(
        (when("c", put("a", number(1.0)), otherwise=(put("s", number(2.0)),)),), frozenset({"s"})
    )
    assert isinstance(kept, If)
    assert kept.then == (put("s", number(2.0)),)


def test_a_loop_keeps_what_later_iterations_read() -> None:
    loop = repeat("k", 3, put("s", var("t")), put("t", add(var("t"), var("k"))))
    assert without_dead((loop,), frozenset({"s"})) == (loop,)


def test_a_loop_that_only_feeds_itself_is_left_out() -> None:
    inner = While(condition=positive("n"), body=(put("n", add(var("n"), var("k"))),))
    loop = repeat("k", 3, put("t", add(var("t"), var("k"))), inner)
    assert without_dead((loop, put("s", number(1.0))), frozenset({"s"})) == (put("s", number(1.0)),)
    assert without_dead((inner,), frozenset({"n"})) == (inner,)
