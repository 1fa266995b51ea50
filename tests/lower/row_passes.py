"""Reductions and scans on a device, step by step, as a plan would run them."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import numpy as np

import shaderad as sad
from shaderad.arrays.arrays import Array
from shaderad.device.stages import Choice
from shaderad.execute.kept_schedules import KernelPrograms, Scheduled
from shaderad.execute.kernel_steps import KernelStep, StagedPasses, schedule_of
from shaderad.ir import nodes
from shaderad.ir.arrays import ArrayType, Value
from shaderad.ir.types import INT, Access, BufferType, Type
from shaderad.lower.bindings import Mode, Role, Variant
from shaderad.lower.passes.rows import INIT, RESULT, Passes
from tests.launch_shapes import shape_of

X = "x"


@lru_cache
def elements_of(t: Type, rank: int) -> nodes.Kernel:
    """The kernel whose elements are those of `x`."""
    names = ("i", "j", "k", "l")[:rank]
    at = tuple(nodes.Var(type=INT, name=n) for n in names)
    types = {X: BufferType(Access.IN, t, rank), RESULT: BufferType(Access.OUT, t, rank)}
    store = nodes.Store(buffer=RESULT, indices=at, value=nodes.Load(type=t, buffer=X, indices=at))
    return nodes.Kernel(
        name="elements",
        index_names=names,
        parameters=tuple(nodes.KernelParameter(name=n, type=bt) for n, bt in types.items()),
        buffers=tuple(nodes.Buffer(name=n, path=(n,), type=bt) for n, bt in types.items()),
        uniforms=(),
        body=(store,),
        local_types={},
    )


def variant_of(device: sad.Device, *, is_parallel: bool) -> Variant:
    """What the device asks of programs, but for whether its threads run in parallel."""
    known = device.capabilities
    return Variant(
        atomics=known.atomics,
        subgroups="subgroups" in known.features,
        features=known.features,
        bounds="ignore",
        shape=shape_of(is_parallel=is_parallel),
    )


def run(
    device: sad.Device,
    passes: Passes,
    result: tuple[Type, tuple[int, ...]],
    x: Array,
    init: Array | None = None,
) -> np.ndarray[Any, Any]:
    """What the passes make of the rows of `x`, of the result's element type and shape."""
    given = {X: x} if init is None else {X: x, INIT: init}
    inputs = {name: Value(ArrayType(one.element, one.shape)) for name, one in given.items()}
    output = Value(ArrayType(*result))
    programs = KernelPrograms(device)
    numbers = tuple(programs.number(device.stages.begun(one.lowered, "")) for one in passes.steps)
    step = KernelStep(
        kernel=elements_of(x.element, x.ndim),
        choice=Choice(Mode.PRIMAL, "ignore", "", frozenset(), frozenset()),
        dim=x.shape,
        values={(Role.INPUT, name): value for name, value in inputs.items()}
        | {(Role.OUTPUT, RESULT): output},
        shapes={name: one.shape for name, one in given.items()} | {RESULT: output.shape},
        passes=StagedPasses(passes, numbers, x.shape),
    )
    schedule = schedule_of(step, programs, [*inputs.values()], [output])
    places = [one.aligned() for one in given.values()]
    scheduled = Scheduled(device, schedule, programs.stages)
    (found,) = scheduled.prepared(places, (), {}).run(places)
    return found.numpy()
