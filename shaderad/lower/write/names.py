"""Names of the IR -> Slang identifiers: valid, unique, stable, the user's own wherever possible.

Invariant: no identifier has two meanings in one scope. Names of a function differ from all names
of its module, before or after it, and from those of the library, the language and the surrounding
text (`lower/write/reserved.py`). A name in use gets an underscore.
"""

from __future__ import annotations

import re
from collections.abc import Container, Iterable
from functools import cache

from shaderad.ir.walk import stem_of
from shaderad.lower.write.reserved import (
    KEYWORDS,
    MEMBERS,
    declared_names,
    library_names,
    names_of_bodies,
    names_of_globals,
)

_LENGTH_LIMIT = 80
"""Maximum letters of an identifier: compilers die of long mangled names."""
_END_LENGTH = 20
"""Letters that an abbreviated identifier keeps of its end."""


class IdentifierScope:
    """Identifiers of one scope; `child` opens the scope of a function."""

    def __init__(
        self, taken: Iterable[str], outer: IdentifierScope | None = None, hidden: Iterable[str] = ()
    ) -> None:
        self._taken = set(taken)
        self._outer = outer
        self._inside = set(hidden)
        """Names that inner scopes declare."""
        self._by_key: dict[object, str] = {}

    def make(
        self, wanted: str, key: object = None, *, avoided: Container[str] = frozenset()
    ) -> str:
        """A fresh identifier like `wanted`, none of `avoided`; the same one for the same `key`."""
        if key is not None and key in self._by_key:
            return self._by_key[key]
        stem = _spelled(wanted)
        is_free = stem not in avoided and not self._is_taken(stem)
        name = self._take(stem if is_free else f"{stem}_", stem)
        if key is not None:
            self._by_key[key] = name
        return name

    def make_global(self, wanted: str) -> str:
        """A fresh identifier of a resource, where Slang drops a final underscore."""
        stem = _spelled(wanted)
        return self._take(stem, stem)

    def _take(self, name: str, stem: str) -> str:
        number = 1
        while self._is_taken(name):
            number += 1
            name = f"{stem}_{number}"
        self._taken.add(name)
        if self._outer is not None:
            self._outer._inside.add(name)
        return name

    def _is_taken(self, name: str) -> bool:
        outside = self._outer is not None and name in self._outer._taken
        return outside or name in self._taken or name in self._inside

    def has(self, key: object) -> bool:
        return key in self._by_key

    def of(self, key: object) -> str:
        return self._by_key[key]

    def child(self, taken: Iterable[str] = ()) -> IdentifierScope:
        """The scope of a function whose text uses the names `taken`."""
        return IdentifierScope(taken, self)


def module_names() -> IdentifierScope:
    """The scope of a module: its functions, structs and tags."""
    return IdentifierScope(names_of_bodies(), hidden=names_of_globals())


def member_names(types: Iterable[str] = ()) -> IdentifierScope:
    """The scope of a struct's fields, which do not hide `types`."""
    library_types = {name for name in library_names() if name[0].isupper()}
    return IdentifierScope(KEYWORDS | MEMBERS | library_types | set(types))


def _spelled(name: str) -> str:
    """`name` in the letters of all targets."""
    name = re.sub(r"\W", "_", re.sub(r"[^\x00-\x7f]", "u", stem_of(name)))
    # Slang and the targets reserve names with two underscores.
    name = abbreviated(re.sub(r"__+", "_", name).strip("_")) or "value"
    return f"n{name}" if name[0].isdigit() else name


def abbreviated(name: str) -> str:
    """`name`; a long one loses its middle and keeps its end, which tells its use."""
    if len(name) <= _LENGTH_LIMIT:
        return name
    return f"{name[: _LENGTH_LIMIT - _END_LENGTH].rstrip('_')}_{name[-_END_LENGTH:].lstrip('_')}"


def imported_modules(lines: Iterable[str]) -> tuple[str, ...]:
    """The modules of the library beside `shaderad` whose names occur in lines of Slang.

    A module imports the ones before it; they are named too, to be loaded in binary form.
    """
    used = {name.rstrip("<") for line in lines for name in _NAME.findall(line)
            if name not in _OF_INTEGERS}  # fmt: skip
    needed = [k for k, module in enumerate(_FURTHER_MODULES) if used & _public_names(module)]
    return _FURTHER_MODULES[: max(needed, default=-1) + 1]


_FURTHER_MODULES = ("safe_math", "double_math")
_NAME = re.compile(r"[A-Za-z_]\w*<?")
_OF_INTEGERS = frozenset({"floorDivide<", "floorModulo<"})
"""Integer functions of `shaderad`; the float functions of `safe_math` have no type argument."""


@cache
def _public_names(module: str) -> frozenset[str]:
    return frozenset(declared_names("public", module))
