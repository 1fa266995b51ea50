"""Small programs of `calls.py`: steps that only record, and the objects that a warm step creates.

Inputs are resident and small, so that the host's part of a step is the larger one. Creations are
counted from outside: the native device of a runtime is replaced by one that counts its calls.
"""

from __future__ import annotations

import functools
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import many_steps
from compare import CONTESTS, Ours
from mesh_step import SAMPLE
from timing import dispatch_count
from workloads import WORKLOADS

import shaderad as sad
from shaderad.runtime.base import DISPATCHES_PER_SUBMISSION

SIZE = 64
"""Pixels along an edge of the mesh sample's picture."""
ELEMENTS = 1000

Record = Callable[[], object]
"""Records one step without waiting for it."""

KIND_BY_METHOD = {
    "create_buffer": "buffers",
    "create_root_shader_object": "root objects",
    "create_bind_group": "bind groups",
}
UPLOADS = "uploads"
KINDS = (*KIND_BY_METHOD.values(), UPLOADS)


def programs(device: sad.Device) -> dict[str, Record]:
    """The steps on the current device, `device`, by name."""
    gradient = value_and_gradient("W2", ELEMENTS, device)
    return {"mesh step": mesh_fit(SIZE).step, "W2 value and gradient": gradient, "ode": ode()}


def mesh_fit(size: int) -> Any:
    """The mesh sample's fit of colours; a step has 40 leaves in structs, and 9 dispatches."""
    if str(SAMPLE) not in sys.path:
        sys.path.insert(0, str(SAMPLE))
    import fit

    return fit.ATTRIBUTES["colors"](size)


def value_and_gradient(name: str, count: int, device: sad.Device) -> Record:
    """A workload outside of graphs."""
    inputs = WORKLOADS[name](count).inputs
    return Ours(CONTESTS[name], inputs, device, with_value=True).record


def ode() -> Record:
    """A graph of 121 dispatches, at the size of `many_steps.py`: smaller ones are one loop."""
    program = many_steps.ode()
    graph, inputs = sad.graph(program.ours), program.resident()
    return lambda: graph(*inputs)


def steps_per_submission(device: sad.Device, step: Record) -> int:
    """The steps that are recorded before the runtime submits them, but at least one."""
    step()
    return max(1, DISPATCHES_PER_SUBMISSION // dispatch_count(device, step))


class CountingDevice:
    """A native device that counts the objects that it creates, by kind."""

    def __init__(self, native: Any, counts: Counter[str]) -> None:
        self._native, self._counts = native, counts

    def __getattr__(self, name: str) -> Any:
        attribute = getattr(self._native, name)
        if name not in KIND_BY_METHOD:
            return attribute
        return counting(attribute, self._counts, KIND_BY_METHOD[name])


def counting(method: Callable[..., Any], counts: Counter[str], kind: str) -> Callable[..., Any]:
    @functools.wraps(method)
    def counted(*arguments: Any, **keywords: Any) -> Any:
        counts[kind] += 1
        return method(*arguments, **keywords)

    return counted


@contextmanager
def creations(device: sad.Device) -> Iterator[Counter[str]]:
    """Counts buffers, root objects, bind groups, and uploads, while the context is entered."""
    runtime: Any = device.runtime
    native, counts = runtime.native, Counter[str]()
    runtime.native = CountingDevice(native, counts)
    runtime.record_write = counting(runtime.record_write, counts, UPLOADS)
    try:
        yield counts
    finally:
        runtime.native = native
        del runtime.record_write


def created_by(device: sad.Device, step: Record, count: int) -> dict[str, float]:
    """The objects that one of `count` warm steps creates on average, by kind."""
    for _ in range(count):
        step()
    device.synchronize()
    with creations(device) as counts:
        for _ in range(count):
            step()
    device.synchronize()
    return {kind: counts[kind] / count for kind in KINDS}
