"""One kernel of a plan, in one mode -> the instructions that run it.

Whatever a program binds that is no value of the plan (arenas, zero cotangents, winners) lies in
buffers of its own. Invariant: no buffer is bound for reading and writing in one dispatch.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import reduce
from typing import TYPE_CHECKING, Protocol

from shaderad.bodies.reaches import END_ITEM, FIRST_ITEM, window_symbols
from shaderad.device.stages import Choice, KernelFacts
from shaderad.execute.conversion_kernels import RESULT, cast_kernel
from shaderad.execute.planned_kernels import PlannedKernel
from shaderad.execute.schedule import (
    BoundPart,
    Instruction,
    Key,
    Let,
    Move,
    Places,
    Run,
    Set,
    UniformWord,
    Windows,
    aligned,
    base_of,
    launch_sizes,
    start_of,
    storage_bytes,
)
from shaderad.execute.sized_words import SizedFacts, sized_words
from shaderad.ir import sizes, types
from shaderad.ir.arrays import ArrayType, Value, operand_name
from shaderad.lower.bindings import LENGTH, ROLES, ROWS, Mode, Role, thread_groups
from shaderad.runtime import buffers

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from shaderad.execute.schedule import LaunchPlan, Schedule
    from shaderad.ir import nodes
    from shaderad.ir.sizes import Shape, Size
    from shaderad.lower.bindings import Lowered, Resource
    from shaderad.lower.passes.rows import Chunks, Passes
    from shaderad.plan.steps import RunPass

ARENA_ALIGN = 16
"""Bytes; a multiple of every storage word."""


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


class PlanPrograms(Programs, Protocol):
    """The programs of a plan."""

    def of_pass(self, step: RunPass, choice: Choice) -> StagedPasses:
        """The dispatches of a reduction or scan; `choice` is its producer's."""
        ...


@dataclass(frozen=True, eq=False)
class StagedPasses:
    """The passes of a reduction or scan."""

    passes: Passes
    programs: tuple[int, ...]
    shape: Shape
    """The shape of all rows; the passes run along the last axis."""


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
    is_filled: bool = False
    """True if the arrays that it writes hold what it adds to."""
    passes: StagedPasses | None = None
    """Passes that run in place of the kernel, which computes their elements."""


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
        self._pass_count = 0

    def add(self, step: KernelStep) -> None:
        """Adds the instructions of one step; the arrays that its passes leave behind, by name."""
        return _StepBinder(self, step).run()

    def next_pass(self) -> int:
        """A number that sets the sizes of one reduction or scan apart."""
        self._pass_count += 1
        return self._pass_count


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


