"""Opens a `slangpy.Device` on an adapter of this machine, with the API of the platform."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import slangpy as spy

from shaderad.compiler.cache import default_cache
from shaderad.diagnostics import error
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
"""Our features and those of slangpy."""

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
"""slangpy reports no limit. Metal has 31 buffer slots, one for the words; other APIs have more."""

BINDING_BYTES_LIMIT = (1 << 32) - 4
"""slangpy reports no limit. Shaders count words in 32 bits; lavapipe reports 128 MiB, and was
measured to reach further."""

UNIFORM_BYTES_LIMIT = 1 << 16


def list_devices() -> list[DeviceInfo]:
    """Every adapter of every API of slangpy on this platform."""
    infos: list[DeviceInfo] = []
    for api in APIS_BY_PLATFORM.get(sys.platform, OTHER_APIS):
        if api == "cuda" and not _has_cuda_driver():
            continue  # slangpy would print to standard output that it found none.
        for adapter in spy.Device.enumerate_adapters(APIS[api]):
            infos.append(
                DeviceInfo(
                    runtime="slangpy",
                    index=len(infos),
                    adapter=adapter.name,
                    kind=_kind(adapter.name),
                    api=api,
                    driver="",
                )
            )
    return infos


def open_device(wanted: str | int | None, limits: Mapping[str, Any]) -> SlangpyRuntime:
    """Opens the adapter that matches `wanted`, which may name an API such as `cuda`."""
    info = choose("slangpy", list_devices(), wanted)
    same_api = spy.Device.enumerate_adapters(APIS[info.api])
    luid = next(a.luid for a in same_api if a.name == info.adapter)
    device = _create(info, luid)
    capabilities = limited(_capabilities(device), limits)
    return SlangpyRuntime(device, partial(_session, device), capabilities)


def wrap_device(device: Any, limits: Mapping[str, Any]) -> SlangpyRuntime:
    """Uses a device that the caller created and owns."""
    capabilities = limited(_capabilities(device), limits)
    return SlangpyRuntime(device, partial(_session, device), capabilities, owns_device=False)


def _create(info: DeviceInfo, luid: list[int]) -> Any:
    """Opens a device with slangpy's own caches, or without if their folder is not writable."""
    folder = default_cache().made()
    options: dict[str, Any] = {
        "type": APIS[info.api],
        "adapter_luid": luid,
        "enable_hot_reload": False,
        "enable_rhi_validation": False,
        "enable_ray_tracing": False,
    }
    if folder is not None:
        # Without caches slangpy compiles its own modules for each device: 0.9 s instead of 0.2 s.
        caches: dict[str, Any] = {
            "module_cache_path": folder / "slangpy" / "modules",
            "shader_cache_path": folder / "slangpy" / "shaders",
        }
        try:
            return spy.Device(**options, **caches)
        except RuntimeError:
            pass  # Any other failure repeats below.
    try:
        return spy.Device(**options)
    except RuntimeError as failure:
        raise error(
            "SR0603", runtime="slangpy", adapter=info.adapter, reason=shortened(str(failure))
        ) from None


def _session(device: Any, folders: Sequence[Path]) -> Any:
    """A Slang session that imports from `folders` only, not from slangpy's own modules."""
    options = spy.SlangCompilerOptions()
    options.include_paths = list(folders)
    options.matrix_layout = spy.SlangMatrixLayout.row_major
    return device.create_slang_session(compiler_options=options, add_default_include_paths=False)


def _has_cuda_driver() -> bool:
    return shutil.which("nvidia-smi") is not None


def _kind(adapter: str) -> Kind:
    """The kind of an adapter; slangpy reports only names, which identify software drivers."""
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
