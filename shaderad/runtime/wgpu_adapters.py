"""Adapters of wgpu -> devices with all features that we use, here and in the child process."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, cast

import msgspec
import wgpu
from wgpu.backends.wgpu_native import extras

from shaderad.compiler.validate import VettingDevice
from shaderad.diagnostics import error
from shaderad.runtime.capabilities import Capabilities, Kind, limited
from shaderad.runtime.devices import DeviceInfo, choose
from shaderad.runtime.naga import IMMEDIATES_LIMIT, READABLE_BY_NAGA
from shaderad.runtime.texture_formats import FLOAT, TEXTURE_FORMATS
from shaderad.runtime.wgpu_pipelines import ffi, native_api
from shaderad.runtime.wgpu_subgroups import subgroup_size

FEATURE_NAMES = {
    "float-atomics": ("shader-float32-atomic",),
    "subgroups": ("subgroup",),
    "half": ("shader-f16",),
    "double": ("shader-f64",),
    "int64-atomics": ("shader-int64", "shader-int64-atomic-all-ops"),
}
"""Our features, and the features of wgpu-native that each of them needs."""

IMMEDIATES = "immediates"
OPTIONAL_FEATURES = ("float32-filterable", IMMEDIATES, "timestamp-query")
"""Features of wgpu-native that no code requires, but textures, constants and clocks may use."""

LIMIT_NAMES = (
    "max-buffer-size",
    "max-compute-invocations-per-workgroup",
    "max-compute-workgroup-size-x",
    "max-compute-workgroup-size-y",
    "max-compute-workgroup-size-z",
    "max-compute-workgroup-storage-size",
    "max-compute-workgroups-per-dimension",
    "max-sampled-textures-per-shader-stage",
    "max-samplers-per-shader-stage",
    "max-storage-buffer-binding-size",
    "max-storage-buffers-per-shader-stage",
    "max-texture-array-layers",
    "max-texture-dimension-1d",
    "max-texture-dimension-2d",
    "max-texture-dimension-3d",
    "max-uniform-buffer-binding-size",
    "min-storage-buffer-offset-alignment",
    "min-uniform-buffer-offset-alignment",
)
"""Limits that are raised to the maximum of the adapter, because WebGPU's defaults are far lower."""

KINDS = {"DiscreteGPU": "discrete", "IntegratedGPU": "integrated", "CPU": "software"}

WORDS_PAGE_BYTES = 256 * 1024
"""Bytes of constant buffers per submission: 1024 dispatches at the usual alignment of 256."""


# -- the host --------------------------------------------------------------------------------------


def list_devices() -> list[DeviceInfo]:
    """Every adapter of wgpu, in its order."""
    return [info for info, _ in _adapters()]


def open_native(
    wanted: str | int | None, limits: Mapping[str, Any]
) -> tuple[Any, Capabilities, VettingDevice]:
    """A device of the adapter that matches `wanted`, and its description for the child process."""
    info, adapter = _chosen(wanted)
    capabilities, vetting = _described(info, adapter, limits)
    try:
        device = _requested(adapter, vetting.features, vetting.limits)
        return device, _measured(capabilities, device, limits), vetting
    except (wgpu.GPUError, RuntimeError) as failure:
        raise error("SR0603", runtime="wgpu", adapter=info.adapter, reason=failure) from None


def described(device: Any, limits: Mapping[str, Any]) -> tuple[Capabilities, VettingDevice]:
    """The capabilities of a device, and its description for the child process."""
    capabilities, vetting = _described(_info(0, device.adapter), device, limits)
    return _measured(capabilities, device, limits), vetting


def vetting_device() -> VettingDevice:
    """The description of the best adapter for the child process."""
    info, adapter = _chosen(None)
    return _described(info, adapter, {})[1]


def matching_device(
    identity: tuple[str, str, str], features: tuple[str, ...], limits: Mapping[str, int]
) -> Any:
    """A device of the adapter with this name, API and driver.

    Raises:
        LookupError: There is no such adapter.
    """
    for info, adapter in _adapters():
        if (info.adapter, info.api, info.driver) == identity:
            return _requested(adapter, features, limits)
    raise LookupError(f"no adapter {msgspec.json.encode(identity).decode()}")


