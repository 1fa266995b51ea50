"""Code -> modules of wgpu whose loops run as they are written.

naga gives each loop of its own accord a counter of 64 bits that ends it one day, lest a driver take
a loop without end for one that never runs. A driver no longer sees how often such a loop runs, and
unrolls none: gradients ran at half the speed, and took the driver twice as long. Ours stop or have
no derivative to speak of; bounds checks of naga stay.
"""

from __future__ import annotations

from typing import Any, cast

from wgpu.backends import wgpu_native
from wgpu.backends.wgpu_native import GPUShaderModule
from wgpu.backends.wgpu_native._ffi import ffi as _ffi
from wgpu.backends.wgpu_native._ffi import lib as _lib

ffi, lib, native = cast("Any", _ffi), cast("Any", _lib), cast("Any", wgpu_native)._api


def create_module(device: Any, code: str | bytes) -> Any:
    """`device.create_shader_module` of WGSL or SPIR-V, without bounds on loops.

    Raises:
        GPUError: naga refuses it.
        RuntimeError: There is no module, and no word why.
    """
    if isinstance(code, str):
        held = ffi.new("char[]", code.encode())
        source = ffi.new("WGPUShaderSourceWGSL *")
        source.code.data, source.code.length = held, len(held) - 1
        source.chain.sType = lib.WGPUSType_ShaderSourceWGSL
    else:
        held = ffi.new("uint32_t[]", len(code) // 4)
        ffi.memmove(held, code, len(code) // 4 * 4)
        source = ffi.new("WGPUShaderSourceSPIRV *")
        source.code, source.codeSize = held, len(held)
        source.chain.sType = lib.WGPUSType_ShaderSourceSPIRV
    descriptor = ffi.new("WGPUShaderModuleDescriptor *")
    descriptor.nextInChain = ffi.cast("WGPUChainedStruct *", source)
    checks = lib.WGPUShaderRuntimeChecks_BoundsChecks
    made = native.libf.wgpuDeviceCreateShaderModuleTrusted(device._internal, descriptor, checks)
    if made == ffi.NULL:
        raise RuntimeError("wgpu made no shader module")
    return cast("Any", GPUShaderModule)("", made, device)
