"""A ring of smoke becomes a sign: fits the first velocities of a fluid through 100 time steps.

    python samples/smoke/main.py [--out DIR] [--steps 60] [--size 64] [--runtime wgpu|slangpy]
    python samples/smoke/main.py --web DIR

The sample writes to DIR: smoke.webp with all time steps of the smoke; overview.png, a row of six
time steps and the target; and loss.svg. With --quick, a coarse fit takes seconds. With --web, it
writes a page that fits the fluid in a browser without Python.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image

import fluid
import shaderad as sad

HERE = Path(__file__).parent
REACH, STROKE, HOLE = 0.2, 0.11, 0.095
"""In edges of the picture: the distance from the middle to the sign's sides, their width, and the
radius of the ring's hole."""
OVERSAMPLED = 4
"""Points along an edge of a cell."""
SHOWN = 256
"""Pixels along an edge of each picture that is written."""
TOLD = 10
"""Steps from one line of the output to the next."""
QUICK = {"size": 32, "steps": 15}


def blot(size: int, is_inside: Callable[[Any, Any], Any]) -> Any:
    """The share of each cell that is inside, by coordinates from the middle of the picture."""
    points = size * OVERSAMPLED
    edge = (np.arange(points) + 0.5) / points - 0.5
    inside = is_inside(edge, edge[:, None])
    shape = (size, OVERSAMPLED, size, OVERSAMPLED)
    return inside.reshape(shape).mean((1, 3)).astype(np.float32)


def sign(x: Any, y: Any) -> Any:
    """True in a nabla: between two triangles that stand on a corner."""
    sides = [-y, 0.5 * y + np.sqrt(0.75) * x, 0.5 * y - np.sqrt(0.75) * x]
    out = np.maximum.reduce(np.broadcast_arrays(*sides))
    return (out < REACH) & (out > REACH - STROKE)


def ring(x: Any, y: Any) -> Any:
    """True in a ring with the area of the sign, because a fluid preserves area."""
    area = np.sqrt(27) * (REACH**2 - (REACH - STROKE) ** 2)
    radius = np.hypot(x, y)
    return (radius > HOLE) & (radius < np.sqrt(HOLE**2 + area / np.pi))


def fit(start: Any, goal: Any, steps: int) -> tuple[Any, list[float]]:
    """The fitted first velocities, and the error of each step."""
    start, goal = sad.array(start), sad.array(goal)
    velocity = sad.array(np.zeros((*start.shape, 2)), dtype=sad.float2)
    state, errors = fluid.ADAM.init(velocity), []
    for k in range(steps):
        error, velocity, state = fluid.step(start, goal, velocity, state)
        errors.append(float(error))
        if (k + 1) % TOLD == 0 or k + 1 == steps:
            print(f"step {k + 1:3}   error {errors[-1]:.5f}")
    return velocity, errors


def shown(picture: Any) -> Any:
    """A picture with 8 bits per channel and `SHOWN` pixels along an edge."""
    small = Image.fromarray(np.rint(255 * np.clip(picture, 0, 1)).astype(np.uint8))
    return np.asarray(small.resize((SHOWN, SHOWN), Image.Resampling.BICUBIC))


def write(out: Path, film: list[Any], wanted: Any, errors: list[float]) -> None:
    """Writes the film, some of its frames, and the curve of the errors."""
    from chart import svg
    from pictures import webp

    (out / "smoke.webp").write_bytes(webp(film[::2]))
    moments = [*film[:: len(film) // 5], wanted]
    Image.fromarray(np.concatenate(moments, 1)).save(out / "overview.png", "PNG")
    (out / "loss.svg").write_text(svg(list(enumerate(errors, 1))), encoding="utf-8")


def write_web(out: Path, start: Any, goal: Any, steps: int) -> None:
    """Writes the page that runs the fit in a browser."""
    from live import Page, write_page

    page = Page(
        title="A fluid, fitted in your browser",
        text="Each step moves smoke and velocities through 100 time steps, compares the smoke with "
        "a sign, finds the gradient at the first velocities by going back through all of them, "
        "and moves these by Adam.",
        size=len(start),
        steps=steps,
        views={"Smoke": "film", "Sign": "wanted"},
    )
    still = np.zeros((*start.shape, 2))
    write_page(out, HERE / "fluid.py", page, {"start": start, "goal": goal, "velocity": still})


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--out", type=Path, default=HERE / "out", metavar="DIR")
    parser.add_argument("--size", type=int, default=64, help="cells along an edge")
    parser.add_argument("--steps", type=int, default=60)
    parser.add_argument("--quick", action="store_true", help="few steps on a coarse grid")
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
        run(given, blot(given.size, ring), blot(given.size, sign))
    except (sad.Error, OSError) as failure:
        parser.error(str(failure))


def run(given: argparse.Namespace, start: Any, goal: Any) -> None:
    """Fits and writes the results, or writes the page."""
    if given.web:
        write_web(given.web, start, goal, given.steps)
        return
    given.out.mkdir(parents=True, exist_ok=True)
    with sad.open_device(given.runtime):
        velocity, errors = fit(start, goal, given.steps)
        film = [shown(picture) for picture in fluid.film(start, velocity).numpy()]
        write(given.out, film, shown(fluid.wanted(goal).numpy()), errors)
    print(f"wrote {given.out}")


if __name__ == "__main__":
    main()
