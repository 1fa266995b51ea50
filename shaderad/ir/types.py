"""The types of kernel values, and their layout in buffers.

Invariant: types are immutable and compare by structure; structs by name and fields.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Container, Iterator, Mapping
from dataclasses import dataclass
from enum import Enum
from functools import cached_property
from math import gcd
from typing import ClassVar

from shaderad.ir.dimensions import Dimension

WORD_BYTES = 4
"""Bytes of a word, unless it is that of halves: see `word_bytes`."""


class Type:
    """Base of all types."""


class Kind(Enum):
    """The kind of a scalar; the value is its spelling in Slang and in messages."""

    __hash__ = object.__hash__  # that of `Enum` is a Python function
    FLOAT = "float"
    HALF = "half"
    DOUBLE = "double"
    INT = "int"
    UINT = "uint"
    BOOL = "bool"


FLOAT_KINDS = frozenset({Kind.FLOAT, Kind.HALF, Kind.DOUBLE})
INTEGER_KINDS = frozenset({Kind.INT, Kind.UINT})


@dataclass(frozen=True)
class Scalar(Type):
    """One number or truth value."""

    kind: Kind

    def __str__(self) -> str:
        return self.kind.value


@dataclass(frozen=True)
class Vector(Type):
    """2 to 4 scalars: ``float3``."""

    element: Scalar
    count: int

    def __str__(self) -> str:
        return f"{self.element}{self.count}"


@dataclass(frozen=True)
class Matrix(Type):
    """Row-major matrix: ``float3x4`` has 3 rows and 4 columns."""

    element: Scalar
    row_count: int
    column_count: int

    def __str__(self) -> str:
        return f"{self.element}{self.row_count}x{self.column_count}"

    @property
    def row(self) -> Vector:
        return Vector(self.element, self.column_count)


@dataclass(frozen=True)
class LocalArray(Type):
    """A fixed-size array held in registers or thread memory."""

    element: Type
    count: int

    def __str__(self) -> str:
        return f"LocalArray[{self.element}, {self.count}]"


@dataclass(frozen=True)
class Pointer(Type):
    """``sad.Pointer[T]``: a range of elements in another buffer, as base and count.

    A plain value without a derivative: the gradient of an element lies at the same index of the
    gradient of `target` (see ir/pointers.py).
    """

    element: Type
    target: str = ""
    """Name of the `Buffer` that holds the elements; empty in annotations."""

    def __str__(self) -> str:
        return f"Pointer[{self.element}]"


@dataclass(frozen=True)
class Struct(Type):
    """A user struct. With `BufferType` fields it is valid as a parameter only."""

    name: str
    fields: tuple[tuple[str, Type], ...]

    def __str__(self) -> str:
        return self.name

    @cached_property
    def type_by_field(self) -> dict[str, Type]:
        return dict(self.fields)

    @property
    def holds_buffers(self) -> bool:
        """True if a field, at any depth, is an array parameter."""
        return any(
            isinstance(t, BufferType) or (isinstance(t, Struct) and t.holds_buffers)
            for _, t in self.fields
        )


@dataclass(frozen=True)
class Tuple(Type):
    """Multiple results of a function."""

    elements: tuple[Type, ...]

    def __str__(self) -> str:
        return f"({', '.join(map(str, self.elements))})"

    @cached_property
    def type_by_field(self) -> dict[str, Type]:
        return {str(k): element for k, element in enumerate(self.elements)}


@dataclass(frozen=True)
class FloatFields(Struct):
    """The derivative type of `whole`, a struct with fields that are not differentiable."""

    whole: Struct


@dataclass(frozen=True)
class FloatElements(Tuple):
    """The derivative type of `whole`, a tuple with elements that are not differentiable."""

    whole: Tuple


@dataclass(frozen=True)
class Pair(Type):
    """``sad.DifferentialPair[T]``: a primal ``.p`` and a tangent or cotangent ``.d``."""

    primal: Type

    def __str__(self) -> str:
        return f"DifferentialPair[{self.primal}]"


class Access(Enum):
    """Access mode of an array parameter; the value is its Python spelling."""

    IN = "In"
    OUT = "Out"
    ADD = "Add"
    MIN = "Min"
    MAX = "Max"
    SCRATCH = "Scratch"  # of plans: all threads of the one workgroup write and read it
    GROUP = "Group"  # the same in group memory
    STATES = "States"  # of plans: the states of the parts of rows, which groups exchange
    GREATEST = "Greatest"  # of our own kernels: pairs of words, of which the greatest stays
    LISTS = "Lists"  # of our own kernels: linked lists of numbers

    @property
    def described(self) -> str:
        """The noun in messages, with its article."""
        article = "a" if self in (Access.MIN, Access.MAX) else "an"
        return f"{article} `{self.value}` array"


_OF_PLANS = (Access.SCRATCH, Access.GROUP, Access.STATES)
OF_OUR_KERNELS = (Access.GREATEST, Access.LISTS)
"""The access modes of `language/own_arrays.py`."""
ANNOTATED = tuple(a for a in Access if a not in (*_OF_PLANS, *OF_OUR_KERNELS))
"""The access modes that users annotate."""


@dataclass(frozen=True)
class BufferType(Type):
    """An array parameter: ``sad.In[float3, 2]``."""

    access: Access
    element: Type
    rank: int = 1

    def __str__(self) -> str:
        rank = "" if self.rank == 1 else f", {self.rank}"
        return f"{self.access.value}[{self.element}{rank}]"


WRAPS = ("repeat", "clamp", "mirror")
"""Ways in which a texture continues beyond its edge."""
LINEAR, MIXES_LEVELS = 1 << 6, 1 << 7
"""Bits of a sampler's settings: mix texels, mix levels; if clear, the nearest is taken."""


