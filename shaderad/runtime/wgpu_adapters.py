"""Opens a `wgpu.GPUDevice` on an adapter of this machine, with all features that we use."""

from __future__ import annotations

import contextlib
from collections.abc import Mapping
from typing import Any, cast

import wgpu
from wgpu.backends import wgpu_native
from wgpu.backends.wgpu_native import extras
from wgpu.backends.wgpu_native._ffi import ffi

from shaderad.compiler.compile import VettingDevice
from shaderad.diagnostics import error
from shaderad.runtime.checks import limited
from shaderad.runtime.choice import DeviceInfo, choose
from shaderad.runtime.protocol import Capabilities, Kind
from shaderad.runtime.quick_types import read_types_quickly
from shaderad.runtime.wgpu_runtime import WORDS_PAGE_BYTES, WgpuRuntime

FEATURE_NAMES = {
    "float-atomics": ("shader-float32-atomic",),
    "subgroups": ("subgroup",),
    "half": ("shader-f16",),
    "double": ("shader-f64",),
    "int64-atomics": ("shader-int64", "shader-int64-atomic-all-ops"),
}
"""Our features, and the features of wgpu-native that each of them needs."""

LIMIT_NAMES = (
    "max-buffer-size",
    "max-compute-invocations-per-workgroup",
    "max-compute-workgroup-size-x",
    "max-compute-workgroup-size-y",
    "max-compute-workgroup-size-z",
    "max-compute-workgroup-storage-size",
    "max-compute-workgroups-per-dimension",
    "max-storage-buffer-binding-size",
    "max-storage-buffers-per-shader-stage",
    "max-uniform-buffer-binding-size",
    "min-uniform-buffer-offset-alignment",
)
"""Limits that are raised to the maximum of the adapter; the defaults of WebGPU are far lower."""

KINDS = {"DiscreteGPU": "discrete", "IntegratedGPU": "integrated", "CPU": "software"}


def list_devices() -> list[DeviceInfo]:
    """Every adapter of wgpu, in its order."""
    return [_info(index, adapter) for index, adapter in enumerate(_adapters())]


def open_device(wanted: str | int | None, limits: Mapping[str, Any]) -> WgpuRuntime:
    """Opens the adapter that matches `wanted`, with those of our features that it has."""
    info, adapter = _chosen(wanted)
    capabilities = limited(_capabilities(info, adapter), limits)
    vetting = _vetting(info, capabilities, adapter.limits)
    try:
        device = adapter.request_device_sync(
            required_features=list(vetting.features), required_limits=dict(vetting.limits)
        )
    except (wgpu.GPUError, RuntimeError) as failure:
        raise error("SR0603", runtime="wgpu", adapter=info.adapter, reason=failure) from None
    return WgpuRuntime(device, capabilities, vetting)


def wrap_device(device: Any, limits: Mapping[str, Any]) -> WgpuRuntime:
    """Uses a device that the caller created and owns, with the features it was created with."""
    info = _info(0, device.adapter)
    capabilities = limited(_capabilities(info, device), limits)
    vetting = _vetting(info, capabilities, device.limits)
    return WgpuRuntime(device, capabilities, vetting, owns_device=False)


def vetting_device() -> VettingDevice:
    """The best adapter, as the child process opens it."""
    info, adapter = _chosen(None)
    return _vetting(info, _capabilities(info, adapter), adapter.limits)


def _chosen(wanted: str | int | None) -> tuple[DeviceInfo, Any]:
    adapters = _adapters()
    infos = [_info(index, adapter) for index, adapter in enumerate(adapters)]
    info = choose("wgpu", infos, wanted)
    return info, adapters[info.index]


def _vetting(
    info: DeviceInfo, capabilities: Capabilities, limits: Mapping[str, int]
) -> VettingDevice:
    """The features and limits, in wgpu's names, of the host's device and of the child's."""
    features = [name for ours in sorted(capabilities.features) for name in FEATURE_NAMES[ours]]
    required = {name: limits[name] for name in LIMIT_NAMES}
    required["max-storage-buffers-per-shader-stage"] = capabilities.storage_buffer_limit
    required["max-storage-buffer-binding-size"] = capabilities.binding_bytes_limit
    return VettingDevice(
        adapter=info.adapter,
        api=info.api,
        driver=info.driver,
        features=tuple(features),
        limits=required,
        version=".".join(map(str, cast("Any", wgpu_native).lib_version_info)),
        offers=capabilities.features,
    )


def _adapters() -> list[Any]:
    read_types_quickly(ffi)
    # Without OpenGL: looking for it takes 0.4 s, and it lacks features that kernels need. Raises
    # if the instance of wgpu exists already.
    with contextlib.suppress(RuntimeError):
        extras.set_instance_extras(backends=["Primary"])  # pyright: ignore[reportUnknownMemberType]
    return list(wgpu.gpu.enumerate_adapters_sync())


def _info(index: int, adapter: Any) -> DeviceInfo:
    info = adapter.info
    return DeviceInfo(
        runtime="wgpu",
        index=index,
        adapter=info["device"],
        kind=cast("Kind", KINDS.get(info["adapter_type"], "unknown")),
        api=info["backend_type"].lower(),
        driver=info["description"],
    )


def _capabilities(info: DeviceInfo, source: Any) -> Capabilities:
    """The capabilities of `source`, an adapter or a device."""
    native, limits = set(source.features), source.limits
    features = frozenset(ours for ours, names in FEATURE_NAMES.items() if native >= set(names))
    return Capabilities(
        runtime="wgpu",
        adapter=info.adapter,
        kind=info.kind,
        api=info.api,
        driver=info.driver,
        features=features,
        # naga reads no compare-exchange from SPIR-V; exchange always works.
        atomics="native" if "float-atomics" in features else "exchange",
        storage_buffer_limit=limits["max-storage-buffers-per-shader-stage"],
        binding_bytes_limit=min(
            limits["max-storage-buffer-binding-size"], limits["max-buffer-size"]
        ),
        uniform_bytes_limit=min(limits["max-uniform-buffer-binding-size"], WORDS_PAGE_BYTES),
        workgroup_count_limit=limits["max-compute-workgroups-per-dimension"],
        workgroup_threads_limit=limits["max-compute-invocations-per-workgroup"],
    )