class _StepBinder:
    def __init__(self, binder: KernelBinder, step: KernelStep) -> None:
        self._binder = binder
        self._programs = binder.programs
        self._places = binder.places
        self._instructions = binder.instructions
        self._step = step
        self._shapes = dict(step.shapes)
        self._element_types = KernelFacts(step.kernel).element_types
        self._values = dict(step.values)
        self._kept: dict[Key, int] = {}
        self._written: set[Key] = set()
        self._after: list[Instruction] = []
        """Copies of results from scratch buffers to their values."""
        self._casts: list[tuple[Value, Value]] = []

    def run(self) -> None:
        step = self._step
        if isinstance(step.kernel, PlannedKernel):
            self._add_built(step.kernel)
        elif step.passes is None:
            for program in self._programs.of_kernel(step.kernel, step.choice):
                lowered = self._programs.lowered[program]
                threads = self._thread_count(lowered)
                # Without threads nothing runs, whatever the number of groups.
                self._add_program(program, threads, thread_groups(lowered, threads), threads)
        else:
            self._add_passes(step.passes)
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
        plan, programs = self._programs.of_built(kernel, step.choice)
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
            _moved(instruction, programs, buffers, extents) for instruction in schedule.instructions
        ]

    def _add_passes(self, staged: StagedPasses) -> None:
        """The dispatches that the number of rows and their length call for."""
        passes, number = staged.passes, self._binder.next_pass()
        given = {ROWS: sizes.product(staged.shape[:-1]), LENGTH: staged.shape[-1]}
        formulas = {**given, **passes.formulas.by_name}
        own = {name: sizes.symbol(f"${name}_{number}") for name in formulas}
        for name, size in formulas.items():
            known = size if name in given else sizes.substituted(size, own)
            self._instructions.append(Let(f"${name}_{number}", known))
        for one in passes.scratch:
            value = Value(ArrayType(one.element, (sizes.substituted(one.count, own),)))
            self._places.make(value)
            self._shapes[one.name] = value.shape
            self._values |= {(Role.INPUT, one.name): value, (Role.OUTPUT, one.name): value}
        for one, program in zip(passes.steps, staged.programs, strict=True):
            groups = sizes.substituted(one.group_count, own)
            is_needed = sizes.substituted(one.is_needed, own)
            self._add_program(program, groups, groups, is_needed, own, one.chunks)

    def _add_program(
        self,
        program: int,
        threads: Size,
        groups: Size,
        is_needed: Size,
        formulas: Mapping[str, Size] | None = None,
        chunks: Chunks | None = None,
    ) -> None:
        lowered = self._programs.lowered[program]
        bound, formulas = _Bound(), formulas or {}
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
                           self._shapes, bound.offsets, dict(self._step.sizes),
                           formulas)  # fmt: skip
        windows = None
        if lowered.is_windowed:
            items = _items_of_threads(lowered, self._step.dim, threads)
            if chunks is not None:
                items = _items_of_teams(chunks, self._step.dim, formulas)
            facts = items.facts(facts)
            windows = self._windows(lowered, bound, items, formulas)
        words = sized_words(lowered, facts)
        run = Run(program, tuple(bound.places), words, facts.group_count, is_needed, windows)
        self._instructions.append(run)

    def _windows(
        self, lowered: Lowered, bound: _Bound, items: _Items, formulas: Mapping[str, Size]
    ) -> Windows:
        """The items of a dispatch, and the parts of its arrays that they access."""
        step = self._step
        known = {
            **{str(axis): extent for axis, extent in enumerate(items.dim)},
            **{f"{name}.{axis}": extent
               for name, shape in self._shapes.items() for axis, extent in enumerate(shape)},
            **dict(step.sizes), **formulas,
        }  # fmt: skip
        known |= {name: sizes.symbol(name) for name in window_symbols(len(items.dim))}
        reaches = {r.slot: r.reach for r in lowered.resources if r.reach is not None}
        # What else a host passes is not known before a run.
        found = {slot: reach.substituted(known)
                 for slot, reach in reaches.items() if reach.symbols <= known.keys()}  # fmt: skip
        parts = (replace(part, reach=found.get(part.slot)) for part in bound.parts)
        return Windows(items.count, items.step, items.dim, items.first_number, tuple(parts))

    def _thread_count(self, lowered: Lowered) -> Size:
        name = lowered.threads_of
        if not name:
            return sizes.product(self._step.dim)
        t = self._element_types[name]
        words = types.byte_count(t) // types.word_bytes(t)
        return sizes.multiply(sizes.product(self._shapes[name]), words)

    # -- one resource ----------------------------------------------------------------------

    def _bind_read(self, resource: Resource, has_offset: frozenset[Key], bound: _Bound) -> None:
        keys = [(resource.role, name) for name in resource.members]
        if len(keys) == 1 and keys[0] in self._values:
            value = self._values[keys[0]]
            number, start = self._places.number(value), self._places.start(value)
            bound.places.append((resource.slot, number))
            self._note_part(resource, start, bound)
            if keys[0] in has_offset:
                bound.offsets[keys[0]] = _in_words(start, value.element)
            # Elements that the kernel loads as vectors may start between two of those.
            is_wider = types.byte_count(self._type(resource, 0)) > types.byte_count(value.element)
            if start != 0 and (is_wider or keys[0] not in has_offset):
                self._places.align(number)
            return
        starts, size = self._layout(resource)
        arena = self._places.scratch(size)
        bound.places.append((resource.slot, arena))
        self._note_part(resource, 0, bound)
        for k, (key, start) in enumerate(zip(keys, starts, strict=True)):
            bound.offsets[key] = _in_words(start, self._type(resource, k))
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
            in_binding = _in_words(base, self._type(resource, k))
            bound.offsets[key] = sizes.subtract(bound.offsets.get(key, 0), in_binding)

    def _bind_written(self, resource: Resource, bound: _Bound) -> None:
        keys = [(resource.role, name) for name in resource.members]
        self._written.update(keys)
        misses = self._misses_launch(keys[0][1]) if resource.is_covered_by_launch else 1
        is_plain = len(keys) == 1 and self._has_type(keys[0], self._type(resource, 0))
        starts, size = self._layout(resource)
        if is_plain:
            number = self._places.number(self._values[keys[0]])
        elif keys[0] in self._kept:
            number = self._kept[keys[0]]
        else:
            number = self._places.scratch(size)
            self._kept.update(dict.fromkeys(keys, number))
        bound.places.append((resource.slot, number))
        self._note_part(resource, 0, bound)
        if resource.fill_word is not None and misses != 0 and not self._step.is_filled:
            self._set(number, resource.fill_word, sizes.multiply(size, misses))
        if is_plain:
            return
        for k, (key, start) in enumerate(zip(keys, starts, strict=True)):
            t = self._type(resource, k)
            bound.offsets[key] = _in_words(start, t)
            value = self._values.get(key)
            if value is not None and self._is_sum(key):
                self._move(self._places.number(value), 0, number, start,
                           self._places.byte_count(value))  # fmt: skip
            if value is not None:
                self._bring_back(value, t, number, start)

    def _note_part(self, resource: Resource, start: Size, bound: _Bound) -> None:
        """Notes where the arrays of a resource lie in its buffer."""
        if len(resource.members) == 1:
            size, count = types.byte_count(self._type(resource, 0)), self._count(resource, 0)
        else:
            size, count = 1, self._layout(resource)[1]
        bound.parts.append(BoundPart(resource.slot, start, size, count, None))

    def _is_sum(self, key: Key) -> bool:
        """True if the programs add to the content of an array."""
        return self._step.choice.accumulate and key[0] is Role.GRADIENT

    def _misses_launch(self, name: str) -> Size:
        """0 if the array has the shape of the launch, else 1."""
        shape, dim = self._shapes.get(name, ()), self._step.dim
        if len(shape) != len(dim):
            return 1
        distances = [
            sizes.maximum(sizes.subtract(a, b), sizes.subtract(b, a))
            for a, b in zip(shape, dim, strict=True)
        ]
        return sizes.minimum(1, reduce(sizes.maximum, distances)) if distances else 0

    def _has_type(self, key: Key, t: types.Type) -> bool:
        """True if a value of the plan can be bound as `key` of elements `t`."""
        value = self._values.get(key)
        return value is not None and t in (value.element, buffers.base_of(value.element))

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

    def _layout(self, resource: Resource) -> tuple[list[Size], Size]:
        """Byte offsets of members that lie one after the other, and the bytes of all."""
        starts: list[Size] = []
        size: Size = 0
        for k in range(len(resource.members)):
            size = aligned(size, ARENA_ALIGN)
            starts.append(size)
            count = self._count(resource, k)
            size = sizes.add(size, storage_bytes(self._type(resource, k), count))
        return starts, size

    def _type(self, resource: Resource, k: int) -> types.Type:
        if ROLES[resource.role].words_a_word:
            return types.UINT
        return resource.types[k] if resource.types else self._element_types[resource.members[k]]

    def _count(self, resource: Resource, k: int) -> Size:
        name = resource.members[k]
        count = sizes.product(self._shapes.get(name, ()))
        words_a_word = ROLES[resource.role].words_a_word
        if words_a_word:
            t = self._element_types[name]
            words = types.byte_count(t) // types.word_bytes(t)
            return sizes.multiply(count, words * words_a_word)
        return count

    def _set(self, number: int, word: int, size: Size) -> None:
        self._instructions.append(Set(number, word, size))

    def _move(self, source: int, source_at: Size, target: int, target_at: Size, size: Size) -> None:
        self._instructions.append(Move(source, source_at, target, target_at, size))


