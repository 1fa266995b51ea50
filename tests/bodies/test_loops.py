"""Loops are unrolled where their copies stay small."""

from __future__ import annotations

import shaderad as sad
from shaderad.bodies.loops import may_unroll, unrolls
from shaderad.decorators import KernelFunction
from shaderad.ir.nodes import For
from shaderad.ir.walk import statements


@sad.struct
class Wide:
    a: sad.float4
    b: sad.float4


@sad.function
def polynomial(x: float) -> float:
    total = 0.0
    for _ in sad.static_range(30):
        total = total * x + 1.0
    return total


@sad.kernel
def loops(i: sad.Index, x: sad.In[float], rows: sad.In[Wide], n: int, y: sad.Out[float]):
    total = 0.0
    for k in sad.static_range(3):
        total += x[k] * total
    for k in sad.static_range(64):
        total += polynomial(float(k))
    for k in range(16):
        total += x[k]
    for k in range(17):
        total += x[k]
    for k in range(3):
        total += rows[k].a.x
    for k in range(n):
        total += rows[k].a.x
    for k in range(1000):
        total += float(k)
    for k in range(8):
        for j in range(8):
            total += x[k + j]
    y[i] = total


def _loops(kernel: KernelFunction) -> list[For]:
    return [s for s in statements(kernel.specialise({}).body) if isinstance(s, For)]


def test_a_static_range_is_unrolled_while_it_is_small() -> None:
    assert [unrolls(s) for s in _loops(loops)[:2]] == [True, False]
    assert not any(unrolls(s) for s in _loops(loops)[2:])


def test_compilers_may_not_copy_what_reads_many_words() -> None:
    many = [2, 3, 4, 5, 6, 7, 8]
    found = _loops(loops)
    assert [may_unroll(found[k]) for k in many] == [True, False, False, True, True, False, True]
