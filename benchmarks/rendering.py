"""`shaderad.render` against the device's own rasteriser, a plain kernel, and PyTorch.

    python benchmarks/rendering.py [--runtime wgpu slangpy] [NAME ...]

Two triangles that fill a picture, against a kernel that writes as much to as many arrays. Spot,
rasterised and a colour interpolated, against a render pass of wgpu that writes the same ids. A step
of samples/silhouettes, eight views with gradients, against drawing them alone. A million lookups of
a texture of ``float4``, on a grid and at random, against `grid_sample` of PyTorch on the CPU, where
that is installed: values alone, and values with the gradients by texels and coordinates. Inputs are
resident, and each side waits for its results. Ratios are medians over pairs that ran one after the
other.
"""

from __future__ import annotations

import argparse
import statistics
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from timing import Floats, alternated, median_ratio, on_each, relative_error, waited

import shaderad as sad
from shaderad import float2, float3, float4, int3, render

try:
    import torch
except ImportError:
    torch: Any = None

ROUNDS = 9
SAMPLES = Path(__file__).parents[1] / "samples"
SPOT = SAMPLES / "mesh_interpolation" / "spot.ply"
EYE, AIM = (1.5, 1.0, -3.0), (0.0, 0.07, 0.1)
FILL_GOAL, LOOKUP_GOAL = 3.0, 1.5

Step = Callable[[], None]


@dataclass(frozen=True)
class Contest:
    """The steps of a contest, ours first."""

    sides: dict[str, Step]
    goal: float | None
    text: str = ""


def resident(device: sad.Device, function: Callable[..., Any], *args: Any) -> Step:
    """A graph at arguments on the device."""
    graph = sad.graph(function)
    return waited(device, lambda: graph(*args))


# -- triangles --------------------------------------------------------------------------------


@sad.kernel
def write_as_much(
    y: sad.Index,
    x: sad.Index,
    face: sad.Out[int, 2],
    uv: sad.Out[float2, 2],
    depth: sad.Out[float, 2],
    uv_dx: sad.Out[float2, 2],
    uv_dy: sad.Out[float2, 2],
):
    """Arrays like those of fragments."""
    at = float2(float(x), float(y))
    face[y, x] = x
    uv[y, x] = at
    depth[y, x] = at.x
    uv_dx[y, x] = at + 1.0
    uv_dy[y, x] = at - 1.0


def two_triangles(device: sad.Device, size: int = 1024) -> Contest:
    corners = [(-1, -1), (1, -1), (1, 1), (-1, 1)]
    clip = sad.array([(x, y, 0.5, 1.0) for x, y in corners], dtype=float4)
    triangles = sad.array([[0, 1, 2], [0, 2, 3]], dtype=int3)
    shape = (size, size)

    def drawn(clip: Any, triangles: Any) -> Any:
        return tuple(render.rasterize(clip, triangles, shape))

    assert (drawn(clip, triangles)[0].numpy() >= 0).all()
    sides = {
        "ours": resident(device, drawn, clip, triangles),
        "a plain kernel": resident(device, lambda: write_as_much(dim=shape)),
    }
    return Contest(sides, FILL_GOAL)


def spot(device: sad.Device, size: int = 512) -> Contest:
    from render_pass import RenderPass

    mesh = render.load_mesh(SPOT)
    camera = render.perspective(0.6, 1.0, 0.1, 10.0) @ render.look_at(EYE, AIM)
    clip = sad.array(render.transform(camera, mesh.positions).numpy(), dtype=float4)
    triangles = sad.array(mesh.triangles, dtype=int3)
    colors = sad.array(np.random.default_rng(0).uniform(size=mesh.positions.shape), dtype=float3)

    def drawn(clip: Any, triangles: Any, colors: Any) -> Any:
        fragments = render.rasterize(clip, triangles, (size, size))
        return render.interpolate(colors, triangles, fragments)

    other = RenderPass(clip.numpy(), mesh.triangles, size)
    other.step()
    face = render.rasterize(clip, triangles, (size, size)).face.numpy()
    apart = float(np.mean(face != other.face()))
    assert apart < 1e-2
    sides = {
        "ours": resident(device, drawn, clip, triangles, colors),
        "a render pass": other.step,
    }
    return Contest(sides, None, f"{apart:.0e} of the ids differ")


def silhouettes(device: sad.Device, size: int = 128, subdivisions: int = 4) -> Contest:
    sys.path.append(str(SAMPLES / "silhouettes"))
    import main as sample
    import shape

    mesh, views = sample.start(subdivisions, size)
    state = shape.ADAM.init(mesh.positions)
    given = (*views.values(), mesh.positions, state, shape.STIFFNESS, shape.RATE)
    surface = mesh.triangles, render.adjacency(mesh.triangles)
    drawn = mesh.triangles, views["cameras"], sample.blank(sample.VIEWS, size), mesh.positions

    sides = {
        "ours": waited(device, lambda: shape.step(*surface, *given)),
        "drawing alone": waited(device, lambda: shape.seen(*drawn)),
    }
    return Contest(sides, None)


