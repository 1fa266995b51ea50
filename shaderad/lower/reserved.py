"""Words that no name of the user's may be in the emitted Slang: the one table of them.

Slang renames all else on its way to HLSL, WGSL and Metal, whose own words need no place here;
tests/lower/test_reserved.py throws them, and these, at every role. What C reserves stands in
`bundle/c_names.py`.
"""

from __future__ import annotations

import re
from functools import cache

from shaderad.ir import ops
from shaderad.lower.artifact import library_folder

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
"""What Slang reads as more than a name, wherever it stands: keywords, and types of numbers."""

MODIFIERS = frozenset(
    """
    centroid coherent dynamic_uniform hitAttributeEXT highp indices layout lowp mediump
    payload primitives readonly require restrict vertices writeonly
    """.split()
)
"""What Slang reads as a modifier where a parameter's type stands: names of all but structs."""

MEMBERS = frozenset(
    "wordCount gradientWordCount read write addCotangent addTo lowHalf highHalf "
    "wordOfHalves".split()
)
"""What the text, or the library, declares in each struct of the user's, or calls there."""

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
"""Of Slang's core library: what our text names, and what a reader would take for it."""

_OF_THE_TEXT = frozenset(
    "State Captured Outputs Parameters Report Printer Sums Buffer state captured parameters "
    "report_words groupSize thread lane".split()
)
"""What the text that stands around bodies, and in them, declares and reads by itself."""

ENTRY_WORDS = frozenset(
    "index group laneIndex lane thread sums outputs cotangent rows parts left right number team "
    "total value before after found missing offset bits write axis site by word State".split()
)
"""What entry points, tags and layouts declare as their own locals."""

ARENAS = frozenset({"gradients", "cotangents", "tangents", "output_tangents"})
"""Arrays that share a buffer stand in these."""

_DIMENSIONS = frozenset("ijkl")


@cache
def names_of_bodies() -> frozenset[str]:
    """What no local, function or struct may be called."""
    spellings = {op.slang for op in ops.TABLE.values() if "{" not in op.slang}
    return KEYWORDS | _BUILTINS | _OF_THE_TEXT | library_names() | spellings


@cache
def names_of_globals() -> frozenset[str]:
    """What, besides, no function or struct may be called: locals of the text would hide it."""
    return ENTRY_WORDS | ARENAS | MEMBERS | _DIMENSIONS


@cache
def library_names() -> frozenset[str]:
    """Every identifier that the library declares."""
    return frozenset(declared_names("(?:public|internal)"))


def declared_names(visibility: str, module: str = r"\w+") -> set[str]:
    """What the files of a module of the library declare."""
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
