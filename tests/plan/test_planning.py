"""Which kernels a graph becomes."""

from __future__ import annotations

import shaderad as sad
from shaderad.frontend.kernels import standalone
from shaderad.ir import arrays, nodes, ops, printer, sizes
from shaderad.ir import building as b
from shaderad.ir import composing as c
from shaderad.ir.arrays import Graph, Value
from shaderad.ir.types import FLOAT, INT
from shaderad.plan.planning import plan
from shaderad.plan.steps import Plan
from shaderad.rules.arrays import vjp
from tests.array_check import array

N = sizes.symbol("n")
M = sizes.symbol("m")


def chain(x: Value, count: int) -> Value:
    for _ in range(count):
        x = b.applied(ops.TANH, b.applied(ops.SIN, x))
    return x


def texts(found: Plan) -> list[str]:
    return [printer.kernel_text(step.work.kernel) for step in found.steps]


def test_a_chain_of_maps_and_its_gradient_are_one_kernel_each() -> None:
    x = array((N,))
    graph = Graph((x,), (chain(x, 16),))
    assert len(plan(graph).steps) == 1
    back = vjp(graph, [True])
    gradient = Graph(back.inputs, back.outputs[1:])
    assert len(plan(gradient).steps) == 1


def test_outputs_of_one_shape_share_what_they_have_in_common() -> None:
    x = array((N,))
    shared = chain(x, 1)
    graph = Graph((x,), (b.applied(ops.NEG, shared), b.applied(ops.EXP, shared)))
    (step,) = plan(graph).steps
    assert len(step.writes) == 2
    assert texts(plan(graph))[0].count("tanh") == 1


def test_layout_moves_nothing_but_indices() -> None:
    x = array((N, M))
    moved = b.reverse(b.transpose(x, (1, 0)))
    graph = Graph((x,), (b.applied(ops.NEG, moved),))
    (step,) = plan(graph).steps
    assert step.reads == (x,)


def test_reversing_twice_reads_at_the_own_index() -> None:
    x = array((N,))
    graph = Graph((x,), (b.applied(ops.NEG, b.reverse(b.reverse(x))),))
    assert "x0[i]" in texts(plan(graph))[0]


def test_a_reshaped_result_is_the_same_memory() -> None:
    x = array((N, M))
    found = plan(Graph((x,), (b.reshape(x, (sizes.multiply(N, M),)),)))
    assert found.steps == ()
    assert found.outputs == ((x, (sizes.multiply(N, M),)),)


def test_what_costs_much_is_stored_before_it_is_repeated() -> None:
    x = array((N,))
    repeated = b.along_last(chain(x, 4), M)
    dear = plan(Graph((x,), (b.applied(ops.NEG, repeated),)))
    assert [step.writes[0].shape for step in dear.steps] == [(N,), (N, M)]
    cheap = plan(Graph((x,), (b.applied(ops.NEG, b.along_last(x, M)),)))
    assert len(cheap.steps) == 1


def test_equal_nodes_are_one() -> None:
    x = array((N,))
    first, second = chain(x, 2), chain(x, 2)
    (step,) = plan(Graph((x,), (first, second))).steps
    assert len(step.writes) == 1


def test_a_checkpoint_is_computed_again() -> None:
    x = array((N,))
    body = Graph((inner := array((N,)),), (b.scan(ops.ADD, inner),))
    again = arrays.Subgraph(operands=(x,), body=body).result
    found = plan(Graph((x,), (b.scan(ops.ADD, x), again)))
    assert len(found.steps) == 2


def test_a_deep_graph_needs_no_recursion() -> None:
    x = array((N,))
    assert len(plan(Graph((x,), (chain(x, 2000),))).steps) == 1


def test_an_index_array_is_computed_where_it_is_used() -> None:
    x, index = array((N,)), array((M,), INT)
    gathered = arrays.Gather(operands=(x, b.plus(index, 1)), is_reported=False).result
    (step,) = plan(Graph((x, index), (gathered,))).steps
    assert set(step.reads) == {x, index}


def test_kernels_bind_no_more_buffers_than_they_should() -> None:
    xs = tuple(array((N,)) for _ in range(5))
    sums = [xs[0]]
    for x in xs[1:]:
        sums.append(b.applied(ops.TANH, b.applied(ops.ADD, sums[-1], x)))
    found = plan(Graph(xs, (*sums[1:], b.reduce(ops.ADD, sums[-1]))), buffer_limit=6)
    assert all(len(step.reads) + len(step.writes) < 6 for step in found.steps)
    assert len(found.steps) > 2
    assert len(plan(Graph(xs, (*sums[1:],)), buffer_limit=10).steps) == 1


def test_a_producer_that_reads_too_much_is_stored() -> None:
    xs = tuple(array((N,)) for _ in range(6))
    total = xs[0]
    for x in xs[1:]:
        total = b.applied(ops.MUL, total, x)
    stored, summed = plan(Graph(xs, (b.reduce(ops.ADD, total),))).steps
    assert summed.reads == stored.writes


def test_what_one_node_reads_beyond_the_limit_travels_together() -> None:
    xs = tuple(array((N,)) for _ in range(12))
    by_name = {f"x{k}": x for k, x in enumerate(xs)}
    total = c.total([c.variable(name, FLOAT) for name in by_name])
    for wide in (b.elementwise(total, by_name, (N,)), b.concatenate(xs, 0)):
        found = plan(Graph(xs, (wide,))).steps
        assert len(found) == 3
        assert all(len(step.reads) + len(step.writes) < 8 for step in found)
        assert len(plan(Graph(xs, (wide,)), buffer_limit=16).steps) == 1


@sad.function
def blended(x: float, y: float) -> float:
    return sad.sin(x) * y + x


def test_gradients_by_several_arguments_of_one_call_are_computed_together() -> None:
    x, y = array((N,)), array((N,))
    function = standalone(blended, {}).function
    call = nodes.Call(type=FLOAT, function=function, args=(
        c.variable("x", FLOAT), c.variable("y", FLOAT)))  # fmt: skip
    graph = vjp(Graph((x, y), (b.elementwise(call, {"x": x, "y": y}, (N,)),)), [True, True])
    found = plan(Graph(graph.inputs, graph.outputs[1:]))
    (step,) = found.steps
    assert len(step.writes) == 2
    assert texts(found)[0].count("= blended_pull(") == 1