# -- textures ---------------------------------------------------------------------------------

PLACES = ("grid", "random")
MODES = {"linear": "bilinear", "nearest": "nearest"}


def coordinates(place: str, size: int) -> Floats:
    """Where `size` by `size` lookups are: at centres of pixels, or anywhere."""
    if place == "random":
        return np.random.default_rng(1).uniform(size=(size, size, 2)).astype(np.float32)
    axis = (np.arange(size) + 0.5) / size
    return np.stack(np.meshgrid(axis, axis), -1).astype(np.float32)


class GridSample:
    """Lookups by PyTorch, which has channels in front and coordinates from -1 to 1."""

    def __init__(self, texels: Floats, uv: Floats, cotangent: Floats, mode: str) -> None:
        def in_front(x: Floats) -> Any:
            return torch.from_numpy(np.moveaxis(x, -1, 0)[None].copy())

        self._texels = in_front(texels).requires_grad_()
        self._at = torch.from_numpy(2.0 * uv[None] - 1.0).requires_grad_()
        self._cotangent, self._mode = in_front(cotangent), mode

    def _values(self) -> Any:
        return torch.nn.functional.grid_sample(
            self._texels, self._at, mode=self._mode, align_corners=False
        )

    def values(self) -> None:
        with torch.no_grad():
            self._values()

    def gradient(self) -> None:
        self._texels.grad = self._at.grad = None
        self._values().backward(self._cotangent)

    def by_texels(self) -> Floats:
        """The gradient of the last step, as ours."""
        return np.moveaxis(self._texels.grad.numpy()[0], 0, -1)


def lookups(
    place: str, mode: str, is_gradient: bool, device: sad.Device, count: int = 1024, size: int = 512
) -> Contest:
    """`count` by `count` lookups of `size` by `size` texels."""
    rng = np.random.default_rng(0)
    texels, uv = rng.uniform(size=(size, size, 4)).astype(np.float32), coordinates(place, count)
    cotangent = rng.uniform(size=(count, count, 4)).astype(np.float32)

    def values(texels: Any, uv: Any) -> Any:
        return render.texture(texels, uv, filter=mode, wrap="border")

    def gradient(texels: Any, uv: Any, cotangent: Any) -> Any:
        found, pullback = sad.vjp(values, texels, uv)
        return found, *pullback(cotangent)

    given = [sad.array(texels, dtype=float4), sad.array(uv, dtype=float2)]
    bar = sad.array(cotangent, dtype=float4)
    if is_gradient:
        ours = resident(device, gradient, *given, bar)
    else:
        ours = resident(device, values, *given)
    if torch is None:
        return Contest({"ours": ours}, LOOKUP_GOAL, "no PyTorch here")
    other = GridSample(texels, uv, cotangent, MODES[mode])
    other.gradient()
    error = relative_error(sad.graph(gradient)(*given, bar)[1].numpy(), other.by_texels())
    theirs = other.gradient if is_gradient else other.values
    text = f"gradients by texels differ by {error:.0e}"
    return Contest({"ours": ours, "PyTorch": theirs}, LOOKUP_GOAL, text)


CONTESTS: dict[str, Callable[..., Contest]] = {
    "two triangles": two_triangles,
    "Spot": spot,
    "silhouettes": silhouettes,
}
for _place in PLACES:
    for _mode in MODES:
        for _is_gradient, _name in ((False, "values"), (True, "gradient")):
            CONTESTS[f"{_place} {_mode} {_name}"] = partial(lookups, _place, _mode, _is_gradient)


def compare(name: str, runtime: str, rounds: int = ROUNDS, **sizes: int) -> None:
    """Prints what was found on one runtime."""
    with sad.open_device(runtime) as device:
        contest = CONTESTS[name](device, **sizes)
        times = alternated(contest.sides, rounds)
    device.close()
    print(line(name, runtime, contest, times), flush=True)


def line(name: str, runtime: str, contest: Contest, times: dict[str, list[float]]) -> str:
    ours, *others = contest.sides
    text = f"{name:24} {runtime:8} {statistics.median(times[ours]):7.2f} ms"
    for other in others:
        ratio = median_ratio(times[ours], times[other])
        text += f"   {ratio:.2f}x of {other}'s {statistics.median(times[other]):.2f} ms"
        if contest.goal is not None and ratio > contest.goal:
            text += f"   above {contest.goal}x"
    return f"{text}   {contest.text}".rstrip()


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("names", nargs="*", default=[*CONTESTS], metavar="NAME")
    parser.add_argument("--runtime", nargs="*", default=[])
    given = parser.parse_args(arguments)
    for name in given.names:
        on_each(given.runtime, partial(compare, name))


if __name__ == "__main__":
    main()
