"""Reductions and scans on a device, step by step, as a plan would run them."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from math import prod
from typing import Any

import numpy as np

import shaderad as sad
from shaderad.arrays.arrays import Array
from shaderad.execute.dispatch import Placement
from shaderad.execute.schedule import GROUP_LIMIT, SITE_BASE
from shaderad.execute.sized_words import SizedFacts, sized_words
from shaderad.ir import nodes, sizes
from shaderad.ir.types import INT, Access, BufferType, Type
from shaderad.lower.bindings import Role, Variant
from shaderad.lower.passes.rows import INIT, RESULT, Pass, Passes

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


def variant_of(device: sad.Device, **fields: Any) -> Variant:
    """What the device asks of programs."""
    known = device.capabilities
    return Variant(
        atomics=known.atomics,
        subgroups="subgroups" in known.features,
        features=known.features,
        bounds="ignore",
        **fields,
    )


def run(
    device: sad.Device,
    passes: Passes,
    result: tuple[Type, tuple[int, ...]],
    x: Array,
    init: Array | None = None,
) -> np.ndarray[Any, Any]:
    """What the passes make of the rows of `x`, of the result's element type and shape."""
    values = passes.formulas.evaluate(prod(x.shape[:-1]), x.shape[-1])
    arrays = {X: x, RESULT: _blank(device, *result)}
    if init is not None:
        arrays[INIT] = init
    for scratch in passes.scratch:
        count = sizes.evaluate(scratch.count, values)
        arrays[scratch.name] = _blank(device, scratch.element, (count,))
    for step in passes.steps:
        if sizes.evaluate(step.is_needed, values) > 0:
            _dispatch(device, step, arrays, values, x.shape)
    return arrays[RESULT].numpy()


def _blank(device: sad.Device, t: Type, shape: tuple[int, ...]) -> Array:
    """An array full of what no pass should leave as it is."""
    blank = Array(device, t, shape, None)
    buffer = device.runtime.allocate(blank.byte_count, zeroed=False)
    device.runtime.write(buffer, 0, b"\xcd" * (-(-blank.byte_count // 4) * 4))
    blank.fill_in(buffer, 0)
    return blank


def _dispatch(
    device: sad.Device,
    step: Pass,
    arrays: Mapping[str, Array],
    values: Mapping[str, int],
    dim: tuple[int, ...],
) -> None:
    groups = (sizes.evaluate(step.group_count, values), 1, 1)
    shapes = {name: array.shape for name, array in arrays.items()}
    element_types = {name: array.element for name, array in arrays.items()}
    placed = Placement(device, shapes, element_types, dim)
    for name, array in arrays.items():
        for role in (Role.INPUT, Role.OUTPUT):
            placed.give(role, name, array)
    bound = placed.bound(step.lowered, step.lowered.has_offset)
    facts = SizedFacts(
        dim=dim, thread_count=prod(dim), group_count=groups[0],
        group_size=step.lowered.program.workgroup[0], shapes=shapes,
        offsets=bound.offsets, uniforms={}, formulas=values,
    )  # fmt: skip
    known = {GROUP_LIMIT: groups[0], SITE_BASE: 0}
    words = [sizes.evaluate(word, known) for word in sized_words(step.lowered, facts)]
    pipeline = device.runtime.pipeline(step.lowered.program)
    raw = np.asarray(words, np.uint32).tobytes()
    device.runtime.dispatch(pipeline, bound.by_slot, raw, groups)
