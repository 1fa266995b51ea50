"""What nobody reads later is left out of a body."""

from __future__ import annotations

from shaderad.bodies.dead_code import without_dead
from shaderad.ir.nodes import Call, Evaluate, Function, If, Stmt, While
from shaderad.ir.types import VOID
from tests.lower.bodies import add, number, positive, put, repeat, var, when


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
