"""The Slang types of what a module binds: buffers of words, textures, samplers."""

from __future__ import annotations

from shaderad.compiler.artifact import Binding, BindingAccess
from shaderad.ir.dimensions import Dimension
from shaderad.ir.types import (
    WORD_BYTES,
    Kind,
    Matrix,
    TextureType,
    Type,
    Vector,
    byte_count,
    word_bytes,
)


class SlangBuffer:
    """The Slang types of bound buffers of words, and of samplers."""

    READ = "StructuredBuffer<uint>"
    READ_HALF = "StructuredBuffer<half>"
    WRITE = "RWStructuredBuffer<uint>"
    WRITE_HALF = "RWStructuredBuffer<half>"
    FLOATS = "RWStructuredBuffer<Atomic<float>>"
    WORDS = "RWStructuredBuffer<Atomic<uint>>"
    PAIRS = "RWStructuredBuffer<Atomic<uint64_t>>"
    GROUP = "groupshared uint"
    GROUP_SUMS = "groupshared Atomic<uint>"
    SAMPLER = "SamplerState"


_VIEWS = {d.row.name: d for d in Dimension}
"""The Slang types of textures without their texels, and how hosts bind them."""


def texture_type(t: TextureType) -> str:
    """The Slang type by which texels of a texture are read one by one."""
    return f"{t.dimension.row.texel_view.row.name}<{t.element}>"


def binding_of(slot: int, name: str, slang_type: str) -> Binding:
    """The binding of a resource that is declared with a Slang type."""
    if slang_type == SlangBuffer.SAMPLER:
        return Binding(slot, name, BindingAccess.SAMPLER)
    view = _VIEWS.get(slang_type.partition("<")[0])
    if view is not None:
        return Binding(slot, name, BindingAccess.TEXTURE, view)
    is_written = slang_type.startswith("RW")
    return Binding(slot, name, BindingAccess.WRITE if is_written else BindingAccess.READ)


def read_buffer(t: Type) -> str:
    """The buffer type for reads of parts of elements `t`."""
    return SlangBuffer.READ_HALF if word_bytes(t) == 2 else SlangBuffer.READ


def load_width(t: Type) -> int:
    """The words of one load of an element `t`, as `read` of elements.slang and of structs loads."""
    if isinstance(t, Matrix):
        return load_width(Vector(t.element, t.column_count))
    count = byte_count(t) // word_bytes(t)
    is_pairs = isinstance(t, Vector) and t.element.kind is Kind.DOUBLE
    return next(n for n in ((2, 1) if is_pairs else (4, 2, 1)) if count % n == 0)


def store_width(t: Type) -> int:
    """The words of one store of an element `t`, as `write` of elements.slang stores."""
    if isinstance(t, Matrix):
        return store_width(t.row)
    if not isinstance(t, Vector) or byte_count(t.element) != WORD_BYTES:
        return 1
    return t.count if t.count != 3 else 1


def group_width(t: Type) -> int:
    """The words of one access to an element `t` in group memory: 4 or 1."""
    return 4 if isinstance(t, Vector) and load_width(t) == store_width(t) == 4 else 1


def write_buffer(t: Type) -> str:
    """The buffer type for plain writes of elements `t`."""
    return SlangBuffer.WRITE_HALF if word_bytes(t) == 2 else SlangBuffer.WRITE
