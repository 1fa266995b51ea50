"""The kit inside of transforms, loops, other libraries and builds."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import shaderad as sad
from shaderad import float2, float3, float4, int3, render
from tests.render import pictures
from tests.render.pictures import picture

pytestmark = pytest.mark.gpu

CLOSE = 1e-4
"""Of sums over some hundred pixels, in another order."""


def arguments() -> list[sad.Array]:
    rng = np.random.default_rng(0)
    places = [[-0.8, -0.7, 0.5, 1], [0.9, -0.6, 0.2, 1], [0.1, 0.8, 0.7, 1], [0.2, 0.1, 0.1, 1]]
    return [
        sad.array(places, dtype=float4),
        sad.array([[0, 1, 3], [1, 2, 3], [2, 0, 3]], dtype=int3),
        sad.array(rng.uniform(size=(9, 8, 3)), dtype=float3),
        sad.array(rng.uniform(size=(4, 2)), dtype=float2),
        sad.zeros((24, 33)),
    ]


def gradients(function: Any, given: list[Any]) -> list[Any]:
    result, pullback = sad.vjp(function, *given)
    bars = pullback(sad.array(np.ones((*result.shape, 3)), dtype=float3))
    return [result.numpy(), *(bars[k].numpy() for k in (0, 2, 3))]


def agree(found: list[Any], expected: list[Any]) -> None:
    for one, other in zip(found, expected, strict=True):
        assert np.abs(one - other).max() < CLOSE * max(1.0, np.abs(other).max())


def test_builds_draw_and_differentiate_at_any_size(device: sad.Device, tmp_path: Path) -> None:
    sad.build(Path(pictures.__file__), tmp_path, targets=["spirv", "wgsl"])
    loaded = sad.load(tmp_path).picture
    clip, triangles, texels, coordinates, canvas = arguments()
    agree(gradients(loaded, arguments()), gradients(picture, arguments()))
    other = [clip, triangles, texels[2:, 3:], coordinates, canvas[:7, :]]
    agree(gradients(loaded, other), gradients(picture, other))


def test_batches_are_pictures_of_each(device: sad.Device) -> None:
    clip, *others = arguments()
    clips = np.stack([clip.numpy(), clip.numpy() * [0.7, 0.6, 1, 1]])

    def total(clip: Any) -> Any:
        return sad.sum(picture(clip, *others).x)

    values, by_clip = sad.vmap(sad.value_and_grad(total))(sad.array(clips, dtype=float4))
    for k, one in enumerate(clips):
        value, gradient = sad.value_and_grad(total)(sad.array(one, dtype=float4))
        agree([values.numpy()[k], by_clip.numpy()[k]], [float(value), gradient.numpy()])


def test_fragments_and_textures_are_batched(device: sad.Device) -> None:
    """As arguments and results, and the gradient by a texture is one for each element."""
    clip, triangles, texels, coordinates, _ = arguments()
    clips = sad.array(np.stack([clip.numpy(), clip.numpy() * [0.7, 0.6, 1, 1]]), dtype=float4)
    pictures = sad.array(np.stack([texels.numpy(), texels.numpy()[::-1]]), dtype=float3)
    found = sad.vmap(lambda clip: render.rasterize(clip, triangles, (8, 9)))(clips)
    assert isinstance(found, render.Fragments)

    def shown(fragments: Any, texture: Any) -> Any:
        uv = render.interpolate(coordinates, triangles, fragments)
        return sad.sum(render.texture(texture, uv).x)

    by_texture = sad.grad(shown, argnums=1)
    values = sad.vmap(shown)(found, render.Texture(pictures))
    gradients = sad.vmap(by_texture)(found, render.Texture(pictures))
    assert isinstance(gradients, render.Texture)
    for k, one in enumerate(clips.numpy()):
        alone = render.rasterize(sad.array(one, dtype=float4), triangles, (8, 9))
        agree([part.numpy()[k] for part in found], [part.numpy() for part in alone])
        texture = render.Texture(pictures[k])
        value, gradient = sad.value_and_grad(shown, argnums=1)(alone, texture)
        agree(
            [values.numpy()[k], gradients.texels.numpy()[k]],
            [float(value), gradient.texels.numpy()],
        )


def test_fragments_and_textures_are_carried_by_loops(device: sad.Device) -> None:
    clip, triangles, texels, *_ = arguments()

    def total(texels: Any) -> Any:
        found = render.rasterize(clip, triangles, (8, 9))

        def step(_: Any, carry: Any) -> Any:
            fragments, texture, color = carry
            return fragments, texture, color + render.texture(texture, fragments.uv)

        start = found, render.Texture(texels), sad.zeros((8, 9), float3)
        fragments, texture, color = sad.fori_loop(3, step, start)
        assert isinstance(fragments, render.Fragments)
        assert isinstance(texture, render.Texture)
        return sad.sum(color.x)

    def once(texels: Any) -> Any:
        uv = render.rasterize(clip, triangles, (8, 9)).uv
        return 3.0 * sad.sum(render.texture(texels, uv).x)

    agree([sad.grad(total)(texels).numpy()], [sad.grad(once)(texels).numpy()])


def test_fragments_and_textures_are_trees_of_tensors(device: sad.Device) -> None:
    torch = pytest.importorskip("torch")
    clip, triangles, *_ = arguments()
    texels = sad.array(np.random.default_rng(1).uniform(size=7))

    def drawn(clip: Any) -> render.Fragments:
        return render.rasterize(clip, triangles, (8, 9))

    def by_depth(fragments: Any, texture: Any) -> Any:
        return render.texture(texture, fragments.depth)

    tensors = [torch.tensor(x.numpy(), requires_grad=True) for x in (clip, texels)]
    found = sad.torch.wrap(drawn)(tensors[0])
    assert isinstance(found, render.Fragments)
    shown = sad.torch.wrap(by_depth)(found, render.Texture(tensors[1]))
    shown.sum().backward()
    expected, pullback = sad.vjp(lambda c, t: by_depth(drawn(c), t), clip, texels)
    gradients = pullback(np.ones((8, 9), np.float32))
    agree([shown.detach().numpy(), *(x.grad.numpy() for x in tensors)],
          [expected.numpy(), *(x.numpy() for x in gradients)])  # fmt: skip


def test_other_libraries_draw_and_differentiate(device: sad.Device) -> None:
    torch = pytest.importorskip("torch")
    jax = pytest.importorskip("jax")
    expected = gradients(picture, arguments())
    given = [x.numpy() for x in arguments()]

    tensors = [torch.tensor(x, requires_grad=k in (0, 2, 3)) for k, x in enumerate(given)]
    result = sad.torch.wrap(picture)(*tensors)
    result.sum().backward()
    found = [result.detach().numpy(), *(tensors[k].grad.numpy() for k in (0, 2, 3))]
    agree(found, expected)

    wrapped = sad.jax.wrap(picture)
    result, pullback = jax.vjp(lambda *x: wrapped(x[0], given[1], x[1], x[2], given[4]),
                               given[0], given[2], given[3])  # fmt: skip
    agree([np.asarray(x) for x in (result, *pullback(np.ones_like(result)))], expected)
