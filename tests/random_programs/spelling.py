"""Types of kernel values: how Python spells them, and which parts they have."""

from __future__ import annotations

from shaderad.ir.types import (
    BOOL,
    FLOAT,
    INT,
    UINT,
    BufferType,
    LocalArray,
    Matrix,
    Pointer,
    SamplerType,
    Scalar,
    Struct,
    TextureType,
    Tuple,
    Type,
    Vector,
)

FLOAT2, FLOAT3, FLOAT4 = (Vector(FLOAT, n) for n in (2, 3, 4))
INT2, INT3 = (Vector(INT, n) for n in (2, 3))
FLOAT2X2, FLOAT3X3, FLOAT2X3 = Matrix(FLOAT, 2, 2), Matrix(FLOAT, 3, 3), Matrix(FLOAT, 2, 3)
COMPONENTS = "xyzw"


def spell(t: Type) -> str:
    """The annotation."""
    if isinstance(t, LocalArray):
        return f"sad.LocalArray[{spell(t.element)}, {t.count}]"
    if isinstance(t, Tuple):
        return f"tuple[{', '.join(map(spell, t.elements))}]"
    if isinstance(t, TextureType | SamplerType):
        return f"sad.{t}"
    if isinstance(t, Pointer):
        return f"sad.Pointer[{spell(t.element)}]"
    if isinstance(t, BufferType):
        rank = "" if t.rank == 1 else f", {t.rank}"
        return f"sad.{t.access.value}[{spell(t.element)}{rank}]"
    return "sad.uint" if t == UINT else str(t)


def contains(t: Type, wanted: Type) -> bool:
    """Whether a value of type `t` has a part of type `wanted`, or is one."""
    if t == wanted:
        return True
    if isinstance(t, Struct):
        return any(contains(f, wanted) for _, f in t.fields)
    if isinstance(t, LocalArray):
        return contains(t.element, wanted)
    if isinstance(t, Matrix):
        return contains(t.row, wanted)
    if isinstance(t, Vector):
        return wanted == t.element or (isinstance(wanted, Vector) and wanted.element == t.element)
    return False


def has_float(t: Type) -> bool:
    return contains(t, FLOAT)


def zero(t: Type) -> str:
    """The simplest value."""
    if isinstance(t, Scalar):
        return {FLOAT: "0.5", BOOL: "True", UINT: "sad.uint(1)"}.get(t, "1")
    if isinstance(t, Struct):
        return f"{t.name}({', '.join(zero(f) for _, f in t.fields)})"
    if isinstance(t, LocalArray):
        return f"{spell(t)}()"
    assert isinstance(t, Vector | Matrix)
    return f"{t}({zero(t.element)})"
