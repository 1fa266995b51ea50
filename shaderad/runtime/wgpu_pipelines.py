"""Code and a layout -> a pipeline of wgpu, both in the host and in the vetting process."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, cast

import wgpu
from wgpu.backends import wgpu_native
from wgpu.backends.wgpu_native import GPUShaderModule
from wgpu.backends.wgpu_native._ffi import ffi as _ffi
from wgpu.backends.wgpu_native._ffi import lib as _lib

from shaderad.compiler.artifact import Code
from shaderad.compiler.formats import FORMATS
from shaderad.compiler.validate import PipelineLayout

ffi, lib, native_api = cast("Any", _ffi), cast("Any", _lib), cast("Any", wgpu_native)


def create_pipeline(
    device: Any,
    code: Code,
    entry: str,
    layout: PipelineLayout,
    driver_begins: Callable[[], None] = lambda: None,
) -> tuple[Any, Any]:
    """The pipeline of an entry point, and the layout of its bind group.

    Raises:
        GPUError, UnicodeDecodeError, RuntimeError: As `create_module`; the first also if the
            driver refuses the pipeline.
    """
    own = device.create_bind_group_layout(
        entries=[{"visibility": wgpu.ShaderStage.COMPUTE, **entry} for entry in layout.entries]
    )
    before = [device.create_bind_group_layout(entries=[]) for _ in range(layout.space)]
    whole = device.create_pipeline_layout(
        bind_group_layouts=[*before, own], immediate_size=layout.immediate_bytes
    )
    module = create_module(device, code)
    driver_begins()
    native = device.create_compute_pipeline(
        layout=whole, compute={"module": module, "entry_point": entry}
    )
    return native, own


def create_module(device: Any, code: Code) -> Any:
    """`device.create_shader_module` for WGSL or SPIR-V, without the loop bounds of naga.

    By default naga adds a 64-bit counter that ends each loop, because drivers may treat endless
    loops as undefined behaviour. Drivers then see no trip counts and unroll nothing: gradients ran
    at half the speed and took twice as long to compile. Bounds checks are kept.

    Raises:
        GPUError: naga refuses the code.
        UnicodeDecodeError: The text is not UTF-8.
        RuntimeError: wgpu returns no module and no reason.
    """
    content = code.content
    if FORMATS[code.format].is_text:
        content.decode()  # naga does not check UTF-8.
        text = ffi.new("char[]", content)
        source = ffi.new("WGPUShaderSourceWGSL *")
        source.code.data, source.code.length = text, len(text) - 1
        source.chain.sType = lib.WGPUSType_ShaderSourceWGSL
    else:
        words = ffi.new("uint32_t[]", len(content) // 4)
        ffi.memmove(words, content, len(content) // 4 * 4)
        source = ffi.new("WGPUShaderSourceSPIRV *")
        source.code, source.codeSize = words, len(words)
        source.chain.sType = lib.WGPUSType_ShaderSourceSPIRV
    descriptor = ffi.new("WGPUShaderModuleDescriptor *")
    descriptor.nextInChain = ffi.cast("WGPUChainedStruct *", source)
    checks = lib.WGPUShaderRuntimeChecks_BoundsChecks
    create = native_api._api.libf.wgpuDeviceCreateShaderModuleTrusted
    handle = create(device._internal, descriptor, checks)
    if handle == ffi.NULL:
        raise RuntimeError("wgpu made no shader module")
    return cast("Any", GPUShaderModule)("", handle, device)
