"""A picture fitted by a neural texture: features of a hash grid, and a small network.

    python samples/neural_texture/main.py [--out DIR] [--size 256] [--steps 800]
                                          [--runtime wgpu|slangpy]
    python samples/neural_texture/main.py --web DIR

The sample writes target.png, fit.png and difference.png to DIR, a row of these with an early fit in
overview.png, and loss.svg. With --web, it writes a page that fits the picture in a browser without
Python.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image

import shaderad as sad
import texture

HERE = Path(__file__).parent
LEVELS, ENTRIES, WIDTH = 8, 1 << 14, 32
"""The number of grids, their entries, and the width of the network's hidden layers."""
EARLY, TOLD = 20, 100
"""The step after which an early fit is shown, and steps from one line of the output to the next."""
ORBIT, SHOWN, OVERSAMPLED = 120, 1.3, 4
"""For the picture: steps of an orbit, its extent, and samples along an edge of a pixel."""


def picture(size: int) -> Any:
    """The Julia set of z^2 - 0.8 + 0.156 i, coloured by the escape time of its orbits."""
    edge = np.linspace(-SHOWN, SHOWN, 2 * size * OVERSAMPLED + 1)[1::2]
    z, escape = edge + 1j * edge[:, None], np.zeros((len(edge), len(edge)))
    for k in range(ORBIT):
        is_inside = abs(z) < 16
        z[is_inside] = z[is_inside] ** 2 - 0.8 + 0.156j
        has_left = is_inside & (abs(z) >= 16)
        escape[has_left] = k + 1 - np.log2(np.log(abs(z[has_left])) / np.log(16))
    turns = np.sqrt(escape / ORBIT)[..., None] * [1.0, 1.35, 1.7]
    colors = 0.5 - 0.5 * np.cos(2 * np.pi * turns)
    shape = (size, OVERSAMPLED, size, OVERSAMPLED, 3)
    return colors.reshape(shape).mean((1, 3)).astype(np.float32)


def untrained(levels: int = LEVELS, entries: int = ENTRIES, width: int = WIDTH) -> dict[str, Any]:
    """Features near 0, and layers that preserve the scale of their inputs."""
    draw = np.random.default_rng(0)

    def layer(inputs: int, outputs: int) -> Any:
        return (np.sqrt(2 / inputs) * draw.standard_normal((inputs, outputs))).astype(np.float32)

    return {
        "table": draw.uniform(-0.01, 0.01, (levels, entries, 2)).astype(np.float32),
        "w1": layer(2 * levels, width),
        "b1": np.zeros(width, np.float32),
        "w2": layer(width, width),
        "b2": np.zeros(width, np.float32),
        "w3": layer(width, 3),
        "b3": np.zeros(3, np.float32),
    }


def start(model: dict[str, Any]) -> tuple[Any, ...]:
    """The arguments of the first step except the picture."""
    model = {**model, "table": sad.array(model["table"], dtype=sad.float2)}
    return model, texture.ADAM.init(model), sad.random.key(0), texture.RATE


def fit(target: Any, model: dict[str, Any], steps: int) -> tuple[list[Any], list[float]]:
    """An early picture and the last one, and the error of each step at its random pixels."""
    goal, carry = sad.array(target, dtype=sad.float3), start(model)
    early, errors = None, []
    for k in range(steps):
        error, *carry = texture.step(goal, *carry)
        errors.append(error)
        if k + 1 == min(EARLY, steps):
            early = texture.painted(carry[0], goal).numpy()
        if (k + 1) % TOLD == 0 or k + 1 == steps:
            print(f"step {k + 1:4}   PSNR {psnr(float(error)):.2f} dB")
    return [early, texture.painted(carry[0], goal).numpy()], [float(error) for error in errors]


def psnr(error: float) -> float:
    return -10 * np.log10(max(error, 1e-12))


def save(pixels: Any, path: Path) -> None:
    """Writes a picture with 8 bits per channel."""
    Image.fromarray(np.rint(255 * np.clip(pixels, 0, 1)).astype(np.uint8)).save(path, "PNG")


def write(out: Path, target: Any, early: Any, found: Any, errors: list[float]) -> None:
    """Writes all pictures, and the curve of the errors."""
    from chart import svg

    pictures = {"target": target, "fit": found, "difference": 5 * abs(found - target)}
    row = [early, found, target, pictures["difference"]]
    for name, pixels in {**pictures, "overview": np.concatenate(row, 1)}.items():
        save(pixels, out / f"{name}.png")
    (out / "loss.svg").write_text(svg(list(enumerate(errors, 1))), encoding="utf-8")


def write_web(out: Path, target: Any, model: dict[str, Any], steps: int) -> None:
    """Writes the page that runs the fit in a browser."""
    from live import Page, write_page

    page = Page(
        title="A neural texture, fitted in your browser",
        text="Each step looks at 4096 pixels drawn at random, finds the gradient at the features "
        "of eight hash grids and the weights of a network, and moves all of them by Adam.",
        size=len(target),
        steps=steps,
        views={"Fit": "painted", "Target": "wanted", "Difference": "missed"},
    )
    first = {"target": target, "key": np.zeros(2), "rate": texture.RATE}
    first |= {f"model.{name}": array for name, array in model.items()}
    write_page(out, HERE / "texture.py", page, first)


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--out", type=Path, default=HERE / "out", metavar="DIR")
    parser.add_argument("--size", type=int, default=256, help="pixels along an edge")
    parser.add_argument("--steps", type=int, default=800)
    parser.add_argument("--runtime", choices=["wgpu", "slangpy"])
    parser.add_argument("--web", type=Path, metavar="DIR", help="write a page for browsers instead")
    given = parser.parse_args(arguments)
    if min(given.size, given.steps) < 1:
        parser.error("--size and --steps are at least 1")
    # The page and the chart belong to other samples.
    sys.path += [str(HERE.parent / name) for name in ("live", "mesh_interpolation")]
    try:
        target, model = picture(given.size), untrained()
        if given.web:
            write_web(given.web, target, model, given.steps)
            return
        given.out.mkdir(parents=True, exist_ok=True)
        with sad.open_device(given.runtime):
            pictures, errors = fit(target, model, given.steps)
        write(given.out, target, *pictures, errors)
        print(f"PSNR of the picture {psnr(float(np.mean((pictures[1] - target) ** 2))):.2f} dB")
    except (sad.Error, OSError) as failure:
        parser.error(str(failure))
    print(f"wrote {given.out}")


if __name__ == "__main__":
    main()
