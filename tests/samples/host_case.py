"""One call of the kernel `refracted`, and what the Python API finds for it."""

from __future__ import annotations

from typing import Any

import numpy as np

import shaderad as sad
from tests.samples import host_kernels

Array = np.ndarray[Any, Any]

DIM = (9, 11)
SHAPES = {"sums": (5,), "lowest": (3,), "count": (1,)}
_draw = np.random.default_rng(3)
INPUTS = {
    "image": ("float3", _draw.random((*DIM, 3), np.float32), DIM),
    "weight": ("float", _draw.random(11, np.float32), (11,)),
}
UNIFORMS = {"lens": _draw.random(3, np.float32), "gain": np.float32([1.5])}
COTANGENTS = {
    "seen": ("float3", _draw.random((*DIM, 3), np.float32), DIM),
    "sums": ("float2", _draw.random((5, 2), np.float32), (5,)),
    "lowest": ("float", _draw.random(3, np.float32), (3,)),
}


def found_by_python() -> tuple[dict[str, Array], dict[str, Array]]:
    """Results and gradients by name."""
    lens, gain = UNIFORMS["lens"], float(UNIFORMS["gain"][0])
    given = host_kernels.Lens(lens[:2], lens[2]), INPUTS["image"][1], INPUTS["weight"][1], gain
    with sad.open_device("wgpu") as device:
        out, pullback = sad.vjp(host_kernels.refracted, *given, dim=DIM, shapes=SHAPES)
        names = ("seen", "sums", "lowest", "count")
        results = dict(zip(names, (one.numpy() for one in out), strict=True))
        bars = (*(array for _, array, _ in COTANGENTS.values()), None)
        by_lens, by_image, by_weight, by_gain = pullback(bars)
        gradients = {
            "image": by_image.numpy(),
            "weight": by_weight.numpy(),
            "lens": np.append(by_lens.center, by_lens.power),
            "gain": by_gain.numpy(),
        }
    device.close()
    return results, gradients
