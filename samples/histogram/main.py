"""The brightness of a picture, moved until its histogram matches a target.

    python samples/histogram/main.py [--out FILE] [--steps 80] [--runtime wgpu|slangpy]

A pixel counts for the two nearest bins, weighted by its distance to each, so that the histogram has
a derivative. The running sums of histograms give the distance by which brightness has to move. A
smaller example of scans and derivatives comes first: a product of a million factors, one of which
is 0.
Draws picture and histogram at the start and at the end.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image, ImageDraw

import shaderad as sad

PICTURE = Path(__file__).parents[2] / "docs" / "pictures" / "spot.png"
BINS = 32


@sad.graph
def scan_product(x: sad.Array[float]) -> sad.Array[float]:
    """An example of Futhark for functions that are hard to differentiate."""
    return sad.sum(sad.scan(sad.mul, x) * x)


def tell_a_shorter_story() -> None:
    factors = np.ones(1_000_000, np.float32)
    factors[500_000] = 0.0
    gradient = sad.grad(scan_product)(factors).numpy()
    print(f"by the factor that is 0: {gradient[500_000]:.0f}, by the last: {gradient[-1]:.0f}")


def counts(values: Any) -> Any:
    """The share of pixels in each bin, for values from 0 to 1."""
    place = sad.clamp(values, 0.0, 1.0) * (BINS - 1)
    low = sad.floor(sad.detach(place))
    part, index = place - low, sad.cast(low, int)
    found = sad.scatter_add(sad.zeros(BINS), index, 1.0 - part)
    return sad.scatter_add(found, index + 1, part) / values.shape[0]


def distance(values: Any, wanted: Any) -> Any:
    """The squared distance by which brightness has to move, in bins."""
    miss = sad.scan(sad.add, counts(values) - wanted)
    return sad.sum(miss * miss)


def fit(pixels: Any, wanted: Any, steps: int) -> tuple[list[float], Any]:
    """The distances, and the pixels at the end."""
    adam = sad.optim.Adam(0.01)

    @sad.graph
    def step(values: Any, state: Any, wanted: Any) -> Any:
        value, gradient = sad.value_and_grad(distance)(values, wanted)
        return value, *adam.step(values, gradient, state)

    values, distances = sad.array(pixels), []
    state, goal = adam.init(values), sad.array(wanted)
    for k in range(steps):
        value, values, state = step(values, state, goal)
        distances.append(float(value))
        if k % 10 == 0 or k == steps - 1:
            print(f"step {k:3}   distance {distances[-1]:.5f}")
    return distances, values.numpy()


def picture(size: int) -> Any:
    """The cow of the mesh sample in grey, with some grain."""
    with Image.open(PICTURE) as stored:
        cow = stored.convert("L").resize((size, size), Image.Resampling.BOX)
    grain = np.random.default_rng(0).standard_normal((size, size))
    return np.clip(np.asarray(cow) / 255 + 0.03 * grain, 0, 1).astype(np.float32)


def drawn(pixels: Any) -> Image.Image:
    """The picture above the shares of its bins."""
    edge = len(pixels)
    made = Image.new("L", (edge, edge + edge // 2), 16)
    made.paste(Image.fromarray(np.rint(255 * np.clip(pixels, 0, 1)).astype(np.uint8)))
    draw, width = ImageDraw.Draw(made), edge / BINS
    for k, share in enumerate(counts(sad.array(pixels.ravel())).numpy().tolist()):
        top = made.height - min(1.0, 6 * share) * (edge // 2)
        draw.rectangle((k * width, top, (k + 0.7) * width, made.height), fill=200)
    return made


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--out", type=Path, default=Path("histogram.png"))
    parser.add_argument("--size", type=int, default=192)
    parser.add_argument("--steps", type=int, default=80)
    parser.add_argument("--runtime", choices=["wgpu", "slangpy"])
    given = parser.parse_args(arguments)
    if min(given.size, given.steps) < 1:
        parser.error("--size and --steps are at least 1")
    pixels, wanted = picture(given.size), np.full(BINS, 1 / BINS, np.float32)
    try:
        with sad.open_device(given.runtime):
            tell_a_shorter_story()
            _, values = fit(pixels.ravel(), wanted, given.steps)
            both = [drawn(pixels), drawn(values.reshape(pixels.shape))]
        row = np.concatenate([np.asarray(one) for one in both], 1)
        Image.fromarray(row).save(given.out, "PNG")
    except (sad.Error, OSError) as failure:
        parser.error(str(failure))
    print(f"wrote {given.out}")


if __name__ == "__main__":
    main()
