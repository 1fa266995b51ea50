"""Creates wgpu shader modules without the loop bounds of naga.

By default naga adds a 64-bit counter that ends each loop, because drivers may treat endless loops
as undefined behaviour. Drivers then cannot see trip counts and unroll nothing: gradients ran at
half the speed, and took the driver twice as long to compile. Bounds checks of naga are kept.
"""

from __future__ import annotations

from typing import Any, cast

from wgpu.backends import wgpu_native
from wgpu.backends.wgpu_native import GPUShaderModule
from wgpu.backends.wgpu_native._ffi import ffi as _ffi
from wgpu.backends.wgpu_native._ffi import lib as _lib

ffi, lib, native = cast("Any", _ffi), cast("Any", _lib), cast("Any", wgpu_native)._api


def create_module(device: Any, code: str | bytes) -> Any:
    """`device.create_shader_module` for WGSL or SPIR-V, without bounds on loops.

    Raises:
        GPUError: naga refuses the code.
        RuntimeError: wgpu returns no module and no reason.
    """
    if isinstance(code, str):
        text = ffi.new("char[]", code.encode())
        source = ffi.new("WGPUShaderSourceWGSL *")
        source.code.data, source.code.length = text, len(text) - 1
        source.chain.sType = lib.WGPUSType_ShaderSourceWGSL
    else:
        words = ffi.new("uint32_t[]", len(code) // 4)
        ffi.memmove(words, code, len(code) // 4 * 4)
        source = ffi.new("WGPUShaderSourceSPIRV *")
        source.code, source.codeSize = words, len(words)
        source.chain.sType = lib.WGPUSType_ShaderSourceSPIRV
    descriptor = ffi.new("WGPUShaderModuleDescriptor *")
    descriptor.nextInChain = ffi.cast("WGPUChainedStruct *", source)
    checks = lib.WGPUShaderRuntimeChecks_BoundsChecks
    handle = native.libf.wgpuDeviceCreateShaderModuleTrusted(device._internal, descriptor, checks)
    if handle == ffi.NULL:
        raise RuntimeError("wgpu made no shader module")
    return cast("Any", GPUShaderModule)("", handle, device)
