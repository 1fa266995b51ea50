"""The dispatches of a plan, recorded by hand in raw wgpu or slangpy.

Pipelines, bind groups, buffers and (in wgpu) parameters are made before; a step is one pass in one
submission, whose end it waits for.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

import shaderad as sad
from shaderad.execute.commands import Dispatch
from shaderad.execute.prepared import Prepared
from shaderad.execute.runner import GraphRunner
from shaderad.runtime.capabilities import uniform_bytes

Step = Callable[[], None]


@dataclass(frozen=True)
class Bound:
    """One dispatch of the programs that shaderad made, with native buffers."""

    pipeline: Any
    buffers: list[Any]
    """In the order of ``pipeline.storage_slots``."""
    words: bytes
    groups: tuple[int, int, int]


def prepared(
    graph: Any, arguments: Sequence[Any], device: sad.Device
) -> tuple[Prepared, list[Any]]:
    """What a call of a graph does, as commands over a frame of buffers, and the first of those."""
    bound = graph.bound(arguments, {})
    runner = device.kept(GraphRunner)
    graph, sizes = bound.variant.graph, bound.form.size_by_name
    run = runner.prepared(graph, bound.operands, sizes)
    return run.commands, [buffer for buffer, _ in run.places]


def framed(plan: Prepared, inputs: Sequence[Any]) -> list[Any]:
    """`inputs`, buffers of our own for all that the plan makes, then those of the device."""
    made = (*plan.kept_bytes, *plan.scratch_bytes)
    own = (plan.device.runtime.allocate(n) for n in made)
    return [*inputs, *own, *plan.own_buffers]


def bound(dispatch: Dispatch, frame: Sequence[Any]) -> Bound:
    native = [frame[k].native for k in dispatch.numbers]
    return Bound(dispatch.pipeline, native, dispatch.words, dispatch.groups)


def recorded(device: sad.Device, zeroed: Sequence[Any], dispatches: Sequence[Bound]) -> Step:
    """Fills `zeroed` with zeros, then dispatches all, in one pass."""
    recorder = wgpu_step if device.capabilities.runtime == "wgpu" else slangpy_step
    return recorder(device.runtime.native, zeroed, dispatches)


def wgpu_step(device: Any, zeroed: Sequence[Any], dispatches: Sequence[Bound]) -> Step:
    """By wgpu; parameters are immediates, or lie in one buffer, which is written once."""
    import wgpu

    stride = max(one.pipeline.page_bytes for one in dispatches)
    usage = wgpu.BufferUsage.UNIFORM | wgpu.BufferUsage.COPY_DST
    page = device.create_buffer(size=max(1, stride) * len(dispatches), usage=usage)
    recorded: list[tuple[Any, Any, list[int], bytes, tuple[int, int, int]]] = []
    for k, one in enumerate(dispatches):
        by_slot = zip(one.pipeline.storage_slots, one.buffers, strict=True)
        resources = {k: {"buffer": buffer} for k, buffer in by_slot}
        immediates, offsets = one.words, list[int]()
        if one.pipeline.page_bytes:
            immediates, offsets = b"", [stride * k]
            device.queue.write_buffer(page, stride * k, one.words)
            size = uniform_bytes(one.pipeline.program)
            resources[one.pipeline.uniform_slot] = {"buffer": page, "offset": 0, "size": size}
        entries = [{"binding": slot, "resource": resource} for slot, resource in resources.items()]
        group = device.create_bind_group(layout=one.pipeline.layout, entries=entries)
        recorded.append((one.pipeline.native, group, offsets, immediates, one.groups))

    def step() -> None:
        encoder = device.create_command_encoder()
        for buffer in zeroed:
            encoder.clear_buffer(buffer)
        one_pass = encoder.begin_compute_pass()
        for pipeline, group, offsets, immediates, counts in recorded:
            one_pass.set_pipeline(pipeline)
            one_pass.set_bind_group(0, group, offsets)
            if immediates:
                one_pass.set_immediates(0, immediates, 0, len(immediates))
            one_pass.dispatch_workgroups(*counts)
        one_pass.end()
        device.queue.submit([encoder.finish()])
        device._poll_wait()

    return step


def slangpy_step(device: Any, zeroed: Sequence[Any], dispatches: Sequence[Bound]) -> Step:
    """By slangpy, which takes buffers and parameters anew for each dispatch."""
    import slangpy as spy

    recorded: list[tuple[Any, list[tuple[int, Any]], Any, Any]] = []
    for one in dispatches:
        fields = [*zip(one.pipeline.storage_fields, one.buffers, strict=True)]
        words = np.frombuffer(bytearray(one.words), np.uint8)
        recorded.append((one.pipeline, fields, words, spy.uint3(*one.groups)))

    def step() -> None:
        encoder = device.create_command_encoder()
        for buffer in zeroed:
            encoder.clear_buffer(buffer)
        one_pass = encoder.begin_compute_pass()
        for pipeline, fields, words, counts in recorded:
            root = spy.ShaderCursor(one_pass.bind_pipeline(pipeline.native))
            for field, buffer in fields:
                root.get_field_by_index(field).write(buffer)
            if pipeline.words_field is not None:
                root.get_field_by_index(pipeline.words_field).dereference().set_data(words)
            one_pass.dispatch_compute(counts)
        one_pass.end()
        device.submit_command_buffer(encoder.finish())
        device.wait()

    return step
