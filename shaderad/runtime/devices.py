"""Lists and opens the devices of this machine.

Invariant: wgpu and slangpy are imported only when one of their devices is requested, because each
import takes 0.2 s.
"""

from __future__ import annotations

import importlib
import os
from collections.abc import Mapping
from typing import Any

from shaderad.compiler.compile import VettingDevice, prepare
from shaderad.diagnostics import Error, error
from shaderad.diagnostics.tracebacks import api_boundary
from shaderad.runtime.choice import DeviceInfo
from shaderad.runtime.forks import check_process, note_opened
from shaderad.runtime.interrupts import held_back
from shaderad.runtime.protocol import Runtime

__all__ = ["devices"]

RUNTIME_NAMES = ("wgpu", "slangpy")
"""In the order of preference: wgpu opens faster and runs anywhere; slangpy also has CUDA."""

NATIVE_DEVICES = {"GPUDevice", "Device"}

DEVICE_VARIABLE = "SHADERAD_DEVICE"


@api_boundary
def devices() -> list[DeviceInfo]:
    """Lists every adapter of every runtime that can be loaded."""
    infos: list[DeviceInfo] = []
    for name in RUNTIME_NAMES:
        try:
            infos += _adapters_module(name).list_devices()
        except Error:
            continue  # The runtime cannot be loaded; `doctor` reports the reason.
    return infos


def open_runtime(
    name: str | None = None,
    *,
    adapter: str | int | None = None,
    native: Any = None,
    limits: Mapping[str, Any] | None = None,
) -> Runtime:
    """Opens a device.

    Args:
        name: `wgpu`, `slangpy`, or either with an adapter (`wgpu:0`, `slangpy:cuda`); by default
            the value of `SHADERAD_DEVICE`, or the best device.
        adapter: The position or a part of the name; for slangpy also its API, such as `cuda`.
        native: A `wgpu.GPUDevice` or `slangpy.Device` to use instead; it is never closed.
        limits: Fields of `Capabilities` to lower, for portable builds and tests.

    Raises:
        DeviceError: SR0601, SR0602, SR0603, SR0616, SR0620, SR0622.
    """
    check_process()
    prepare()
    with held_back():
        opened = _opened(name, adapter, native, limits or {})
    note_opened()
    return opened


def _opened(
    name: str | None, adapter: str | int | None, native: Any, forced: Mapping[str, Any]
) -> Runtime:
    if native is not None:
        return _wrap(native, forced)
    if name is not None and not isinstance(name, str):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise error("SR0620", found=repr(name))
    chosen = name or os.environ.get(DEVICE_VARIABLE) or None
    if chosen is not None:
        runtime, _, part = chosen.partition(":")
        return _open(runtime, part if adapter is None and part else adapter, forced)
    failures: list[Error] = []
    for runtime in RUNTIME_NAMES:
        try:
            return _open(runtime, adapter, forced)
        except Error as failure:
            failures.append(failure)
    first, *others = failures
    raise first.noting(f"{other.message}: {other.label or other.note}" for other in others)


def vetting_device() -> VettingDevice:
    """The best adapter of wgpu, for `vet`; opens no device.

    Raises:
        DeviceError: SR0602, SR0603, if wgpu has no adapter or cannot be loaded.
    """
    return _adapters_module("wgpu").vetting_device()


def _open(runtime: str, adapter: str | int | None, limits: Mapping[str, Any]) -> Runtime:
    if runtime not in RUNTIME_NAMES:
        raise error("SR0601", name=runtime)
    return _adapters_module(runtime).open_device(adapter, limits)


def _wrap(native: Any, limits: Mapping[str, Any]) -> Runtime:
    package = type(native).__module__.partition(".")[0]
    if package not in RUNTIME_NAMES or type(native).__name__ not in NATIVE_DEVICES:
        raise error("SR0616", found=type(native).__qualname__)
    return _adapters_module(package).wrap_device(native, limits)


def _adapters_module(runtime: str) -> Any:
    """Imports `wgpu_adapters` or `slangpy_adapters`, which have the same functions."""
    try:
        return importlib.import_module(f"shaderad.runtime.{runtime}_adapters")
    except (ImportError, OSError, RuntimeError) as failure:
        raise error("SR0603", runtime=runtime, adapter="any adapter", reason=failure) from None
