"""The devices of this machine: lists them, chooses one, opens it.

Invariant: wgpu and slangpy are imported only when one of their devices is requested, because each
import takes 0.2 s.
"""

from __future__ import annotations

import importlib
import os
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from shaderad.compiler.library import prepare
from shaderad.compiler.validate import VettingDevice
from shaderad.diagnostics import Error, error
from shaderad.diagnostics.tracebacks import api_boundary
from shaderad.runtime.base import Runtime
from shaderad.runtime.capabilities import Kind
from shaderad.runtime.process import check_process, held_back, note_opened

__all__ = ["DeviceInfo", "devices"]

RUNTIMES = {"wgpu": "GPUDevice", "slangpy": "Device"}
"""Runtimes, preferred ones first, with the class of their devices. wgpu opens faster and runs
anywhere; slangpy also has CUDA. The module of a runtime is `NAME_runtime.py`."""

DEVICE_VARIABLE = "SHADERAD_DEVICE"

AUTO, RANK_VARIABLE = "auto", "LOCAL_RANK"
"""The adapter name that selects by rank, and the variable that holds the rank, which launchers such
as `torchrun` set."""

PREFERENCE: tuple[Kind, ...] = ("discrete", "integrated", "virtual", "unknown", "software")


@dataclass(frozen=True, slots=True, kw_only=True)
class DeviceInfo:
    """An adapter; `open_device(info.runtime, adapter=info.index)` opens it."""

    runtime: str
    index: int
    """The position among the adapters of the runtime."""
    adapter: str
    kind: Kind
    api: str
    driver: str

    @property
    def summary(self) -> str:
        """One line for lists and messages; `adapter=` matches a part of it."""
        return f"{self.index}: {self.adapter} ({self.kind}, {self.api}) {self.driver}".rstrip()


@api_boundary
def devices() -> list[DeviceInfo]:
    """Lists every adapter of every runtime that can be loaded."""
    infos: list[DeviceInfo] = []
    for name in RUNTIMES:
        try:
            infos += runtime_module(name).list_devices()
        except Error:
            continue  # The runtime cannot be loaded; `doctor` reports the reason.
    return infos


def choose(runtime: str, adapters: Sequence[DeviceInfo], wanted: str | int | None) -> DeviceInfo:
    """The best of the adapters that match `wanted`.

    Args:
        runtime: The name of the runtime, for messages.
        adapters: All adapters of the runtime.
        wanted: A position, a part of a summary in any case, `None` for any adapter, or `auto` to
            distribute the adapters that equal the best among the ranks on this machine.

    Raises:
        DeviceError: SR0602, if no adapter matches; SR0620, if `wanted` is of another type; SR0638,
            if the rank is no number.
    """
    if wanted is not None and type(wanted) not in (int, str):
        raise error("SR0620", found=repr(wanted))
    if wanted in (None, "", AUTO):
        matching = list(adapters)
    elif isinstance(wanted, int) or wanted.isdigit():
        matching = [info for info in adapters if info.index == int(wanted)]
    else:
        matching = [info for info in adapters if wanted.lower() in info.summary.lower()]
    if not matching:
        raise error(
            "SR0602",
            runtime=runtime,
            wanted="of any kind" if wanted is None else wanted,
            found="; ".join(info.summary for info in adapters) or "no adapter at all",
        )
    best = min(matching, key=lambda info: PREFERENCE.index(info.kind))
    if wanted != AUTO:
        return best
    # An adapter is listed once for each API that it has.
    alike = [info for info in matching if (info.kind, info.api) == (best.kind, best.api)]
    return alike[_local_rank() % len(alike)]


def _local_rank() -> int:
    """The local rank: the number of this process among those launched together on this machine."""
    text = os.environ.get(RANK_VARIABLE, "0")
    if not text.isdecimal():
        raise error("SR0638", variable=RANK_VARIABLE, found=text)
    return int(text)


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
        adapter: The position or a part of the name, for slangpy also its API, such as `cuda`; or
            `auto`, see `choose`.
        native: A `wgpu.GPUDevice` or `slangpy.Device` to use instead; it is never closed.
        limits: Fields of `Capabilities` to lower, for portable builds and tests.

    Raises:
        DeviceError: SR0601, SR0602, SR0603, SR0616, SR0620, SR0622, SR0625, SR0638.
    """
    check_process()
    prepare()
    with held_back():
        opened = _opened(name, adapter, native, limits or {})
    note_opened()
    return opened


def _opened(
    name: str | None, adapter: str | int | None, native: Any, limits: Mapping[str, Any]
) -> Runtime:
    if native is not None:
        package = type(native).__module__.partition(".")[0]
        if RUNTIMES.get(package) != type(native).__name__:
            classes = " or a ".join(f"`{name}.{device}`" for name, device in RUNTIMES.items())
            raise error("SR0616", classes=classes, found=type(native).__qualname__)
        return runtime_module(package).wrap_device(native, limits)
    if name is not None and not isinstance(name, str):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise error("SR0620", found=repr(name))
    chosen = name or os.environ.get(DEVICE_VARIABLE) or None
    if chosen is not None:
        runtime, _, part = chosen.partition(":")
        if runtime not in RUNTIMES:
            runtimes = ", ".join(f"`{each}`" for each in RUNTIMES)
            raise error("SR0601", name=runtime, runtimes=runtimes)
        wanted = part if adapter is None and part else adapter
        return runtime_module(runtime).open_device(wanted, limits)
    failures: list[Error] = []
    for runtime in _in_order(adapter):
        try:
            return runtime_module(runtime).open_device(adapter, limits)
        except Error as failure:
            failures.append(failure)
    first, *others = failures
    raise first.noting(f"{other.message}: {other.label or other.note}" for other in others)


def _in_order(adapter: str | int | None) -> Sequence[str]:
    """The runtimes in the order in which they are tried.

    slangpy comes first if NVIDIA's driver is installed but wgpu would find no GPU, because only
    slangpy has CUDA. This happens in containers that have a software driver but lack the Vulkan
    part of NVIDIA's driver.
    """
    first, *_ = names = list(RUNTIMES)
    if adapter not in (None, AUTO) or not has_nvidia_driver() or _has_gpu(first):
        return names
    return sorted(names, key=lambda name: name == first)


def _has_gpu(runtime: str) -> bool:
    try:
        return any(info.kind != "software" for info in runtime_module(runtime).list_devices())
    except Error:
        return False


def has_nvidia_driver() -> bool:
    """True if NVIDIA's driver is installed, so CUDA may have a device."""
    return Path("/proc/driver/nvidia/version").exists() or shutil.which("nvidia-smi") is not None


def vetting_device() -> VettingDevice:
    """The best adapter of wgpu, for `vet`; opens no device.

    Raises:
        DeviceError: SR0602, SR0603, if wgpu has no adapter or cannot be loaded.
    """
    return runtime_module("wgpu").vetting_device()


def runtime_module(runtime: str) -> Any:
    """Imports the module with `list_devices`, `open_device` and `wrap_device` of a runtime.

    Raises:
        DeviceError: SR0603, if its library cannot be loaded.
        MissingPackageError: SR0625, if its library is not installed.
    """
    try:
        return importlib.import_module(f"shaderad.runtime.{runtime}_runtime")
    except ModuleNotFoundError as failure:
        if failure.name != runtime:
            raise error("SR0603", runtime=runtime, adapter="any adapter", reason=failure) from None
        raise error("SR0625", runtime=runtime) from None
    except (ImportError, OSError, RuntimeError) as failure:
        raise error("SR0603", runtime=runtime, adapter="any adapter", reason=failure) from None
