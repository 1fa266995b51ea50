"""The child process: creates a pipeline as a host would, which may crash or hang without harm.

naga, which reads SPIR-V and WGSL for wgpu, can refuse correct code, end its process, never return,
or translate code wrongly; drivers have faults as well. The child process therefore tests all code
first, on a device with the adapter, features and limits of the host's, so that its answer is valid
for the host. It also rewrites the code for naga, because processes run in parallel, unlike the
host's threads.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import msgspec
import wgpu

from shaderad.compiler.artifact import Code
from shaderad.compiler.validate import PipelineLayout
from shaderad.diagnostics import Error
from shaderad.ir.dimensions import FACE_COUNT, Dimension
from shaderad.runtime.guard import is_loss, is_out_of_memory
from shaderad.runtime.naga import READABLE_BY_NAGA
from shaderad.runtime.wgpu_adapters import matching_device, vetting_device
from shaderad.runtime.wgpu_pipelines import create_module, create_pipeline, ffi, lib
from shaderad.runtime.wgpu_textures import native_dimension

AtStage = Callable[[str], None]
_FAILURES = (wgpu.GPUError, ValueError, RuntimeError)
DUMMY_BYTES = 256
"""The size of the buffers of a run without threads."""


def vet(request: dict[str, Any], at_stage: AtStage = lambda stage: None) -> dict[str, Any]:
    """Tests if wgpu creates a pipeline from code without crashing.

    Args:
        request: The code and the device; without an adapter, the best device. A layout, if any,
            is that of the pipeline.
        at_stage: Called with ``"rewriting"``, ``"device"``, ``"naga"`` and ``"driver"`` as each
            begins its work.

    Returns:
        `content`, the code rewritten for naga, if wgpu created a pipeline. Else `refused` with the
        reason, and `is_read`, which is true if naga reads the code. `failure` with the reason if
        the device is missing, lost or out of memory, which is no verdict.
    """
    at_stage("rewriting")
    layout = msgspec.convert(request["layout"], PipelineLayout) if "layout" in request else None
    has_immediates = layout is not None and layout.immediate_bytes > 0
    readable = READABLE_BY_NAGA[request["format"]](
        request["content"], with_immediates=has_immediates
    )
    if readable.leaves_loop_from_switch:
        return {"refused": "a loop is left from inside a switch, and naga would never leave it"}
    code = Code(request["format"], readable.content)
    stages: list[str] = []

    def at(stage: str) -> None:
        stages.append(stage)
        at_stage(stage)

    try:
        request = request if "adapter" in request else {**request, **_best()}
        reason = _refusal(request, code, layout, at)
        if is_loss(reason):
            # Earlier code may have lost the device, which says nothing about this code.
            _vetting_device.cache_clear()
            reason = _refusal(request, code, layout, at)
    except Error as failure:
        return {"failure": failure.message}
    except MemoryError as failure:
        return {"failure": str(failure) or "out of memory"}
    if is_loss(reason):
        return {"failure": reason}
    if reason:
        return {"refused": reason, "is_read": stages[-1] == "driver"}
    return {"content": code.content}


def _refusal(
    request: dict[str, Any], code: Code, layout: PipelineLayout | None, at_stage: AtStage
) -> str:
    """The reason why wgpu created no pipeline; empty if it created one.

    Raises:
        DeviceError: SR0602, SR0603, if there is no device.
        MemoryError: The device is out of memory.
    """
    at_stage("device")
    device, entry = open_for_vetting(request), request["entry"]
    try:
        at_stage("naga")
        if layout is None:
            module = create_module(device, code)
            at_stage("driver")
            compute = {"module": module, "entry_point": entry}
            device.create_compute_pipeline(layout="auto", compute=compute)
        else:
            create_pipeline(device, code, entry, layout, lambda: at_stage("driver"))
    except _FAILURES as refusal:
        if is_out_of_memory(refusal):
            raise MemoryError(str(refusal)) from None
        return str(refusal) or type(refusal).__name__
    return ""


def run(request: dict[str, Any], at_stage: AtStage) -> dict[str, Any]:
    """Runs accepted code without threads, because some drivers compile when a pipeline first runs.

    Raises:
        Exception: wgpu or the driver refuses.
    """
    at_stage("device")
    device, layout = open_for_vetting(request), msgspec.convert(request["layout"], PipelineLayout)
    at_stage("driver")
    code = Code(request["format"], request["content"])
    pipeline, group_layout = create_pipeline(device, code, request["entry"], layout)
    _dispatch_nothing(device, pipeline, group_layout, layout)
    return {}


def _dispatch_nothing(
    device: Any, pipeline: Any, group_layout: Any, layout: PipelineLayout
) -> None:
    """Runs a pipeline without threads on small resources."""
    encoder = device.create_command_encoder()
    compute = encoder.begin_compute_pass()
    compute.set_pipeline(pipeline)
    for index in range(layout.space):
        nothing = device.create_bind_group_layout(entries=[])
        compute.set_bind_group(index, device.create_bind_group(layout=nothing, entries=[]))
    entries = [
        {"binding": entry["binding"], "resource": _resource(device, entry)}
        for entry in layout.entries
    ]
    group = device.create_bind_group(layout=group_layout, entries=entries)
    compute.set_bind_group(layout.space, group, [0] if layout.words_bytes else [])
    if layout.immediate_bytes:
        words = bytes(layout.immediate_bytes)
        lib.wgpuComputePassEncoderSetImmediates(compute._internal, 0, words, len(words))
    compute.dispatch_workgroups(0)
    compute.end()
    device.queue.submit([encoder.finish()])
    lib.wgpuDevicePoll(device._internal, True, ffi.NULL)


def _resource(device: Any, entry: dict[str, Any]) -> Any:
    """A small resource for an entry of a layout."""
    if "texture" in entry:
        view = Dimension(entry["texture"]["view_dimension"])
        is_filtered = entry["texture"]["sample_type"] == "float"
        texture = device.create_texture(
            size=(1, 1, FACE_COUNT if view is Dimension.CUBE else 1),
            format="rgba8unorm" if is_filtered else "rgba32float",
            dimension=native_dimension(view),
            usage=wgpu.TextureUsage.TEXTURE_BINDING,
        )
        return texture.create_view(dimension=view.value)
    if "sampler" in entry:
        return device.create_sampler()
    is_uniform = entry["buffer"]["type"] == "uniform"
    usage = wgpu.BufferUsage.UNIFORM if is_uniform else wgpu.BufferUsage.STORAGE
    size = entry["buffer"].get("min_binding_size", DUMMY_BYTES)
    return {"buffer": device.create_buffer(size=size, usage=usage), "offset": 0, "size": size}


def open_for_vetting(request: dict[str, Any]) -> Any:
    """The device that `request` names, opened at its first use."""
    identity = (request["adapter"], request["api"], request["driver"])
    limits = tuple(sorted(request["limits"].items()))
    return _vetting_device(identity, tuple(request["features"]), limits)


@functools.cache
def _best() -> dict[str, Any]:
    """The device that a host opens by default."""
    best = vetting_device()
    names = ("adapter", "api", "driver", "features", "limits")
    return {name: getattr(best, name) for name in names}


@functools.cache
def _vetting_device(
    identity: tuple[str, str, str], features: tuple[str, ...], limits: tuple[tuple[str, int], ...]
) -> Any:
    return matching_device(identity, features, dict(limits))
