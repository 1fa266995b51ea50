"""Kernels without branches and loops, as nodes of graphs: what they become, and that they agree."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import shaderad as sad
from shaderad import float2
from shaderad.ir import sizes
from shaderad.plan import straight_kernels


@sad.function
def at(a: sad.In[float, 2], p: float2) -> float:
    """Between the cells of a grid that repeats."""
    n = a.shape[0]
    m = a.shape[1]
    b = sad.floor(p)
    x = int(b.x) % m
    y = int(b.y) % n
    right = a[y, (x + 1) % m]
    return sad.lerp(a[y, x], right, p.x - b.x) + a[(y + 1) % n, x]


@sad.kernel
def moved(y: sad.Index, x: sad.Index, a: sad.In[float, 2], v: sad.In[float2, 2], dt: float,
          out: sad.Out[float, 2]):  # fmt: skip
    out[y, x] = at(a, float2(x, y) - dt * v[y, x])


@sad.kernel
def stencil(y: sad.Index, x: sad.Index, a: sad.In[float, 2], out: sad.Out[float, 2],
            turned: sad.Out[float, 2]):  # fmt: skip
    n = a.shape[0]
    m = a.shape[1]
    around = a[(y + 1) % n, x] + a[(y + n - 1) % n, x] + a[y, (x + 2) % m] + a[y, (x - 1) % m]
    out[y, x] = around * sad.sin(a[y, x])
    turned[y, x] = float(y) * out[y, x] + a[0, x]


@sad.kernel
def clamped(i: sad.Index, a: sad.In[float], w: sad.In[float], out: sad.Out[float]):
    left = a[sad.max(i - 1, 0)]
    right = a[sad.min(i + 1, len(a) - 1)]
    out[i] = a[i] * left - w[1] * right**2


@sad.kernel
def narrowed(i: sad.Index, a: sad.In[float], out: sad.Out[float]):
    out[i] = a[i + 1] * a[i]


@sad.kernel
def transposed(y: sad.Index, x: sad.Index, a: sad.In[float, 2], row: sad.In[float],
               out: sad.Out[float, 2]):  # fmt: skip
    out[y, x] = a[x, y] * row[x]


@sad.kernel
def diagonal(i: sad.Index, a: sad.In[float, 2], out: sad.Out[float]):
    out[i] = a[i, i] * a[i, 0]


@sad.struct
class Corners:
    left: int
    right: int
    share: float


@sad.function
def around(x: float, count: int) -> Corners:
    low = sad.floor(x)
    left = int(low) % count
    return Corners(left, (left + 1) % count, x - low)


@sad.kernel
def between(i: sad.Index, a: sad.In[float], v: sad.In[float], out: sad.Out[float]):
    c = around(float(i) - v[i], out.shape[0])
    out[i] = sad.lerp(a[c.left], a[c.right], c.share)


def drawn(*shape: int, seed: int = 0) -> np.ndarray[Any, Any]:
    return np.random.default_rng(seed).uniform(-2, 2, shape).astype(np.float32)


CALLS: dict[str, tuple[Callable[..., Any], tuple[Any, ...]]] = {
    "moved": (
        lambda a, v, dt: moved(a, v, dt, dim=a.shape),
        (drawn(5, 7), drawn(5, 7, 2, seed=1), np.float32(0.7)),
    ),
    "stencil": (lambda a: stencil(a, dim=a.shape), (drawn(4, 5),)),
    "one_cell": (lambda a: stencil(a, dim=a.shape), (drawn(1, 3),)),
    "clamped": (lambda a, w: clamped(a, w, dim=a.shape), (drawn(9), drawn(3, seed=1))),
    "narrowed": (lambda a: narrowed(a, dim=a.shape[0] - 1), (drawn(6),)),
    "transposed": (
        lambda a, row: transposed(a, row, dim=(4, 3)),
        (drawn(3, 4), drawn(3, seed=1)),
    ),
    "between": (lambda a, v: between(a, v, dim=a.shape), (drawn(7), drawn(7, seed=1))),
    "diagonal": (lambda a: diagonal(a, dim=a.shape[0]), (drawn(4, 4),)),
}


def loss_of(call: Callable[..., Any]) -> Callable[..., Any]:
    def loss(*args: Any) -> Any:
        results = call(*args)
        results = results if isinstance(results, tuple) else (results,)
        return sum((sad.sum(sad.cos(y)) for y in results), sad.zeros(()))

    return loss


@pytest.mark.gpu
@pytest.mark.parametrize("name", CALLS)
def test_nodes_agree_with_the_kernel_itself(device: sad.Device, name: str) -> None:
    call, data = CALLS[name]
    args = [sad.array(x, dtype=float2) if x.shape[-1:] == (2,) and x.ndim == 3 else sad.array(x)
            for x in data]  # fmt: skip
    positions = tuple(range(len(args)))
    by_kernel = sad.value_and_grad(loss_of(call), argnums=positions)(*args)
    graph = sad.graph(sad.value_and_grad(loss_of(call), argnums=positions))
    by_nodes = graph(*args)
    assert "kernel " not in graph.explain(*args)
    np.testing.assert_allclose(by_nodes[0].numpy(), by_kernel[0].numpy(), rtol=2e-6)
    for one, other in zip(by_nodes[1], by_kernel[1], strict=True):
        np.testing.assert_allclose(one.numpy(), other.numpy(), rtol=1e-5, atol=1e-5)


@pytest.mark.gpu
def test_shifted_reads_have_no_atomic_adds_in_reverse(device: sad.Device) -> None:
    a = sad.array(drawn(4, 5))
    graph = sad.graph(sad.grad(loss_of(CALLS["stencil"][0])))
    assert "atomically" not in graph.explain(a)


@pytest.mark.gpu
def test_several_indices_are_one_dispatch_in_reverse(device: sad.Device) -> None:
    a, w = map(sad.array, CALLS["clamped"][1])
    graph = sad.graph(sad.grad(lambda a: sad.sum(clamped(a, w, dim=a.shape))))
    assert graph.explain(a).count("atomically") == 1


@sad.kernel
def beyond(i: sad.Index, a: sad.In[float], out: sad.Out[float]):
    out[i] = a[i + 1]


@sad.kernel
def looped(i: sad.Index, a: sad.In[float], out: sad.Out[float]):
    total = 0.0
    for k in range(3):
        total += a[i] * float(k)
    out[i] = total


@sad.kernel
def looked_up(i: sad.Index, a: sad.In[float], k: sad.In[int], out: sad.Out[float]):
    out[i] = a[k[i]]


@sad.kernel
def halved(i: sad.Index, k: sad.In[int], n: int, out: sad.Out[int]):
    out[i] = k[i] // n


@sad.kernel
def branching(i: sad.Index, a: sad.In[float], out: sad.Out[float]):
    if a[i] > 0.0:
        out[i] = 2.0 * a[i]


@sad.function
def tripled(x: float) -> float:
    return 3.0 * x


@tripled.backward_derivative
def tripled_bwd(x: sad.DifferentialPair[float], d_out: float):
    x.d += 3.0 * d_out


@sad.kernel
def ruled(i: sad.Index, a: sad.In[float], out: sad.Out[float]):
    out[i] = tripled(a[i])


@sad.kernel
def summed(i: sad.Index, a: sad.In[float], out: sad.Add[float]):
    out[i] += a[i]


def line_of(kernel: Any, part: str) -> int:
    """The line of this file in which `kernel` has `part`."""
    lines, first = inspect.getsourcelines(inspect.unwrap(kernel))
    return next(first + k for k, line in enumerate(lines) if part in line)


@pytest.mark.gpu
def test_what_may_report_stays_a_kernel(device: sad.Device) -> None:
    a, k = sad.array(drawn(4)), sad.array(np.array([0, 3, 9, 1], np.int32))
    may_report = "an index may be out of range, or a divisor 0"
    calls = [
        (beyond, lambda a, k: beyond(a, dim=a.shape[0]), may_report),
        (looped, lambda a, k: looped(a, dim=a.shape[0]), f"line {line_of(looped, 'for')} loops"),
        (looked_up, lambda a, k: looked_up(a, k, dim=a.shape[0]), may_report),
        (halved, lambda a, k: halved(k, sad.sum(k), dim=a.shape[0]), may_report),
        (branching, lambda a, k: branching(a, dim=a.shape[0]),
         f"line {line_of(branching, 'if')} branches"),
        (ruled, lambda a, k: ruled(a, dim=a.shape[0]), "`tripled` has a custom derivative"),
        (summed, lambda a, k: summed(a, dim=a.shape[0]), "it accumulates into an array"),
    ]  # fmt: skip
    for kernel, call, reason in calls:
        text = sad.graph(call).explain(a, k)
        (line,) = [line for line in text.splitlines() if f"kernel {kernel.name}" in line]
        assert line.endswith(f"; not fused: {reason}")
    with pytest.raises(sad.BoundsError, match="`a` of length 4 in kernel `looked_up`"):
        sad.graph(lambda a, k: looked_up(a, k, dim=a.shape[0]))(a, k).numpy()


@pytest.mark.gpu
def test_other_sizes_are_traced_again(device: sad.Device) -> None:
    """A dimension that equals an extent at first, and then does not."""

    @sad.graph
    def first_four(a: sad.Array) -> sad.Array:
        return narrowed(a, dim=4)

    for n in (5, 8):
        a = drawn(n)
        found = first_four(sad.array(a)).numpy()
        np.testing.assert_allclose(found, a[1:5] * a[:4], rtol=1e-6)
    with pytest.raises(sad.BoundsError):
        first_four(sad.array(drawn(3))).numpy()


def test_extents_that_no_array_exceeds_are_not_noted() -> None:
    n, m = sizes.symbol("n"), sizes.symbol("m")
    always = straight_kernels._is_always_natural
    below = sizes.subtract
    assert always(below(n, 1), (n, m))
    assert not always(below(n, 1), (m, m))
    assert not always(below(n, m), (n, m))
    assert always(below(2**31 - 1, sizes.add(n, 64)), (n,))
    assert not always(below(2**31 - 1, sizes.multiply(n, m)), (n, m))
    assert always(below(sizes.multiply(n, m), 1), (n, m))
    assert not always(below(3, n), (n,))


@pytest.mark.gpu
def test_no_cells_are_no_threads(device: sad.Device) -> None:
    graph = sad.graph(lambda a: sad.value_and_grad(loss_of(CALLS["stencil"][0]))(a))
    for shape in ((3, 4), (0, 4)):
        value, gradient = graph(sad.array(np.zeros(shape, np.float32)))
        assert gradient.shape == shape
        assert float(value) == 2 * np.prod(shape)
