"""Fills a buffer with a 32-bit word; the runtimes themselves can only fill with 0."""

from __future__ import annotations

import struct

from shaderad.compiler.artifact import Binding, BindingAccess, Code, Program
from shaderad.runtime.base import Runtime
from shaderad.runtime.capabilities import WORD_BYTES, padded
from shaderad.runtime.command_runs import check_range
from shaderad.runtime.idle_buffers import DeviceBuffer

GROUP_SIZE = 64

WGSL = """\
struct Parameters { first: u32, end: u32, stride: u32, word: u32 }
@group(0) @binding(0) var<uniform> parameters: Parameters;
@group(0) @binding(1) var<storage, read_write> words: array<u32>;

@compute @workgroup_size(64)
fn fill_words(@builtin(global_invocation_id) thread: vec3<u32>) {
    for (var i = parameters.first + thread.x; i < parameters.end; i += parameters.stride) {
        words[i] = parameters.word;
    }
}
"""
"""For wgpu: loaded builds must run without a Slang compiler."""

FILL = Program(
    name="fill_words",
    slang="""\
struct Parameters { uint first; uint end; uint stride; uint word; }
[[vk::binding(0, 0)]] ConstantBuffer<Parameters> parameters;
[[vk::binding(1, 0)]] RWStructuredBuffer<uint> words;

[shader("compute")]
[numthreads(64, 1, 1)]
void fill_words(uint3 thread : SV_DispatchThreadID)
{
    for (uint i = parameters.first + thread.x; i < parameters.end; i += parameters.stride)
        words[i] = parameters.word;
}
""",
    workgroup=(GROUP_SIZE, 1, 1),
    bindings=(
        Binding(0, "parameters", BindingAccess.UNIFORM),
        Binding(1, "words", BindingAccess.WRITE),
    ),
    parameter_words=("first", "end", "stride", "word"),
    code=Code("wgsl", WGSL.encode()),
)


def fill(
    runtime: Runtime,
    buffer: DeviceBuffer,
    word: int,
    offset: int = 0,
    byte_count: int | None = None,
) -> None:
    """Records filling a range of `buffer` with `word`; without `byte_count`, up to its end."""
    count = buffer.byte_count - offset if byte_count is None else byte_count
    check_range(buffer, offset, count)
    if word == 0 or count == 0:
        runtime.zero(buffer, offset, count)
        return
    end = offset + padded(count)
    while offset < end:
        offset = _fill_window(runtime, buffer, word, offset, end)


def _fill_window(runtime: Runtime, buffer: DeviceBuffer, word: int, offset: int, end: int) -> int:
    """Fills the bytes that one binding at `offset` can reach; returns the offset of their end."""
    capabilities = runtime.capabilities
    step, limit, start = capabilities.binding_alignment, capabilities.binding_bytes_limit, 0
    is_window = step > 0 and buffer.byte_count > limit
    if is_window:
        start = offset // step * step
        end = min(end, start + limit // WORD_BYTES * WORD_BYTES)
    first, last = (offset - start) // WORD_BYTES, (end - start) // WORD_BYTES
    groups = min(-(-(last - first) // GROUP_SIZE), capabilities.workgroup_count_limit)
    words = struct.pack("<IIII", first, last, groups * GROUP_SIZE, word)
    ranges = {1: (start, end - start)} if is_window else None
    runtime.dispatch(runtime.pipeline(FILL), {1: buffer}, words, (groups, 1, 1), ranges)
    return end
