"""Graphs of functions, run by the NumPy interpreter where a device would run them.

Tracing, batches, loops and derivatives are those of a device; only planning and compiling are left
out, which take nearly all of the time. So a long run can look at thousands of functions.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any
from unittest import mock

import numpy as np

import shaderad as sad
from shaderad.arrays.arrays import on_host, uploaded
from shaderad.execute.runner import GraphRunner
from shaderad.interpret.arrays import evaluate
from shaderad.ir import sizes
from shaderad.ir.arrays import Graph
from shaderad.ir.types import Pointer, Struct, Type, Vector
from shaderad.runtime import buffers
from shaderad.runtime.textures import DeviceSampler, DeviceTexture


@contextmanager
def interpreted(device: sad.Device) -> Iterator[None]:
    """Graphs on `device` run in NumPy; its memory still holds all arrays."""

    def run(
        _: GraphRunner, graph: Graph, inputs: Sequence[sad.Array], size_by_name: Mapping[str, int]
    ) -> tuple[sad.Array, ...]:
        with np.errstate(all="ignore"):
            outputs, _reports = evaluate(graph, [_content(x) for x in inputs], size_by_name)
        return tuple(
            _uploaded(device, x, v.element, [sizes.evaluate(n, size_by_name) for n in v.shape])
            for x, v in zip(outputs, graph.outputs, strict=True)
        )

    def nothing(*_: Any) -> None:
        pass

    with (
        mock.patch.object(GraphRunner, "run", run),
        mock.patch.object(GraphRunner, "compile", nothing),
        mock.patch.object(GraphRunner, "foresee", nothing),
    ):
        yield


def _content(x: sad.Array) -> Any:
    """An array, the texels of a texture level after level, or 0 for a sampler."""
    if isinstance(x.buffer, DeviceTexture):
        return _texels(x.device, x.buffer, x.element)
    if isinstance(x.buffer, DeviceSampler):
        return np.uint32(0)  # Filters are computed from the settings, a uniform.
    return _as_dicts(on_host(x.device, [x])[0], x.element)


def _texels(device: sad.Device, texture: DeviceTexture, texel: Type) -> Any:
    assert isinstance(texel, Vector)
    layout = texture.layout
    levels = [
        np.frombuffer(device.runtime.read_texture(texture, level), layout.format.dtype)
        for level in range(layout.level_count)
    ]
    scale = 255.0 if layout.format.dtype == np.uint8 else 1.0
    return np.float64(np.concatenate(levels)).reshape(-1, texel.count) / scale


def _as_dicts(data: Any, t: Type) -> Any:
    """The form in which the interpreter takes structs and pointers."""
    if isinstance(t, Struct):
        return {name: _as_dicts(data[name], field) for name, field in t.fields}
    if isinstance(t, Pointer):
        return {"base": data[..., 0], "count": data[..., 1]}
    return data


def _uploaded(device: sad.Device, x: Any, t: Type, shape: Sequence[int]) -> sad.Array:
    storage, _ = buffers.to_storage(_as_stored(x, t), t, "a result")
    return uploaded(device, t, storage, tuple(shape))


def _as_stored(x: Any, t: Type) -> Any:
    if isinstance(t, Struct):
        return {name: _as_stored(x[name], field) for name, field in t.fields}
    if isinstance(t, Pointer):
        return np.stack([x["base"], x["count"]], -1).astype(np.uint32)
    return np.float32(x) if np.asarray(x).dtype.kind == "f" else np.asarray(x)
