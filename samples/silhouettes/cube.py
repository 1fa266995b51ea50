"""A cube fitted to pictures of a few pixels: the first experiment of the paper on nvdiffrast.

    python samples/silhouettes/cube.py [--out FILE] [--steps 1000] [--starts 16]
                                       [--runtime wgpu|slangpy]

Eight vertices start up to half an edge away from their true positions along each axis, in random
colours. Each step compares one picture in a random pose with that of the true cube, at 4, 8 or 16
pixels along an edge. Several starts are fitted at once, as views of one batch. The sample draws the
mean distance of a vertex from its true position over the steps.

Source: Laine et al., "Modular primitives for high-performance differentiable rendering" (2020).
"""

# Names of sizes are strings.
# ruff: noqa: UP037, F821

from __future__ import annotations

import argparse
import math
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image, ImageDraw, ImageFont

import shaderad as sad
from shaderad import float3, float4x4, render

SIZES = (4, 8, 16)
"""Pixels along an edge of the target pictures."""
POSITIONS = np.array([[x, y, z] for x in (-1, 1) for y in (-1, 1) for z in (-1, 1)]) / 2
COLORS = POSITIONS + 0.5
SIDES = [(0, 1, 3, 2), (4, 6, 7, 5), (0, 4, 5, 1), (2, 3, 7, 6), (0, 2, 6, 4), (1, 5, 7, 3)]
TRIANGLES = np.int32([t for a, b, c, d in SIDES for t in ((a, b, c), (a, c, d))])
DISTANCE, LENS = 3.5, 0.4
"""The distance from the eye to the middle, and the tangent of half the angle of view."""
RATE, SLOWED = 0.03, 0.03
"""The first learning rate of Adam, and the share of it at the end."""
STRETCH = 100
"""Steps per submission."""
ADAM = sad.optim.Adam(RATE)
GOAL = 0.01
"""The vertex error below which a fit has succeeded."""
CHART, EDGE, SPARSE = 520, 112, 4
"""For the drawing: the width of the curves and the edge of each picture beside them, in pixels, and
the steps per point of a curve."""
PAPER, INK, RULE = (250, 249, 246), (70, 76, 88), (222, 221, 216)
CURVES = ((205, 92, 52), (62, 128, 96), (58, 92, 170))


def picture(positions: Any, colors: Any, poses: Any, size: int, adjacency: Any = None) -> Any:
    """The picture of each cube in its pose, on black."""
    clip = render.transform(poses, positions)
    fragments = render.rasterize(clip, TRIANGLES, (size, size))
    color = render.interpolate(colors, TRIANGLES, fragments)
    return render.antialias(color, fragments, clip, TRIANGLES, adjacency)


@cache
def steps_at(size: int) -> Any:
    """The graph of several steps at one picture size."""

    @sad.graph
    def steps(
        poses: sad.Array[float4x4, "steps", "starts"],
        rates: sad.Array[float, "steps"],
        cube: Any,
        state: Any,
        true: Any,
    ) -> Any:
        """The cubes and Adam's state after all steps, and their errors before each."""
        beside = render.adjacency(TRIANGLES)

        def step(carry: Any, now: Any) -> Any:
            (cube, state), (poses, rate) = carry, now

            def error(cube: Any) -> Any:
                found, wanted = (picture(*one, poses, size, beside) for one in (cube, true))
                miss = found - wanted
                return sad.sum(sad.dot(miss, miss))

            apart = sad.mean(sad.length(cube[0] - true[0]), axis=1)
            return ADAM.step(cube, sad.grad(error)(cube), state, rate), apart

        return sad.loop(step, (cube, state), (poses, rates))

    return steps


def true_cube() -> tuple[sad.Array, sad.Array]:
    """The true positions and colours."""
    return sad.array(POSITIONS, dtype=float3), sad.array(COLORS, dtype=float3)


def poses_of(draw: np.random.Generator, count: int) -> Any:
    """Random poses as matrices from the model to clip space."""
    quaternions = draw.standard_normal((count, 4))
    w, x, y, z = (quaternions / np.linalg.norm(quaternions, axis=1, keepdims=True)).T
    turned = np.zeros((count, 4, 4))
    turned[:, :3, :3] = np.moveaxis(np.array([
        [1 - 2 * (y * y + z * z), 2 * (x * y - z * w), 2 * (x * z + y * w)],
        [2 * (x * y + z * w), 1 - 2 * (x * x + z * z), 2 * (y * z - x * w)],
        [2 * (x * z - y * w), 2 * (y * z + x * w), 1 - 2 * (x * x + y * y)],
    ]), -1, 0)  # fmt: skip
    turned[:, :, 3] = 0.0, 0.0, -DISTANCE, 1.0
    return render.perspective(2 * math.atan(LENS), 1.0, 1.0, 50.0).numpy() @ turned


