"""A device of wgpu -> the size of its subgroups, which a probe kernel reports.

wgpu's own limit is not usable: it is the least size that WebGPU allows, even if the driver's size
is fixed.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import wgpu

_THREADS = 64
_PROBE = f"""
@group(0) @binding(0) var<storage, read_write> sizes: array<u32>;

@compute @workgroup_size({_THREADS})
fn main(
    @builtin(local_invocation_index) thread: u32,
    @builtin(subgroup_invocation_id) lane: u32,
    @builtin(subgroup_size) size: u32,
) {{
    sizes[thread] = select(1u, size, lane == thread % size);
}}
"""


def subgroup_size(device: Any) -> int:
    """The threads of a subgroup; 1 if its lanes do not follow the order of threads."""
    usage = wgpu.BufferUsage.STORAGE | wgpu.BufferUsage.COPY_SRC
    sizes = device.create_buffer(size=4 * _THREADS, usage=usage)
    pipeline = device.create_compute_pipeline(
        layout="auto",
        compute={"module": device.create_shader_module(code=_PROBE), "entry_point": "main"},
    )
    bindings = device.create_bind_group(
        layout=pipeline.get_bind_group_layout(0),
        entries=[{"binding": 0, "resource": {"buffer": sizes}}],
    )
    encoder = device.create_command_encoder()
    compute = encoder.begin_compute_pass()
    compute.set_pipeline(pipeline)
    compute.set_bind_group(0, bindings)
    compute.dispatch_workgroups(1)
    compute.end()
    device.queue.submit([encoder.finish()])
    return int(np.frombuffer(device.queue.read_buffer(sizes), np.uint32).min())
