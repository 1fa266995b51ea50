"""The resources of one lowered program -> device buffers, and the dispatch itself.

Several members of a resource share one buffer (an arena); an array that starts inside its buffer
is bound with an offset word where the program has one, else through a copy. Invariant: no buffer
is bound for reading and writing in one dispatch.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from math import prod
from typing import TYPE_CHECKING, Any

from shaderad.arrays.arrays import Array, Shape
from shaderad.device.words import Facts
from shaderad.ir import types
from shaderad.lower.bindings import Lowered, Resource, Role, group_counts
from shaderad.runtime import buffers, fill

if TYPE_CHECKING:
    from shaderad.device.devices import Device, Stage
    from shaderad.runtime import Buffer

READ_ROLES = frozenset({Role.INPUT, Role.UNIFORM, Role.RESULT, Role.COTANGENT, Role.TANGENT})
ARENA_ALIGN = 16
"""Bytes; a multiple of every storage word."""
WORDS_AN_ELEMENT_WORD = {Role.WINNER: 2, Role.MARKS: 1}
"""How many words these keep for each storage word of an array."""


class Placement:
    """Which array serves which role in the dispatches of one mode."""

    def __init__(
        self,
        device: Device,
        shapes: Mapping[str, Shape],
        element_types: Mapping[str, types.Type],
        dim: Shape,
    ) -> None:
        self.device = device
        self.dim = dim
        self.shapes = shapes
        self.element_types = element_types
        self._arrays: dict[tuple[Role, str], Array] = {}
        self._accumulated: dict[str, Array] = {}
        self._results: Mapping[str, Array] = {}

    def give(self, role: Role, name: str, given: Array) -> None:
        """Sets what `role` of `name` reads."""
        self._arrays[role, name] = given

    def give_results(self, results: Mapping[str, Array]) -> None:
        """Sets the results of the primal; looked at only by programs that read them."""
        self._results = results

    def accumulate_in(self, name: str, gradient: Array) -> None:
        """Lets the gradient of `name` be added to an array that exists."""
        self._accumulated[name] = gradient

    def found(self, role: Role, name: str) -> Array:
        """What a dispatch wrote; zeros where no program had anything to write."""
        key = (role, name)
        if key not in self._arrays:
            self._arrays[key] = self._allocated(role, name, self._type_of(role, name), zeroed=True)
        return self._arrays[key]

    def bound(self, lowered: Lowered, has_offset: Iterable[tuple[Role, str]]) -> Bound:
        """The buffers of every slot of one program."""
        bound = Bound(self.device)
        offsets = frozenset(has_offset)
        for resource in lowered.resources:
            if resource.role is Role.REPORT:
                bound.by_slot[resource.slot] = self.device.report_buffer()
            elif resource.role is Role.PRINT:
                bound.by_slot[resource.slot] = self.device.print_buffer()
            elif resource.role in READ_ROLES:
                self._bind_read(resource, offsets, bound)
            else:
                self._bind_written(resource, offsets, bound)
        return bound

    # -- reading ---------------------------------------------------------------------------

    def _bind_read(
        self, resource: Resource, offsets: frozenset[tuple[Role, str]], bound: Bound
    ) -> None:
        given = [self._read_by(resource, k) for k in range(len(resource.members))]
        first = given[0].aligned()
        if len(given) == 1 and (
            not first.offset or (resource.role, resource.members[0]) in offsets
        ):
            bound.bind(resource, first.buffer, [first.offset], self.element_types)
            return
        starts, size = _layout(given)
        arena = self.device.runtime.allocate(size, zeroed=False)
        for start, one in zip(starts, given, strict=True):
            copied(one, Array(self.device, one.element, one.shape, arena, start))
        bound.bind(resource, arena, starts, self.element_types)

    def _read_by(self, resource: Resource, k: int) -> Array:
        role, name = resource.role, resource.members[k]
        if role is Role.RESULT:
            return self._results[name]
        if (role, name) not in self._arrays:  # no cotangent, no tangent: zeros
            t = resource.types[k] if resource.types else self._type_of(role, name)
            self._arrays[role, name] = self._allocated(role, name, t, zeroed=True)
        return self._arrays[role, name]

    # -- writing ---------------------------------------------------------------------------

    def _bind_written(
        self, resource: Resource, offsets: frozenset[tuple[Role, str]], bound: Bound
    ) -> None:
        role = resource.role
        known = [self._arrays.get((role, name)) for name in resource.members]
        if all(one is None for one in known):
            self._make(resource)
        given = [self._arrays[role, name] for name in resource.members]
        shared = {id(one.buffer) for one in given}
        if len(shared) > 1:
            raise RuntimeError(f"{role.value} arrays of one arena lie in several buffers")
        first = given[0]
        if len(given) == 1 and first.offset and (role, resource.members[0]) not in offsets:
            bound.bind_copied_back(resource, first, self.element_types)
            return
        bound.bind(resource, first.buffer, [one.offset for one in given], self.element_types)

    def _make(self, resource: Resource) -> None:
        """Allocates and fills what a dispatch is about to write."""
        role = resource.role
        wanted = [self._allocated_type(resource, k) for k in range(len(resource.members))]
        if role is Role.GRADIENT and self._accumulates_in_place(resource):
            return
        blank = [
            Array(self.device, t, self._shape_of(role, name), None)
            for t, name in zip(wanted, resource.members, strict=True)
        ]
        starts, size = _layout(blank)
        is_covered = resource.is_covered_by_launch and blank[0].shape == self.dim
        buffer = self._filled(size, None if is_covered else resource.fill_word)
        for one, start, name in zip(blank, starts, resource.members, strict=True):
            one.fill_in(buffer, start)
            self._arrays[role, name] = one
            sum_so_far = self._accumulated.get(name)
            if role is Role.GRADIENT and sum_so_far is not None:
                copied(sum_so_far, one)

    def _accumulates_in_place(self, resource: Resource) -> bool:
        """Binds the caller's own gradient where it has a buffer that this mode does not read."""
        if len(resource.members) != 1:
            return False
        (name,) = resource.members
        into = self._accumulated.get(name)
        if into is None:
            return False
        read = [one for (role, _), one in self._arrays.items() if role in READ_ROLES]
        if any(one.buffer is into.buffer for one in (*read, *self._results_read())):
            return False
        self._arrays[Role.GRADIENT, name] = into
        return True

    def _results_read(self) -> list[Array]:
        return [one for one in self._results.values() if not one.is_pending]

    def _filled(self, size: int, fill_word: int | None) -> Buffer:
        runtime = self.device.runtime
        if not fill_word:
            # Without threads nothing would be stored: what has no fill word is zero then.
            return runtime.allocate(size, zeroed=fill_word == 0 or not prod(self.dim))
        buffer = runtime.allocate(size, zeroed=False)
        if size:
            fill(runtime, buffer, fill_word)
        return buffer

    def _allocated_type(self, resource: Resource, k: int) -> types.Type:
        if resource.role in WORDS_AN_ELEMENT_WORD:
            return types.UINT
        return resource.types[k] if resource.types else self.element_types[resource.members[k]]

    def _allocated(self, role: Role, name: str, t: types.Type, *, zeroed: bool) -> Array:
        shape = self._shape_of(role, name)
        size = buffers.byte_count(t, prod(shape))
        return Array(self.device, t, shape, self.device.runtime.allocate(size, zeroed=zeroed))

    def _type_of(self, role: Role, name: str) -> types.Type:
        return types.UINT if role in WORDS_AN_ELEMENT_WORD else self.element_types[name]

    def _shape_of(self, role: Role, name: str) -> Shape:
        shape = self.shapes.get(name, ())
        if role in WORDS_AN_ELEMENT_WORD:
            t = self.element_types[name]
            words = types.byte_count(t) // types.word_bytes(t)
            return (prod(shape) * words * WORDS_AN_ELEMENT_WORD[role],)
        return shape


