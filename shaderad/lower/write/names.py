"""Names of the IR -> Slang identifiers: valid, unique, stable, the user's own wherever possible.

Invariant: no identifier has two meanings in one scope. Names of a function differ from all names
of its module, before or after it, and from those of the library, the language and the surrounding
text. A name in use gets an underscore. Slang renames identifiers that HLSL, WGSL or Metal reserve;
words that C reserves are in `bundle/write/header.py`.
"""

from __future__ import annotations

import re
from collections.abc import Container, Iterable
from functools import cache

from shaderad.compiler.artifact import LIBRARY_MODULES, VIEWS, library_folder
from shaderad.ir import ops
from shaderad.ir.walk import stem_of
from shaderad.lower.bindings import ROLES

_LENGTH_LIMIT = 80
"""Maximum length of an identifier, because compilers crash on long mangled names."""
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
    return IdentifierScope(names_of_bodies(), hidden=WORDS_OF_GLOBALS)


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
    further = [m for m in LIBRARY_MODULES[1:] if m != VIEWS]
    needed = [k for k, m in enumerate(further) if used & library_names("public", m)]
    return tuple(further[: max(needed, default=-1) + 1])


_NAME = re.compile(r"[A-Za-z_]\w*<?")
_OF_INTEGERS = frozenset({"floorDivide<", "floorModulo<"})
"""Integer functions of `shaderad`; the float functions of `safe_math` have no type argument."""


# -- reserved words ---------------------------------------------------------------------------

_SCALARS = "bool int uint half float double int8_t int16_t int32_t int64_t uint8_t uint16_t \
uint32_t uint64_t float16_t float32_t float64_t intptr_t uintptr_t"

KEYWORDS = frozenset(
    f"""
    {_SCALARS} size_t usize_t ssize_t void string String matrix vector vec mat
    abstract asm associatedtype break byte case cast cbuffer char class column_major compile
    const constexpr continue default defer delete discard do dyn each else enum expand explicit
    export extension extern false fixed for foreach friend func functype goto groupshared if
    implementing import in inline inout interface internal is as let line lineadj linear literal
    long main module mutable namespace new no_diff nointerpolation none noinline noperspective
    nullptr operator optional out override packoffset param pass pixel pixelfragment point
    precise private property protected public register return row_major sample sampler shared
    short signed sizeof alignof countof snorm some spirv_asm static stateblock struct switch
    syntax tbuffer template technique pipeline texture this This throw throws triangle
    triangleadj true try typealias typedef typename uniform union unorm unsigned using var
    vertex vertexfragment volatile where while with fwd_diff bwd_diff __init __subscript
    """.split()
) | {
    f"{scalar}{shape}"
    for scalar in _SCALARS.split()
    for shape in ("1", "2", "3", "4", *(f"{rows}x{columns}" for rows in range(1, 5)
                                        for columns in range(1, 5)))
}  # fmt: skip
"""Keywords of Slang, and its types of numbers."""

MODIFIERS = frozenset(
    """
    centroid coherent dynamic_uniform hitAttributeEXT highp indices layout lowp mediump
    payload primitives readonly require restrict vertices writeonly
    """.split()
)
"""Words that Slang reads as modifiers in place of a parameter's type: no names of structs."""

MEMBERS = frozenset(
    "wordCount gradientWordCount read write addCotangent addTo lowHalf highHalf "
    "wordOfHalves".split()
)
"""Members that the emitted text or the library declares or calls in the user's structs."""

_BUILTINS = frozenset(
    """
    diffPair detach DifferentialPair IDifferentiable makeArrayFromElement Array Optional Tuple Ptr
    Atomic all any
    asdouble asfloat asint asuint clamp clip ddx ddy dst exp exp2 fma fmod frexp isfinite isinf
    isnan ldexp lit log log2 log10 modf mul noise pow printf rcp reflect refract round rsqrt
    saturate sign sin sincos sinh smoothstep sqrt step tan tanh transpose trunc tex1D tex2D tex3D
    texCUBE lerp length distance normalize dot cross floor ceil frac min max abs acos asin atan
    atan2 cos cosh degrees radians determinant fract mix mod inversesqrt faceforward countbits
    reversebits firstbithigh firstbitlow mad select assert static_assert ConstantBuffer
    StructuredBuffer RWStructuredBuffer ByteAddressBuffer RWByteAddressBuffer
    """.split()
)
"""Names of Slang's core library that the emitted text or its readers use."""

_TEXT_WORDS = frozenset(
    "State Outputs Parameters Report Printer Sums Buffer parameters heldParameters report_words "
    "groupSize sumCount sumPlace thread lane".split()
)
"""Names that the emitted text declares or reads around bodies and in them."""

ENTRY_WORDS = frozenset(
    "index group laneIndex lane thread sums outputs cotangent rows parts left right number team "
    "total value before after found missing offset bits write axis site by word State".split()
)
"""Locals of entry points, tags and layouts."""

WORDS_OF_GLOBALS = (
    ENTRY_WORDS
    | MEMBERS
    | frozenset(filter(None, (row.arena for row in ROLES.values())))
    | frozenset("ijkl")
)
"""Further reserved names of functions and structs, which locals of the text would hide."""


@cache
def names_of_bodies() -> frozenset[str]:
    """Reserved names of locals, functions and structs."""
    spellings = {op.slang for op in ops.TABLE.values() if "{" not in op.slang}
    return KEYWORDS | _BUILTINS | _TEXT_WORDS | library_names() | spellings


@cache
def library_names(visibility: str = "(?:public|internal)", module: str = r"\w+") -> frozenset[str]:
    """The declarations in the files of a module of the library."""
    names: set[str] = set()
    for path in sorted(library_folder().glob("*.slang")):
        text = re.sub(r"//[^\n]*", "", path.read_text(encoding="utf-8"))
        if re.search(rf"^(?:module|implementing) {module};", text, re.M) is None:
            continue
        for declaration in re.findall(rf"^[^\n(){{}};=]*\b{visibility}\b[^(){{}};=]*", text, re.M):
            head = re.sub(r"<[^>]*>|:.*", " ", declaration.replace("[", " "))
            if " extension " not in head:
                names.update(head.split()[-1:])
    return frozenset(names)
