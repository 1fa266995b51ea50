"""Names of the IR -> Slang identifiers: safe, unique, stable, and the user's own wherever possible.

Invariant: no scope of the text sees one identifier under two meanings. What a function declares
differs from all that its module declares, before it or after it, and from what the library, the
language and the text around it use (`lower/reserved.py`). A name in use gets an underscore.
"""

from __future__ import annotations

import re
from collections.abc import Container, Iterable
from functools import cache

from shaderad.ir.made_names import stem_of
from shaderad.lower.reserved import (
    KEYWORDS,
    MEMBERS,
    declared_names,
    library_names,
    names_of_bodies,
    names_of_globals,
)

_LENGTH_LIMIT = 80
"""Letters of an identifier; longer ones fill lines, and their mangled forms end compilers."""
_END_LENGTH = 20
"""Letters at the end of those that are kept."""


class Names:
    """Identifiers of one scope; `child` opens the scope of a function."""

    def __init__(
        self, taken: Iterable[str], outer: Names | None = None, hidden: Iterable[str] = ()
    ) -> None:
        self._taken = set(taken)
        self._outer = outer
        self._inside = set(hidden)
        """What the scopes inside of this one declare."""
        self._by_key: dict[object, str] = {}

    def make(
        self, wanted: str, key: object = None, *, avoided: Container[str] = frozenset()
    ) -> str:
        """A fresh identifier near `wanted`, none of `avoided`; the same one for the same `key`."""
        if key is not None and key in self._by_key:
            return self._by_key[key]
        stem = _spelled(wanted)
        is_free = stem not in avoided and not self._is_taken(stem)
        name = self._take(stem if is_free else f"{stem}_", stem)
        if key is not None:
            self._by_key[key] = name
        return name

    def make_global(self, wanted: str) -> str:
        """A fresh identifier for a resource: Slang drops an underscore at the end of those."""
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

    def child(self, taken: Iterable[str] = ()) -> Names:
        """The scope of a function whose text uses `taken` for itself."""
        return Names(taken, self)


def module_names() -> Names:
    """The scope of a module: its functions, structs and tags."""
    return Names(names_of_bodies(), hidden=names_of_globals())


def member_names(types: Iterable[str] = ()) -> Names:
    """The fields of one struct, in which `types` keep their meaning."""
    library_types = {name for name in library_names() if name[0].isupper()}
    return Names(KEYWORDS | MEMBERS | library_types | set(types))


def _spelled(name: str) -> str:
    """`name` in the letters that all targets have."""
    name = re.sub(r"\W", "_", re.sub(r"[^\x00-\x7f]", "u", stem_of(name)))
    # Slang and the targets keep names with two underscores for themselves.
    name = abbreviated(re.sub(r"__+", "_", name).strip("_")) or "value"
    return f"n{name}" if name[0].isdigit() else name


def abbreviated(name: str) -> str:
    """`name` without the middle of what is too long: its end says what it is for."""
    if len(name) <= _LENGTH_LIMIT:
        return name
    return f"{name[: _LENGTH_LIMIT - _END_LENGTH].rstrip('_')}_{name[-_END_LENGTH:].lstrip('_')}"


def imported_modules(lines: Iterable[str]) -> tuple[str, ...]:
    """The modules of the library beside `shaderad` that lines of Slang name something of.

    Each imports those before it; where they are named as well, all are found in binary form.
    """
    found = {name.rstrip("<") for line in lines for name in _NAME.findall(line)
             if name not in _OF_INTEGERS}  # fmt: skip
    needed = [k for k, one in enumerate(_FURTHER_MODULES) if found & _public_names(one)]
    return _FURTHER_MODULES[: max(needed, default=-1) + 1]


_FURTHER_MODULES = ("safe_math", "double_math")
_NAME = re.compile(r"[A-Za-z_]\w*<?")
_OF_INTEGERS = frozenset({"floorDivide<", "floorModulo<"})
"""Those of floats, which are in `safe_math`, name no report buffer."""


@cache
def _public_names(module: str) -> frozenset[str]:
    return frozenset(declared_names("public", module))
