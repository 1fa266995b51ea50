"""What one dispatch costs through shaderad's runtimes, against the same recorded by hand.

Run it as ``python benchmarks/dispatch_overhead.py``. Each round records `DISPATCHES` dispatches of
a small kernel with parameters of their own, submits them at once and waits; rounds of the two
sides alternate, and the median counts.
"""

from __future__ import annotations

import statistics
import struct
from collections.abc import Callable
from typing import Any

import numpy as np
from timing import alternated, median_ratio, on_each

from shaderad.compiler.artifact import Binding, BindingAccess, Program
from shaderad.compiler.compile import compile_program
from shaderad.runtime import Runtime, open_runtime

DISPATCHES = 500
ROUNDS = 15
ELEMENTS = 64
GOAL = 1.5

PROGRAM = Program(
    name="add_scaled",
    slang="""
struct Parameters { uint count; float factor; }
[[vk::binding(0, 0)]] ConstantBuffer<Parameters> parameters;
[[vk::binding(1, 0)]] StructuredBuffer<float> x;
[[vk::binding(2, 0)]] RWStructuredBuffer<float> y;

[shader("compute")]
[numthreads(64, 1, 1)]
void add_scaled(uint3 thread : SV_DispatchThreadID)
{
    if (thread.x < parameters.count)
        y[thread.x] += parameters.factor * x[thread.x];
}
""",
    workgroup=(64, 1, 1),
    bindings=(
        Binding(0, "parameters", BindingAccess.UNIFORM),
        Binding(1, "x", BindingAccess.READ),
        Binding(2, "y", BindingAccess.WRITE),
    ),
    parameter_words=("count", "factor"),
)


def words(k: int) -> bytes:
    return struct.pack("<If", ELEMENTS, float(k))


def shaderad_round(runtime: Runtime) -> Callable[[], None]:
    pipeline = runtime.pipeline(PROGRAM)
    buffers = {1: runtime.allocate(4 * ELEMENTS), 2: runtime.allocate(4 * ELEMENTS)}

    def run() -> None:
        for k in range(DISPATCHES):
            runtime.dispatch(pipeline, buffers, words(k), (1, 1, 1))
        runtime.wait()

    return run


def wgpu_round(device: Any) -> Callable[[], None]:
    """By hand: one bind group, parameters in one buffer at dynamic offsets."""
    import wgpu

    step = device.limits["min-uniform-buffer-offset-alignment"]
    usage = wgpu.BufferUsage.STORAGE | wgpu.BufferUsage.COPY_SRC
    x, y = (device.create_buffer(size=4 * ELEMENTS, usage=usage) for _ in range(2))
    page = device.create_buffer(
        size=step * DISPATCHES, usage=wgpu.BufferUsage.UNIFORM | wgpu.BufferUsage.COPY_DST
    )
    kinds = (
        {"type": "uniform", "has_dynamic_offset": True},
        {"type": "read-only-storage"},
        {"type": "storage"},
    )
    compute = wgpu.ShaderStage.COMPUTE
    layout = device.create_bind_group_layout(
        entries=[
            {"binding": slot, "visibility": compute, "buffer": kind}
            for slot, kind in enumerate(kinds)
        ]
    )
    resources = (
        {"buffer": page, "offset": 0, "size": 16},
        {"buffer": x, "offset": 0, "size": x.size},
        {"buffer": y, "offset": 0, "size": y.size},
    )
    group = device.create_bind_group(
        layout=layout,
        entries=[{"binding": slot, "resource": r} for slot, r in enumerate(resources)],
    )
    module = device.create_shader_module(code=compile_program(PROGRAM, "spirv").content)
    pipeline = device.create_compute_pipeline(
        layout=device.create_pipeline_layout(bind_group_layouts=[layout]),
        compute={"module": module, "entry_point": PROGRAM.name},
    )

    def run() -> None:
        content = bytearray(step * DISPATCHES)
        encoder = device.create_command_encoder()
        one_pass = encoder.begin_compute_pass()
        for k in range(DISPATCHES):
            content[step * k : step * k + 8] = words(k)
            one_pass.set_pipeline(pipeline)
            one_pass.set_bind_group(0, group, [step * k])
            one_pass.dispatch_workgroups(1, 1, 1)
        one_pass.end()
        device.queue.write_buffer(page, 0, content)
        device.queue.submit([encoder.finish()])
        device._poll_wait()

    return run


def slangpy_round(device: Any) -> Callable[[], None]:
    """By hand: one pass, resources bound by name."""
    import slangpy as spy

    module = device.load_module_from_source("by_hand", PROGRAM.slang)
    program = device.link_program([module], [module.entry_point(PROGRAM.name)])
    pipeline = device.create_compute_pipeline(program)
    usage = spy.BufferUsage.shader_resource | spy.BufferUsage.unordered_access
    x, y = (device.create_buffer(size=4 * ELEMENTS, usage=usage) for _ in range(2))

    def run() -> None:
        encoder = device.create_command_encoder()
        one_pass = encoder.begin_compute_pass()
        for k in range(DISPATCHES):
            cursor = spy.ShaderCursor(one_pass.bind_pipeline(pipeline))
            cursor["x"] = x
            cursor["y"] = y
            data = np.frombuffer(bytearray(words(k)), np.uint8)
            cursor["parameters"].dereference().set_data(data)
            one_pass.dispatch_compute([1, 1, 1])
        one_pass.end()
        device.submit_command_buffer(encoder.finish())
        device.wait()

    return run


ROUND_BY_HAND = {"wgpu": wgpu_round, "slangpy": slangpy_round}


def compare(name: str) -> None:
    runtime = open_runtime(name)
    sides = {"ours": shaderad_round(runtime), "by hand": ROUND_BY_HAND[name](runtime.native)}
    times = alternated(sides, ROUNDS)
    ours, by_hand = (1e3 * statistics.median(times[side]) / DISPATCHES for side in sides)
    ratio = median_ratio(times["ours"], times["by hand"])
    verdict = "" if ratio <= GOAL else f"  above the goal of {GOAL}x"
    print(f"{name:8} shaderad {ours:6.1f}   by hand {by_hand:6.1f}   {ratio:4.2f}x{verdict}")
    runtime.close()


def main() -> None:
    print(f"{DISPATCHES} dispatches a submission, microseconds a dispatch")
    on_each((), compare)


if __name__ == "__main__":
    main()