@dataclass(frozen=True, slots=True)
class _Items:
    """The items of a dispatch that runs by windows; fields as in `Windows`."""

    count: Size
    step: Size
    dim: Shape
    first_number: Size
    group_count: Size
    """The groups of a window."""
    formulas: Mapping[str, Size] = field(default_factory=dict[str, "Size"])
    """Sizes of a pass that differ between windows."""

    def facts(self, whole: SizedFacts) -> SizedFacts:
        """The sources of the words of a window."""
        return replace(
            whole,
            thread_count=_WINDOW,
            group_count=self.group_count,
            formulas={**whole.formulas, **self.formulas},
            first_item=sizes.symbol(FIRST_ITEM),
        )


_WINDOW = sizes.subtract(sizes.symbol(END_ITEM), sizes.symbol(FIRST_ITEM))
"""The items of a window."""


def _items_of_threads(lowered: Lowered, dim: Shape, threads: Size) -> _Items:
    dim = (threads,) if lowered.threads_of else dim
    groups = thread_groups(lowered, _WINDOW)
    return _Items(threads, lowered.program.workgroup[0], dim, sizes.symbol(FIRST_ITEM), groups)


def _items_of_teams(chunks: Chunks, dim: Shape, formulas: Mapping[str, Size]) -> _Items:
    def size(text: Size) -> Size:
        return sizes.substituted(text, formulas)

    if chunks.row_length != sizes.symbol(LENGTH):  # the elements are the totals of chunks
        dim = (size(sizes.multiply(sizes.symbol(ROWS), chunks.row_length)),)
    return _Items(
        count=size(chunks.team_count),
        step=size(chunks.team_width),
        dim=dim,
        first_number=size(chunks.start_of(sizes.symbol(FIRST_ITEM))),
        group_count=size(chunks.group_count_of(_WINDOW)),
        formulas={chunks.words["team_count"]: sizes.symbol(END_ITEM)},
    )


