"""The rules for the description of a kernel beyond the types of its fields.

They are checked when a folder is loaded, so calls of loaded kernels find every name and number.
Each check raises ValueError with the violation.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from shaderad.bundle.format.description import DispatchEntry, KernelEntry, ResourceEntry, WordEntry
from shaderad.bundle.format.graph_description import GraphEntry
from shaderad.compiler import artifact
from shaderad.ir.pointers import pointers_in
from shaderad.ir.types import Access, Kind, Type, leaves
from shaderad.lower.bindings import BOUNDS, READ_ROLES, Mode, Role, WordKind

_MODES = {
    "primal": {Mode.PRIMAL, Mode.DECODE},
    "backward": {Mode.BACKWARD, Mode.WINNER},
    "forward": {Mode.FORWARD, Mode.WINNER},
}
_RESULT_ROLES = frozenset({Role.OUTPUT, Role.RESULT, Role.COTANGENT, Role.OUTPUT_TANGENT,
                         Role.WINNER, Role.MARKS})  # fmt: skip
_ANY = 1 << 32
"""More than any index."""


def check_unique(names: Iterable[str], what: str) -> None:
    """Raises ValueError if a name repeats; `what` is the noun of the message."""
    seen: set[str] = set()
    for name in names:
        if name in seen:
            raise ValueError(f"two {what} `{name}`")
        seen.add(name)


def check_entry(entry: KernelEntry | GraphEntry) -> None:
    """Checks what kernels and graphs have in common."""
    if entry.bounds not in BOUNDS:
        raise ValueError(f"bounds `{entry.bounds}`")
    check_unique((parameter.name for parameter in entry.parameters), "parameters")


class KernelRules:
    """The rules of one kernel.

    Args:
        entry: The description.
        type_by_name: The types of its arrays and uniforms.
    """

    def __init__(self, entry: KernelEntry, type_by_name: Mapping[str, Type]) -> None:
        self._entry = entry
        self._types = type_by_name
        self._rank_by_array = {array.name: array.rank for array in entry.arrays}
        self._words_by_uniform = {u.name: _word_count(type_by_name[u.name]) for u in entry.uniforms}
        written = {array.name for array in entry.arrays if array.access is not Access.IN}
        inputs = self._words_by_uniform.keys() | (self._rank_by_array.keys() - written)
        self._members = {role: written if role in _RESULT_ROLES else inputs for role in Role}

    def check(self) -> None:
        """Checks parameters, arrays, uniforms, and the modes of dispatches."""
        entry = self._entry
        check_entry(entry)
        check_unique(entry.index_names, "indices")
        if len(entry.axes_of_launch) not in (0, len(entry.index_names)):
            raise ValueError(f"axes of {len(entry.axes_of_launch)} indices")
        for axis in (axis for axes in entry.axes_of_launch for axis in axes):
            if axis.axis >= self._rank_by_array.get(axis.array, 0):
                raise ValueError(f"an axis {axis.axis} of `{axis.array}`")
        inputs = (*entry.arrays, *entry.uniforms)
        check_unique((each.name for each in inputs), "inputs")
        passed = {p.name for p in entry.parameters if p.kind != "constant"}
        for each in inputs:
            if each.path[0] not in passed:
                raise ValueError(f"`{each.name}`, which is of no parameter")
        self._check_pointers()
        for programs in entry.targets.values():
            for name, modes in _MODES.items():
                if not {dispatch.mode for dispatch in getattr(programs, name)} <= modes:
                    raise ValueError(f"a dispatch of another mode in `{name}`")

    def _check_pointers(self) -> None:
        element_by_array = {n: self._types[n] for n in self._rank_by_array}
        for t in self._types.values():
            for _, pointer in pointers_in(t, ()):
                if element_by_array.get(pointer.target) != pointer.element:
                    raise ValueError(f"a pointer into `{pointer.target}`")

    def check_dispatch(self, entry: DispatchEntry) -> None:
        """Checks the resources and words of one entry point."""
        for resource in entry.resources:
            self._check_resource(resource)
        for word in entry.parameters.words:
            if word.index >= self._index_limit(word):
                raise ValueError(f"a word `{word.kind.value}` {word.index} of `{word.of}`")
        unit, _, array = entry.thread_for_each.partition(" of ")
        is_word = unit == "word" and array in self._rank_by_array
        if entry.thread_for_each != "index" and not is_word:
            raise ValueError(f"a thread for each `{entry.thread_for_each}`")

    def _check_resource(self, entry: ResourceEntry) -> None:
        names, role = {member.name for member in entry.members}, entry.role.value
        is_read = entry.access is artifact.BindingAccess.READ
        if entry.role is not Role.WINNER and is_read != (entry.role in READ_ROLES):
            raise ValueError(f"a role `{role}` with access `{entry.access.value}`")
        if (entry.role is Role.REPORT) != (not names):
            raise ValueError(f"{len(names)} arrays in the role `{role}`")
        if not names <= self._members[entry.role]:
            unknown = ", ".join(sorted(names - self._members[entry.role]))
            raise ValueError(f"`{unknown}` in the role `{role}`")

    def _index_limit(self, word: WordEntry) -> int:
        """The exclusive limit of `word.index`; 0 if there is no such word."""
        match word.kind:
            case WordKind.DIM:
                return len(self._entry.index_names)
            case WordKind.SHAPE:
                return self._rank_by_array.get(word.of, 0)
            case WordKind.COUNT:
                return _ANY * (word.of in self._rank_by_array)
            case WordKind.UNIFORM:
                return self._words_by_uniform.get(word.of, 0)
            case WordKind.OFFSET:
                return _ANY * (word.role is not None and word.of in self._types)
            case WordKind.SIZE:
                return 0
            case _:
                return _ANY


def _word_count(t: Type) -> int:
    """The number of 32-bit words of a uniform in a constant buffer."""
    kinds = [leaf.scalar.kind for leaf in leaves(t)]
    return len(kinds) + kinds.count(Kind.DOUBLE)
