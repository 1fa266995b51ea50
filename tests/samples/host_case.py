"""Calls of `host_kernels` and `host_graphs`, and what the Python API finds for them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

import shaderad as sad
from tests.samples import host_graphs, host_kernels

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


def floats(*shape: int) -> np.ndarray[Any, Any]:
    return np.random.default_rng(shape).random(shape, np.float32)


def graph_arguments() -> list[tuple[str, list[Any]]]:
    """Calls of `host_graphs`."""
    return [
        ("called", [floats(5), 0.5]),
        ("rearranged", [floats(5), np.int32([0, 2, 1, -1, 2]), floats(3)]),
        ("repeated", [floats(4), floats(4, 1)[:, 0]]),
        ("repeated", [floats(300), floats(300, 1)[:, 0]]),
        ("halved", [floats(5) + 1.0]),
        ("scored", [floats(3000), floats(3000, 1)[:, 0]]),
        ("layer", [floats(40, 80) - 0.5, floats(80, 32) - 0.5]),
    ]


Arrays = list[np.ndarray[Any, Any]]


def plan_calls(name: str, taken: list[Any]) -> Iterator[tuple[str, Arrays, Arrays]]:
    """Mode, inputs and outputs of the plans of a graph, as its source computes them."""
    out, pullback = sad.vjp(getattr(host_graphs, name), *taken)
    outputs = list(out) if isinstance(out, tuple) else [out]
    bars = [np.ones_like(one.numpy()) for one in outputs]
    gradients = pullback(tuple(bars) if isinstance(out, tuple) else bars[0])
    results = [one.numpy() for one in outputs]
    arrays = [np.asarray(one, None if hasattr(one, "dtype") else np.float32) for one in taken]
    yield "primal", arrays, results
    yield "backward", [*arrays, *bars], [
        *results, *(one.numpy() for one in gradients if one is not None)]  # fmt: skip
