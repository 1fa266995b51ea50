"""A sphere becomes Spot: its vertices are fitted to eight masks and shaded views.

    python samples/silhouettes/main.py [--out DIR] [--size 128] [--steps 200] [--subdivisions 4]
                                       [--quick] [--runtime wgpu|slangpy]
    python samples/silhouettes/main.py --web DIR

The sample writes to DIR: overview.png with the sphere, an early shape, the last one, Spot and the
targets; fit.webp, an animation of the fit beside Spot; loss.svg; and the mesh in shape.ply. With
--quick, a coarse fit takes seconds. With --web, it writes a page that fits in a browser without
Python.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import time
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import trimesh
from PIL import Image

import shaderad as sad
import shape
from shaderad import float3, float4, float4x4, int3, render

HERE = Path(__file__).parent
SPOT = HERE.parent / "mesh_interpolation" / "spot.ply"
VIEWS, LIFTS = 8, (-0.2, 0.55)
"""Cameras around the model, alternately below and above the horizon, in radians."""
TURN, LIFT = 0.35, 0.25
"""The camera of the results, which is none of the fit."""
DISTANCE, FOV = 4.0, 0.56
RADIUS = 0.6
"""The radius of the sphere in units of the model, which is 1.7 high."""
EARLY, TOLD = 30, 20
"""Steps before the early shape, and from one line of the output to the next."""
SHOWN, FRAMES, SWAY = 256, 48, 1.2
"""Pixels along an edge, frames of the animation, and the turn of its camera."""
QUICK = {"size": 64, "steps": 120, "subdivisions": 3}


class Mesh(NamedTuple):
    positions: sad.Array
    triangles: sad.Array


class Fitted(NamedTuple):
    shapes: list[sad.Array]
    """The vertices before each step and after the last."""
    errors: list[float]
    seconds: list[float]
    """The duration of each step; the first one includes the compilation."""


def spot() -> Mesh:
    """The model, its middle at the origin."""
    positions, triangles, *_ = render.load_mesh(SPOT)
    middle = (positions.min(0) + positions.max(0)) / 2
    return Mesh(sad.array(positions - middle, dtype=float3), sad.array(triangles, dtype=int3))


def sphere(subdivisions: int) -> Mesh:
    """An icosahedron with `subdivisions` subdivisions of each triangle into four."""
    ball = trimesh.creation.icosphere(subdivisions, radius=RADIUS)
    return Mesh(sad.array(ball.vertices, dtype=float3), sad.array(ball.faces, dtype=int3))


def cameras(places: Any) -> sad.Array:
    """From the world to clip space, for each (turn, lift) around the model."""
    turn, lift = np.moveaxis(np.array(places), -1, 0)
    back = np.stack([np.sin(turn) * np.cos(lift), np.sin(lift), -np.cos(turn) * np.cos(lift)], -1)
    eyes = sad.array(DISTANCE * back, dtype=float3)
    views = render.look_at(eyes, (0.0, 0.0, 0.0)).numpy()
    lens = render.perspective(FOV, 1.0, 1.0, 8.0).numpy()
    return sad.array(lens @ views, dtype=float4x4)


def around(turned: float = 0.0) -> sad.Array:
    """The cameras of the fit, turned by an angle."""
    turns = np.arange(VIEWS) * 2 * np.pi / VIEWS + turned
    return cameras([(turn, LIFTS[k % 2]) for k, turn in enumerate(turns)])


def blank(views: int, size: int) -> sad.Array:
    """An array with the shape of pictures of `views` views."""
    return sad.zeros((views, size, size), float4)


def start(subdivisions: int, size: int) -> tuple[Mesh, dict[str, sad.Array]]:
    """The sphere, and the targets of the fit."""
    model, views = spot(), around()
    targets = shape.seen(model.triangles, views, blank(VIEWS, size), model.positions)
    return sphere(subdivisions), {"cameras": views, "targets": targets}


def fit(mesh: Mesh, views: dict[str, sad.Array], steps: int) -> Fitted:
    """Moves the vertices of a mesh until it looks like the targets."""
    found = Fitted([mesh.positions], [], [])
    state = shape.ADAM.init(mesh.positions)
    carry = (mesh.positions, state, shape.STIFFNESS, shape.RATE)
    surface = mesh.triangles, render.adjacency(mesh.triangles)
    for k in range(steps):
        began = time.perf_counter()
        error, *carry = shape.step(*surface, *views.values(), *carry)
        found.errors.append(float(error))
        found.seconds.append(time.perf_counter() - began)
        found.shapes.append(carry[0])
        if (k + 1) % TOLD == 0 or k + 1 == steps:
            print(f"step {k + 1:3}   error {found.errors[-1]:.5f}")
    return found


def psnr_elsewhere(mesh: Mesh, size: int) -> float:
    """The PSNR of a mesh in views between the cameras of the fit, in dB."""
    between, like = around(np.pi / VIEWS), blank(VIEWS, size)
    found, wanted = (
        shape.seen(one.triangles, between, like, one.positions).numpy() for one in (mesh, spot())
    )
    return -10 * np.log10(np.square(found - wanted).mean())


def tell(mesh: Mesh, found: Fitted, size: int) -> None:
    """Prints the quality of the shape, and the time of a step."""
    milliseconds = 1e3 * statistics.median(found.seconds[1:] or found.seconds)
    print(f"{psnr_elsewhere(mesh, size):.1f} dB in views between those of the fit")
    print(f"{milliseconds:.0f} ms per step of {VIEWS} views, {found.seconds[0]:.1f} s the first")


def shown(mesh: Mesh, turn: float = TURN) -> Any:
    """The mesh on paper, from another camera than those of the fit, encoded for displays."""
    from pictures import displayed

    view = cameras([(turn, LIFT)])
    return displayed(shape.film(mesh.triangles, view, blank(1, SHOWN), mesh.positions).numpy()[0])


def looked_at(targets: sad.Array) -> Any:
    """The views above their masks, as wide as four pictures."""
    from pictures import displayed

    edge = 4 * SHOWN // VIEWS
    masks = np.array(shape.PAPER) * (1.0 - 0.9 * targets.numpy()[..., 3:])
    rows = [np.concatenate([*pixels], 1) for pixels in (shape.wanted(targets).numpy(), masks)]
    row = Image.fromarray(displayed(np.concatenate(rows)))
    return np.asarray(row.resize((VIEWS * edge, 2 * edge), Image.Resampling.LANCZOS))


def write(out: Path, mesh: Mesh, found: Fitted, targets: sad.Array) -> None:
    """Writes the pictures, the animation, the curve and the mesh."""
    from chart import svg
    from pictures import webp

    model, steps = spot(), len(found.errors)
    kept = [found.shapes[k] for k in (0, min(EARLY, steps), steps)]
    row = [shown(one) for one in (*(mesh._replace(positions=p) for p in kept), model)]
    overview = np.concatenate([np.concatenate(row, 1), looked_at(targets)])
    Image.fromarray(overview).save(out / "overview.png", "PNG")
    frames = []
    for share in np.linspace(0, 1, min(FRAMES, steps + 1)):
        now, turn = found.shapes[round(steps * share**1.5)], TURN + SWAY * (share - 1)
        both = (mesh._replace(positions=now), model)
        frames.append(np.concatenate([shown(one, turn) for one in both], 1))
    (out / "fit.webp").write_bytes(webp(frames))
    (out / "loss.svg").write_text(svg(list(enumerate(found.errors, 1))), encoding="utf-8")
    trimesh.Trimesh(kept[-1].numpy(), mesh.triangles.numpy(), process=False).export(
        out / "shape.ply"
    )


def write_web(given: argparse.Namespace) -> None:
    """Writes the page that runs the fit in a browser."""
    from live import Page, write_page

    page = Page(
        title="A sphere becomes a cow, in your browser",
        text="Each step draws eight views of the mesh, shaded and as masks, and compares them with "
        "those of the cow. Vertices follow their gradient, to which shading and outlines add.",
        size=given.size,
        steps=given.steps,
        views={"Fit": "film", "Target": "wanted"},
    )
    mesh, views = start(given.subdivisions, given.size)
    arrays = {**mesh._asdict(), "adjacency": render.adjacency(mesh.triangles), **views}
    first = {name: array.numpy() for name, array in arrays.items()}
    first |= {"stiffness": shape.STIFFNESS, "rate": shape.RATE}
    write_page(given.web, HERE / "shape.py", page, first)


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--out", type=Path, default=HERE / "out", metavar="DIR")
    parser.add_argument("--size", type=int, default=128, help="pixels along an edge of each view")
    parser.add_argument("--steps", type=int, default=200)
    parser.add_argument(
        "--subdivisions", type=int, default=4, choices=range(7), help="of the sphere"
    )
    parser.add_argument("--quick", action="store_true", help="few steps on small views")
    parser.add_argument("--runtime", choices=["wgpu", "slangpy"])
    parser.add_argument("--web", type=Path, metavar="DIR", help="write a page for browsers instead")
    given = parser.parse_args(arguments)
    if given.quick:
        vars(given).update(QUICK)
    if given.size < 8 or given.size % 8 or given.steps < 1:
        parser.error("--size is a multiple of 8, --steps at least 1")
    # The page, the chart and the film belong to other samples.
    sys.path += [str(HERE.parent / name) for name in ("live", "mesh_interpolation")]
    try:
        with sad.open_device(given.runtime):
            (write_web if given.web else run)(given)
    except (sad.Error, OSError) as failure:
        parser.error(str(failure))


def run(given: argparse.Namespace) -> None:
    """Fits and writes the results."""
    mesh, views = start(given.subdivisions, given.size)
    given.out.mkdir(parents=True, exist_ok=True)
    found = fit(mesh, views, given.steps)
    tell(mesh._replace(positions=found.shapes[-1]), found, given.size)
    write(given.out, mesh, found, views["targets"])
    print(f"wrote {given.out}")


if __name__ == "__main__":
    main()
