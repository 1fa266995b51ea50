"""A material of three textures, fitted to photographs: base colour, roughness and slopes.

    python samples/material/main.py [--out DIR] [--size 80] [--steps 150]
                                    [--runtime wgpu|slangpy]

The sample writes photographs of a view that is not fitted to DIR: start.png shows the first
material, fit.png the fitted one, and target.png the true one. In overview.png, each row has such a
photograph with the textures of its material. loss.svg shows the error.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image

import fitting
import shaderad as sad
import shading
import tiles
from shaderad import float3

HERE = Path(__file__).parent
TEXELS = 128
"""Texels along an edge of each texture."""
VIEWS = 48
"""The number of photographs to fit."""
SAMPLES = 4
"""Samples along an edge of a pixel of a photograph; the fit uses one per pixel."""
DISTANCE, CLOSE, WIDE = 2.0, 0.18, 0.35
"""The distance from a camera to its target, and tangents of half its angle of view."""
LAMP_DISTANCE, SIDEWAYS = 1.5, 1.8
"""The distance from a lamp to the same target, and its largest turn from the opposite side, in
radians."""
FORMATS = {"color": "rgba16float", "roughness": "r16float", "slope": "rg16float"}
"""Formats of halves, because every device filters them."""
TOLD = 10
"""Steps from one line of the output to the next."""
SHOWN = 256
"""Pixels along an edge of each picture that is written."""


def away(turn: float, height: float) -> Any:
    """A direction by angles in radians."""
    return float3(np.cos(turn) * np.cos(height), np.sin(turn) * np.cos(height), np.sin(height))


def shot(middle: Any, field: float, to_eye: Any, to_lamp: Any) -> Any:
    """A camera and a lamp that look at `middle`, by the directions to them."""
    right = sad.normalize(sad.cross(float3(0, 0, 1), to_eye))
    down = sad.cross(right, to_eye)
    eye, lamp = middle + DISTANCE * to_eye, middle + LAMP_DISTANCE * to_lamp
    return shading.Shot(eye, field * right, field * down, -to_eye, lamp)


def shots(count: int) -> Any:
    """Cameras all around, low and high, with lamps mostly opposite, as gloss shows roughness."""
    rng, views = np.random.default_rng(2), []
    for k in range(count):
        middle, turn = float3(*rng.uniform(0, 1, 2), 0), 2 * np.pi * k / count
        lamp_turn = turn + np.pi + rng.uniform(-SIDEWAYS, SIDEWAYS)
        heights = rng.uniform(0.7, 1.3, 2)
        views.append(shot(middle, CLOSE, away(turn, heights[0]), away(lamp_turn, heights[1])))
    return sad.array(views, shading.Shot)


def unseen() -> Any:
    """A wider and lower view that is not fitted."""
    return sad.array([shot(float3(0), WIDE, away(-1.3, 0.6), away(1.4, 0.8))], shading.Shot)


def material(maps: Any) -> Any:
    """The texels as textures with mips."""
    textures = {
        name: sad.texture(texels, mips=True, format=FORMATS[name]) for name, texels in maps.items()
    }
    return shading.Material(**textures, smooth=sad.sampler())


def photographed(maps: Any, views: Any, size: int) -> Any:
    """Photographs of size x size pixels, by each of the cameras."""
    return shading.photographs(material(maps), views, SAMPLES, dim=(len(views), size, size))


def fit(views: Any, wanted: Any, texels: int, steps: int) -> tuple[list[Any], list[float]]:
    """The first textures and the fitted ones, and the error of each step."""
    pyramids, rate, errors = fitting.even(texels), fitting.RATE, []
    state, start = fitting.ADAM.init(pyramids), fitting.textures(pyramids)
    error, maps = sad.value_and_grad(shading.error), start
    for k in range(steps):
        value, gradient = error(
            material(maps), views, wanted, dim=wanted.shape, shapes={"total": 1}
        )
        by_texels = {name: getattr(gradient, name) for name in maps}
        pyramids, state = fitting.step(pyramids, by_texels, state, rate)
        maps, rate = fitting.textures(pyramids), fitting.DECAY * rate
        errors.append(float(value))
        if (k + 1) % TOLD == 0 or k + 1 == steps:
            print(f"step {k + 1:3}   PSNR {psnr(errors[-1]):.2f} dB")
    return [start, maps], errors


def psnr(error: float) -> float:
    return -10 * np.log10(max(error, 1e-12))


def bytes_of(values: Any) -> Any:
    return np.rint(255 * np.clip(values, 0, 1)).astype(np.uint8)


def shown(light: Any) -> Any:
    """Linear light from 0 to 1, encoded for screens."""
    return bytes_of(np.clip(light, 0, 1) ** (1 / 2.2))


def pictures(maps: Any, photograph: Any) -> list[Any]:
    """A photograph, and base colour, roughness and normals as bytes."""
    color, roughness, slope = (np.asarray(maps[name]) for name in ("color", "roughness", "slope"))
    normal = np.concatenate([-slope, np.ones((*slope.shape[:2], 1))], 2)
    normal /= np.linalg.norm(normal, axis=2, keepdims=True)
    grey = np.repeat(roughness[..., None], 3, 2)
    return [shown(photograph), shown(color[..., :3]), bytes_of(grey), bytes_of(0.5 + 0.5 * normal)]


def write(out: Path, rows: dict[str, list[Any]], errors: list[float]) -> None:
    """Writes the photographs, all pictures in rows, and the curve of the errors."""
    from chart import svg

    for name, (photograph, *_) in rows.items():
        Image.fromarray(photograph).save(out / f"{name}.png", "PNG")
    scaled = [
        [
            np.asarray(Image.fromarray(x).resize((SHOWN, SHOWN), Image.Resampling.BICUBIC))
            for x in row
        ]
        for row in rows.values()
    ]
    Image.fromarray(np.block([[[x] for x in row] for row in scaled])).save(out / "overview.png")
    (out / "loss.svg").write_text(svg(list(enumerate(errors, 1))), encoding="utf-8")


def run(out: Path, size: int, steps: int) -> None:
    """Fits, and writes and prints the result."""
    true, views = tiles.textures(TEXELS), shots(VIEWS)
    found, errors = fit(views, photographed(true, views, size), TEXELS, steps)
    rows = dict(zip(("start", "fit", "target"), [*found, true], strict=True))
    seen = {name: photographed(maps, unseen(), SHOWN).numpy()[0] for name, maps in rows.items()}
    write(out, {name: pictures(maps, seen[name]) for name, maps in rows.items()}, errors)
    miss = float(np.mean((seen["fit"] - seen["target"]) ** 2))
    print(f"PSNR of a photograph that was not fitted {psnr(miss):.2f} dB")


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--out", type=Path, default=HERE / "out", metavar="DIR")
    parser.add_argument("--size", type=int, default=80, help="pixels along an edge of a photograph")
    parser.add_argument("--steps", type=int, default=150)
    parser.add_argument("--runtime", choices=["wgpu", "slangpy"])
    given = parser.parse_args(arguments)
    if min(given.size, given.steps) < 1:
        parser.error("--size and --steps are at least 1")
    # The chart belongs to another sample.
    sys.path.append(str(HERE.parent / "mesh_interpolation"))
    try:
        given.out.mkdir(parents=True, exist_ok=True)
        with sad.open_device(given.runtime):
            run(given.out, given.size, given.steps)
    except (sad.Error, OSError) as failure:
        parser.error(str(failure))
    print(f"wrote {given.out}")


if __name__ == "__main__":
    main()
