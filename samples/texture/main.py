"""The texture of a planet, recovered from views of it by lookups with and without mips.

    python samples/texture/main.py [--out DIR] [--size 96] [--steps 150] [--runtime wgpu|slangpy]
    python samples/texture/main.py --web DIR

Each step draws random cameras, near and far, and compares antialiased pictures of the planet with
those by the current texels. The printed PSNR is that of the texels. The sample writes to DIR:
photo.png, a view as the fits see it; without_mips.png, with_mips.png and target.png, close-ups of
the texels; overview.png with all of them in a row; and loss.svg. With --web, it writes a page that
fits the texture in a browser without Python.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image

import planet
import shaderad as sad

HERE = Path(__file__).parent
OVERSAMPLED = 3
"""Points along an edge of a texel."""
OCTAVES, WAVES, ROUGHNESS = 7, 24, 0.74
"""For the height: octaves, waves per octave, and the height of an octave relative to the one
before, which has twice its wavelength."""
SHADES = [
    (-1.5, (13, 38, 102)), (0.0, (26, 115, 153)), (0.01, (217, 199, 128)), (0.1, (196, 178, 108)),
    (0.25, (51, 128, 38)), (0.8, (38, 89, 30)), (1.1, (89, 64, 38)), (1.6, (110, 92, 76)),
    (1.65, (255, 255, 255)),
]  # fmt: skip
"""Colours by height: sea, beach, forest, rock, snow."""
STEP_BACK = 1.5
"""The distance of the camera of photo.png, relative to that of close-ups."""
FACETS = 16
"""Squares along an edge of a face; each has two triangles."""
TOLD = 25
"""Steps from one line of the output to the next."""


def cube(a: Any, b: Any, one: Any) -> Any:
    """Points on the faces of a cube, from coordinates on a face: right and down from its middle."""
    faces = [(one, -b, -a), (-one, -b, a), (a, one, b), (a, -one, -b), (a, -b, one), (-a, -b, -one)]
    return np.array(faces).transpose(0, 2, 3, 1)


def height(points: Any) -> Any:
    """A rough landscape over the unit sphere, above and below 0."""
    draw, total = np.random.default_rng(5), np.zeros(points.shape[:-1])
    for octave in range(OCTAVES):
        directions, phases = draw.normal(size=(WAVES, 3)), draw.uniform(0, 2 * np.pi, WAVES)
        for direction, phase in zip(1.5 * 2**octave * directions, phases, strict=True):
            total += ROUGHNESS**octave * np.sin(points @ direction + phase)
    return total / total.std()


def texels(size: int) -> Any:
    """The planet: float32 of shape [6, size, size, 3]."""
    edge = (np.arange(size * OVERSAMPLED) + 0.5) / (size * OVERSAMPLED) * 2 - 1
    b, a = np.meshgrid(edge, edge, indexing="ij")
    points = unit(cube(a, b, np.ones_like(a)))
    heights, colors = zip(*SHADES, strict=True)
    land = height(points)
    channels = [np.interp(land, heights, channel) for channel in np.transpose(colors)]
    shape = (6, size, OVERSAMPLED, size, OVERSAMPLED, 3)
    return (np.stack(channels, -1) / 255).reshape(shape).mean((2, 4)).astype(np.float32)


def sphere() -> tuple[Any, Any]:
    """Positions and triangles of a sphere of radius 1, which is an inflated cube."""
    edge = np.arange(-FACETS, FACETS + 1, 2)
    b, a = np.meshgrid(edge, edge, indexing="ij")
    corners = cube(a, b, np.full_like(a, FACETS))
    # Whole numbers, so that faces share the vertices on their edges.
    points, vertex = np.unique(corners.reshape(-1, 3), axis=0, return_inverse=True)
    vertex = vertex.reshape(corners.shape[:-1])
    here, right = vertex[:, :-1, :-1], vertex[:, :-1, 1:]
    below, across = vertex[:, 1:, :-1], vertex[:, 1:, 1:]
    triangles = np.stack([here, below, right, right, below, across], -1).reshape(-1, 3)
    # Squares with equal angles rather than equal edges.
    return unit(np.tan(np.pi / 4 * points / FACETS)).astype(np.float32), triangles.astype(np.int32)


def unit(points: Any) -> Any:
    return points / np.linalg.norm(points, axis=-1, keepdims=True)


def on_device(goal: Any) -> tuple[Any, Any, Any]:
    """The constants of all steps: the planet, and its mesh."""
    positions, triangles = sphere()
    return (
        sad.array(goal, dtype=sad.float3),
        sad.array(positions, dtype=sad.float3),
        sad.array(triangles, dtype=sad.int3),
    )


def fit(scene: tuple[Any, Any, Any], steps: int) -> tuple[dict[str, Any], list[float]]:
    """The fitted texels with and without mips, and the error with mips before each step."""
    goal = scene[0]
    fits = {name: sad.full(goal.shape, sad.float3(0.5)) for name in ("mips", "plain")}
    carry, history = (fits, planet.ADAM.init(fits), sad.random.key(0), planet.RATE), []
    for k in range(steps):
        error, *carry = planet.step(*scene, *carry)
        history.append(error)
        if (k + 1) % TOLD == 0 or k + 1 == steps:
            with_mips, without = map(psnr, planet.errors(goal, carry[0]))
            print(f"step {k + 1:4}   PSNR with mips {with_mips:.2f} dB, without {without:.2f} dB")
    return carry[0], [float(error) for error in history]


def psnr(error: Any) -> float:
    return -10 * np.log10(max(float(error), 1e-12))


def write(out: Path, scene: tuple[Any, Any, Any], fits: Any, history: list[float]) -> None:
    """Writes all pictures, and the curve of the errors."""
    from chart import svg

    goal, *mesh = scene
    camera = planet.seen_from(STEP_BACK * np.array(planet.SHOWN_FROM))
    views = {
        "photo": planet.photo(goal, *mesh, camera),
        "without_mips": planet.without_mips(fits, *mesh),
        "with_mips": planet.with_mips(fits, *mesh),
        "target": planet.wanted(goal, *mesh),
    }
    pictures = {name: picture(view.numpy()) for name, view in views.items()}
    row = [one.resize(pictures["target"].size, Image.Resampling.NEAREST)
           for one in pictures.values()]  # fmt: skip
    pictures["overview"] = Image.fromarray(np.concatenate(row, 1))
    for name, one in pictures.items():
        one.save(out / f"{name}.png", "PNG")
    (out / "loss.svg").write_text(svg(list(enumerate(history))), encoding="utf-8")


def picture(pixels: Any) -> Image.Image:
    """A picture with 8 bits per channel."""
    return Image.fromarray(np.rint(255 * np.clip(pixels, 0, 1)).astype(np.uint8))


def write_web(out: Path, goal: Any, steps: int) -> None:
    """Writes the page that runs the fit in a browser."""
    from live import Page, write_page

    page = Page(
        title="The texture of a planet, recovered in your browser",
        text="Each step draws cameras at random, compares pictures of the planet with those by the "
        "texels found so far, and moves these by Adam: once by lookups with mips, whose error is "
        "shown, and once by those without.",
        size=planet.ENLARGED * goal.shape[1],
        steps=steps,
        views={"With mips": "with_mips", "Without": "without_mips", "Target": "wanted"},
    )
    positions, triangles = sphere()
    grey = np.full_like(goal, 0.5)
    first = {"goal": goal, "positions": positions, "triangles": triangles, "key": np.zeros(2),
             "rate": planet.RATE, "fits.mips": grey, "fits.plain": grey}  # fmt: skip
    write_page(out, HERE / "planet.py", page, first)


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--out", type=Path, default=HERE / "out", metavar="DIR")
    parser.add_argument("--size", type=int, default=96, help="texels along an edge of a face")
    parser.add_argument("--steps", type=int, default=150)
    parser.add_argument("--runtime", choices=["wgpu", "slangpy"])
    parser.add_argument("--web", type=Path, metavar="DIR", help="write a page for browsers instead")
    given = parser.parse_args(arguments)
    if given.size < 8 or given.size % 8 or given.steps < 1:
        parser.error("--size is a multiple of 8, --steps at least 1")
    # The page and the chart belong to other samples.
    sys.path += [str(HERE.parent / name) for name in ("live", "mesh_interpolation")]
    try:
        goal = texels(given.size)
        if given.web:
            write_web(given.web, goal, given.steps)
            return
        given.out.mkdir(parents=True, exist_ok=True)
        with sad.open_device(given.runtime):
            scene = on_device(goal)
            write(given.out, scene, *fit(scene, given.steps))
    except (sad.Error, OSError) as failure:
        parser.error(str(failure))
    print(f"wrote {given.out}")


if __name__ == "__main__":
    main()
