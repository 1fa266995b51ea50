"""Gaussian splats in two dimensions, fitted to a picture.

    python samples/splats/main.py [--out FILE] [--steps 150] [--runtime wgpu|slangpy]

A splat is a blob with a position, a shape and a colour; a pixel adds up all of them. The gradient
of its error goes back to every splat that it read. The sample writes the start, the fit and the
target in a row.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image

import shaderad as sad
from shaderad import float2, float3

PICTURE = Path(__file__).parents[2] / "docs" / "pictures" / "spot.png"
SHOWN = 256
"""Pixels along an edge of each picture that is written."""


@sad.struct
class Splat:
    place: float2
    axes: float3
    """The lower triangular matrix that maps the blob to a round one of size 1: xx, yx, yy."""
    color: float3

    def at(self, p: float2) -> float3:
        d = p - self.place
        round_d = float2(self.axes.x * d.x, self.axes.y * d.x + self.axes.z * d.y)
        return self.color * sad.exp(-0.5 * sad.dot(round_d, round_d))


@sad.kernel
def render(
    y: sad.Index, x: sad.Index, splats: sad.In[Splat], size: float, color: sad.Out[float3, 2]
):
    p = (float2(x, y) + 0.5) / size
    for k in sad.range(len(splats), limit=1024):
        color[y, x] += splats[k].at(p)


def error(splats: Any, target: Any) -> Any:
    size = target.shape[0]
    miss = render(splats, size, dim=(size, size)) - target
    return sad.mean(sad.dot(miss, miss))


def scattered(count: int) -> dict[str, Any]:
    """Dim round blobs, anywhere."""
    draw = np.random.default_rng(0)
    radius = 0.5 / np.sqrt(count)
    axes = np.tile([1 / radius, 0, 1 / radius], (count, 1))
    return {"place": draw.random((count, 2)), "axes": axes, "color": np.full((count, 3), 0.1)}


def fit(target: Any, count: int, steps: int) -> tuple[list[float], Any, Any]:
    """The error before every tenth step, and the splats at the start and at the end."""
    adam = sad.optim.Adam(0.02)

    @sad.graph
    def step(splats: Any, state: Any, target: Any) -> Any:
        value, gradient = sad.value_and_grad(error)(splats, target)
        return value, *adam.step(splats, gradient, state)

    splats = start = sad.array(scattered(count), dtype=Splat)
    state, goal, errors = adam.init(splats), sad.array(target, dtype=float3), []
    for k in range(steps):
        value, splats, state = step(splats, state, goal)
        if k % 10 == 0 or k == steps - 1:
            errors.append(float(value))
            print(f"step {k:3}   error {errors[-1]:.5f}")
    return errors, start, splats


def rendered(splats: Any, size: int) -> Any:
    """Splats at any size, because they have no pixels and can be larger than their target."""
    return render(splats, size, dim=(size, size)).numpy()


def picture(size: int) -> Any:
    """The cow of the mesh sample."""
    with Image.open(PICTURE) as stored:
        cow = stored.convert("RGB").resize((size, size), Image.Resampling.BOX)
    return np.asarray(cow, np.float32) / 255


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--out", type=Path, default=Path("splats.png"))
    parser.add_argument("--size", type=int, default=128)
    parser.add_argument("--count", type=int, default=400)
    parser.add_argument("--steps", type=int, default=150)
    parser.add_argument("--runtime", choices=["wgpu", "slangpy"])
    given = parser.parse_args(arguments)
    if min(given.size, given.count, given.steps) < 1:
        parser.error("--size, --count and --steps are at least 1")
    try:
        with sad.open_device(given.runtime):
            _, *ends = fit(picture(given.size), given.count, given.steps)
            shown = [*(rendered(splats, SHOWN) for splats in ends), picture(SHOWN)]
        row = np.clip(np.concatenate(shown, 1), 0, 1)
        Image.fromarray(np.rint(255 * row).astype(np.uint8)).save(given.out, "PNG")
    except (sad.Error, OSError) as failure:
        parser.error(str(failure))
    print(f"wrote {given.out}")


if __name__ == "__main__":
    main()
