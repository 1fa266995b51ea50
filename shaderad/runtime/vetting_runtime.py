"""Runs in the child process: does wgpu make a pipeline of this code, and live?

naga, which reads SPIR-V and WGSL for wgpu, can refuse correct code, end its process, never return,
or make another program of it. The device is like the host's in adapter, features and limits, so
the answer is the host's.
"""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Callable
from typing import Any, cast

import msgspec
import wgpu
from wgpu.backends.wgpu_native import extras

from shaderad.diagnostics import Error
from shaderad.runtime.guard import is_loss, is_out_of_memory
from shaderad.runtime.spirv_loops import leaves_loop_from_switch
from shaderad.runtime.wgpu_modules import create_module


def vet(
    request: dict[str, Any], at_stage: Callable[[str], None] = lambda stage: None
) -> dict[str, Any]:
    """An empty reply where a pipeline came to be; `refused` holds the reason where none did.

    `failure` in its place says that there is no device, that it was lost, or that it has no memory
    left, which is no verdict. A request that names no adapter means the best one. `at_stage` is
    told whose turn it is: ``"device"``, ``"naga"``, ``"driver"``.
    """
    at_stage("device")
    if "adapter" not in request:
        try:
            request = {**request, **_best()}
        except Error as failure:
            return {"failure": failure.message}
    content = request["content"]
    if request["target"] == "spirv" and leaves_loop_from_switch(content):
        return {"refused": "a loop is left from inside a switch, and naga would never leave it"}
    try:
        reason = _refusal(request, at_stage)
        if is_loss(reason):
            # An earlier code may have taken the device along: that says nothing about this one.
            _device.cache_clear()
            reason = _refusal(request, at_stage)
    except MemoryError as failure:
        return {"failure": str(failure) or "out of memory"}
    if is_loss(reason):
        return {"failure": reason}
    return {"refused": reason} if reason else {}


def _refusal(request: dict[str, Any], at_stage: Callable[[str], None]) -> str:
    """Why no pipeline came to be; empty where one did.

    Raises:
        MemoryError: Where memory ran out.
    """
    at_stage("device")
    device = open_device(request)
    content = request["content"]
    try:
        at_stage("naga")
        code = content if request["target"] == "spirv" else content.decode()
        module = create_module(device, code)
        at_stage("driver")
        device.create_compute_pipeline(
            layout="auto", compute={"module": module, "entry_point": request["entry"]}
        )
    except (wgpu.GPUError, ValueError, RuntimeError) as refusal:
        if is_out_of_memory(refusal):
            raise MemoryError(str(refusal)) from None
        return str(refusal) or type(refusal).__name__
    return ""


def open_device(request: dict[str, Any]) -> Any:
    """The device that a request names, opened once."""
    identity = (request["adapter"], request["api"], request["driver"])
    return _device(identity, tuple(request["features"]), tuple(sorted(request["limits"].items())))


@functools.cache
def _best() -> dict[str, Any]:
    """The device that a host would open here."""
    from shaderad.runtime.wgpu_adapters import vetting_device

    best = vetting_device()
    return {
        "adapter": best.adapter,
        "api": best.api,
        "driver": best.driver,
        "features": best.features,
        "limits": best.limits,
    }


@functools.cache
def _device(
    identity: tuple[str, str, str], features: tuple[str, ...], limits: tuple[tuple[str, int], ...]
) -> Any:
    """The adapter's device of these features; several kernels share it."""
    for adapter in _adapters():
        info = adapter.info
        if (info["device"], info["backend_type"].lower(), info["description"]) == identity:
            return adapter.request_device_sync(
                required_features=list(features), required_limits=dict(limits)
            )
    raise LookupError(f"no adapter {msgspec.json.encode(identity).decode()}")


@functools.cache
def _adapters() -> list[Any]:
    # As the host does: OpenGL costs 0.4 s to look for, and lacks what kernels need. Refused where
    # `_best` has done it.
    with contextlib.suppress(RuntimeError):
        cast("Any", extras).set_instance_extras(backends=["Primary"])
    return list(wgpu.gpu.enumerate_adapters_sync())
