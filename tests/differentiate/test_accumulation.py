"""`accumulate=`: pullbacks add to gradients in place, of every sort of function and in traces."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import shaderad as sad
from tests.textures.test_in_graphs import AT, PICTURE, SMOOTH, look

pytestmark = pytest.mark.gpu

X = np.float32([0.5, -1.5, 0.0])
BAR = np.float32([1.0, 2.0, -1.0])


@sad.kernel
def squares(i: sad.Index, x: sad.In[float], scale: float, y: sad.Out[float]):
    y[i] = scale * x[i] * x[i]


def doubled(x: Any) -> Any:
    return squares(x, 2.0, dim=x.shape)


def gradient(x: Any) -> Any:
    return sad.grad(lambda z: sad.sum(doubled(z)))(x)


FUNCTIONS: dict[str, Callable[..., Any]] = {
    "kernel": lambda x: doubled(x),
    "graph": sad.graph(lambda x: doubled(x)),
    "loop": lambda x: sad.fori_loop(2, lambda _, c: doubled(c), x),
    "while loop": lambda x: sad.while_loop(lambda c: sad.sum(c) < 4.0, doubled, x, limit=2),
    "checkpoint": sad.checkpoint(doubled),
    "vmap": lambda x: sad.vmap(doubled)(sad.stack([x, 2.0 * x])),
    "map": lambda x: sad.map(lambda a: doubled(sad.stack([a, a]))[0], x),
    "second derivative": gradient,
    "graph of a second derivative": sad.graph(lambda x: gradient(x)),
    "jacobian": sad.jacobian(doubled),
    "texture": lambda x: look(sad.texture(PICTURE, mips=True), SMOOTH, AT + x[0], 0.3),
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_pullbacks_add_to_what_they_are_given(device: sad.Device, name: str) -> None:
    x = sad.array(X)
    out, pullback = sad.vjp(FUNCTIONS[name], x)
    bar = np.cos(np.arange(out.numpy().size, dtype=np.float32)).reshape(out.numpy().shape)
    (once,) = pullback(bar)
    expected = 3.0 * once.numpy()
    total = sad.array(2.0 * once.numpy())
    (added,) = pullback(bar, accumulate=(total,))
    assert added is total
    np.testing.assert_allclose(total.numpy(), expected, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("mips", [False, True])
@pytest.mark.parametrize("in_graph", [False, True])
def test_gradients_by_textures_are_accumulated(
    device: sad.Device, mips: bool, in_graph: bool
) -> None:
    def shaded(t: Any, at: Any) -> Any:
        return look(t, SMOOTH, at, 0.3)

    args = (sad.texture(PICTURE, mips=mips), sad.array(AT, dtype=sad.float2))
    out, pullback = sad.vjp(sad.graph(shaded) if in_graph else shaded, *args)
    bar = np.cos(out.numpy())
    expected = [2.0 * x.numpy() for x in pullback(bar)]
    totals = pullback(bar)
    again = pullback(bar, accumulate=totals)
    for x, total, y in zip(again, totals, expected, strict=True):
        assert x is total
        np.testing.assert_allclose(x.numpy(), y, rtol=1e-4, atol=1e-5)


def accumulated(x: Any) -> Any:
    """Three times the gradient: in a graph, then in a loop whose carry is the total."""
    _, pullback = sad.vjp(doubled, x)
    total = pullback(BAR)
    result = pullback(BAR, accumulate=total)
    assert result[0] is total[0]
    return sad.fori_loop(1, lambda _, g: pullback(BAR, accumulate=(g,))[0], total[0])


def test_graphs_accumulate_into_their_own_arrays(device: sad.Device) -> None:
    expected = 3.0 * 4.0 * X * BAR
    np.testing.assert_allclose(sad.graph(accumulated)(X), expected, rtol=1e-6)
    rows = np.stack([X, 2.0 * X])
    mapped = sad.vmap(accumulated)(rows)
    np.testing.assert_allclose(mapped, [expected, 2.0 * expected], rtol=1e-6)
    by_x = sad.grad(sad.graph(lambda x: sad.sum(accumulated(x))))(X)
    np.testing.assert_allclose(by_x, 3.0 * 4.0 * BAR, rtol=1e-6)
    second = sad.graph(sad.grad(lambda x: sad.sum(accumulated(x) * x)))(X)
    np.testing.assert_allclose(second, 2.0 * expected, rtol=1e-6)


def test_arrays_from_outside_are_refused(device: sad.Device) -> None:
    outside = sad.array(np.zeros(3, np.float32))

    def into(x: Any, total: Any) -> Any:
        return sad.vjp(doubled, x)[1](BAR, accumulate=(total,))[0]

    for call in (
        lambda: sad.graph(into)(X, outside),
        lambda: sad.graph(lambda x: into(x, outside))(X),
        lambda: sad.grad(lambda x: sad.sum(into(x, outside)))(X),
    ):
        with pytest.raises(sad.DerivativeError, match="SR0451"):
            call()
    looped = sad.grad(lambda x: sad.sum(sad.fori_loop(1, lambda _, g: into(x, g), x)))(X)
    np.testing.assert_allclose(looped, 4.0 * BAR + 1.0, rtol=1e-6)  # the carry is of the loop
    assert not outside.numpy().any()
    with pytest.raises(sad.ShapeError, match="SR0334"):
        sad.graph(lambda x: into(x, sad.zeros(4)))(X)