class Bound:
    """The buffers and offsets of one dispatch."""

    def __init__(self, device: Device) -> None:
        self.by_slot: dict[int, Buffer] = {}
        self.offsets: dict[tuple[Role, str], int] = {}
        self._device = device
        self._copied_back: list[tuple[Array, Array]] = []

    def bind(
        self,
        resource: Resource,
        buffer: Buffer,
        starts: list[int],
        element_types: Mapping[str, types.Type],
    ) -> None:
        self.by_slot[resource.slot] = buffer
        for k, (name, start) in enumerate(zip(resource.members, starts, strict=True)):
            if start:
                t = resource.types[k] if resource.types else element_types[name]
                self.offsets[resource.role, name] = start // types.word_bytes(t)

    def bind_copied_back(
        self, resource: Resource, target: Array, element_types: Mapping[str, types.Type]
    ) -> None:
        """Binds a copy of `target`, whose content goes back after the dispatch."""
        buffer = self._device.runtime.allocate(target.byte_count, zeroed=False)
        twin = Array(self._device, target.element, target.shape, buffer)
        copied(target, twin)
        self._copied_back.append((twin, target))
        self.bind(resource, buffer, [0], element_types)

    def copy_back(self) -> None:
        for twin, target in self._copied_back:
            copied(twin, target)


def copied(source: Array, target: Array) -> None:
    """Records a copy of all bytes of `source` to `target`, unless they are the same ones."""
    if source.size and source.buffer is not target.buffer:
        source.device.runtime.copy(
            source.buffer, source.offset, target.buffer, target.offset, source.byte_count
        )


def _layout(arrays: list[Array]) -> tuple[list[int], int]:
    """Byte offsets of arrays that lie one after the other, and the bytes of all."""
    starts: list[int] = []
    size = 0
    for one in arrays:
        starts.append(size)
        end = size + one.byte_count
        size = end if one is arrays[-1] else -(-end // ARENA_ALIGN) * ARENA_ALIGN
    return starts, size


def run(stage: Stage, placed: Placement, uniforms: Mapping[str, Any]) -> None:
    """Records one dispatch; with no threads, only makes and fills what it would have written."""
    lowered = stage.lowered
    device = placed.device
    thread_count = prod(placed.dim)
    if lowered.threads_of:
        t = placed.element_types[lowered.threads_of]
        words = types.byte_count(t) // types.word_bytes(t)
        thread_count = prod(placed.shapes[lowered.threads_of]) * words
    bound = placed.bound(lowered, lowered.has_offset)
    if not thread_count:
        return
    groups = group_counts(lowered, thread_count, device.capabilities.workgroup_count_limit)
    facts = Facts(
        dim=placed.dim,
        thread_count=thread_count,
        launch=device.next_launch(),
        groups=groups,
        shapes=placed.shapes,
        offsets=bound.offsets,
        uniforms=uniforms,
    )
    device.runtime.dispatch(stage.pipeline, bound.by_slot, stage.packer.pack(facts), groups)
    bound.copy_back()
    roles = {r.role for r in lowered.resources}
    device.recorded(may_report=Role.REPORT in roles, may_print=Role.PRINT in roles)