def _in_words(start: Size, t: types.Type) -> Size:
    return sizes.floor_divide(start, types.word_bytes(t))


def _moved(
    instruction: Instruction,
    programs: Sequence[int],
    buffers: Mapping[int, int],
    extents: Mapping[str, Size],
) -> Instruction:
    """An instruction of a built kernel, over other programs, buffers and sizes."""

    def size(text: Size) -> Size:
        return sizes.substituted(text, extents)

    match instruction:
        case Run():
            return Run(
                programs[instruction.program],
                tuple((slot, buffers[k]) for slot, k in instruction.bindings),
                tuple(w if isinstance(w, UniformWord) else size(w) for w in instruction.words),
                size(instruction.group_count),
                size(instruction.is_needed),
            )
        case Move(source, source_offset, target, target_offset, byte_count):
            return Move(buffers[source], size(source_offset), buffers[target], size(target_offset),
                        size(byte_count))  # fmt: skip
        case Set(target, word, byte_count):
            return Set(buffers[target], word, size(byte_count))
        case _:
            raise AssertionError("a kernel has no loop of its own")


def _cast_step(found: Value, value: Value) -> KernelStep:
    """The dispatch that converts the floats of `found`; all of `value` are written."""
    kernel = cast_kernel(found.element, value.element)
    dim = (sizes.product((*value.shape, *buffers.element_axes(value.element))),)
    values = {(Role.INPUT, operand_name(0)): found, (Role.OUTPUT, RESULT): value}
    shapes = dict.fromkeys((operand_name(0), RESULT), dim)
    choice = Choice(Mode.PRIMAL, "unchecked", "", frozenset({RESULT}), frozenset())
    return KernelStep(kernel, choice, dim, values, shapes)
