"""A cloth in the wind, differentiated through 200 time steps to find the wind.

    python samples/cloth/main.py [--out FILE] [--steps 40] [--runtime wgpu|slangpy]

Masses on springs hang from two corners. Gradient descent finds the wind from nothing but their
positions after 200 steps. The sample draws the cloth without wind, in the fitted wind, and in the
true wind.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image, ImageDraw

import shaderad as sad
from shaderad import float3

TIME_STEPS, SECONDS = 200, 0.006
STIFFNESS, DAMPING, GRAVITY = 3000.0, 1.0, 1.0
WIND = (0.6, 0.2, 1.2)


@sad.function
def pull(p: float3, q: float3, rest: float) -> float3:
    return STIFFNESS * (1.0 - rest / sad.length(q - p)) * (q - p)


@sad.kernel
def force(y: sad.Index, x: sad.Index, p: sad.In[float3, 2], v: sad.In[float3, 2], wind: float3,
          rest: float, f: sad.Out[float3, 2]):  # fmt: skip
    """The force on each mass; the two upper corners do not move."""
    if y > 0 or (x > 0 and x < p.shape[1] - 1):
        f[y, x] = wind - float3(0.0, GRAVITY, 0.0) - DAMPING * v[y, x]
        if y > 0:
            f[y, x] += pull(p[y, x], p[y - 1, x], rest)
        if y < p.shape[0] - 1:
            f[y, x] += pull(p[y, x], p[y + 1, x], rest)
        if x > 0:
            f[y, x] += pull(p[y, x], p[y, x - 1], rest)
        if x < p.shape[1] - 1:
            f[y, x] += pull(p[y, x], p[y, x + 1], rest)


@sad.graph
def blown(p: sad.Array[float3], wind: float3, rest: float) -> sad.Array[float3]:
    """The positions of the masses at the end."""

    def step(_: Any, carry: Any) -> Any:
        p, v = carry
        v = v + SECONDS * force(p, v, wind, rest, dim=p.shape)
        return p + SECONDS * v, v

    return sad.fori_loop(TIME_STEPS, step, (p, p - p))[0]


def error(wind: Any, p: Any, rest: float, goal: Any) -> Any:
    miss = blown(p, wind, rest) - goal
    return sad.mean(sad.dot(miss, miss))


def hung(size: int) -> Any:
    """A square of edge 1, flat."""
    x, y = np.meshgrid(np.linspace(-0.5, 0.5, size), np.linspace(0.5, -0.5, size))
    return np.stack([x, y, np.zeros_like(x)], -1)


def fit(size: int, steps: int) -> tuple[list[float], list[Any]]:
    """The errors, and the cloth without wind, in the fitted wind and in the true wind."""
    p, rest = sad.array(hung(size), dtype=float3), 1.0 / max(1, size - 1)
    goal, adam = blown(p, WIND, rest), sad.optim.Adam(0.1, beta1=0.5)
    wind, errors = sad.array(np.zeros(3), dtype=float3), []
    still, state = blown(p, wind, rest), adam.init(wind)
    for k in range(steps):
        value, gradient = sad.value_and_grad(error)(wind, p, rest, goal)
        wind, state = adam.step(wind, gradient, state)
        errors.append(float(value))
        if k % 5 == 0 or k == steps - 1:
            print(f"step {k:3}   error {errors[-1]:.6f}   wind {wind.numpy().round(3)}")
    return errors, [still.numpy(), blown(p, wind, rest).numpy(), goal.numpy()]


def drawn(cloths: list[Any], edge: int = 256) -> Image.Image:
    """The cloths side by side, seen obliquely."""
    picture = Image.new("RGB", (edge * len(cloths), edge), (16, 18, 24))
    draw = ImageDraw.Draw(picture)
    for k, p in enumerate(cloths):
        x, y = p[..., 0] + 0.35 * p[..., 2], -p[..., 1] - 0.25 * p[..., 2]
        points = (np.stack([x + 0.8, y + 1.0], -1) * edge / 2.2 + (k * edge, 0)).tolist()
        for row in (*points, *map(list, zip(*points, strict=True))):
            draw.line([tuple(point) for point in row], fill=(120, 180, 235))
    return picture


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--out", type=Path, default=Path("cloth.png"))
    parser.add_argument("--size", type=int, default=16)
    parser.add_argument("--steps", type=int, default=40)
    parser.add_argument("--runtime", choices=["wgpu", "slangpy"])
    given = parser.parse_args(arguments)
    if min(given.size, given.steps) < 1:
        parser.error("--size and --steps are at least 1")
    try:
        with sad.open_device(given.runtime):
            _, cloths = fit(given.size, given.steps)
        drawn(cloths).save(given.out, "PNG")
    except (sad.Error, OSError) as failure:
        parser.error(str(failure))
    print(f"wrote {given.out}")


if __name__ == "__main__":
    main()
