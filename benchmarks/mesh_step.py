"""A step of the mesh sample against its kernels alone, and its mesh against one behind pointers.

    python benchmarks/mesh_step.py [--size 512] [wgpu|slangpy ...]

A step (render, loss, gradient, update) is that of a fit, 100 in a row with one wait at their end.
The same dispatches alone are recorded by hand, over buffers that hold what a step left there: 100
of each in one pass, added up. Then the picture and its gradient by colours and normals, where
triangles share vertices through an index buffer and where each has its own behind a pointer.
"""

from __future__ import annotations

import argparse
import statistics
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from by_hand import Step, bound, framed, prepared, recorded
from timing import alternated, median_ratio, on_each

import shaderad as sad
from shaderad.execute.commands import Dispatch

SAMPLE = Path(__file__).parents[1] / "samples" / "mesh_interpolation"
REPEATS = 100
STEPS = 200
GOAL = 1.3
GOALS_DB = {"colors": 40.0}


def kernels_alone(fit: Any, device: sad.Device, repeats: int) -> list[Step]:
    """For each dispatch of a step a pass that repeats it."""
    plan, inputs = prepared(fit.graph, fit.arguments(), device)
    frame = framed(plan, inputs)
    dispatches = [bound(one, frame) for one in plan.commands if isinstance(one, Dispatch)]
    device.synchronize()
    recorded(device, [], dispatches)()
    return [recorded(device, [], [one] * repeats) for one in dispatches]


def compare_step(name: str, fit: Any, device: sad.Device, rounds: int, repeats: int) -> str:
    """What a step costs, and how far the fit gets."""

    def stepped() -> None:
        for _ in range(repeats):
            fit.step()
        device.synchronize()

    alone = kernels_alone(fit, device, repeats)

    def all_alone() -> None:
        for one in alone:
            one()

    times = alternated({"step": stepped, "alone": all_alone}, rounds)
    ratio = median_ratio(times["step"], times["alone"])
    step, kernels = (statistics.median(one) / repeats for one in times.values())
    return (
        f"{name:8} {step:6.2f} ms a step, {kernels:6.2f} ms its {len(alone)} kernels alone, "
        f"{ratio:.2f}x{f'  above {GOAL}x' if ratio > GOAL else ''}"
    )


def quality(name: str, fit: Any, psnr: Callable[[float], float]) -> str:
    fit.reset()
    for _ in range(STEPS):
        fit.step()
    reached = psnr(fit.loss())
    goal = GOALS_DB.get(name, 0.0)
    below = f"  below {goal} dB" if reached < goal else ""
    return f"{name:8} {reached:6.2f} dB after {STEPS} steps{below}"


@dataclass(frozen=True)
class Form:
    """One form of a mesh: what it takes to render it, and to pull a cotangent back."""

    primal: Step
    pullback: Step


def forms(fit: Any, device: sad.Device, kernels: Any, soup: Any) -> dict[str, Form]:
    """The picture and its gradients by colours and normals, with shared vertices and without."""
    corners, normals, colors, _, camera, hits, target, _ = fit.arguments()
    shared = kernels.Mesh(corners, normals, colors)
    apart = soup.soup_of(corners, normals, colors)
    return {
        "index buffer": form(kernels.shade, shared, camera, hits, target, device),
        "pointers": form(soup.shade_soup, apart, camera, hits, target, device),
    }


def form(
    kernel: Any, mesh: Any, camera: Any, hits: Any, cotangent: sad.Array, device: sad.Device
) -> Form:
    _, pullback = sad.vjp(kernel, mesh, camera, hits, dim=hits.shape)

    def primal() -> None:
        kernel(mesh, camera, hits, dim=hits.shape)
        device.synchronize()

    def pulled() -> None:
        pullback(cotangent)
        device.synchronize()

    return Form(primal, pulled)


def compare_forms(found: dict[str, Form], rounds: int) -> list[str]:
    times = {
        mode: alternated({name: getattr(one, mode) for name, one in found.items()}, rounds)
        for mode in ("primal", "pullback")
    }
    return [
        f"{name:12} {statistics.median(times['primal'][name]):6.2f} ms the picture, "
        f"{statistics.median(times['pullback'][name]):6.2f} ms its gradient"
        for name in found
    ]


def compare(runtime: str, size: int = 512, rounds: int = 3, repeats: int = REPEATS) -> None:
    """Prints what was found on one runtime."""
    if str(SAMPLE) not in sys.path:
        sys.path.insert(0, str(SAMPLE))
    import fit
    import kernels
    import soup

    with sad.open_device(runtime) as device:
        print(f"{runtime}, {size} x {size} pixels")
        for name in ("colors", "normals"):
            one = fit.ATTRIBUTES[name](size)
            print(f"  {compare_step(name, one, device, rounds, repeats)}")
            print(f"  {quality(name, one, fit.psnr)}")
        for line in compare_forms(forms(one, device, kernels, soup), rounds):
            print(f"  {line}")
    device.close()


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("runtimes", nargs="*")
    parser.add_argument("--size", type=int, default=512)
    options = parser.parse_args()
    on_each(options.runtimes, lambda runtime: compare(runtime, options.size))


if __name__ == "__main__":
    main()
