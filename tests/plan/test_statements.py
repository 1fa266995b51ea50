"""Shared expressions become statements that evaluate nothing where it is not needed."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import chain

import numpy as np
import pytest

import shaderad as sad
from shaderad.ir import composing as c
from shaderad.ir import nodes, ops, walk
from shaderad.ir.nodes import Expr, If, Stmt
from shaderad.ir.types import FLOAT, INT
from shaderad.plan.statements import write

OWN = c.variable("i", INT)
IS_INSIDE = c.apply(ops.LT, OWN, c.variable("last", INT))


def read(index: Expr) -> Expr:
    return nodes.Load(type=FLOAT, buffer="x", indices=(index,))


def choice(condition: Expr, if_true: Expr, if_false: Expr) -> Expr:
    return nodes.Conditional(type=FLOAT, condition=condition, if_true=if_true, if_false=if_false)


def unguarded(body: Sequence[Stmt], values: Sequence[Expr]) -> Iterator[Expr]:
    """What is evaluated whatever the conditions are."""
    for statement in body:
        if not isinstance(statement, If):
            yield from always(*walk.children(statement))
    yield from always(*values)


def always(*parts: Expr) -> Iterator[Expr]:
    for part in parts:
        yield part
        inner = list(walk.children(part))
        yield from always(*(inner[:1] if isinstance(part, nodes.Conditional) else inner))


def loads(parts: Iterator[Expr]) -> list[Expr]:
    return [e for e in parts if isinstance(e, nodes.Load)]


def test_a_read_that_two_choices_share_stands_in_both() -> None:
    after = read(c.apply(ops.ADD, OWN, c.whole(1)))
    square = c.apply(ops.MUL, after, after)
    first = choice(IS_INSIDE, c.apply(ops.ADD, square, after), c.number(FLOAT, 0.0))
    second = choice(IS_INSIDE, c.apply(ops.SIN, square), c.number(FLOAT, 1.0))
    written = write([first, second])
    assert loads(unguarded(written.body, written.values)) == []
    assert loads(walk.all_expressions(written.body)) != []


def test_statements_come_in_turn_with_the_first_value_that_needs_them() -> None:
    one, other = (c.apply(ops.SIN, read(c.whole(k))) for k in range(2))
    first, second = c.apply(ops.MUL, one, one), c.apply(ops.MUL, other, other)
    written = write([first, c.apply(ops.ADD, first, second), second])
    turns = [*written.in_turn()]
    assert [value for _, value in turns] == [*written.values]
    assert [*chain.from_iterable(statements for statements, _ in turns)] == [*written.body]
    read_by_turn = [len(loads(walk.all_expressions(statements))) for statements, _ in turns]
    assert read_by_turn == [1, 1, 0]


def test_one_that_is_needed_in_any_case_is_read_once() -> None:
    after = read(c.apply(ops.ADD, OWN, c.whole(1)))
    guarded = choice(IS_INSIDE, c.apply(ops.SIN, after), c.number(FLOAT, 0.0))
    written = write([c.apply(ops.COS, after), guarded])
    everything = [*written.body, nodes.Return(value=written.values[1])]
    found = [*loads(walk.all_expressions(everything)), *loads(always(written.values[0]))]
    assert len(found) == len(loads(unguarded(written.body, written.values))) == 1


def test_what_is_read_at_the_own_index_is_computed_once_for_both() -> None:
    shared = c.apply(ops.SIN, read(OWN))
    choices = [choice(IS_INSIDE, c.apply(op, shared), shared) for op in (ops.COS, ops.SQRT)]
    written = write(choices)
    parts = [
        *walk.all_expressions(written.body),
        *(e for v in written.values for e in walk.expressions(v)),
    ]
    assert sum(isinstance(e, nodes.Apply) and e.op == ops.SIN for e in parts) == 1


@sad.function
def one_more(x: float) -> float:
    return x * x + 1.0


@sad.graph
def neighbours(x: sad.Array[float]) -> sad.Array[float]:
    """What two choices share is behind a call, which has the kernel check what it reads."""
    y = sad.map(one_more, x)
    after = sad.concatenate([y[1:], sad.zeros(1)])
    return after * sad.concatenate([x[1:], sad.full(1, 2.0)])


@pytest.mark.gpu
@pytest.mark.parametrize("length", [1, 2, 300])
def test_elements_beyond_the_end_are_not_read(device: sad.Device, length: int) -> None:
    x = np.linspace(-1.0, 2.0, length, dtype=np.float32)
    with device:
        found = neighbours(x).numpy()
        gradient = sad.grad(lambda x: sad.sum(neighbours(x)))(x).numpy()
    after = x[1:].astype(np.float64)
    np.testing.assert_allclose(found, [*((after**2 + 1) * after), 0.0], rtol=1e-6)
    np.testing.assert_allclose(gradient, [0.0, *(3 * after**2 + 1)], rtol=1e-6)
