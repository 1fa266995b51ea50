"""What a plan says about itself."""

from __future__ import annotations

from shaderad.ir import arrays, ops, sizes
from shaderad.ir import building as b
from shaderad.ir.arrays import ArrayType, Graph
from shaderad.ir.types import FLOAT, INT
from shaderad.plan.explain import Memory, explain
from shaderad.plan.planning import plan
from tests.array_check import array

N = sizes.symbol("n")
M = sizes.symbol("m")


def graph() -> Graph:
    x, index = array((M, N)), array((M,), INT)
    total = b.reduce(ops.MAX, b.applied(ops.SIN, x))
    summed = arrays.ScatterAdd(operands=(b.zeros(ArrayType(FLOAT, (N,))), total, index)).result
    return Graph((x, index), (summed,))


def test_each_step_has_a_line_with_what_it_reads_and_writes() -> None:
    text = explain(plan(graph()), len(graph().nodes))
    assert text.splitlines()[-3:] == [
        "  1. reduce by max of map_sin over [m, n]: in0 -> t0 float[m] (4*m bytes)",
        "  2. scatter_add over [m], summed atomically: t0, in1 -> t1 float[n] (4*n bytes)",
        "results: t1",
    ]


def test_known_sizes_are_numbers_and_memory_is_told() -> None:
    memory = Memory(live=5000, results=4000, between=1000)
    text = explain(plan(graph()), 3, {"m": 1000, "n": 2}, memory)
    assert "float[1,000, 2] (8,000 bytes)" in text
    assert "most live at one time: 5,000 bytes" in text
    assert "allocated: 5,000 bytes, of which 1,000 serve again" in text


def test_the_steps_of_a_loop_stand_below_it() -> None:
    k, x = array((), INT), array((N,))
    body = Graph((k, x), (b.reverse(b.applied(ops.SIN, x)),))
    start = array((N,))
    node = arrays.Loop(operands=(start,), body=body, count=M, carry_count=1, constant_count=0)
    lines = explain(plan(Graph((start,), node.results)), 1).splitlines()
    assert lines[2].startswith("  1. loop of m iterations: in0 -> ")
    assert lines[3].startswith("     1. slice over [n]: ")


def test_a_scan_says_what_is_fused_onto_it() -> None:
    x, weight = array((N,)), array((N,))
    product = b.applied(ops.MUL, b.scan(ops.ADD, x), weight)
    text = explain(plan(Graph((x, weight), (product,))), 1)
    assert "scan by add, then map_mul over [n]: in0, in1 -> " in text
