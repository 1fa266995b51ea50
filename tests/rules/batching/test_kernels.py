"""Batches of kernel calls and of their derivatives: one more Index, for whatever is mapped."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import shaderad as sad
from shaderad.interpret.arrays import evaluate
from shaderad.ir import building as b
from shaderad.ir import composing as c
from shaderad.ir import ops
from shaderad.ir.arrays import ArrayType, Graph, KernelCall, Loop, Value, WhileLoop
from shaderad.ir.nodes import Load
from shaderad.ir.types import FLOAT, INT, Struct
from shaderad.ir.verifier import verified
from shaderad.ir.walk import all_expressions
from shaderad.rules.arrays import jvp, vjp
from shaderad.rules.batching import batched
from shaderad.rules.batching.kernel_bodies import batched_kernel
from tests.array_check import array
from tests.batch_check import check_batches


def draw(*shape: int) -> Any:
    return np.random.default_rng(3).normal(size=shape)


def call_of(kernel: Any, operands: dict[str, Value], dim: tuple[int, ...],
            written: dict[str, tuple[int, ...]], bounds: str = "raise") -> Graph:  # fmt: skip
    types = {b_.name: b_.type.element for b_ in kernel.specialise({}).buffers}
    node = KernelCall(
        operands=tuple(operands.values()), kernel=kernel.specialise({}), dim=dim,
        names=tuple(operands), bounds=bounds,
        written=tuple((n, ArrayType(types[n], shape)) for n, shape in written.items()),
    )  # fmt: skip
    return Graph(tuple(operands.values()), node.results)


@sad.kernel
def scaled(i: sad.Index, x: sad.In[float], factor: float, y: sad.Out[float], n: sad.Add[float]):
    y[i] = factor * sad.sin(x[i])
    n[0] += x[i] * factor


def test_arrays_uniforms_and_sums() -> None:
    graph = call_of(scaled, {"x": array((4,)), "factor": array(())}, (4,), {"y": (4,), "n": (1,)})
    check_batches(graph, [draw(4), draw()])


@sad.function
def at(values: sad.In[float], j: int) -> float:
    return values[j] * values.shape[0]


@at.backward_derivative
def at_bwd(values: sad.DifferentialPair[sad.In[float]], j: int, d_out: float):
    values.d[j] += d_out * values.p.shape[0]


@sad.function
def doubled(values: sad.In[float], j: int) -> float:
    return 2.0 * values[j]


@sad.function
def squares(total: sad.Add[float], v: float):
    total[0] += v * v


@sad.kernel
def through_functions(
    i: sad.Index, x: sad.In[float], w: sad.In[float, 2], j: sad.In[int],
    y: sad.Out[float], total: sad.Add[float],
):  # fmt: skip
    v = doubled(x, j[i])
    for k in range(w.shape[1]):
        v += w[i, k] * x[k]
    squares(total, v)
    y[i] = v


def test_functions_that_access_arrays() -> None:
    operands = {"x": array((4,)), "w": array((3, 2)), "j": array((3,), INT)}
    graph = call_of(through_functions, operands, (3,), {"y": (3,), "total": (1,)})
    check_batches(graph, [draw(4), draw(3, 2), np.array([0, 3, 3])])


def test_indices_out_of_range_are_reported() -> None:
    operands = {"x": array((4,)), "w": array((3, 2)), "j": array((3,), INT)}
    graph = call_of(through_functions, operands, (3,), {"y": (3,), "total": (1,)})
    check_batches(graph, [draw(4), draw(3, 2), np.array([0, 4, 3])])


@sad.kernel
def extremes(i: sad.Index, x: sad.In[float], j: sad.In[int], least: sad.Min[float],
             most: sad.Max[float], there: sad.Out[float]):  # fmt: skip
    least[j[i]] = sad.min(least[j[i]], x[i])
    most[j[i]] = sad.max(most[j[i]], x[i] * x[i])
    there[sad.unique(2 * i)] = x[i]


def test_extremes_and_scattered_writes() -> None:
    operands = {"x": array((5,)), "j": array((5,), INT)}
    graph = call_of(extremes, operands, (5,), {"least": (3,), "most": (3,), "there": (10,)})
    check_batches(graph, [draw(5), np.array([0, 1, 1, 0, 1])])


@sad.struct
class Wave:
    height: float
    phase: sad.float2
    count: int


@sad.kernel
def waves(i: sad.Index, j: sad.Index, wave: Wave, x: sad.In[float, 2], y: sad.Out[float, 2]):
    total = 0.0
    for _ in range(wave.count):
        total += wave.height * sad.sin(x[i, j] + wave.phase.x) * wave.phase.y
    y[i, j] = total


@sad.kernel
def rebound(i: sad.Index, u: float, x: sad.In[float], y: sad.Out[float]):
    if x[i] > 0.0:
        u = u * x[i]
    y[i] = u * u


def test_uniforms_that_the_kernel_assigns() -> None:
    graph = call_of(rebound, {"u": array(()), "x": array((4,))}, (4,), {"y": (4,)})
    check_batches(graph, [draw(), draw(4)])


def test_structs_of_numbers_and_more_axes() -> None:
    struct = waves.specialise({}).uniforms[0].type
    assert isinstance(struct, Struct)
    operands = {"wave": Value(ArrayType(struct, ())), "x": array((2, 3))}
    graph = call_of(waves, operands, (2, 3), {"y": (2, 3)})
    wave: Any = {"height": np.array([0.5, 2.0]), "phase": draw(2, 2), "count": np.array([2, 1])}
    xs = draw(2, 2, 3)
    for flags in ([True, False], [True, True]):
        whole, _ = batched(graph, flags, 2)
        found, _ = evaluate(whole, [wave, xs if flags[1] else xs[0]])
        for k in range(2):
            one = {name: part[k] for name, part in wave.items()}
            expected, _ = evaluate(graph, [one, xs[k if flags[1] else 0]])
            np.testing.assert_allclose(found[0][k], expected[0])


@sad.kernel
def with_own_derivatives(i: sad.Index, x: sad.In[float], j: sad.In[int], y: sad.Out[float]):
    y[i] = at(x, j[i]) * x[i]


def test_derivatives_of_the_users_own() -> None:
    operands = {"x": array((3,)), "j": array((3,), INT)}
    graph = call_of(with_own_derivatives, operands, (3,), {"y": (3,)})
    check_batches(graph, [draw(3), np.array([2, 2, 1])], with_jvp=False)


@sad.function
def cubed(values: sad.In[float], j: int, s: float) -> float:
    return values[j] * s * s * s


@sad.kernel
def inner_derivatives(i: sad.Index, x: sad.In[float], y: sad.Out[float], z: sad.Out[float]):
    y[i] = sad.fwd_diff(cubed)(x, i, sad.diff_pair(x[i], 1.0)).d
    s = sad.diff_pair(x[i])
    sad.bwd_diff(cubed)(x, i, s, 2.0)
    z[i] = s.d


def test_derivatives_inside_of_kernels() -> None:
    graph = call_of(inner_derivatives, {"x": array((3,))}, (3,), {"y": (3,), "z": (3,)})
    check_batches(graph, [draw(3)])


@pytest.mark.parametrize("first", [jvp, vjp])
@pytest.mark.parametrize("second", [jvp, vjp])
def test_second_derivatives(first: Any, second: Any) -> None:
    graph = call_of(scaled, {"x": array((4,)), "factor": array(())}, (4,), {"y": (4,), "n": (1,)})
    once = first(graph, [True, True])
    inputs = [draw(*map(int, map(str, v.shape))) for v in once.inputs]
    twice = second(once, [True] * len(inputs))
    more = [draw(*map(int, map(str, v.shape))) for v in twice.inputs]
    for k in range(len(more)):
        flags = [k == one for one in range(len(more))]
        whole, are_mapped = batched(twice, flags, 2)
        rows = [[x + 0.1 * n if f else x for x, f in zip(more, flags, strict=True)]
                for n in range(2)]  # fmt: skip
        columns = zip(*rows, strict=True)
        given = [np.stack(p) if f else p[0] for p, f in zip(columns, flags, strict=True)]
        found, _ = evaluate(whole, given)
        apart = [evaluate(twice, row)[0] for row in rows]
        for y, is_mapped, *expected in zip(found, are_mapped, *apart, strict=True):
            np.testing.assert_allclose(y, np.stack(expected) if is_mapped else expected[0])


def test_threads_of_elements_that_have_stopped_do_not_run() -> None:
    i, x, table = array((), INT), array((2,)), array((4,))
    node = KernelCall(operands=(table, i, x), kernel=walked.specialise({}), dim=(2,),
                      names=("table", "at", "x"), written=(("y", ArrayType(FLOAT, (2,))),),
                      bounds="raise")  # fmt: skip
    inputs = (i, x, table)
    tests = tuple(Value(v.type) for v in inputs)
    given = tuple(Value(v.type) for v in inputs)
    is_inside = b.applied(ops.LT, tests[0], b.full((), c.whole(4)))
    loop = WhileLoop(operands=given, condition=Graph(tests, (is_inside,)),
                     body=Graph(inputs, (b.plus(i, 1), node.results[0])),
                     carry_count=2, limit=9)  # fmt: skip
    graph = Graph(given, loop.results)
    check_batches(graph, [np.array(1), draw(2), draw(4)])
    twice, _ = batched(graph, [True, True, False], 2)
    check_batches(twice, [np.array([1, 3]), draw(2, 2), draw(4)])


@sad.kernel
def walked(i: sad.Index, table: sad.In[float], at: int, x: sad.In[float], y: sad.Out[float]):
    assert at < 4
    y[i] = sad.sin(x[i]) * table[at]


def test_the_ir_is_well_formed_and_reads_a_uniform_once() -> None:
    kernel = batched_kernel(scaled.specialise({}), frozenset({"factor"}), has_active=True)
    verified(kernel)
    assert kernel.index_names == ("batch'", "i")
    loads = [e.buffer for e in all_expressions(kernel.body) if isinstance(e, Load)]
    assert sorted(loads) == ["active'", "factor", "x", "x"]
    assert kernel is batched_kernel(scaled.specialise({}), frozenset({"factor"}), has_active=True)


@sad.struct
class Chain:
    links: sad.Pointer[float]


@sad.kernel
def behind(i: sad.Index, chain: Chain, y: sad.Out[float]):
    y[i] = chain.links[i]


def test_a_loop_calls_what_follows_pointers_to_mapped_arrays() -> None:
    kernel = behind.specialise({})
    pool = next(b_ for b_ in kernel.buffers if b_.is_pointed)
    (pointer,) = kernel.uniforms
    operands = {pool.name: array((3,)), pointer.name: Value(ArrayType(pointer.type, ()))}
    graph = call_of(behind, operands, (3,), {"y": (3,)})
    whole, is_mapped = batched(graph, [True, False], 2)
    assert is_mapped == (True,)
    assert [type(node) for node in whole.nodes] == [Loop]
    assert whole.outputs[0].shape == (2, 3)
