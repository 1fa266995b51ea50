"""Bodies lose their jumps and compute the same."""

from __future__ import annotations

from itertools import product

import pytest

from shaderad.bodies.structured import without_jumps
from shaderad.ir import ops
from shaderad.ir.nodes import (
    Assign,
    Break,
    Const,
    Continue,
    Expr,
    For,
    If,
    Return,
    Stmt,
    Var,
    While,
)
from shaderad.ir.types import FLOAT, VOID
from shaderad.ir.walk import made_name, statements
from tests.lower.bodies import add, number, positive, put, repeat, times, var, when

TYPES = {"a": FLOAT, "b": FLOAT, "s": FLOAT}
S = var("s")


def mark(value: float) -> Assign:
    """A step that tells its place and how often it ran: ``s = s * 3 + value``."""
    return put("s", add(times(S, number(3.0)), number(value)))


class _Left(Exception):
    def __init__(self, kind: type[Stmt], value: float | None = None) -> None:
        self.kind = kind
        self.value = value


def run(body: tuple[Stmt, ...], values: dict[str, float]) -> float | None:
    """What a function with this body returns; jumps may stand in it."""
    try:
        block(body, values)
    except _Left as left:
        return left.value
    return None


def block(body: tuple[Stmt, ...], values: dict[str, float]) -> None:
    for s in body:
        if isinstance(s, Return):
            raise _Left(Return, None if s.value is None else evaluate(s.value, values))
        if isinstance(s, Break | Continue):
            raise _Left(type(s))
        if isinstance(s, If):
            block(s.then if evaluate(s.condition, values) else s.otherwise, values)
        elif isinstance(s, For):
            loop(s, values)
        else:
            assert isinstance(s, Assign)
            values[s.name] = evaluate(s.value, values)


def loop(s: For, values: dict[str, float]) -> None:
    for k in range(int(evaluate(s.stop, values))):
        if any(values[flag] for flag in s.exits):
            return
        values[s.variable] = k
        try:
            block(s.body, values)
        except _Left as left:
            if left.kind is Break:
                return
            if left.kind is Return:
                raise


def evaluate(e: Expr, values: dict[str, float]) -> float:
    if isinstance(e, Var):
        return values[e.name]
    if isinstance(e, Const):
        return e.value
    if hasattr(e, "is_and"):
        left = evaluate(e.left, values)
        return left and evaluate(e.right, values) if e.is_and else left or evaluate(e.right, values)
    if not hasattr(e, "op"):
        return 0.0
    parts = [evaluate(a, values) for a in e.args]
    return {
        ops.ADD: lambda: parts[0] + parts[1],
        ops.MUL: lambda: parts[0] * parts[1],
        ops.GT: lambda: parts[0] > parts[1],
        ops.NOT: lambda: not parts[0],
    }[e.op]()


LEAVE = Return(value=S)
BODIES: dict[str, tuple[Stmt, ...]] = {
    "return in a branch": (when("a", mark(1), LEAVE), mark(2), LEAVE),
    "return in both branches": (when("a", LEAVE, otherwise=(mark(1), LEAVE)), mark(2), LEAVE),
    "return deep in branches": (
        when("a", when("b", mark(1), LEAVE), mark(2), otherwise=(mark(3),)),
        mark(4),
        LEAVE,
    ),
    "break": (repeat("k", 3, mark(1), when("a", Break()), mark(2)), mark(3), LEAVE),
    "continue": (repeat("k", 3, mark(1), when("a", Continue()), mark(2)), mark(3), LEAVE),
    "break and continue": (
        repeat("k", 3, when("a", when("b", Break()), Continue()), mark(1)),
        mark(2),
        LEAVE,
    ),
    "return in nested loops": (
        repeat("k", 3, repeat("m", 2, mark(1), when("a", LEAVE), mark(2)), mark(3)),
        mark(4),
        LEAVE,
    ),
    "every jump": (
        repeat(
            "k",
            3,
            mark(1),
            repeat("m", 2, when("a", Continue()), mark(2), when("b", mark(3), Break())),
            when("a", when("b", mark(4), LEAVE), mark(5), Continue(), otherwise=(Break(),)),
            mark(6),
        ),
        when("b", mark(7)),
        mark(8),
        LEAVE,
    ),
    "code after a jump": (repeat("k", 2, Break(), mark(1)), LEAVE, mark(2)),
}


@pytest.mark.parametrize("name", BODIES)
def test_a_body_without_jumps_returns_what_it_did_with_them(name: str) -> None:
    body = BODIES[name]
    structured = without_jumps(body, FLOAT, TYPES)
    for a, b, s in product((-1.0, 1.0), (-1.0, 1.0), (0.0, 5.0)):
        wanted = run(body, {"a": a, "b": b, "s": s})
        found = run(structured.body, {"a": a, "b": b, "s": s})
        assert found == wanted, (a, b, s)


@pytest.mark.parametrize("name", BODIES)
def test_only_one_return_is_left_and_it_stands_last(name: str) -> None:
    body = without_jumps(BODIES[name], FLOAT, TYPES).body
    jumps = [s for s in statements(body) if isinstance(s, Return | Break | Continue)]
    assert jumps == [body[-1]]


def test_a_single_return_at_the_end_needs_no_flag() -> None:
    body = (mark(1), LEAVE)
    structured = without_jumps(body, FLOAT, TYPES)
    assert structured.body == body
    assert structured.local_types == TYPES


def test_the_result_takes_no_name_of_the_users() -> None:
    types = TYPES | {"result": FLOAT, "returned": FLOAT}
    structured = without_jumps(BODIES["return in a branch"], FLOAT, types)
    assert structured.local_types[made_name("result")] == FLOAT
    assert structured.local_types["result"] == FLOAT


def test_a_kernel_that_returns_early_keeps_no_flag_that_nothing_reads() -> None:
    body = (when("a", mark(1), Return()), mark(2))
    structured = without_jumps(body, VOID, TYPES)
    assert structured.local_types == TYPES
    assert structured.body == (when("a", mark(1), otherwise=(mark(2),)),)


def test_a_condition_whose_branch_only_jumps_is_negated() -> None:
    structured = without_jumps((when("a", Return()), mark(2)), VOID, TYPES)
    (branch,) = structured.body
    assert isinstance(branch, If)
    assert branch.then == (mark(2),)
    assert branch.otherwise == ()
    assert branch.condition != positive("a")


def test_loops_in_a_body_without_jumps_stay_as_they_are() -> None:
    body = (repeat("k", 3, mark(1)), While(condition=positive("s"), body=(mark(2),)))
    assert without_jumps(body, VOID, TYPES).body == body
