"""Runs in the child process: tests if wgpu makes a pipeline of a code without crashing.

naga, which reads SPIR-V and WGSL for wgpu, can refuse correct code, end its process, never return,
or translate code wrong. The device has the adapter, features and limits of the host's, so its
answer holds for the host.
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
    """Tests one code.

    Args:
        request: The code and the device; without an adapter, the best device.
        at_stage: Called with ``"device"``, ``"naga"`` and ``"driver"`` as each begins its work.

    Returns:
        An empty reply if wgpu made a pipeline; `refused` with the reason if not; `failure` with the
        reason if the device is missing, lost or out of memory, which is no verdict.
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
            # The device may have been lost by an earlier code, which says nothing about this one.
            _device.cache_clear()
            reason = _refusal(request, at_stage)
    except MemoryError as failure:
        return {"failure": str(failure) or "out of memory"}
    if is_loss(reason):
        return {"failure": reason}
    return {"refused": reason} if reason else {}


def _refusal(request: dict[str, Any], at_stage: Callable[[str], None]) -> str:
    """Why wgpu made no pipeline; empty if it made one.

    Raises:
        MemoryError: The device is out of memory.
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
    """The device that `request` names, opened at its first use."""
    identity = (request["adapter"], request["api"], request["driver"])
    return _device(identity, tuple(request["features"]), tuple(sorted(request["limits"].items())))


@functools.cache
def _best() -> dict[str, Any]:
    """The device that a host opens by default."""
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
    """The device of an adapter with these features and limits; cached."""
    for adapter in _adapters():
        info = adapter.info
        if (info["device"], info["backend_type"].lower(), info["description"]) == identity:
            return adapter.request_device_sync(
                required_features=list(features), required_limits=dict(limits)
            )
    raise LookupError(f"no adapter {msgspec.json.encode(identity).decode()}")


@functools.cache
def _adapters() -> list[Any]:
    # The same backends as the host: looking for OpenGL takes 0.4 s, and it lacks features that
    # kernels need. Raises if `_best` has set them already.
    with contextlib.suppress(RuntimeError):
        cast("Any", extras).set_instance_extras(backends=["Primary"])
    return list(wgpu.gpu.enumerate_adapters_sync())