@dataclass(frozen=True)
class ResourceType(BufferType, ABC):
    """An object of the device that a kernel reads: its content, and a number beside it.

    The number is a uniform. The host finds it in the argument, so the path of the uniform is that
    of the argument with `number_name` behind it.
    """

    number: ClassVar[Type]
    """The type of the number."""
    number_name: ClassVar[str]
    elements: ClassVar[tuple[Type, ...]] = ()
    """The types of elements that an annotation may ask for."""

    @property
    @abstractmethod
    def name(self) -> str:
        """The name in annotations and manifests, without an element type."""


@dataclass(frozen=True)
class TextureType(ResourceType):
    """A texture: ``sad.Texture2D[float4]``.

    As an array it has one axis: the texels of all levels, level after level, each row-major over
    (depth or face, rows, columns). So its gradient is an array, and a derivative reads the texels
    that the device's filter reads. Its number is its size: the texels along x, y and z on level 0,
    then the number of levels. A missing axis counts as 1, and layers and faces count along z.
    """

    dimension: Dimension = Dimension.PLANE
    elements = (Scalar(Kind.FLOAT), *(Vector(Scalar(Kind.FLOAT), n) for n in (2, 4)))
    number = Vector(Scalar(Kind.INT), 4)
    number_name = "size"

    @property
    def name(self) -> str:
        return self.dimension.row.name

    def __str__(self) -> str:
        return f"{self.name}[{self.element}]"


@dataclass(frozen=True)
class SamplerType(ResourceType):
    """``sad.Sampler``: how a texture is filtered, and what lies beyond its edges.

    As an array it has no axes. Its number is its settings, from which derivatives compute the
    filter: two bits per axis with the index in `WRAPS`, x first, then `LINEAR` and `MIXES_LEVELS`.
    """

    number = Scalar(Kind.UINT)
    number_name = "settings"

    @property
    def name(self) -> str:
        return "Sampler"

    def __str__(self) -> str:
        return self.name


@dataclass(frozen=True)
class Void(Type):
    """The result type of a function that returns nothing."""

    def __str__(self) -> str:
        return "None"


FLOAT, HALF, DOUBLE = Scalar(Kind.FLOAT), Scalar(Kind.HALF), Scalar(Kind.DOUBLE)
INT, UINT, BOOL = Scalar(Kind.INT), Scalar(Kind.UINT), Scalar(Kind.BOOL)
VOID = Void()
SAMPLER = SamplerType(Access.IN, UINT, rank=0)
_TEXTURES = (TextureType(Access.IN, FLOAT, dimension=d) for d in Dimension)
RESOURCES: Mapping[str, ResourceType] = {t.name: t for t in (*_TEXTURES, SAMPLER)}
"""The types of textures and samplers by name. Textures exist with other elements, too."""


def is_float(t: Type) -> bool:
    """True if `t` is a float scalar, or a vector or matrix of them."""
    return _has_kind(t, FLOAT_KINDS)


def is_integer(t: Type) -> bool:
    """True if `t` is an int or uint scalar, or a vector or matrix of them."""
    return _has_kind(t, INTEGER_KINDS)


def is_bool(t: Type) -> bool:
    """True if `t` is bool or a vector of them."""
    return _has_kind(t, (Kind.BOOL,))


def _has_kind(t: Type, kinds: Container[Kind]) -> bool:
    s = scalar_of(t)
    return s is not None and s.kind in kinds


def scalar_of(t: Type) -> Scalar | None:
    """The scalar inside a scalar, vector or matrix; `None` for every other type."""
    if isinstance(t, Scalar):
        return t
    if isinstance(t, Vector | Matrix):
        return t.element
    return None


