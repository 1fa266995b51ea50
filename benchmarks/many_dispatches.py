"""A gradient step of 20 dispatches over arrays of 1,000 elements, against the same by hand.

    python benchmarks/many_dispatches.py [wgpu|slangpy ..]

The step is written as a user would write it. By hand, the same programs are recorded in raw wgpu
or slangpy; pipelines, bind groups, buffers and (in wgpu) parameters are made before. Both sides
make one submission a step and wait for its end; ours also looks for reports of bad indices.
"""

# Names of sizes stand in quotes.
# ruff: noqa: UP037, F821

from __future__ import annotations

import statistics
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from timing import alternated, median_ratio

import shaderad as sad
from shaderad.session.commands import Dispatch, Fill
from shaderad.session.prepared import Prepared
from shaderad.session.run_plan import GraphRunner

ELEMENTS = 1000
DIFFUSIONS = 9
"""With as many backward, the difference to the target, and the update, 20 dispatches."""
GOAL = 1.5

Step = Callable[[], None]


@sad.kernel
def diffused(i: sad.Index, u: sad.In[float], result: sad.Out[float]):
    left = u[sad.max(i - 1, 0)]
    right = u[sad.min(i + 1, len(u) - 1)]
    result[i] = u[i] + 0.25 * (left - 2.0 * u[i] + right) - 0.1 * u[i] ** 3


def miss(u: sad.Array, target: sad.Array) -> sad.Array:
    """How far from `target` a state ends that diffuses and decays."""
    for _ in range(DIFFUSIONS):
        u = diffused(u, dim=u.shape[0])
    difference = u - target
    return sad.sum(difference * difference)


@sad.graph
def descended(u: sad.Array[float, "n"], target: sad.Array[float, "n"]) -> sad.Array[float]:
    """`u`, one step of gradient descent further."""
    return u - 0.1 * sad.grad(miss)(u, target)


class Ours:
    """The step by shaderad."""

    def __init__(self, device: sad.Device, element_count: int) -> None:
        u, target = np.random.default_rng(0).random((2, element_count), np.float32)
        self.arguments = [sad.array(x, device=device) for x in (u, target)]
        self._device = device
        self._u = self.arguments[0]

    def step(self) -> None:
        self._u = descended(self._u, self.arguments[1])
        self._device.synchronize()

    def first(self) -> np.ndarray[Any, Any]:
        """What the first step comes to."""
        return descended(*self.arguments).numpy()

    def plan(self) -> Prepared:
        """What a step does, as commands over a frame of buffers."""
        bound = descended.bound(self.arguments, {})
        runner = self._device.kept(GraphRunner)
        return runner.prepared(bound.variant.graph, bound.operands, bound.form.size_by_name)


@dataclass(frozen=True)
class Bound:
    """One dispatch of the programs that shaderad made, with native buffers by slot."""

    pipeline: Any
    buffers: dict[int, Any]
    words: bytes
    groups: tuple[int, int, int]


class ByHand:
    """The same dispatches over buffers of their own; each step is the first.

    What gradients are added to never serves for anything else, so all of it is zeroed at the
    start of a step and one pass takes all dispatches.
    """

    def __init__(self, ours: Ours) -> None:
        plan = ours.plan()
        self.runtime = plan.device.runtime
        self.zeroed: list[Any] = []
        self.dispatches: list[Bound] = []
        frame = [x.buffer for x in ours.arguments]
        frame += [self.runtime.allocate(n) for n in (*plan.kept_bytes, *plan.scratch_bytes)]
        for command in plan.commands:
            if isinstance(command, Fill):
                assert command.word == 0
                frame[command.target] = self.runtime.allocate(command.byte_count)
                self.zeroed.append(frame[command.target].native)
            else:
                assert isinstance(command, Dispatch)
                self.dispatches.append(bound(command, frame))
        self._result = frame[plan.outputs[0][2]]
        self.runtime.wait()
        recorder = wgpu_step if plan.device.capabilities.runtime == "wgpu" else slangpy_step
        self.step = recorder(self.runtime.native, self.zeroed, self.dispatches)

    def result(self) -> np.ndarray[Any, Any]:
        (content,) = self.runtime.read([(self._result, 0, self._result.byte_count)])
        return np.frombuffer(content, np.float32)


def bound(dispatch: Dispatch, frame: Sequence[Any]) -> Bound:
    found = {slot: frame[number].native for slot, number in dispatch.places}
    if dispatch.report is not None:
        slot, buffer = dispatch.report
        found[slot] = buffer.native
    return Bound(dispatch.pipeline, found, dispatch.words, dispatch.groups)


def wgpu_step(device: Any, zeroed: Sequence[Any], dispatches: Sequence[Bound]) -> Step:
    """By wgpu; the parameters of all dispatches lie in one buffer, written once."""
    import wgpu

    stride = device.limits["min-uniform-buffer-offset-alignment"]
    usage = wgpu.BufferUsage.UNIFORM | wgpu.BufferUsage.COPY_DST
    page = device.create_buffer(size=stride * len(dispatches), usage=usage)
    recorded: list[tuple[Any, Any, list[int], tuple[int, int, int]]] = []
    for k, one in enumerate(dispatches):
        slot = one.pipeline.needs.uniform_slot
        resources = {k: {"buffer": buffer} for k, buffer in one.buffers.items()}
        if slot is not None:
            device.queue.write_buffer(page, stride * k, one.words)
            resources[slot] = {"buffer": page, "offset": 0, "size": one.pipeline.uniform_bytes}
        entries = [{"binding": slot, "resource": resource} for slot, resource in resources.items()]
        group = device.create_bind_group(layout=one.pipeline.layout, entries=entries)
        offsets = [] if slot is None else [stride * k]
        recorded.append((one.pipeline.native, group, offsets, one.groups))

    def step() -> None:
        encoder = device.create_command_encoder()
        for buffer in zeroed:
            encoder.clear_buffer(buffer)
        one_pass = encoder.begin_compute_pass()
        for pipeline, group, offsets, counts in recorded:
            one_pass.set_pipeline(pipeline)
            one_pass.set_bind_group(0, group, offsets)
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
        fields = [(field, one.buffers[slot]) for slot, field in one.pipeline.storage_fields]
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


def compare(runtime: str, element_count: int = ELEMENTS, rounds: int = 300) -> None:
    """Prints a line on one runtime."""
    device = sad.open_device(runtime)
    ours = Ours(device, element_count)
    by_hand = ByHand(ours)
    by_hand.step()
    # Neighbours add to one cotangent, in any order.
    np.testing.assert_allclose(by_hand.result(), ours.first(), rtol=1e-6)
    times = alternated({"ours": ours.step, "by hand": by_hand.step}, rounds)
    ratio = median_ratio(times["ours"], times["by hand"])
    ours_us, by_hand_us = (1e3 * statistics.median(one) for one in times.values())
    print(
        f"{runtime:8} {len(by_hand.dispatches)} dispatches a step: shaderad {ours_us:.0f} us, "
        f"by hand {by_hand_us:.0f} us, {ratio:.2f}x"
        f"{f'  above {GOAL}x' if ratio > GOAL else ''}"
    )
    device.close()


def main() -> None:
    for runtime in sys.argv[1:] or ("wgpu", "slangpy"):
        try:
            compare(runtime)
        except sad.DeviceError as failure:
            print(f"{runtime:8} not here: {failure.message}")


if __name__ == "__main__":
    main()
