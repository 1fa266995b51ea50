"""Paints a mesh so that it looks like a picture: fits vertex colours by gradient descent.

    python samples/mesh_interpolation/main.py [--runtime wgpu|slangpy] [--out DIR] [--steps 200]

Writes start.png, gradient.png, fit.png, target.png and the four side by side, and builds the
kernels into DIR/build.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import time
from pathlib import Path

import numpy as np

import pictures
import shaderad as sad
from fit import ColorFit, psnr

HERE = Path(__file__).parent
SHOWN = ("start", "gradient", "fit", "target")


def run(fit: ColorFit, steps: int) -> None:
    start = time.perf_counter()
    for k in range(steps):
        fit.step()
        if k % 25 == 24 or k == steps - 1:
            print(f"step {k + 1:3}   PSNR {psnr(fit.loss()):5.2f} dB")
    print(f"{steps} steps in {time.perf_counter() - start:.2f} s")


def build(out: Path) -> None:
    """Slang, SPIR-V, HLSL and WGSL of the kernels and their derivatives, for other programs."""
    shaderad = Path(sys.executable).with_name("shaderad")
    command = ["build", HERE / "kernels.py", "-o", out, "--target", "spirv,hlsl,wgsl"]
    subprocess.run([shaderad, *command], check=True)


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--runtime", choices=["wgpu", "slangpy"], help="default: the best here")
    parser.add_argument("--out", type=Path, default=HERE / "out")
    parser.add_argument("--steps", type=int, default=200)
    parser.add_argument("--size", type=int, default=512)
    given = parser.parse_args(arguments)
    given.out.mkdir(parents=True, exist_ok=True)

    build(given.out / "build")
    with sad.open_device(given.runtime) as device:
        fit = ColorFit(given.size)
        print(f"{fit.triangle_count} triangles, {device}")
        found = {name: fit.picture(name).numpy() for name in ("start", "target")}
        fit.step()
        found["gradient"] = fit.picture("gradient").numpy()
        run(fit, given.steps - 1)
        found["fit"] = fit.picture("fit").numpy()
    for name, pixels in found.items():
        pictures.save(pixels, given.out / f"{name}.png")
    row = np.concatenate([found[name] for name in SHOWN], axis=1)
    pictures.save(row, given.out / "overview.png")


if __name__ == "__main__":
    main()
