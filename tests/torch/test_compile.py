"""`torch.compile` around wrapped functions: whole, and with the same numbers as without it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest
import torch
from torch._dynamo.testing import CompileCounter

import shaderad as sad
from tests.wrapped.functions import Mesh, Pair, dense, looked_up, mixed, square

EXACT = {"rtol": 1e-5, "atol": 1e-6}
"""Some roundings of float32, and sums in another order."""

pytestmark = [
    pytest.mark.gpu,
    # PyTorch's own, of names that it has deprecated.
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),
    pytest.mark.filterwarnings("ignore::FutureWarning"),
]


@pytest.fixture(autouse=True)
def fresh() -> Iterator[None]:
    """PyTorch's compiler without what earlier tests left."""
    torch.compiler.reset()
    yield
    torch.compiler.reset()


def losses_of(step: Callable[..., Any]) -> list[float]:
    """Of a few steps of training."""
    torch.manual_seed(3)
    x, target = torch.rand(6, 3), torch.rand(6, 2)
    layer = {"w": torch.rand(3, 2).requires_grad_(), "b": torch.zeros(2).requires_grad_()}
    optimizer = torch.optim.Adam(layer.values(), lr=0.05)
    losses: list[float] = []
    for _ in range(5):
        optimizer.zero_grad()
        loss = step(x, layer, target)
        loss.backward()
        optimizer.step()
        losses.append(float(loss.detach()))
    return losses


@pytest.mark.parametrize("backend", ["aot_eager", pytest.param("inductor", marks=pytest.mark.slow)])
def test_a_training_step_compiles_whole(device: sad.Device, backend: str) -> None:
    layer_of, squares = sad.torch.wrap(dense), sad.torch.wrap(square)

    def step(x: Any, layer: Any, target: Any) -> Any:
        out = layer_of(torch.sin(x), layer, 1.5)
        miss = (out["y"] - target).reshape(-1)
        return squares(miss, 2.0).sum() / out["rows"]

    compiled = torch.compile(step, fullgraph=True, backend=backend)
    eager = losses_of(step)
    assert losses_of(compiled) == pytest.approx(eager, rel=1e-5)
    assert eager[-1] < eager[0]


def test_structures_compile(device: sad.Device) -> None:
    wrapped, seen = sad.torch.wrap(mixed), sad.torch.wrap(looked_up)

    def step(x: Any, index: Any) -> Any:
        out = wrapped(Pair(x, x[:2]), [2.0, x[1:3]], 2)
        mesh = Mesh(points=x.reshape(2, 3), index=index)
        return out.left + out.right[0].sum() + out.right[2] + seen(mesh, dim=3).sum()

    x = torch.linspace(0.1, 1.0, 6).requires_grad_()
    index = torch.tensor([1, 0, 1], dtype=torch.int32)
    compiled = torch.compile(step, fullgraph=True, backend="aot_eager")
    found, wanted = compiled(x, index), step(x, index)
    torch.testing.assert_close(found, wanted, **EXACT)
    torch.testing.assert_close(
        torch.autograd.grad(found, x), torch.autograd.grad(wanted, x), **EXACT
    )


def test_numbers_may_change_and_sizes_compile_again(device: sad.Device) -> None:
    wrapped, counter = sad.torch.wrap(square), CompileCounter()
    compiled = torch.compile(wrapped, fullgraph=True, backend=counter)
    for count in (3, 4, 5, 3, 6, 4):
        x = torch.rand(count)
        torch.testing.assert_close(compiled(x, torch.tensor(2.0)), 2.0 * x * x, **EXACT)
    assert counter.frame_count == 4


def test_what_tracing_refuses_is_said(device: sad.Device) -> None:
    wrapped = sad.torch.wrap(lambda x: x * float(sad.sum(x)))
    x = torch.ones(3)
    torch.testing.assert_close(wrapped(x), 3.0 * x)
    with pytest.raises(Exception, match=r"float\(\)"):
        torch.compile(wrapped, fullgraph=True, backend="aot_eager")(x)
