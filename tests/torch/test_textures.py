"""Textures and samplers as arguments of wrapped functions, beside tensors of PyTorch."""

from __future__ import annotations

import copy
import gc
import pickle
import weakref
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
import torch
from torch._dynamo.testing import CompileCounter

import shaderad as sad
from tests.wrapped.functions import (
    TEXELS,
    Material,
    Pair,
    textured,
    textured_loss,
    textured_parts,
)

EXACT = {"rtol": 1e-5, "atol": 1e-6}
"""Some roundings of float32."""
UV = torch.tensor([[0.4, 0.9], [1.1, 0.5], [0.7, 0.6]])
SMOOTH = sad.sampler(wrap="clamp")

pytestmark = [
    pytest.mark.gpu,
    # PyTorch's own, of names that it has deprecated.
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),
    pytest.mark.filterwarnings("ignore::FutureWarning"),
]


def pictures() -> list[sad.Texture]:
    """Textures that differ in their texels alone."""
    return [sad.texture(TEXELS), sad.texture(2.0 * TEXELS), sad.texture(TEXELS**2)]


def expected(t: sad.Texture, uv: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """The loss and its gradient, as shaderad computes them itself."""
    loss, by_uv = sad.value_and_grad(textured_loss, argnums=2)(t, SMOOTH, uv.detach())
    return torch.tensor(float(loss)), torch.tensor(by_uv.numpy())


def test_textures_stand_anywhere_among_the_arguments(device: sad.Device) -> None:
    wrapped, t = sad.torch.wrap(textured_parts), sad.texture(TEXELS)
    uv = UV.clone().requires_grad_()
    plain = sad.torch.wrap(textured)(Material(t, SMOOTH, 1.5), uv)  # pyright: ignore
    for parts in ({"t": t}, [t], (t,), Pair(t, 0.0)):
        out = wrapped(parts, uv, sampler=SMOOTH)
        torch.testing.assert_close(out, plain, **EXACT)
        gradients = [torch.autograd.grad(y.square().sum(), uv, retain_graph=True)
                     for y in (out, plain)]  # fmt: skip
        torch.testing.assert_close(*gradients, **EXACT)


def test_another_texture_is_another_value_and_no_new_form(device: sad.Device) -> None:
    wrapped = sad.torch.wrap(textured_loss)
    for t in pictures():
        uv = UV.clone().requires_grad_()
        loss = wrapped(t, SMOOTH, uv)
        loss.backward()
        torch.testing.assert_close((loss.detach(), uv.grad), expected(t, uv), **EXACT)
        assert wrapped.operands(t, SMOOTH, UV)[1]["form"] == 0


def test_textures_live_until_the_pass_backward_and_no_longer(device: sad.Device) -> None:
    wrapped = sad.torch.wrap(textured_loss)
    t = sad.texture(TEXELS)
    _, by_uv = expected(t, UV)
    alive, uv = weakref.ref(t), UV.clone().requires_grad_()
    loss = wrapped(t, SMOOTH, uv)
    batch = torch.func.vmap(lambda uv, t=t: wrapped(t, SMOOTH, uv))(uv[:, None])
    del t
    torch.testing.assert_close(torch.autograd.grad(loss, uv)[0], by_uv, **EXACT)
    torch.testing.assert_close(torch.autograd.grad(batch.sum(), uv)[0], by_uv, **EXACT)
    del loss, batch
    gc.collect()
    assert alive() is None


def test_transforms_take_a_texture_as_a_constant(device: sad.Device) -> None:
    wrapped, t = sad.torch.wrap(textured_loss), sad.texture(TEXELS)

    def loss(uv: torch.Tensor) -> torch.Tensor:
        return wrapped(t, SMOOTH, uv)

    value, by_uv = expected(t, UV)
    torch.testing.assert_close(torch.func.grad(loss)(UV), by_uv, **EXACT)
    torch.testing.assert_close(
        torch.func.jvp(loss, (UV,), (UV,)), (value, (by_uv * UV).sum()), **EXACT
    )
    rows = torch.stack([UV, 0.5 * UV])
    by_rows = torch.func.vmap(torch.func.grad(loss))(rows)
    torch.testing.assert_close(by_rows[1], expected(t, rows[1])[1], **EXACT)
    out = torch.utils.checkpoint.checkpoint(loss, uv := UV.clone().requires_grad_(),
                                            use_reentrant=False)  # fmt: skip
    torch.testing.assert_close(torch.autograd.grad(out, uv)[0], by_uv, **EXACT)


@pytest.fixture
def fresh() -> Iterator[None]:
    """PyTorch's compiler without the code of earlier tests."""
    torch.compiler.reset()
    yield
    torch.compiler.reset()


@pytest.mark.parametrize("captured", [False, True])
def test_compiled_code_follows_its_texture(device: sad.Device, fresh: None, captured: bool) -> None:
    wrapped, held = sad.torch.wrap(textured_loss), {}

    def step(t: Any, uv: torch.Tensor) -> torch.Tensor:
        return torch.sin(wrapped(held["t"] if captured else t, SMOOTH, uv))

    compiled = torch.compile(step, fullgraph=True, backend="aot_eager")
    for t in (*pictures(), sad.texture(np.tile(TEXELS, (2, 2, 1)))):
        held["t"] = t
        uv = UV.clone().requires_grad_()
        value, by_uv = expected(t, uv)
        loss = compiled(None if captured else t, uv)
        loss.backward()
        torch.testing.assert_close(loss.detach(), torch.sin(value), **EXACT)
        torch.testing.assert_close(uv.grad, torch.cos(value) * by_uv, **EXACT)


def test_one_texture_compiles_once(device: sad.Device, fresh: None) -> None:
    wrapped, counter = sad.torch.wrap(textured_loss), CompileCounter()
    compiled = torch.compile(lambda t, uv: wrapped(t, SMOOTH, uv), backend=counter, fullgraph=True)
    t = sad.texture(TEXELS)
    for k in range(3):
        uv = (0.5 + 0.2 * k) * UV
        torch.testing.assert_close(compiled(t, uv), expected(t, uv)[0], **EXACT)
    assert counter.frame_count == 1


def test_an_operator_without_its_texture_is_refused(device: sad.Device) -> None:
    """As code may call it that PyTorch traced, and that keeps only the numbers of textures."""
    wrapped, t = sad.torch.wrap(textured_loss), sad.texture(TEXELS)
    tensors, numbers = wrapped.operands(t, SMOOTH, UV)
    (value,) = wrapped.operator.op(tensors, **numbers)
    torch.testing.assert_close(value, expected(t, UV)[0], **EXACT)
    del t
    gc.collect()
    with pytest.raises(sad.DerivativeError, match="SR0485"):
        wrapped.operator.op(tensors, **numbers)


def test_textures_that_shaderad_differentiates_are_refused(device: sad.Device) -> None:
    wrapped, t = sad.torch.wrap(textured_loss), sad.texture(TEXELS)

    def loss(t: Any) -> Any:
        return sad.array(wrapped(t, SMOOTH, UV).numpy())

    for transformed in (sad.grad(loss), sad.graph(loss), lambda t: sad.jvp(loss, (t,), (t,))):
        with pytest.raises(sad.DerivativeError, match="SR0483"):
            transformed(t)


@sad.kernel
def first_row(i: sad.Index, t: sad.Texture2D[float], out: sad.Out[float]):
    out[i] = t.load(sad.int2(i, 0))


def test_textures_of_tensors_have_no_derivative(device: sad.Device) -> None:
    wrapped = sad.torch.wrap(lambda x: first_row(sad.texture(x), dim=2))
    x = torch.rand(2, 2, requires_grad=True)
    with torch.no_grad():
        torch.testing.assert_close(wrapped(x), x[0], **EXACT)
    with pytest.raises(sad.DerivativeError, match=r"SR0450.*`sad\.texture`"):
        wrapped(x)
    with pytest.raises(sad.DerivativeError, match="SR0477"):
        sad.torch.wrap(lambda t: t)(sad.texture(TEXELS))


class Shaded(torch.nn.Module):
    """A module that holds a texture beside its parameters."""

    def __init__(self, t: sad.Texture | None) -> None:
        super().__init__()
        self.texture, self.sampler = t, SMOOTH
        self.uv = torch.nn.Parameter(UV.clone())
        self.shade = sad.torch.wrap(textured_loss)

    def forward(self) -> torch.Tensor:
        return self.shade(self.texture, self.sampler, self.uv)


def test_a_module_that_holds_a_texture_is_copied_but_not_pickled(device: sad.Device) -> None:
    module = Shaded(sad.texture(TEXELS))
    other = copy.deepcopy(module)
    assert other.texture is module.texture
    other().backward()
    torch.testing.assert_close(other.uv.grad, expected(module.texture, UV)[1], **EXACT)
    assert module.uv.grad is None
    with pytest.raises(sad.Error, match="SR0384"):
        pickle.dumps(module)
    again = Shaded(module.texture)
    again.load_state_dict(module.state_dict())
    torch.testing.assert_close(again(), module(), **EXACT)
