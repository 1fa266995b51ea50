"""A small neural network as a texture: from a place in a picture to its colour.

    python samples/neural_texture/main.py [--out FILE] [--steps 200] [--runtime wgpu|slangpy]

Two hidden layers over sines of the coordinates, as matrix products of arrays; fitted by Adam.
Writes the picture after a few steps, the fit and the target in a row.
"""

from __future__ import annotations

import argparse
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image

import shaderad as sad

PICTURE = Path(__file__).parents[2] / "docs" / "pictures" / "spot.png"
SHOWN = 256
"""Pixels along an edge of each picture that is written."""
OCTAVES, WIDTH, EARLY = 4, 32, 10


def color(weights: Any, places: Any) -> Any:
    """Red, green and blue at each place; `places` are their sines."""
    x = places
    for layer in weights[:-1]:
        x = sad.max(x @ layer["matrix"] + layer["bias"], 0.0)
    return x @ weights[-1]["matrix"] + weights[-1]["bias"]


def error(weights: Any, places: Any, target: Any) -> Any:
    miss = color(weights, places) - target
    return sad.mean(miss * miss)


def waves(size: int) -> Any:
    """Sines and cosines of both coordinates, octave by octave: one row a pixel."""
    x, y = (c.ravel() for c in np.meshgrid(*[(np.arange(size) + 0.5) / size] * 2))
    angles = [np.pi * 2**k * c for k in range(OCTAVES) for c in (x, y)]
    return np.stack([f(a) for a in angles for f in (np.sin, np.cos)], 1).astype(np.float32)


def drawn_weights() -> list[dict[str, Any]]:
    """Values keep their size from layer to layer; those of the last one start small."""
    draw, counts = np.random.default_rng(0), (4 * OCTAVES, WIDTH, WIDTH, 3)
    layers = [
        {"matrix": (draw.standard_normal((a, b)) * np.sqrt(2 / a)).astype(np.float32),
         "bias": np.zeros(b, np.float32)}
        for a, b in pairwise(counts)
    ]  # fmt: skip
    layers[-1]["matrix"] *= 0.1
    return layers


def fit(target: Any, steps: int) -> tuple[list[float], Any, Any]:
    """The errors, and the weights early and at the end."""
    adam = sad.optim.Adam(0.02, beta2=0.99)

    @sad.graph
    def step(weights: Any, state: Any, places: Any, goal: Any) -> Any:
        value, gradient = sad.value_and_grad(error)(weights, places, goal)
        return value, *adam.step(weights, gradient, state)

    places, goal = sad.array(waves(len(target))), sad.array(target.reshape(-1, 3))
    weights = early = drawn_weights()
    state, errors = adam.init(weights), []
    for k in range(steps):
        if k == EARLY:
            early = weights
        value, weights, state = step(weights, state, places, goal)
        if k % 20 == 0 or k == steps - 1:
            errors.append(float(value))
            print(f"step {k:3}   error {errors[-1]:.5f}")
    return errors, early, weights


def rendered(weights: Any, size: int) -> Any:
    """A network has no pixels: it can be shown larger than what it was fitted to."""
    return color(weights, sad.array(waves(size))).numpy().reshape(size, size, 3)


def picture(size: int) -> Any:
    """The cow of the mesh sample."""
    with Image.open(PICTURE) as stored:
        cow = stored.convert("RGB").resize((size, size), Image.Resampling.BOX)
    return np.asarray(cow, np.float32) / 255


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--out", type=Path, default=Path("neural_texture.png"))
    parser.add_argument("--size", type=int, default=64)
    parser.add_argument("--steps", type=int, default=200)
    parser.add_argument("--runtime", choices=["wgpu", "slangpy"])
    given = parser.parse_args(arguments)
    if min(given.size, given.steps) < 1:
        parser.error("--size and --steps are at least 1")
    try:
        with sad.open_device(given.runtime):
            _, *both = fit(picture(given.size), given.steps)
            shown = [*(rendered(weights, SHOWN) for weights in both), picture(SHOWN)]
        row = np.clip(np.concatenate(shown, 1), 0, 1)
        Image.fromarray(np.rint(255 * row).astype(np.uint8)).save(given.out, "PNG")
    except (sad.Error, OSError) as failure:
        parser.error(str(failure))
    print(f"wrote {given.out}")


if __name__ == "__main__":
    main()
