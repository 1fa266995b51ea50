"""Array graphs on devices, held against their evaluation in NumPy."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest

import shaderad as sad
from shaderad.execute.explained import explained
from shaderad.execute.runner import GraphRunner, evaluate
from shaderad.interpret.arrays import evaluate as in_numpy
from shaderad.ir import arrays, ops, sizes
from shaderad.ir import building as b
from shaderad.ir import composing as c
from shaderad.ir.arrays import ArrayType, Graph, Value
from shaderad.ir.types import FLOAT, HALF, INT
from shaderad.rules.arrays import jvp, vjp
from tests.array_check import array
from tests.rules.arrays.test_random import random_graph

TOLERANCE = 2e-3
"""float32 against float64, through products and differences of numbers near 1."""
N = sizes.symbol("n")
M = sizes.symbol("m")
Rng = np.random.Generator
Transform = Callable[[Graph, Sequence[bool]], Graph]


@pytest.fixture
def rng() -> Rng:
    return np.random.default_rng(0)


def check(device: sad.Device, graph: Graph, inputs: Sequence[Any], **known: int) -> list[Any]:
    """Fails where the device and NumPy disagree; returns what the device found."""
    given = [
        sad.array(np.asarray(x, np.float32 if v.element == FLOAT else None), device=device)
        for x, v in zip(inputs, graph.inputs, strict=True)
    ]
    found = [one.numpy() for one in evaluate(graph, given, known, device)]
    expected, _ = in_numpy(graph, inputs, known)
    for one, other in zip(found, expected, strict=True):
        np.testing.assert_allclose(one, other, rtol=TOLERANCE, atol=TOLERANCE)
    return found


def layouts() -> Graph:
    x, y = array((N, M)), array((M,))
    t = b.transpose(x, (1, 0))
    joined = b.concatenate((t, b.reverse(t), t), 0)
    shifted = b.shift_right(joined, c.number(FLOAT, 9.0))
    odd = sizes.add(sizes.multiply(2, M), 3)
    placed = arrays.Place(operands=(y,), starts=(1,), steps=(2,), shape=(odd,)).result
    backward = arrays.Place(
        operands=(y,), starts=(sizes.subtract(M, 1),), steps=(-1,), shape=(M,)
    ).result
    flat = b.applied(ops.ADD, *(b.reshape(v, (sizes.multiply(N, M),)) for v in (t, x)))
    return Graph((x, y), (joined, shifted, placed, backward, flat, b.iota((N, M), 1)))


@pytest.mark.gpu
@pytest.mark.parametrize(("n", "m"), [(7, 4), (1, 1), (0, 3), (3, 1)])
def test_layouts_agree_at_every_size(device: sad.Device, rng: Rng, n: int, m: int) -> None:
    check(device, layouts(), [rng.normal(size=(n, m)), rng.normal(size=m)], n=n, m=m)


@pytest.mark.gpu
def test_values_of_five_axes_are_read_by_number(device: sad.Device, rng: Rng) -> None:
    x = array((2, 3, 2, 3, 2))
    moved = b.transpose(x, (4, 2, 0, 1, 3))
    check(device, Graph((x,), (b.applied(ops.NEG, moved),)), [rng.normal(size=x.shape)])


@pytest.mark.gpu
def test_gathers_and_scatters_ignore_what_is_out_of_range(device: sad.Device, rng: Rng) -> None:
    x, index = array((N, M)), array((N,), INT)
    picked = arrays.Gather(operands=(b.applied(ops.SIN, x), index), is_reported=False).result
    summed = arrays.ScatterAdd(operands=(b.zeros(ArrayType(FLOAT, (N, M))), x, index)).result
    more = arrays.ScatterAdd(operands=(b.applied(ops.SIN, x), x, index)).result
    last = arrays.LastWriter(operands=(index,), count=N).result
    graph = Graph((x, index), (picked, summed, more, last))
    check(device, graph, [rng.normal(size=(7, 3)), np.array([0, 6, 7, -1, 3, 3, 2])], n=7, m=3)


@pytest.mark.gpu
def test_a_gather_out_of_range_is_reported(device: sad.Device) -> None:
    x, index = array((N,)), array((M,), INT)
    picked = arrays.Gather(operands=(x, index)).result
    given = [sad.array([1.0, 2.0], device=device), sad.array([1, 2], device=device)]
    (found,) = evaluate(Graph((x, index), (picked,)), given, {"n": 2, "m": 2}, device)
    with pytest.raises(sad.BoundsError, match="index 2"):
        found.numpy()


@pytest.mark.gpu
def test_other_sizes_compile_nothing(device: sad.Device, rng: Rng) -> None:
    graph = layouts()
    check(device, graph, [rng.normal(size=(7, 4)), rng.normal(size=4)], n=7, m=4)
    count = len(device.runtime.routes())
    check(device, graph, [rng.normal(size=(5, 6)), rng.normal(size=6)], n=5, m=6)
    assert len(device.runtime.routes()) == count


@pytest.mark.gpu
def test_arrays_that_start_inside_their_buffers_are_read_there(device: sad.Device) -> None:
    x: Value = array((N,))
    graph = Graph((x,), (b.applied(ops.NEG, x), x))
    whole = sad.array(np.arange(10, dtype=np.float32), device=device)
    negated, same = evaluate(graph, [whole[3:8]], {"n": 5}, device)
    np.testing.assert_array_equal(negated.numpy(), -np.arange(3, 8))
    np.testing.assert_array_equal(same.numpy(), np.arange(3, 8))


@pytest.mark.gpu
@pytest.mark.parametrize("seed", range(8))
def test_a_random_graph_and_its_gradient_agree(device: sad.Device, seed: int) -> None:
    rng = np.random.default_rng(seed)
    graph = random_graph(rng)
    data = [rng.normal(size=[int(str(n)) for n in v.shape]) for v in graph.inputs]
    outputs = check(device, graph, data)
    bars = [rng.normal(size=np.shape(one)) for one in outputs]
    check(device, vjp(graph, [True] * len(data)), [*data, *bars])


@sad.kernel
def scaled(i: sad.Index, x: sad.In[float], factor: float, y: sad.Out[float], n: sad.Add[float]):
    y[i] = factor * sad.sin(x[i])
    n[0] += x[i] * x[i]


@sad.kernel
def nearest(i: sad.Index, x: sad.In[float], cell: sad.In[int], low: sad.Min[float]):
    low[cell[i]] = sad.min(low[cell[i]], x[i] * x[i])


def kernel_graph() -> Graph:
    x, factor, cell = array((N,)), array(()), array((N,), INT)
    written = (("y", ArrayType(FLOAT, (N,))), ("n", ArrayType(FLOAT, (1,))))
    call = arrays.KernelCall(
        operands=(b.applied(ops.SIN, x), factor), kernel=scaled.specialise({}), dim=(N,),
        names=("x", "factor"), written=written, bounds="raise",
    )  # fmt: skip
    y, n = call.results
    lowest = arrays.KernelCall(
        operands=(y, cell), kernel=nearest.specialise({}), dim=(N,), names=("x", "cell"),
        written=(("low", ArrayType(FLOAT, (2,))),), bounds="raise",
    )  # fmt: skip
    return Graph((x, factor, cell), (b.applied(ops.NEG, y), n, lowest.result))


@pytest.mark.gpu
def test_kernels_called_in_a_graph_have_both_derivatives(device: sad.Device, rng: Rng) -> None:
    graph = kernel_graph()
    data = [rng.normal(size=9), np.array(1.5), np.arange(9) % 2]
    check(device, graph, data, n=9)
    active = [True, True, False]
    bars = [rng.normal(size=9), rng.normal(size=1), rng.normal(size=2)]
    check(device, vjp(graph, active), [*data, *bars], n=9)
    check(device, jvp(graph, active), [*data, rng.normal(size=9), np.array(0.5)], n=9)


@pytest.mark.gpu
@pytest.mark.parametrize("first", [jvp, vjp])
@pytest.mark.parametrize("second", [jvp, vjp])
def test_kernels_called_in_a_graph_have_second_derivatives(
    device: sad.Device, rng: Rng, first: Transform, second: Transform
) -> None:
    once = first(kernel_graph(), [True, True, False])
    twice = second(once, [v.element == FLOAT for v in once.inputs])
    known = {N: 9, 2: 2, 1: 1}
    data = [rng.uniform(0.3, 1.5, [known[n] for n in v.shape]) for v in twice.inputs]
    data[2] = np.arange(9) % 2
    check(device, twice, data, n=9)


@sad.kernel
def halved(i: sad.Index, x: sad.In[sad.half], index: sad.In[int], y: sad.Out[float]):
    y[i] = float(x[index[i]]) * 0.5


@pytest.mark.gpu
def test_gradients_of_halves_are_summed_in_float(device: sad.Device, rng: Rng) -> None:
    if "half" not in device.capabilities.features:
        pytest.skip("no half")
    x, index = array((N,), HALF), array((N,), INT)
    call = arrays.KernelCall(
        operands=(x, index), kernel=halved.specialise({}), dim=(N,), names=("x", "index"),
        written=(("y", ArrayType(FLOAT, (N,))),), bounds="raise",
    )  # fmt: skip
    graph = vjp(Graph((x, index), call.results), [True, False])
    data = [rng.normal(size=5).astype(np.float16), np.array([0, 0, 2, 2, 2]), rng.normal(size=5)]
    check(device, graph, data, n=5)


def sums_of_sorted_steps(x: Value, count: int) -> Value:
    """Each step needs the whole of the one before."""
    for _ in range(count):
        x = b.applied(ops.SIN, b.scan(ops.ADD, x))
    return x


@pytest.mark.gpu
def test_a_call_is_one_submission(
    device: sad.Device, rng: Rng, monkeypatch: pytest.MonkeyPatch
) -> None:
    x = array((N,))
    graph = Graph((x,), (sums_of_sorted_steps(x, 5),))
    check(device, graph, [rng.normal(size=9)], n=9)
    given = [sad.array(np.ones(9, np.float32), device=device)]
    device.synchronize()
    submitted: list[int] = []
    submit = device.runtime.submit
    monkeypatch.setattr(device.runtime, "submit", lambda: (submitted.append(1), submit()))
    evaluate(graph, given, {"n": 9}, device)
    assert not submitted
    device.runtime.wait()
    assert len(submitted) == 1


@pytest.mark.gpu
def test_buffers_serve_again_within_a_run_and_in_the_next(device: sad.Device) -> None:
    x = array((N,))
    graph = Graph((x,), (sums_of_sorted_steps(x, 12),))
    given = [sad.array(np.ones(1 << 18, np.float32), device=device)]
    found = device.kept(GraphRunner).prepared(graph, given, {"n": 1 << 18}).commands
    made = sum(found.scratch_bytes) + sum(found.kept_bytes)
    assert made <= 1.2 * found.live_bytes
    text = explained(graph, given, {"n": 1 << 18}, device)
    assert f"allocated: {made:,} bytes" in text
    assert f"dispatches: {found.dispatch_count}, in one submission" in text
    # Each sort has the same programs, and each sum.
    program_count = int(text.split("programs: ")[1])
    assert 0 < program_count < found.dispatch_count / 2
    first = evaluate(graph, given, {"n": 1 << 18}, device)[0].numpy()
    np.testing.assert_array_equal(evaluate(graph, given, {"n": 1 << 18}, device)[0], first)


@pytest.mark.gpu
def test_devices_of_few_buffers_run_wide_graphs(device: sad.Device, rng: Rng) -> None:
    xs = tuple(array((N,)) for _ in range(9))
    total = xs[0]
    for x in xs[1:]:
        total = b.applied(ops.MUL, b.applied(ops.SIN, total), x)
    graph = vjp(Graph(xs, (b.reduce(ops.ADD, total),)), [True] * 9)
    data = [rng.normal(size=33) for _ in xs]
    with sad.open_device(device.capabilities.runtime, limits={"storage_buffer_limit": 8}) as few:
        check(few, graph, [*data, np.array(1.0)], n=33)
    few.close()


@pytest.mark.gpu
@pytest.mark.parametrize(
    "shape", [(1, 0), (3, 1), (2, 16), (2, 17), (2, 33), (3, 1000), (1, 100_003)]
)
def test_sorts_are_stable_at_every_length(
    device: sad.Device, rng: Rng, shape: tuple[int, int]
) -> None:
    x, k = array((M, N)), array((M, N), INT)
    graph = Graph((x, k), tuple(arrays.ArgSort(operands=(v,)).result for v in (x, k)))
    floats = rng.normal(size=shape).astype(np.float32)
    floats[rng.random(shape) < 0.1] = np.nan
    floats[rng.random(shape) < 0.1] = 0.0
    floats[rng.random(shape) < 0.1] *= -1.0
    floats[rng.random(shape) < 0.1] = np.inf
    m, n = shape
    given = [sad.array(v, device=device) for v in (floats, rng.integers(-9, 9, shape, np.int32))]
    found = evaluate(graph, given, {"m": m, "n": n}, device)
    for one, keys in zip(found, given, strict=True):
        np.testing.assert_array_equal(one, np.argsort(keys.numpy(), axis=-1, kind="stable"))


@pytest.mark.gpu
@pytest.mark.parametrize("length", [1, 2, 65, 5000])
def test_the_first_extreme_that_is_a_number_is_found(
    device: sad.Device, rng: Rng, length: int
) -> None:
    x = array((M, N))
    graph = Graph((x,), tuple(arrays.ArgExtreme(operands=(x,), kind=kind).result
                              for kind in ("min", "max")))  # fmt: skip
    data = rng.integers(-3, 4, (3, length)).astype(np.float32)
    data[1, rng.random(length) < 0.3] = np.nan
    data[2] = np.nan
    check(device, graph, [data], m=3, n=length)


class Model:
    def __init__(self, weights: Any, rate: float) -> None:
        self.weights = weights
        self.rate = rate

    def step(self, x: sad.Array[float]) -> Any:
        return sad.sum(x * self.weights) * self.rate

    decorated = sad.graph(step)

    @sad.graph
    def twice(self, x: Any) -> Any:
        return self.decorated(x) * 2.0


def test_methods_are_graphs_that_read_their_object(device: sad.Device) -> None:
    model, x = Model(sad.array([1.0, 2.0]), 0.5), sad.array([3.0, 4.0])
    bound = sad.graph(model.step)
    for rate, weights in ((0.5, [1.0, 2.0]), (1.0, [10.0, 0.0])):
        model.rate, model.weights = rate, sad.array(weights)
        value = rate * np.dot([3.0, 4.0], weights)
        assert bound(x).item() == model.decorated(x).item() == value
        assert model.twice(x).item() == 2 * value
        for f in (bound, model.decorated):
            np.testing.assert_allclose(sad.grad(f)(x).numpy(), rate * np.float32(weights))
    assert "float[2]" in bound.explain(x)
    with pytest.raises(sad.LanguageError, match="SR0103"):
        sad.graph(Model)  # pyright: ignore[reportArgumentType]