def _described(
    info: DeviceInfo, source: Any, forced: Mapping[str, Any]
) -> tuple[Capabilities, VettingDevice]:
    """Capabilities of `source`, an adapter or a device, and its features in wgpu's names."""
    capabilities = limited(_capabilities(info, source), forced)
    features = [name for ours in sorted(capabilities.features) for name in FEATURE_NAMES[ours]]
    features += [name for name in OPTIONAL_FEATURES if name in source.features]
    required = {name: source.limits[name] for name in LIMIT_NAMES}
    if IMMEDIATES in features:
        required[IMMEDIATES_LIMIT] = source.limits[IMMEDIATES_LIMIT]
    required["max-storage-buffers-per-shader-stage"] = capabilities.storage_buffer_limit
    required["max-storage-buffer-binding-size"] = capabilities.binding_bytes_limit
    required["max-buffer-size"] = capabilities.buffer_bytes_limit
    return capabilities, VettingDevice(
        adapter=info.adapter,
        api=info.api,
        driver=info.driver,
        features=tuple(features),
        limits=required,
        version=".".join(map(str, native_api.lib_version_info)),
        offers=capabilities.features,
    )


def _measured(capabilities: Capabilities, device: Any, forced: Mapping[str, Any]) -> Capabilities:
    """`capabilities` with the facts that only an opened device can report."""
    if "subgroups" not in capabilities.features or "subgroup_size" in forced:
        return capabilities
    return replace(capabilities, subgroup_size=subgroup_size(device))


def _chosen(wanted: str | int | None) -> tuple[DeviceInfo, Any]:
    adapters = _adapters()
    return adapters[choose("wgpu", [info for info, _ in adapters], wanted).index]


def _adapters() -> list[tuple[DeviceInfo, Any]]:
    read_types_quickly(ffi)
    # Without OpenGL: looking for it takes 0.4 s, and it lacks features that kernels need. Raises
    # if the instance of wgpu exists already.
    with contextlib.suppress(RuntimeError):
        cast("Any", extras).set_instance_extras(backends=["Primary"])
    adapters = wgpu.gpu.enumerate_adapters_sync()
    return [(_info(index, adapter), adapter) for index, adapter in enumerate(adapters)]


def _requested(adapter: Any, features: tuple[str, ...], limits: Mapping[str, int]) -> Any:
    return adapter.request_device_sync(
        required_features=list(features), required_limits=dict(limits)
    )


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
        formats=tuple(READABLE_BY_NAGA),
        # naga reads no compare-exchange from SPIR-V; exchange always works.
        atomics="native" if "float-atomics" in features else "exchange",
        has_group_float_atomics=False,  # naga refuses them
        storage_buffer_limit=limits["max-storage-buffers-per-shader-stage"],
        binding_bytes_limit=min(
            limits["max-storage-buffer-binding-size"], limits["max-buffer-size"]
        ),
        binding_alignment=limits["min-storage-buffer-offset-alignment"],
        buffer_bytes_limit=limits["max-buffer-size"],
        uniform_bytes_limit=min(limits["max-uniform-buffer-binding-size"], WORDS_PAGE_BYTES),
        workgroup_count_limit=limits["max-compute-workgroups-per-dimension"],
        workgroup_threads_limit=limits["max-compute-invocations-per-workgroup"],
        group_bytes_limit=limits["max-compute-workgroup-storage-size"],
        subgroup_size=1,  # see `_measured`
        texture_formats=frozenset(TEXTURE_FORMATS),
        filtered_formats=frozenset(
            row.name
            for row in TEXTURE_FORMATS.values()
            if row.dtype != FLOAT or "float32-filterable" in native
        ),
        texture_extent_limits=(
            limits["max-texture-dimension-1d"],
            limits["max-texture-dimension-2d"],
            limits["max-texture-dimension-3d"],
        ),
        texture_layer_limit=limits["max-texture-array-layers"],
        has_line_levels=False,
        texture_limit=limits["max-sampled-textures-per-shader-stage"],
        sampler_limit=limits["max-samplers-per-shader-stage"],
    )


# -- wgpu-native -----------------------------------------------------------------------------------


def read_types_quickly(ffi: Any) -> None:
    """Lets cffi parse the types of wgpu's header twenty times faster, which halves the cold start.

    cffi parses a C type such as ``WGPULimits *`` at its first use, and passes all typedefs to
    pycparser. With the 470 of wgpu's header, this took 11 ms per type, half a second until the
    first dispatch. This passes only the typedefs that the type mentions. It does nothing if cffi
    has an unknown form.
    """
    parser = getattr(ffi, "_parser", None)
    slow_parse = getattr(parser, "_parse", None)
    if parser is None or slow_parse is None or not hasattr(parser, "_declarations"):
        return
    if "_parse" in vars(parser):
        return  # The table is narrowed already.

    def parse(source: str) -> Any:
        # cffi holds its lock during this call, so no other thread sees the narrowed table.
        every = parser._declarations
        words = set(re.findall(r"\w+", source))
        parser._declarations = {
            name: declared
            for name, declared in every.items()
            if not name.startswith("typedef ") or name.removeprefix("typedef ") in words
        }
        try:
            return slow_parse(source)
        finally:
            parser._declarations = every

    parser._parse = parse
