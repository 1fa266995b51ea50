"""Code -> code that naga reads correctly, and the bindings of a program as wgpu declares them.

Invariant: the host's device gets the same code and layout that the child process vets. The verdict
is therefore valid for the host, and the driver's own cache has the pipeline.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from shaderad.compiler.artifact import BINDINGS, Binding, BindingAccess, Program
from shaderad.compiler.validate import PipelineLayout, VettingDevice
from shaderad.runtime.capabilities import uniform_bytes
from shaderad.runtime.spirv import RewrittenCode, readable_spirv

IMMEDIATES_LIMIT = "max-immediate-size"
"""The limit of wgpu-native on the bytes of immediates; missing if a device has none."""


def _readable_wgsl(content: bytes, *, with_immediates: bool = False) -> RewrittenCode:
    del with_immediates
    text = content.replace(b"enable subgroups;", b"").replace(b"enable subgroups_f16;", b"")
    return RewrittenCode(text, leaves_loop_from_switch=False)


READABLE_BY_NAGA: dict[str, Callable[..., RewrittenCode]] = {
    "spirv": readable_spirv,
    "wgsl": _readable_wgsl,
}
"""The formats that naga reads, preferred ones first, each with the function that rewrites
constructs that naga misreads, or rejects although it supports them."""


def layout_of(program: Program, code_format: str, device: VettingDevice) -> PipelineLayout:
    """The bindings of `program` in code of a format."""
    immediate_bytes = _immediate_bytes(program, code_format, device)
    words_bytes = 0 if immediate_bytes else uniform_bytes(program)
    entries = tuple(
        {"binding": binding.slot, **_entry_of(binding, words_bytes)}
        for binding in program.bindings
        if words_bytes or binding.access is not BindingAccess.UNIFORM
    )
    return PipelineLayout(entries, program.space, immediate_bytes, words_bytes)


def _immediate_bytes(program: Program, code_format: str, device: VettingDevice) -> int:
    """The bytes of immediates for the words of `program`; 0 if a constant buffer holds them.

    Code of a build keeps its constant buffer, because its verdict was given with one, and wgpu
    compares the size with that in the manifest.
    """
    if code_format != "spirv" or program.code is not None:
        return 0
    byte_count = uniform_bytes(program)
    return byte_count if byte_count <= device.limits.get(IMMEDIATES_LIMIT, 0) else 0


def _entry_of(binding: Binding, words_bytes: int) -> dict[str, Any]:
    """The entry of a bind group layout for a binding, without number and visibility."""
    kind = BINDINGS[binding.access].webgpu_type
    match binding.access:
        case BindingAccess.TEXTURE:
            assert binding.view is not None
            sample_type = kind if binding.is_filtered else f"unfilterable-{kind}"
            return {"texture": {"sample_type": sample_type, "view_dimension": binding.view.value}}
        case BindingAccess.SAMPLER:
            return {"sampler": {"type": kind}}
        case BindingAccess.UNIFORM:
            words = {"has_dynamic_offset": True, "min_binding_size": words_bytes}
            return {"buffer": {"type": kind, **words}}
        case _:
            return {"buffer": {"type": kind}}
