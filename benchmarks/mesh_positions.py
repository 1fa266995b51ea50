"""How far the mesh sample's vertices are from where they belong, while their positions are fitted.

    python benchmarks/mesh_positions.py [--size 256] [--steps 250] [wgpu|slangpy ...]

The mean is over the vertices that show in at least two of the six views. The goal: a tenth of it
within 500 steps at 256 x 256 pixels. dB are of the colours that are compared, outlines included.
"""

from __future__ import annotations

import argparse
import sys
import time
from pathlib import Path

from timing import on_each

import shaderad as sad

SAMPLE = Path(__file__).parents[1] / "samples" / "mesh_interpolation"
GOAL = 10.0
LOOKS = 10


def follow(runtime: str, size: int = 256, steps: int = 250) -> None:
    """Prints what was found on one runtime."""
    if str(SAMPLE) not in sys.path:
        sys.path.insert(0, str(SAMPLE))
    import fit

    with sad.open_device(runtime) as device:
        one = fit.PositionFit(size)
        start = one.vertex_error().start
        print(f"{runtime}, {len(one.views)} views of {size} x {size} pixels, off by {start:.4f}")
        one.step()
        device.synchronize()
        while one.steps_done < steps:
            count = min(max(1, steps // LOOKS), steps - one.steps_done)
            began = time.perf_counter()
            for _ in range(count):
                one.step()
            device.synchronize()
            milliseconds = 1e3 * (time.perf_counter() - began) / count
            now = one.vertex_error().now
            print(
                f"  step {one.steps_done:3}  off by {now:.5f}, {start / now:6.1f} times less, "
                f"{fit.psnr(one.loss()):5.1f} dB, {milliseconds:6.1f} ms a step"
            )
        print(f"  {'reached' if start / now >= GOAL else 'below'} {GOAL} times less")
    device.close()


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("runtimes", nargs="*")
    parser.add_argument("--size", type=int, default=256)
    parser.add_argument("--steps", type=int, default=250)
    options = parser.parse_args()
    on_each(options.runtimes, lambda runtime: follow(runtime, options.size, options.steps))


if __name__ == "__main__":
    main()
