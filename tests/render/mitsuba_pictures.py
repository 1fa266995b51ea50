"""Pictures of Mitsuba 3 and their derivatives, as a program: its compiler may end the process.

    python -m tests.render.mitsuba_pictures OUT.npz

A rectangle that moves along x, and a disk that grows, which shine in front of black, seen from
(0, 0, 5) by a camera that shows [-1, 1] x [-1, 1] of the plane z = 0.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import drjit as dr
import mitsuba as mi
import numpy as np

SIZE = 48
SAMPLES = 2048
"""A pixel; the derivative by outlines is a mean over random points of them."""
PLACE, HALF = (0.0123, -0.0321, 0.0), (0.5, 0.4, 1.0)
RADIUS = 0.6


def derivative(shape: dict[str, Any], moved: Any) -> np.ndarray:
    """How the picture changes with the parameter of the transform `moved`, at 0."""
    scene = mi.load_dict(
        {
            "type": "scene",
            "integrator": {"type": "direct_projective", "sppi": 0},
            "sensor": {
                "type": "perspective",
                "fov": float(np.degrees(2 * np.arctan(1 / 5))),
                "to_world": mi.ScalarTransform4f().look_at([0, 0, 5], [0, 0, 0], [0, 1, 0]),
                "film": {
                    "type": "hdrfilm",
                    "width": SIZE,
                    "height": SIZE,
                    "rfilter": {"type": "box"},
                    "pixel_format": "rgb",
                },
            },
            "shape": {
                **shape,
                "emitter": {"type": "area", "radiance": {"type": "rgb", "value": 1.0}},
            },
        }
    )
    parameters = mi.traverse(scene)
    (key,) = (name for name in parameters.keys() if name == "shape.to_world")
    x = mi.Float(0.0)
    dr.enable_grad(x)
    parameters[key] = moved(x) @ parameters[key]
    parameters.update()
    picture = mi.render(scene, parameters, spp=SAMPLES, seed=0)
    dr.forward(x, dr.ADFlag.ClearEdges)
    return np.array(dr.grad(picture))[..., 0]


def main() -> None:
    mi.set_variant("llvm_ad_rgb")
    place = mi.ScalarTransform4f().translate(PLACE) @ mi.ScalarTransform4f().scale(HALF)
    rectangle = {"type": "rectangle", "to_world": place}
    disk = {"type": "disk", "to_world": mi.ScalarTransform4f().scale(RADIUS)}
    np.savez(
        Path(sys.argv[1]),
        rectangle=derivative(rectangle, lambda x: mi.Transform4f().translate([x, 0, 0])),
        disk=derivative(disk, lambda x: mi.Transform4f().scale(1 + x)),
    )


if __name__ == "__main__":
    main()
