"""Reserved words: names that no user's name may have in the emitted Slang.

Slang renames identifiers that HLSL, WGSL or Metal reserve. Words that C reserves are in
`bundle/write/c_names.py`.
"""

from __future__ import annotations

import re
from functools import cache

from shaderad.compiler.artifact import library_folder
from shaderad.ir import ops

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
    "State Outputs Parameters Report Printer Sums Buffer parameters report_words groupSize "
    "thread lane".split()
)
"""Names that the emitted text declares or reads around bodies and in them."""

ENTRY_WORDS = frozenset(
    "index group laneIndex lane thread sums outputs cotangent rows parts left right number team "
    "total value before after found missing offset bits write axis site by word State".split()
)
"""Locals of entry points, tags and layouts."""

ARENAS = frozenset({"gradients", "cotangents", "tangents", "output_tangents"})
"""Buffers that several arrays share."""

_DIMENSIONS = frozenset("ijkl")


@cache
def names_of_bodies() -> frozenset[str]:
    """Reserved names of locals, functions and structs."""
    spellings = {op.slang for op in ops.TABLE.values() if "{" not in op.slang}
    return KEYWORDS | _BUILTINS | _TEXT_WORDS | library_names() | spellings


@cache
def names_of_globals() -> frozenset[str]:
    """Further reserved names of functions and structs, which locals of the text would hide."""
    return ENTRY_WORDS | ARENAS | MEMBERS | _DIMENSIONS


@cache
def library_names() -> frozenset[str]:
    """The identifiers of the library."""
    return frozenset(declared_names("(?:public|internal)"))


def declared_names(visibility: str, module: str = r"\w+") -> set[str]:
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
    return names
