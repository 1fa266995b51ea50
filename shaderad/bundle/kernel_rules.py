"""The rules that the description of a kernel keeps beyond the types of its fields.

Checked where a folder is loaded, so that a call of what was loaded finds every name and number it
looks for. Each check raises ValueError, which says what is wrong.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from shaderad.bundle.description import DispatchEntry, KernelEntry, ResourceEntry, WordEntry
from shaderad.ir.pointers import pointers_in
from shaderad.ir.types import Access, Kind, Type, leaves
from shaderad.lower import artifact
from shaderad.lower.bindings import BOUNDS, Mode, Role, WordKind

_MODES = {
    "primal": {Mode.PRIMAL, Mode.DECODE},
    "backward": {Mode.BACKWARD, Mode.WINNER},
    "forward": {Mode.FORWARD, Mode.WINNER},
}
_OF_RESULTS = frozenset({Role.OUTPUT, Role.RESULT, Role.COTANGENT, Role.OUTPUT_TANGENT,
                         Role.WINNER, Role.MARKS})  # fmt: skip
_ANY = 1 << 32
"""More than any index."""
_READ = frozenset({Role.INPUT, Role.UNIFORM, Role.RESULT, Role.COTANGENT, Role.TANGENT})


def check_unique(names: Iterable[str], what: str) -> None:
    """No name stands twice."""
    seen: set[str] = set()
    for name in names:
        if name in seen:
            raise ValueError(f"two {what} `{name}`")
        seen.add(name)


class KernelRules:
    """The rules of one kernel, whose arrays and uniforms have these types."""

    def __init__(self, entry: KernelEntry, type_by_name: Mapping[str, Type]) -> None:
        self._entry = entry
        self._types = type_by_name
        self._rank_by_array = {one.name: one.rank for one in entry.arrays}
        self._uniforms = {one.name: _word_count(type_by_name[one.name]) for one in entry.uniforms}
        """With their words."""
        written = {one.name for one in entry.arrays if one.access is not Access.IN}
        inputs = self._uniforms.keys() | (self._rank_by_array.keys() - written)
        self._members = {role: written if role in _OF_RESULTS else inputs for role in Role}

    def check(self) -> None:
        """What is passed, and the modes of what is dispatched."""
        entry = self._entry
        if entry.bounds not in BOUNDS:
            raise ValueError(f"bounds `{entry.bounds}`")
        check_unique(entry.index_names, "indices")
        if len(entry.axes_of_launch) not in (0, len(entry.index_names)):
            raise ValueError(f"axes of {len(entry.axes_of_launch)} indices")
        for one in (one for axes in entry.axes_of_launch for one in axes):
            if one.axis >= self._rank_by_array.get(one.array, 0):
                raise ValueError(f"an axis {one.axis} of `{one.array}`")
        check_unique((one.name for one in entry.parameters), "parameters")
        check_unique((one.name for one in (*entry.arrays, *entry.uniforms)), "inputs")
        passed = {one.name for one in entry.parameters if one.kind != "constant"}
        for one in (*entry.arrays, *entry.uniforms):
            if one.path[0] not in passed:
                raise ValueError(f"`{one.name}`, which is of no parameter")
        self._check_pointers()
        for programs in entry.targets.values():
            for name, modes in _MODES.items():
                if not {one.mode for one in getattr(programs, name)} <= modes:
                    raise ValueError(f"a dispatch of another mode in `{name}`")

    def _check_pointers(self) -> None:
        element_by_array = {n: self._types[n] for n in self._rank_by_array}
        for t in self._types.values():
            for _, pointer in pointers_in(t, ()):
                if element_by_array.get(pointer.target) != pointer.element:
                    raise ValueError(f"a pointer into `{pointer.target}`")

    def check_dispatch(self, one: DispatchEntry) -> None:
        """One entry point."""
        for resource in one.resources:
            self._check_resource(resource)
        for word in one.parameters.words:
            self._check_word(word)
        what, _, array = one.thread_for_each.partition(" of ")
        if one.thread_for_each != "index" and (what, array in self._rank_by_array) != (
            "word", True):  # fmt: skip
            raise ValueError(f"a thread for each `{one.thread_for_each}`")

    def _check_resource(self, one: ResourceEntry) -> None:
        names = {member.name for member in one.members}
        is_read = one.access is artifact.Access.READ
        if one.role is not Role.WINNER and is_read != (one.role in _READ):
            raise ValueError(f"a role `{one.role.value}` with access `{one.access.value}`")
        if (one.role is Role.REPORT) != (not names):
            raise ValueError(f"{len(names)} arrays in the role `{one.role.value}`")
        if not names <= self._members[one.role]:
            unknown = ", ".join(sorted(names - self._members[one.role]))
            raise ValueError(f"`{unknown}` in the role `{one.role.value}`")

    def _check_word(self, one: WordEntry) -> None:
        if one.index >= self._index_limit(one):
            raise ValueError(f"a word `{one.kind.value}` {one.index} of `{one.of}`")

    def _index_limit(self, one: WordEntry) -> int:
        """Below it lies what `one.index` may be; 0: there is no such word."""
        match one.kind:
            case WordKind.DIM:
                return len(self._entry.index_names)
            case WordKind.SHAPE:
                return self._rank_by_array.get(one.of, 0)
            case WordKind.COUNT:
                return _ANY * (one.of in self._rank_by_array)
            case WordKind.UNIFORM:
                return self._uniforms.get(one.of, 0)
            case WordKind.OFFSET:
                return _ANY * (one.role is not None and one.of in self._types)
            case WordKind.SIZE:
                return 0
            case _:
                return _ANY


def _word_count(t: Type) -> int:
    """32-bit words of a uniform in a constant buffer."""
    kinds = [leaf.scalar.kind for leaf in leaves(t)]
    return len(kinds) + kinds.count(Kind.DOUBLE)
