"""Each write of a thread to a Min or Max array has a number of its own."""

from __future__ import annotations

import numpy as np

import shaderad as sad
from shaderad.bodies.write_numbers import NumberedAccumulate, numbered
from shaderad.ir.nodes import Apply, Call, Const, Expr, For, Stmt
from shaderad.ir.walk import children, expressions


@sad.kernel
def lowest(i: sad.Index, x: sad.In[float], m: sad.Min[float], n: sad.Min[int]):
    m[0] = sad.min(m[0], x[i])
    for a in range(4):
        m[1] = sad.min(m[1], x[a])
        for b in range(5):
            m[2] = sad.min(m[2], x[b])
            if x[b] > 0.0:
                m[3] = sad.min(m[3], x[b] * 2.0)
    n[0] = sad.min(n[0], i)


@sad.function
def put(m: sad.Min[float], j: int, v: float) -> float:
    m[j] = sad.min(m[j], v)
    m[0] = sad.min(m[0], v * v)
    return v


@sad.function
def put_twice(m: sad.Min[float], v: float) -> float:
    return put(m, 1, v) + put(m, 2, v)


@sad.kernel
def lowest_by_functions(i: sad.Index, x: sad.In[float], m: sad.Min[float]):
    put(m, 3, x[i])
    for _k in range(4):
        put(m, 3, put_twice(m, put(m, 4, x[i])))
    m[5] = sad.min(m[5], put_twice(m, x[i]))


def numbers(body: tuple[Stmt, ...], values: dict[str, int]) -> list[int]:
    """The numbers in the order of a run that takes every branch."""
    found: list[int] = []
    for s in body:
        for e in (part for child in children(s) for part in expressions(child)):
            if isinstance(e, Call):
                inner = {e.function.parameters[-1].name: value_of(e.args[-1], values)}
                found += numbers(e.function.body, inner)
        if isinstance(s, NumberedAccumulate):
            found.append(value_of(s.number, values))
        elif isinstance(s, For):
            for _ in range(int(s.stop.value)):
                found += numbers(s.body, values)
        elif hasattr(s, "then"):
            found += numbers(s.then, values)
        elif hasattr(s, "name"):
            values[s.name] = value_of(s.value, values)
    return found


def value_of(e: Expr, values: dict[str, int]) -> int:
    if isinstance(e, Const):
        return int(e.value)
    if not isinstance(e, Apply):
        return values[e.name]
    a, b = (value_of(part, values) for part in e.args)
    return {"+": a + b, "*": a * b, "^": a ^ b}[e.op.slang.split()[1]] % 2**32


def test_no_two_writes_of_a_thread_share_a_number() -> None:
    ir = lowest.specialise({})
    made = numbered(ir)
    found = numbers(made.body, {})
    assert len(found) == 1 + 4 * (1 + 5 * 2)
    assert len(np.unique(found)) == len(found)
    assert set(made.local_types) > set(ir.local_types)


def test_writes_of_one_function_differ_by_the_calls_that_lead_to_them() -> None:
    ir = lowest_by_functions.specialise({})
    found = numbers(numbered(ir).body, {})
    assert len(found) == 2 * (1 + 4 * (1 + 1 + 2) + 2) + 1
    assert len(np.unique(found)) == len(found)


def test_writes_of_integers_need_no_number() -> None:
    ir = lowest.specialise({})
    assert not isinstance(numbered(ir).body[-1], NumberedAccumulate)
