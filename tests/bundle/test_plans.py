"""Plans in the manifest: complete enough for a host that has only their description."""

from __future__ import annotations

import numpy as np
import pytest

import shaderad as sad
from shaderad.bundle.format.size_text import parsed, spelled
from shaderad.ir import sizes
from shaderad.ir.sizes import Size
from tests.bundle import graphs
from tests.bundle.conftest import Output
from tests.bundle.plan_host import Host
from tests.bundle.plan_host import size as evaluated_by_host

N, M = sizes.symbol("n"), sizes.symbol("$m_1")


def expressions() -> list[Size]:
    return [
        7,
        N,
        sizes.subtract(3, N),
        sizes.subtract(sizes.multiply(2, sizes.floor_divide(sizes.add(N, 3), 4)), M),
        sizes.minimum(sizes.maximum(N, M), sizes.divide_up(sizes.multiply(N, N), M)),
        sizes.square_root(sizes.add(N, M)),
        sizes.floor_divide(sizes.floor_divide(N, M), 2),
    ]


@pytest.mark.parametrize("k", range(7))
def test_a_size_is_read_as_it_was_written(k: int) -> None:
    size = expressions()[k]
    assert parsed(spelled(size)) == size
    for n, m in ((1, 1), (17, 3), (1000, 64)):
        known = {"n": n, "$m_1": m}
        assert evaluated_by_host(spelled(size), known) == sizes.evaluate(size, known)


@pytest.mark.parametrize("text", ["", "n +", "(n", "n n", "max(n)", "n // 0", "n ** 2", "n.x", "+"])
def test_what_is_no_size_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="no expression"):
        parsed(text)


@pytest.mark.gpu
@pytest.mark.parametrize("n", [6, 9001])
def test_a_host_of_its_own_runs_a_gradient(n: int, graph_output: Output) -> None:
    x = np.random.default_rng(1).uniform(0.9999, 1.0001, n).astype(np.float32)
    host = Host(graph_output.folder, "scan_product")
    (value,) = host.run("primal", [x], n=n)
    products = np.cumprod(x.astype(float))
    np.testing.assert_allclose(value.view(np.float32), [np.sum(products * x)], rtol=1e-4)
    one = np.ones(1, np.float32)
    value, gradient = host.run("backward", [x, one], n=n)
    wanted = np.cumsum((products * x)[::-1])[::-1] / x + products
    np.testing.assert_allclose(value.view(np.float32), [np.sum(products * x)], rtol=1e-4)
    np.testing.assert_allclose(gradient.view(np.float32), wanted, rtol=1e-4)


@pytest.mark.gpu
@pytest.mark.parametrize("n", [3, 4])
def test_a_host_of_its_own_runs_loops_and_kernels(n: int, graph_output: Output) -> None:
    draw = np.random.default_rng(n)
    x, y = draw.normal(size=(2, n)).astype(np.float32)
    index = np.array([n - 1, 0], np.int32)
    with sad.open_device("wgpu"):
        expected = [one.numpy() for one in graphs.moved(x, (y, index))]
        halves = graphs.halved(np.abs(x) + 1.0).numpy()
        called = [one.numpy() for one in graphs.calls_a_kernel(x, 0.5)]
    found = Host(graph_output.folder, "moved").run("primal", [x, y, index], n=n, m=2)
    for one, other in zip(found, expected, strict=True):
        np.testing.assert_allclose(one.view(np.float32), np.ravel(other), rtol=1e-4, atol=1e-5)
    (found_halves,) = Host(graph_output.folder, "halved").run("primal", [np.abs(x) + 1.0], n=n)
    np.testing.assert_allclose(found_halves.view(np.float32), halves, rtol=1e-5)
    gain = np.array([0.5], np.float32)
    found = Host(graph_output.folder, "calls_a_kernel").run("primal", [x, gain], n=n)
    for one, other in zip(found, called, strict=True):
        np.testing.assert_allclose(one.view(np.float32), np.ravel(other), rtol=1e-4, atol=1e-5)