def with_scalar(t: Type, scalar: Scalar) -> Type:
    """`t`, a scalar, vector or matrix, with another scalar."""
    if isinstance(t, Vector):
        return Vector(scalar, t.count)
    if isinstance(t, Matrix):
        return Matrix(scalar, t.row_count, t.column_count)
    return scalar


def is_differentiable(t: Type) -> bool:
    """True if `t` holds a float at any depth."""
    if isinstance(t, Scalar):
        return t.kind in FLOAT_KINDS
    if isinstance(t, LocalArray | BufferType):
        return is_differentiable(t.element)
    if isinstance(t, Struct):
        return any(is_differentiable(f) for _, f in t.fields)
    if isinstance(t, Tuple):
        return any(map(is_differentiable, t.elements))
    return is_float(t)


def tangent(t: Type) -> Type:
    """The type of ``.d`` of a pair: `t` without the parts that hold no float."""
    if isinstance(t, Struct):
        kept = tuple((n, tangent(f)) for n, f in t.fields if is_differentiable(f))
        return t if kept == t.fields else FloatFields(f"{t.name}.Differential", kept, t)
    if isinstance(t, LocalArray):
        return LocalArray(tangent(t.element), t.count)
    if isinstance(t, Tuple):
        elements = tuple(tangent(e) for e in t.elements if is_differentiable(e))
        return t if elements == t.elements else FloatElements(elements, t)
    return t


# Note [Words]
# Buffers are flat arrays of words, packed as in NumPy, because struct offsets differ between
# targets. A word has 32 bits; a double takes two. Elements of halves only use 16-bit words. In a
# struct with other scalars, each field of halves only starts on a 32-bit word and has two halves
# per word.


@dataclass(frozen=True, slots=True)
class Leaf:
    """One scalar of an element: its path, type and byte offset."""

    path: tuple[str | int, ...]
    scalar: Scalar
    offset: int


def byte_count(t: Type) -> int:
    """Bytes of one element in a buffer; see Note [Words]."""
    if isinstance(t, Scalar):
        return {Kind.HALF: 2, Kind.DOUBLE: 8}.get(t.kind, 4)
    if isinstance(t, Pointer):
        return 8
    if isinstance(t, Struct):
        align = word_bytes(t)
        return sum(-(-byte_count(f) // align) * align for _, f in t.fields)
    part, count = _repeated(t)
    return count * byte_count(part)


def alignment(t: Type) -> int:
    """Bytes; arrays of `t` start at a multiple of this in their buffer, for vector reads."""
    return gcd(byte_count(t), 16)


def memory_of(t: Type) -> int:
    """Bytes of a local of type `t`."""
    if isinstance(t, Struct):
        return sum(memory_of(part) for _, part in t.fields)
    if isinstance(t, Tuple):
        return sum(map(memory_of, t.elements))
    return t.count * memory_of(t.element) if isinstance(t, LocalArray) else byte_count(t)


def word_bytes(t: Type) -> int:
    """Bytes of a word: 2 for elements of halves only, else 4."""
    return 2 if {s.kind for s in scalars(t)} == {Kind.HALF} else WORD_BYTES


def scalars(t: Type) -> Iterator[Scalar]:
    """The scalar types of one element, at least one per field."""
    if isinstance(t, Struct):
        for _, field in t.fields:
            yield from scalars(field)
    elif isinstance(t, LocalArray):
        yield from scalars(t.element)
    elif isinstance(t, Pointer):
        yield UINT
    else:
        scalar = scalar_of(t)
        if scalar is not None:
            yield scalar


def leaves(t: Type) -> tuple[Leaf, ...]:
    """Every scalar of one element, in buffer order."""
    return tuple(_leaves(t, (), 0))


def _leaves(t: Type, path: tuple[str | int, ...], offset: int) -> Iterator[Leaf]:
    if isinstance(t, Scalar):
        yield Leaf(path, t, offset)
    elif isinstance(t, Struct):
        align = word_bytes(t)
        for name, field in t.fields:
            yield from _leaves(field, (*path, name), offset)
            offset += -(-byte_count(field) // align) * align
    elif isinstance(t, Pointer):
        yield Leaf((*path, "base"), UINT, offset)
        yield Leaf((*path, "count"), UINT, offset + 4)
    else:
        part, count = _repeated(t)
        for index in range(count):
            yield from _leaves(part, (*path, index), offset)
            offset += byte_count(part)


def _repeated(t: Type) -> tuple[Type, int]:
    """The part that a vector, matrix or local array repeats, and how often."""
    if isinstance(t, Vector | LocalArray):
        return t.element, t.count
    if isinstance(t, Matrix):
        return t.row, t.row_count
    raise TypeError(f"{t} has no layout")
