"""One kernel of a plan, in one mode -> the commands that run it at known sizes.

Whatever a program binds that is no value of the plan (arenas, zero cotangents, winners) lies in
scratch buffers, which serve again after the step. Invariant: no buffer is bound for reading and
writing in one dispatch.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from math import prod
from typing import TYPE_CHECKING

from shaderad.ir import sizes, types
from shaderad.ir.arrays import ArrayType, Value
from shaderad.lower.bindings import Mode, Role, group_counts
from shaderad.runtime import buffers
from shaderad.session.array_kernels import RESULT, operand_name
from shaderad.session.commands import Command, Copy, Dispatch, Fill
from shaderad.session.convert import cast_kernel
from shaderad.session.devices import Choice
from shaderad.session.dispatch import ARENA_ALIGN, READ_ROLES, WORDS_AN_ELEMENT_WORD
from shaderad.session.words import Facts, uniform_words

if TYPE_CHECKING:
    from shaderad.ir import nodes
    from shaderad.ir.sizes import Size
    from shaderad.lower.bindings import Lowered, Resource
    from shaderad.lower.passes import Passes
    from shaderad.runtime import Buffer
    from shaderad.session.devices import Device, Stage
    from shaderad.session.places import Places

Shape = tuple[int, ...]
Key = tuple[Role, str]


@dataclass(frozen=True, eq=False)
class StagedPasses:
    """The passes of a reduction or scan, ready but for their buffers and words."""

    passes: Passes
    stages: tuple[Stage, ...]
    shape: sizes.Shape
    """Of the rows; the last axis is what they run along."""


@dataclass
class KernelStep:
    """A kernel with the values that it binds."""

    kernel: nodes.Kernel
    choice: Choice
    dim: sizes.Shape
    values: dict[Key, Value]
    """What each role of an array or uniform is, where it is a value of the plan."""
    shapes: dict[str, sizes.Shape]
    """Of each array, as the kernel indexes it."""
    sizes: tuple[tuple[str, Size], ...] = ()
    """Uniforms that hold sizes."""
    is_filled: bool = False
    """Whether what it writes holds what it adds to already."""
    passes: StagedPasses | None = None
    """What runs in place of the kernel, which computes their elements."""


@dataclass
class _Bound:
    """The buffers and offsets of one dispatch."""

    places: list[tuple[int, int]] = field(default_factory=list[tuple[int, int]])
    offsets: dict[Key, int] = field(default_factory=dict[Key, int])
    report: tuple[int, Buffer] | None = None


class KernelBinder:
    """Writes the commands of kernels of one plan."""

    def __init__(self, device: Device, places: Places) -> None:
        self._device = device
        self._places = places
        self.commands: list[Command] = []
        self.may_report = False

    def add(self, step: KernelStep) -> None:
        """Adds the commands of one step."""
        _StepBinder(self._device, self._places, self.commands, step).run(self)


class _StepBinder:
    def __init__(
        self, device: Device, places: Places, commands: list[Command], step: KernelStep
    ) -> None:
        self._device = device
        self._places = places
        self._commands = commands
        self._step = step
        self._shapes = {name: places.shape(shape) for name, shape in step.shapes.items()}
        self._dim = places.shape(step.dim)
        self._element_types = device.facts(step.kernel).element_types
        self._scratch: list[tuple[int, int]] = []
        self._values = dict(step.values)
        self._kept: dict[Key, int] = {}
        self._written: set[Key] = set()
        self._after: list[Command] = []
        """What brings results from scratch buffers to where they belong."""
        self._casts: list[tuple[Value, Value]] = []

    def run(self, binder: KernelBinder) -> None:
        step = self._step
        if step.passes is None:
            for stage in self._device.stages(step.kernel, step.choice):
                self._add_kernel(stage, binder)
        else:
            self._add_passes(step.passes, binder)
        for key, value in step.values.items():
            if key[0] not in READ_ROLES and key not in self._written:
                # No program had anything to write.
                self._fill(self._places.number(value), 0, self._places.byte_count(value))
        self._commands += self._after
        for found, value in self._casts:
            binder.add(_cast_step(found, value))
        for number, size in self._scratch:
            self._places.give_back(number, size)

    def _add_kernel(self, stage: Stage, binder: KernelBinder) -> None:
        count = self._thread_count(stage.lowered)
        limit = self._device.capabilities.workgroup_count_limit
        self._add_stage(stage, binder, count, group_counts(stage.lowered, count, limit), {})

    def _add_passes(self, passes: StagedPasses, binder: KernelBinder) -> None:
        """The dispatches that the number of rows and their length call for."""
        shape = self._places.shape(passes.shape)
        known = passes.passes.formulas.evaluate(prod(shape[:-1]), shape[-1])
        for one in passes.passes.scratch:
            count = sizes.evaluate(one.count, known)
            value = Value(ArrayType(one.element, (count,)))
            self._places.hold(value, self._new_scratch(self._places.byte_count(value)))
            self._shapes[one.name] = (count,)
            self._values |= {(Role.INPUT, one.name): value, (Role.OUTPUT, one.name): value}
        for one, stage in zip(passes.passes.steps, passes.stages, strict=True):
            groups = sizes.evaluate(one.group_count, known)
            if sizes.evaluate(one.is_needed, known) > 0 and groups:
                self._add_stage(stage, binder, groups, (groups, 1, 1), known)

    def _add_stage(
        self,
        stage: Stage,
        binder: KernelBinder,
        count: int,
        groups: tuple[int, int, int],
        formulas: Mapping[str, int],
    ) -> None:
        bound = _Bound()
        for resource in stage.lowered.resources:
            self._bind(resource, stage, bound)
        if not count:
            return
        known = self._places.known
        uniforms = {
            name: uniform_words(sizes.evaluate(size, known), types.INT, name)
            for name, size in self._step.sizes
        }
        facts = Facts(self._dim, count, 0, groups, self._shapes, bound.offsets, uniforms, formulas)
        words = stage.packer.pack(facts)
        places = tuple(bound.places)
        self._commands.append(Dispatch(stage.pipeline, places, bound.report, words, groups))
        binder.may_report |= bound.report is not None

    def _thread_count(self, lowered: Lowered) -> int:
        name = lowered.threads_of
        if not name:
            return prod(self._dim)
        t = self._element_types[name]
        return prod(self._shapes[name]) * (types.byte_count(t) // types.word_bytes(t))

    # -- one resource ----------------------------------------------------------------------

    def _bind(self, resource: Resource, stage: Stage, bound: _Bound) -> None:
        if resource.role is Role.REPORT:
            bound.report = (resource.slot, self._device.report_buffer())
        elif resource.role in READ_ROLES:
            self._bind_read(resource, stage, bound)
        else:
            self._bind_written(resource, bound)

    def _bind_read(self, resource: Resource, stage: Stage, bound: _Bound) -> None:
        keys = [(resource.role, name) for name in resource.members]
        if len(keys) == 1 and keys[0] in self._values:
            value = self._values[keys[0]]
            offset = self._places.offset(value)
            if not offset or keys[0] in stage.packer.has_offset:
                bound.places.append((resource.slot, self._places.number(value)))
                if offset:
                    bound.offsets[keys[0]] = offset // types.word_bytes(value.element)
                return
        starts, size = self._layout(resource)
        arena = self._new_scratch(size)
        bound.places.append((resource.slot, arena))
        for k, (key, start) in enumerate(zip(keys, starts, strict=True)):
            bound.offsets[key] = start // types.word_bytes(self._type(resource, k))
        if any(key not in self._values for key in keys):  # no cotangent, no tangent: zeros
            self._fill(arena, 0, size)
        for key, start in zip(keys, starts, strict=True):
            value = self._values.get(key)
            if value is not None:
                self._copy(self._places.number(value), self._places.offset(value), arena, start,
                           self._places.byte_count(value))  # fmt: skip

    def _bind_written(self, resource: Resource, bound: _Bound) -> None:
        keys = [(resource.role, name) for name in resource.members]
        self._written.update(keys)
        is_covered = resource.is_covered_by_launch and self._shapes.get(keys[0][1]) == self._dim
        is_plain = len(keys) == 1 and self._has_type(keys[0], self._type(resource, 0))
        starts, size = self._layout(resource)
        if is_plain:
            number = self._places.number(self._values[keys[0]])
        elif keys[0] in self._kept:
            number = self._kept[keys[0]]
        else:
            number = self._new_scratch(size)
            self._kept.update(dict.fromkeys(keys, number))
        bound.places.append((resource.slot, number))
        is_stored_by_all = is_covered and bool(prod(self._dim))
        if resource.fill_word is not None and not is_stored_by_all and not self._step.is_filled:
            self._fill(number, resource.fill_word, size)
        if is_plain:
            return
        for k, (key, start) in enumerate(zip(keys, starts, strict=True)):
            t = self._type(resource, k)
            if start:
                bound.offsets[key] = start // types.word_bytes(t)
            if key in self._values:
                self._bring_back(key, t, number, start)

    def _has_type(self, key: Key, t: types.Type) -> bool:
        """Whether a value of the plan can be bound as `key` of elements `t`."""
        value = self._values.get(key)
        return value is not None and value.element == t

    def _bring_back(self, key: Key, t: types.Type, number: int, start: int) -> None:
        """Notes that what lies in scratch memory is wanted as a value of the plan."""
        value = self._values[key]
        found = Value(ArrayType(t, value.shape))
        size = self._places.byte_count(found)
        if value.element == t:
            self._after.append(Copy(number, start, self._places.number(value), 0, size))
            return
        if start:
            moved = self._new_scratch(size)
            self._after.append(Copy(number, start, moved, 0, size))
            number = moved
        self._places.hold(found, number)
        self._casts.append((found, value))

    # -- memory ----------------------------------------------------------------------------

    def _layout(self, resource: Resource) -> tuple[list[int], int]:
        """Byte offsets of members that lie one after the other, and the bytes of all."""
        starts: list[int] = []
        size = 0
        for k in range(len(resource.members)):
            size = -(-size // ARENA_ALIGN) * ARENA_ALIGN
            starts.append(size)
            size += buffers.byte_count(self._type(resource, k), self._count(resource, k))
        return starts, size

    def _type(self, resource: Resource, k: int) -> types.Type:
        if resource.role in WORDS_AN_ELEMENT_WORD:
            return types.UINT
        return resource.types[k] if resource.types else self._element_types[resource.members[k]]

    def _count(self, resource: Resource, k: int) -> int:
        name = resource.members[k]
        count = prod(self._shapes.get(name, ()))
        if resource.role in WORDS_AN_ELEMENT_WORD:
            t = self._element_types[name]
            words = types.byte_count(t) // types.word_bytes(t)
            return count * words * WORDS_AN_ELEMENT_WORD[resource.role]
        return count

    def _new_scratch(self, size: int) -> int:
        number = self._places.scratch(size)
        self._scratch.append((number, size))
        return number

    def _fill(self, number: int, word: int, size: int) -> None:
        if size:
            self._commands.append(Fill(number, word, size))

    def _copy(self, source: int, source_at: int, target: int, target_at: int, size: int) -> None:
        if size:
            self._commands.append(Copy(source, source_at, target, target_at, size))


def _cast_step(found: Value, value: Value) -> KernelStep:
    """The dispatch that converts the floats of `found`; all of `value` are written."""
    kernel = cast_kernel(found.element, value.element)
    dim = (sizes.product((*value.shape, *buffers.element_axes(value.element))),)
    values = {(Role.INPUT, operand_name(0)): found, (Role.OUTPUT, RESULT): value}
    shapes = dict.fromkeys((operand_name(0), RESULT), dim)
    choice = Choice(Mode.PRIMAL, "unchecked", "", frozenset({RESULT}), frozenset())
    return KernelStep(kernel, choice, dim, values, shapes)
