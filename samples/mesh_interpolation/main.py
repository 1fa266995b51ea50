"""Paints a mesh so that it looks like a picture: fits vertex colours by gradient descent.

    python samples/mesh_interpolation/main.py [--runtime wgpu|slangpy] [--out DIR] [--steps 20]

Writes target.png, start.png, gradient.png, fit.png and the four side by side, and builds the
kernels into DIR/build.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np

import pictures
import scene
import shaderad as sad
from kernels import Mesh, Sample, shade, squared_error

HERE = Path(__file__).parent
PICTURE_PIXELS = 480
STEPS = 20

Array = np.ndarray[Any, Any]


class Problem:
    """The sum of squared errors over a view's samples, and its gradient by the vertex colours."""

    def __init__(self, knot: scene.Knot, view: scene.View) -> None:
        self.view = view
        self.count = len(view.face)
        self.vertex_count = len(knot.positions)
        self.corners = sad.array(knot.corners, dtype=sad.int3)
        hits = {"face": view.face, "uv": view.uv, "light": view.light}
        self.samples = sad.array(hits, dtype=Sample)
        self.target = sad.array(view.light * view.paint, dtype=sad.float3)

    def mesh(self, colors: Array) -> Mesh:
        return Mesh(self.corners, sad.array(colors, dtype=sad.float3))

    def render(self, colors: Array) -> Array:
        """What each sample of the view shows."""
        return shade(self.mesh(colors), self.samples, dim=self.count).numpy()

    def error_and_gradient(self, colors: Array) -> tuple[float, Array]:
        """The squared error, and its derivative by each vertex colour."""
        error, by_mesh = sad.value_and_grad(squared_error)(
            self.mesh(colors), self.samples, self.target, dim=self.count, shapes={"total": (1,)}
        )
        return error.item(), by_mesh.colors.numpy()

    def step_sizes(self) -> Array:
        """A step for each vertex colour that cannot overshoot.

        The error is ``|J c - target|^2`` with ``J >= 0``, so ``diag(J^T J 1) >= J^T J``: dividing
        the gradient by twice that sum is a step of gradient descent that always descends. `J` is
        `shade`, and its pullback multiplies by ``J^T``. What no sample shows stays as it is.
        """
        ones = np.ones((self.vertex_count, 3))
        out, pullback = sad.vjp(shade, self.mesh(ones), self.samples, dim=self.count)
        sums = pullback(out)[0].colors.numpy()
        return np.divide(0.5, sums, out=np.zeros_like(sums), where=sums > 0)


def fit(problem: Problem, steps: int) -> Array:
    """Gradient descent from grey, with Nesterov's momentum."""
    colors = previous = np.full((problem.vertex_count, 3), 0.5, np.float32)
    step_sizes = problem.step_sizes()
    for step in range(steps):
        ahead = colors + step / (step + 3) * (colors - previous)
        error, gradient = problem.error_and_gradient(ahead)
        previous, colors = colors, ahead - step_sizes * gradient
        if step % 5 == 0 or step == steps - 1:
            print(
                f"step {step:3}   error {error:10.2f}   PSNR {psnr(error, problem.count):5.2f} dB"
            )
    return colors


def psnr(squared_error: float, sample_count: int) -> float:
    """Peak signal-to-noise ratio over the samples' three channels, for a peak of 1."""
    return float(-10 * np.log10(squared_error / (3 * sample_count)))


def write_pictures(problem: Problem, colors: Array, out: Path) -> None:
    """The four pictures, and all of them in one row."""
    grey = np.full_like(colors, 0.5)
    _, gradient = problem.error_and_gradient(grey)
    view = problem.view
    found = {
        "start": pictures.picture(view, problem.render(grey)),
        "gradient": pictures.signed_picture(view, problem.render(gradient)),
        "fit": pictures.picture(view, problem.render(colors)),
        "target": pictures.picture(view, problem.target.numpy()),
    }
    for name, pixels in found.items():
        pictures.save(pixels, out / f"{name}.png")
    pictures.save(np.concatenate(list(found.values()), axis=1), out / "overview.png")


def build(out: Path) -> None:
    """Slang, SPIR-V, HLSL and WGSL of both kernels and their derivatives, for other programs."""
    shaderad = Path(sys.executable).with_name("shaderad")
    command = ["build", HERE / "kernels.py", "-o", out, "--target", "spirv,hlsl,wgsl"]
    subprocess.run([shaderad, *command], check=True)


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--runtime", choices=["wgpu", "slangpy"], help="default: the best here")
    parser.add_argument("--out", type=Path, default=HERE / "out")
    parser.add_argument("--steps", type=int, default=STEPS)
    given = parser.parse_args(arguments)
    given.out.mkdir(parents=True, exist_ok=True)

    build(given.out / "build")
    knot = scene.torus_knot()
    view = scene.view_of(knot, PICTURE_PIXELS * pictures.SAMPLES_A_PIXEL)
    with sad.open_device(given.runtime) as device:
        print(f"{len(knot.corners)} triangles, {len(view.face)} samples, {device}")
        problem = Problem(knot, view)
        start = time.perf_counter()
        colors = fit(problem, given.steps)
        print(f"{given.steps} steps in {time.perf_counter() - start:.2f} s")
        write_pictures(problem, colors, given.out)


if __name__ == "__main__":
    main()