def fit(size: int, step_count: int, starts: int) -> tuple[Any, list[Any]]:
    """The vertex errors of each start before each step, and cubes as (positions, colors).

    Returns:
        The errors, of shape (step_count, starts); the cubes at the start and at the end.
    """
    draw = np.random.default_rng(5)
    moved = POSITIONS + draw.uniform(-0.5, 0.5, (starts, 8, 3))
    first = tuple(sad.array(x, dtype=float3) for x in (moved, draw.random((starts, 8, 3))))
    cube, state, errors = first, ADAM.init(first), []
    rates = np.float32(RATE * SLOWED ** np.linspace(0, 1, step_count))
    for some in np.split(rates, range(STRETCH, step_count, STRETCH)):
        poses = poses_of(draw, len(some) * starts).reshape(len(some), starts, 4, 4)
        poses = sad.array(poses, dtype=float4x4)
        (cube, state), apart = steps_at(size)(poses, sad.array(some), cube, state, true_cube())
        errors.append(apart.numpy())
    return np.concatenate(errors), [first, cube]


def drawn(errors: dict[int, Any], cubes: dict[int, list[Any]]) -> Image.Image:
    """The errors of all starts, beside the target, start and end of one, and the true cube."""
    sheet = Image.new("RGB", (CHART + 4 * EDGE, len(SIZES) * EDGE), PAPER)
    draw_curves(ImageDraw.Draw(sheet), sheet.height, errors)
    true = true_cube()
    for row, (size, ends) in enumerate(cubes.items()):
        first, last = ((positions[0], colors[0]) for positions, colors in ends)
        shown = [(true, size), (first, EDGE), (last, EDGE), (true, EDGE)]
        for column, (cube, edge) in enumerate(shown):
            sheet.paste(photo(cube, edge), (CHART + column * EDGE, row * EDGE))
    return sheet


def photo(cube: Any, edge: int) -> Image.Image:
    """A cube from some side, in `edge` pixels."""
    pose = sad.array(poses_of(np.random.default_rng(4), 1), dtype=float4x4)
    pixels = picture(*(x[None] for x in cube), pose, edge).numpy()[0]
    shown = Image.fromarray(np.rint(255 * np.clip(pixels, 0, 1)).astype(np.uint8))
    return shown.resize((EDGE, EDGE), Image.Resampling.NEAREST)


def draw_curves(draw: ImageDraw.ImageDraw, height: int, errors: dict[int, Any]) -> None:
    """Errors on a logarithmic scale: one thin line per start, and a thick one for their median."""
    low, left, right, base, font = -7, 56, CHART - 24, height - 40, ImageFont.load_default(13)
    top, last = 16, max(map(len, errors.values())) - 1

    def place(step: float, error: float) -> tuple[float, float]:
        share = 1 - math.log10(max(error, 10.0**low)) / low
        return left + (right - left) * step / max(last, 1), base - (base - top) * share

    for power in range(low, 1):
        _, y = place(0, 10.0**power)
        draw.line([(left, y), (right, y)], fill=RULE)
        draw.text((left - 8, y), f"1e{power}" if power else "1", INK, font, anchor="rm")
    draw.text((left, base + 8), "0", INK, font, anchor="ma")
    draw.text((right, base + 8), f"step {last + 1}", INK, font, anchor="ra")
    draw.text(((left + right) / 2, base + 8), "vertex error, in edges", INK, font, anchor="ma")
    for row, (size, found) in enumerate(errors.items()):
        color = CURVES[row % len(CURVES)]
        pale = tuple((c + 2 * p) // 3 for c, p in zip(color, PAPER, strict=True))
        lines = [(start, pale, 1) for start in found.T]
        for values, shade, width in (*lines, (np.median(found, axis=1), color, 3)):
            points = [place(k, values[k]) for k in range(0, len(values), SPARSE)]
            draw.line(points, fill=shade, width=width)
        label = f"{size} x {size} pixels"
        draw.text((left + 10, base - 62 + 20 * row), label, color, font, anchor="lm")


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--out", type=Path, default=Path("cube.png"))
    parser.add_argument("--steps", type=int, default=1000)
    parser.add_argument("--starts", type=int, default=16)
    parser.add_argument("--runtime", choices=["wgpu", "slangpy"])
    given = parser.parse_args(arguments)
    if min(given.steps, given.starts) < 1:
        parser.error("--steps and --starts are at least 1")
    try:
        with sad.open_device(given.runtime):
            errors, cubes = {}, {}
            for size in SIZES:
                errors[size], cubes[size] = fit(size, given.steps, given.starts)
                tell(size, errors[size][-1])
            drawn(errors, cubes).save(given.out, "PNG")
    except (sad.Error, OSError) as failure:
        parser.error(str(failure))
    print(f"wrote {given.out}")


def tell(size: int, last: Any) -> None:
    """Prints the number of starts that ended at the cube."""
    print(
        f"{size:2} x {size:2} pixels   vertex error {np.median(last):.1e} (median), "
        f"below {GOAL} from {np.sum(last < GOAL)} of {len(last)} starts"
    )


if __name__ == "__main__":
    main()
