"""Adapters of this machine -> one opened `slangpy.Device`, by whichever API the platform has."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import slangpy as spy

from shaderad.diagnostics import error
from shaderad.lower.cache import default_cache
from shaderad.runtime.checks import limited
from shaderad.runtime.choice import DeviceInfo, choose
from shaderad.runtime.guard import shortened
from shaderad.runtime.protocol import Capabilities, Kind
from shaderad.runtime.slangpy_runtime import SlangpyRuntime

FEATURES = {
    "float-atomics": spy.Feature.atomic_float,
    "subgroups": spy.Feature.wave_ops,
    "half": spy.Feature.half,
    "double": spy.Feature.double,
    "int64-atomics": spy.Feature.atomic_int64,
}
"""Our features, and what slangpy calls them."""

APIS = {
    "vulkan": spy.DeviceType.vulkan,
    "d3d12": spy.DeviceType.d3d12,
    "metal": spy.DeviceType.metal,
    "cuda": spy.DeviceType.cuda,
}

APIS_BY_PLATFORM = {"win32": ("d3d12", "vulkan", "cuda"), "darwin": ("metal",)}
OTHER_APIS = ("vulkan", "cuda")

SOFTWARE_NAMES = ("llvmpipe", "swiftshader", "microsoft basic render")

STORAGE_BUFFER_LIMIT = 30
"""slangpy does not tell. Metal has 31 buffer slots, one for the words; the others have more."""

BINDING_BYTES_LIMIT = (1 << 32) - 4
"""slangpy does not tell this either; shaders count words in 32 bits, and lavapipe, which promises
128 MiB, was measured to reach further."""

UNIFORM_BYTES_LIMIT = 1 << 16


def list_devices() -> list[DeviceInfo]:
    """Every adapter of every API that slangpy drives on this platform."""
    found: list[DeviceInfo] = []
    for api in APIS_BY_PLATFORM.get(sys.platform, OTHER_APIS):
        if api == "cuda" and not _has_cuda_driver():
            continue  # slangpy would print that it found none, to standard output.
        for adapter in spy.Device.enumerate_adapters(APIS[api]):
            found.append(
                DeviceInfo(
                    runtime="slangpy",
                    index=len(found),
                    adapter=adapter.name,
                    kind=_kind(adapter.name),
                    api=api,
                    driver="",
                )
            )
    return found


def open_device(wanted: str | int | None, limits: Mapping[str, Any]) -> SlangpyRuntime:
    """Opens the adapter that fits `wanted`; an API such as `cuda` is part of what may fit."""
    info = choose("slangpy", list_devices(), wanted)
    same_api = spy.Device.enumerate_adapters(APIS[info.api])
    luid = next(a.luid for a in same_api if a.name == info.adapter)
    device = _create(info, luid)
    capabilities = limited(_capabilities(device), limits)
    return SlangpyRuntime(device, partial(_session, device), capabilities)


def wrap_device(device: Any, limits: Mapping[str, Any]) -> SlangpyRuntime:
    """Uses a device that somebody else made and keeps."""
    capabilities = limited(_capabilities(device), limits)
    return SlangpyRuntime(device, partial(_session, device), capabilities, owns_device=False)


def _create(info: DeviceInfo, luid: list[int]) -> Any:
    """Opens a device with slangpy's own caches, or without where their folder is not writable."""
    folder = default_cache().made()
    options: dict[str, Any] = {
        "type": APIS[info.api],
        "adapter_luid": luid,
        "enable_hot_reload": False,
        "enable_rhi_validation": False,
        "enable_ray_tracing": False,
    }
    if folder is not None:
        # Without them slangpy compiles its own modules for each device: 0.9 s instead of 0.2 s.
        caches: dict[str, Any] = {
            "module_cache_path": folder / "slangpy" / "modules",
            "shader_cache_path": folder / "slangpy" / "shaders",
        }
        try:
            return spy.Device(**options, **caches)
        except RuntimeError:
            pass  # Whatever else is wrong shows again below.
    try:
        return spy.Device(**options)
    except RuntimeError as failure:
        raise error(
            "SR0603", runtime="slangpy", adapter=info.adapter, reason=shortened(str(failure))
        ) from None


def _session(device: Any, folders: Sequence[Path]) -> Any:
    """A Slang session that finds our library, or that of a build, and nothing of slangpy's."""
    options = spy.SlangCompilerOptions()
    options.include_paths = list(folders)
    options.matrix_layout = spy.SlangMatrixLayout.row_major
    return device.create_slang_session(compiler_options=options, add_default_include_paths=False)


def _has_cuda_driver() -> bool:
    return shutil.which("nvidia-smi") is not None


def _kind(adapter: str) -> Kind:
    """Software drivers are known by their names, which is all that slangpy tells."""
    return "software" if any(name in adapter.lower() for name in SOFTWARE_NAMES) else "unknown"


def _capabilities(device: Any) -> Capabilities:
    info = device.info
    native = set(device.features)
    features = frozenset(ours for ours, theirs in FEATURES.items() if theirs in native)
    limits = info.limits
    group_counts = limits.max_compute_dispatch_thread_groups
    return Capabilities(
        runtime="slangpy",
        adapter=info.adapter_name,
        kind=_kind(info.adapter_name),
        api=info.type.name,
        driver=info.api_name,
        features=features,
        atomics="native" if "float-atomics" in features else "compare-exchange",
        storage_buffer_limit=STORAGE_BUFFER_LIMIT,
        binding_bytes_limit=BINDING_BYTES_LIMIT,
        uniform_bytes_limit=UNIFORM_BYTES_LIMIT,
        workgroup_count_limit=min(group_counts.x, group_counts.y, group_counts.z),
        workgroup_threads_limit=limits.max_compute_threads_per_group,
    )
