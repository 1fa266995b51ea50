"""Names of Python files, kernels, structs and fields -> identifiers of C and C++.

Invariant: the identifiers of one `Identifiers` are valid in C11 and C++20, are no macros of headers
that hosts include, and differ from each other.
"""

from __future__ import annotations

import re

_KEYWORDS = frozenset(
    # Keywords of C11 and C++20, and the alternative operators of C++.
    "alignas alignof and and_eq asm auto bitand bitor bool break case catch char char8_t char16_t "
    "char32_t class co_await co_return co_yield compl concept const const_cast consteval constexpr "
    "constinit continue decltype default delete do double dynamic_cast else enum explicit export "
    "extern false float for friend goto if inline int long mutable namespace new noexcept not "
    "not_eq nullptr operator or or_eq private protected public register reinterpret_cast requires "
    "restrict return short signed sizeof static static_assert static_cast struct switch template "
    "this thread_local throw true try typedef typeid typename typeof typeof_unqual union unsigned "
    "using virtual void volatile wchar_t while xor xor_eq "
    # The namespace std, and macros of old compilers, of <stddef.h>, <assert.h> and of <windows.h>.
    "NULL assert offsetof std linux unix i386 near far small interface".split()
)
_OF_STDINT = re.compile(
    r"U?INT[A-Z0-9_]*_(?:C|MAX|MIN)|[A-Z]+_(?:MAX|MIN)"
    r"|u?int(?:_least|_fast)?\d+_t|u?int(?:ptr|max)_t|(?:r?size|ptrdiff|max_align|nullptr)_t"
)
"""Macros of <stdint.h>, and types of it and <stddef.h>."""
_FOREIGN = re.compile(r"[^A-Za-z0-9]+")
"""Includes underscores: C++ reserves names with two in a row, and names that begin with one."""


class Identifiers:
    """The names of one scope."""

    def __init__(self) -> None:
        self._taken: set[str] = set()

    def claim(self, *parts: str) -> str:
        """Joins `parts` by underscores; appends `_` to a reserved name, a number to a taken one."""
        start = identifier(*parts)
        if start in _KEYWORDS or _OF_STDINT.fullmatch(start):
            start += "_"
        name, number = start, 2
        while name in self._taken:
            name, number = f"{start}_{number}", number + 1
        self._taken.add(name)
        return name


def identifier(*parts: str) -> str:
    """Joins `parts` to one word that begins with a letter."""
    name = _FOREIGN.sub("_", "_".join(parts)).strip("_")
    return name if name[:1].isalpha() else f"n{name}"
