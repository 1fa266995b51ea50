"""One kernel of a plan, in one mode -> the instructions that run it.

Whatever a program binds that is no value of the plan (arenas, zero cotangents, winners) lies in
buffers of its own. Invariant: no buffer is bound for reading and writing in one dispatch.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import reduce
from typing import TYPE_CHECKING, Protocol

from shaderad.device.stages import Choice, KernelFacts
from shaderad.execute.conversion_kernels import RESULT, cast_kernel
from shaderad.execute.planned_kernels import PlannedKernel, moved_over
from shaderad.execute.schedule import (
    BoundPart,
    Instruction,
    Key,
    Move,
    Places,
    Run,
    Set,
    Words,
    base_of,
    launch_sizes,
    start_of,
)
from shaderad.execute.sized_words import SizedFacts, sized_words
from shaderad.execute.step_arrays import StepArrays
from shaderad.execute.window_items import items_of_threads
from shaderad.ir import sizes, types
from shaderad.ir.arrays import ArrayType, Value, operand_name
from shaderad.lower.bindings import ROLES, Mode, Role, thread_groups
from shaderad.runtime import buffers

if TYPE_CHECKING:
    from collections.abc import Sequence

    from shaderad.execute.schedule import LaunchPlan, Schedule
    from shaderad.ir import nodes
    from shaderad.ir.sizes import Shape, Size
    from shaderad.lower.bindings import Lowered, Resource


class Programs(Protocol):
    """The programs of a schedule, numbered in the order in which they were first asked for."""

    @property
    def lowered(self) -> Sequence[Lowered]: ...

    def of_kernel(self, kernel: nodes.Kernel, choice: Choice) -> Sequence[int]:
        """The dispatches of a mode of `kernel`, in order."""
        ...

    def of_built(self, kernel: PlannedKernel, choice: Choice) -> tuple[LaunchPlan, Sequence[int]]:
        """The plan of a mode of a built kernel, and its programs."""
        ...


@dataclass
class KernelStep:
    """A kernel with the values that it binds."""

    kernel: nodes.Kernel
    choice: Choice
    dim: Shape
    values: dict[Key, Value]
    """The value of the plan that serves each role of an array or uniform."""
    shapes: dict[str, Shape]
    """Shapes of arrays, as the kernel indexes them."""
    sizes: tuple[tuple[str, Size], ...] = ()
    """Uniforms that hold sizes."""
    filled: frozenset[str] = frozenset()
    """Names of the arrays that hold what it adds to, or that it writes whole."""


@dataclass
class _Bound:
    """The buffers and offsets of one dispatch."""

    places: list[tuple[int, int]] = field(default_factory=list[tuple[int, int]])
    offsets: dict[Key, Size] = field(default_factory=dict[Key, "Size"])
    parts: list[BoundPart] = field(default_factory=list[BoundPart])
    """The arrays of a program that runs by windows."""


class KernelBinder:
    """Writes the instructions of kernels of one plan."""

    def __init__(self, programs: Programs, places: Places) -> None:
        self.programs = programs
        self.places = places
        self.instructions: list[Instruction] = []

    def add(self, step: KernelStep) -> None:
        """Adds the instructions of one step."""
        _StepBinder(self, step).run()


def schedule_of(
    step: KernelStep, programs: Programs, inputs: Sequence[Value], outputs: Sequence[Value]
) -> Schedule:
    """The schedule of one step, which computes `outputs` from `inputs`."""
    places = Places(inputs)
    for value in outputs:
        places.make(value)
    binder = KernelBinder(programs, places)
    binder.add(step)
    results = ((value, value.shape) for value in outputs)
    return places.schedule(results, programs.lowered, binder.instructions)


def uniform_words(step: KernelStep, places: Places) -> dict[str, Words]:
    """The words of the uniforms that the host knows: sizes, constants, and numbers of the host."""
    words: dict[str, Words] = {n: (size,) for n, size in step.sizes}
    for (role, name), value in step.values.items():
        if role is Role.UNIFORM:
            known = places.known_words(value)
            if known is not None:
                words[name] = known
    return words


def choice_with(step: KernelStep, places: Places) -> Choice:
    """The choice of a step, in which what the host knows is no array."""
    on_device = step.choice.device_uniforms.difference(uniform_words(step, places))
    return replace(step.choice, device_uniforms=on_device)


class _StepBinder:
    def __init__(self, binder: KernelBinder, step: KernelStep) -> None:
        self._binder = binder
        self._programs = binder.programs
        self._places = binder.places
        self._instructions = binder.instructions
        self._step = step
        facts = KernelFacts(step.kernel)
        self._arrays = StepArrays(facts.element_types, dict(step.shapes))
        self._resources = facts.resources
        self._uniforms = uniform_words(step, self._places)
        self._values = {
            (role, name): value
            for (role, name), value in step.values.items()
            if role is not Role.UNIFORM or name not in self._uniforms
        }
        self._choice = choice_with(step, self._places)
        self._kept: dict[Key, int] = {}
        self._written: set[Key] = set()
        self._after: list[Instruction] = []
        """Copies of results from scratch buffers to their values."""
        self._casts: list[tuple[Value, Value]] = []

    def run(self) -> None:
        step = self._step
        if isinstance(step.kernel, PlannedKernel):
            self._add_built(step.kernel)
        else:
            for program in self._programs.of_kernel(step.kernel, self._choice):
                lowered = self._programs.lowered[program]
                threads = self._arrays.thread_count(lowered, step.dim)
                # Without threads nothing runs, whatever the number of groups.
                groups = thread_groups(lowered, threads, step.dim)
                self._add_program(program, threads, groups)
        for key, value in step.values.items():
            if not (ROLES[key[0]].is_read or key in self._written or self._is_sum(key)):
                # No program had anything to write.
                self._set(self._places.number(value), 0, self._places.byte_count(value))
        self._instructions += self._after
        for found, value in self._casts:
            self._binder.add(_cast_step(found, value))

    def _add_built(self, kernel: PlannedKernel) -> None:
        """The commands of the plan that was built for the kernel, over buffers of this one."""
        places, step = self._places, self._step
        plan, programs = self._programs.of_built(kernel, self._choice)
        schedule = plan.schedule
        extents = launch_sizes(step.dim, step.shapes)
        buffers: dict[int, int] = {}
        for k, key in enumerate(plan.inputs):
            value, start = step.values.get(key), 0
            if value is None:  # no cotangent, no tangent: zeros
                size = sizes.substituted(schedule.byte_counts[k], extents)
                buffers[k] = places.scratch(size)
                self._set(buffers[k], 0, size)
            else:
                buffers[k], start = places.number(value), places.start(value)
                if k in schedule.aligned_inputs and start != 0:
                    places.align(buffers[k])
            extents[start_of(k)] = start
        for key, output in zip(plan.outputs, schedule.outputs, strict=True):
            if key in step.values:
                buffers[output.buffer] = places.number(step.values[key])
                self._written.add(key)
        for k, size in enumerate(schedule.byte_counts):
            if k not in buffers:
                buffers[k] = places.scratch(sizes.substituted(size, extents))
        self._instructions += [
            moved_over(instruction, programs, buffers, extents, self._uniforms)
            for instruction in schedule.instructions
        ]

    def _add_program(self, program: int, threads: Size, groups: Size) -> None:
        lowered, bound = self._programs.lowered[program], _Bound()
        has_offset = lowered.has_offset
        for resource in lowered.resources:
            if resource.role in (Role.REPORT, Role.PRINT):
                continue
            if ROLES[resource.role].is_read:
                self._bind_read(resource, has_offset, bound)
            else:
                self._bind_written(resource, bound)
            if lowered.is_windowed:
                self._offset_by_base(resource, bound)
        facts = SizedFacts(self._step.dim, threads, groups, lowered.program.workgroup[0],
                           self._arrays.shapes, bound.offsets, self._uniforms)  # fmt: skip
        windows = None
        if lowered.is_windowed:
            items = items_of_threads(lowered, self._step.dim, threads)
            facts = items.facts(facts)
            reaches = {r.slot: r.reach for r in lowered.resources if r.reach is not None}
            numbers = dict(self._step.sizes)
            windows = items.windows(reaches, bound.parts, self._arrays.shapes, numbers)
        words = sized_words(lowered, facts)
        run = Run(program, tuple(bound.places), words, facts.group_count, threads, windows)
        self._instructions.append(run)

    # -- one resource ----------------------------------------------------------------------

    def _bind_read(self, resource: Resource, has_offset: frozenset[Key], bound: _Bound) -> None:
        keys = [(resource.role, name) for name in resource.members]
        if len(keys) == 1 and keys[0] in self._values:
            value = self._values[keys[0]]
            number, start = self._places.number(value), self._places.start(value)
            bound.places.append((resource.slot, number))
            if resource.role is Role.INPUT and keys[0][1] in self._resources:
                self._places.bind_whole(value)
                return
            self._note_part(resource, start, bound)
            if keys[0] in has_offset:
                bound.offsets[keys[0]] = _in_words(start, value.element)
            # Elements that the kernel loads as vectors may start between two of those.
            loaded = self._arrays.type_of(resource, 0)
            is_wider = types.byte_count(loaded) > types.byte_count(value.element)
            if start != 0 and (is_wider or keys[0] not in has_offset):
                self._places.align(number)
            return
        starts, size = self._arrays.layout(resource)
        arena = self._places.scratch(size)
        bound.places.append((resource.slot, arena))
        self._note_part(resource, 0, bound)
        for k, (key, start) in enumerate(zip(keys, starts, strict=True)):
            bound.offsets[key] = _in_words(start, self._arrays.type_of(resource, k))
        if any(key not in self._values for key in keys):  # no cotangent, no tangent: zeros
            self._set(arena, 0, size)
        for key, start in zip(keys, starts, strict=True):
            value = self._values.get(key)
            if value is not None:
                self._move(self._places.number(value), self._places.start(value), arena, start,
                           self._places.byte_count(value))  # fmt: skip

    def _offset_by_base(self, resource: Resource, bound: _Bound) -> None:
        """Lets offsets count from where the binding of a window begins."""
        base = sizes.symbol(base_of(resource.slot))
        for k, name in enumerate(resource.members):
            key = (resource.role, name)
            in_binding = _in_words(base, self._arrays.type_of(resource, k))
            bound.offsets[key] = sizes.subtract(bound.offsets.get(key, 0), in_binding)

    def _bind_written(self, resource: Resource, bound: _Bound) -> None:
        keys = [(resource.role, name) for name in resource.members]
        self._written.update(keys)
        misses = self._misses_launch(keys[0][1]) if resource.is_covered_by_launch else 1
        is_plain = len(keys) == 1 and self._has_type(keys[0], self._arrays.type_of(resource, 0))
        starts, size = self._arrays.layout(resource)
        if is_plain:
            number = self._places.number(self._values[keys[0]])
        elif keys[0] in self._kept:
            number = self._kept[keys[0]]
        else:
            number = self._places.scratch(size)
            self._kept.update(dict.fromkeys(keys, number))
        bound.places.append((resource.slot, number))
        self._note_part(resource, 0, bound)
        is_filled = self._step.filled.issuperset(resource.members)
        if resource.fill_word is not None and misses != 0 and not is_filled:
            self._set(number, resource.fill_word, sizes.multiply(size, misses))
        if is_plain:
            return
        for k, (key, start) in enumerate(zip(keys, starts, strict=True)):
            t = self._arrays.type_of(resource, k)
            bound.offsets[key] = _in_words(start, t)
            value = self._values.get(key)
            if value is not None and self._is_sum(key):
                self._move(self._places.number(value), 0, number, start,
                           self._places.byte_count(value))  # fmt: skip
            if value is not None:
                self._bring_back(value, t, number, start)

    def _note_part(self, resource: Resource, start: Size, bound: _Bound) -> None:
        """Notes where the arrays of a resource lie in its buffer."""
        arrays = self._arrays
        if len(resource.members) == 1:
            size, count = types.byte_count(arrays.type_of(resource, 0)), arrays.count(resource, 0)
        else:
            size, count = 1, arrays.layout(resource)[1]
        bound.parts.append(BoundPart(resource.slot, start, size, count, None))

    def _is_sum(self, key: Key) -> bool:
        """True if the programs add to the content of an array."""
        return self._step.choice.accumulate and key[0] is Role.GRADIENT

    def _misses_launch(self, name: str) -> Size:
        """0 if the array has the shape of the launch, else 1."""
        shape, dim = self._arrays.shapes.get(name, ()), self._step.dim
        if len(shape) != len(dim):
            return 1
        distances = [
            sizes.maximum(sizes.subtract(a, b), sizes.subtract(b, a))
            for a, b in zip(shape, dim, strict=True)
        ]
        return sizes.minimum(1, reduce(sizes.maximum, distances)) if distances else 0

    def _has_type(self, key: Key, t: types.Type) -> bool:
        """True if a value of the plan can be bound as `key` of elements `t`.

        Scalars of vectors can be bound one by one, and those that kernels of plans store by four.
        """
        value = self._values.get(key)
        return value is not None and (
            t in (value.element, buffers.base_of(value.element))
            or (isinstance(t, types.Vector) and t.element == value.element)
        )

    def _bring_back(self, value: Value, t: types.Type, number: int, start: Size) -> None:
        """Notes that what lies in scratch memory is wanted as a value of the plan."""
        found = Value(ArrayType(t, value.shape))
        size = self._places.byte_count(found)
        if value.element == t:
            self._after.append(Move(number, start, self._places.number(value), 0, size))
            return
        if start != 0:
            moved = self._places.scratch(size)
            self._after.append(Move(number, start, moved, 0, size))
            number = moved
        self._places.hold(found, number)
        self._casts.append((found, value))

    # -- memory ----------------------------------------------------------------------------

    def _set(self, number: int, word: int, size: Size) -> None:
        self._instructions.append(Set(number, word, size))

    def _move(self, source: int, source_at: Size, target: int, target_at: Size, size: Size) -> None:
        self._instructions.append(Move(source, source_at, target, target_at, size))


def _in_words(start: Size, t: types.Type) -> Size:
    return sizes.floor_divide(start, types.word_bytes(t))


def _cast_step(found: Value, value: Value) -> KernelStep:
    """The dispatch that converts the floats of `found`; all of `value` are written."""
    kernel = cast_kernel(found.element, value.element)
    dim = (sizes.product((*value.shape, *buffers.element_axes(value.element))),)
    values = {(Role.INPUT, operand_name(0)): found, (Role.OUTPUT, RESULT): value}
    shapes = dict.fromkeys((operand_name(0), RESULT), dim)
    choice = Choice(Mode.PRIMAL, "unchecked", "", frozenset({RESULT}), frozenset())
    return KernelStep(kernel, choice, dim, values, shapes)
