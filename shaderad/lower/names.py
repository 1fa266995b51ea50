"""Python names -> Slang identifiers: safe, unique, stable, and the user's own wherever possible.

A name that Slang, the library or this module already uses gets an underscore.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import cache

from shaderad.ir import ops
from shaderad.lower.artifact import library_folder

RESERVED = frozenset(
    """
    abstract asm associatedtype bool break byte case cast cbuffer char class column_major compile
    const constexpr continue default defer delete discard do double else enum explicit export
    extension extern false fixed float for foreach friend func functype goto groupshared half if
    implementing import in inline inout int interface internal int8_t int16_t int32_t int64_t
    linear line let literal long lineadj matrix module mutable namespace new nointerpolation
    no_diff noperspective none noinline nullptr operator out override packoffset param pass pixel
    point precise private property protected public register return row_major sample sampler
    shared short signed sizeof snorm static string struct switch syntax template texture this
    This throw throws triangle triangleadj true try typealias typedef typename uint uint8_t
    uint16_t uint32_t uint64_t uniform union unorm unsigned using var vector vertex void volatile
    where while with alignof countof main technique pipeline is as optional expand each dyn some
    __init __subscript diffPair detach fwd_diff bwd_diff DifferentialPair IDifferentiable Array
    Optional Tuple Ptr all any asdouble asfloat asint asuint clamp clip ddx ddy dst exp exp2
    fma fmod frexp isfinite isinf isnan ldexp lit log log2 log10 modf mul noise pow printf rcp
    reflect refract round rsqrt saturate sign sin sincos sinh smoothstep sqrt step tan tanh
    transpose trunc tex1D tex2D tex3D texCUBE lerp length distance normalize dot cross floor ceil
    frac min max abs acos asin atan atan2 cos cosh degrees radians determinant fract mix mod
    inversesqrt faceforward countbits reversebits firstbithigh firstbitlow mad select
    state captured next outputs parameters Report Printer Outputs Parameters Sums sums group
    laneIndex
    """.split()
)


@cache
def library_names() -> frozenset[str]:
    """Every identifier that the library declares."""
    return frozenset(_declared("(?:public|internal)"))


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
    return frozenset(_declared("public", module))


def _declared(visibility: str, module: str = r"\w+") -> set[str]:
    """What the files of a module declare."""
    found: set[str] = set()
    for path in sorted(library_folder().glob("*.slang")):
        text = re.sub(r"//[^\n]*", "", path.read_text(encoding="utf-8"))
        if re.search(rf"^(?:module|implementing) {module};", text, re.M) is None:
            continue
        for declaration in re.findall(rf"^[^\n(){{}};=]*\b{visibility}\b[^(){{}};=]*", text, re.M):
            head = re.sub(r"<[^>]*>|:.*", " ", declaration.replace("[", " "))
            if " extension " not in head:
                found.update(head.split()[-1:])
    return found


class Names:
    """Identifiers of one module; `child` opens the scope of a function."""

    def __init__(self, taken: frozenset[str] | None = None) -> None:
        if taken is None:
            spellings = {op.slang for op in ops.TABLE.values() if "{" not in op.slang}
            taken = RESERVED | library_names() | spellings
        self._taken = set(taken)
        self._by_key: dict[object, str] = {}

    def make(self, wanted: str, key: object = None) -> str:
        """A fresh identifier near `wanted`; the same one for the same `key`."""
        if key is not None and key in self._by_key:
            return self._by_key[key]
        name = wanted if wanted.isascii() else re.sub(r"[^\x00-\x7f]", "u", wanted)
        # Slang and the targets keep names with two underscores for themselves.
        name = re.sub(r"__+", "_", name).strip("_") or "value"
        if name[0].isdigit():
            name = f"n{name}"
        stem, number = name, 1
        if name in self._taken:
            name = f"{stem}_"
        while name in self._taken:
            number += 1
            name = f"{stem}_{number}"
        self._taken.add(name)
        if key is not None:
            self._by_key[key] = name
        return name

    def has(self, key: object) -> bool:
        return key in self._by_key

    def of(self, key: object) -> str:
        return self._by_key[key]

    def child(self) -> Names:
        return Names(frozenset(self._taken))
