"""The entries of `manifest.json`, kernels and graphs, which plans run; see docs/manifest.md."""

from __future__ import annotations

from dataclasses import replace
from typing import Annotated, Literal

import msgspec

from shaderad.bundle.format.description import (
    BoundsName,
    Name,
    Number,
    Path,
    SizeText,
    one_of,
)
from shaderad.bundle.format.plans import PlansEntry
from shaderad.ir.types import (
    ANNOTATED,
    RESOURCES,
    Access,
    BufferType,
    ResourceType,
    Type,
)

ARRAY = "array"


def resource_name(t: BufferType) -> str:
    """The resource of a parameter."""
    return t.name if isinstance(t, ResourceType) else ARRAY


def resource_type(resource: str, access: Access, element: Type, rank: int) -> BufferType:
    """The type of a parameter with this resource."""
    if resource == ARRAY:
        return BufferType(access, element, rank)
    return replace(RESOURCES[resource], element=element)


class ArrayEntry(msgspec.Struct, omit_defaults=True):
    """An array that an entry takes or computes."""

    name: Name
    type: Name
    """The element type: a key of `types`."""
    shape: list[SizeText]
    """The extents; numbers are the same in every call."""
    is_differentiable: bool
    """True if derivatives by this input, or of this output, are built."""
    path: Path = []
    """In a kernel: the parameter and the fields that lead to it; ``[]`` follows a pointer."""
    access: Annotated[Access, one_of(access.value for access in ANNOTATED)] = Access.IN
    """In a kernel: the access of its threads."""
    resource: Annotated[Name, one_of((ARRAY, *RESOURCES))] = ARRAY
    """The kind of resource. A texture has the texels of all levels, level after level. In plans,
    the buffer of a texture or sampler has no bytes and stands for the object itself."""


class Entry(msgspec.Struct):
    """A kernel or a graph."""

    name: Name
    file: Name
    """The Python file, without folder."""
    line: Number
    bounds: BoundsName
    """The effect of an index out of range: reported, ignored, or not checked."""
    sizes: list[Name]
    """The names of the extents that a call determines."""
    inputs: list[ArrayEntry]
    outputs: list[ArrayEntry]
    targets: dict[Name, PlansEntry]


class KernelArgument(msgspec.Struct, omit_defaults=True):
    """A parameter of the Python function, other than Index parameters."""

    name: Name
    type: Name
    kind: Literal["array", "texture", "sampler", "uniform", "struct of arrays", "constant"]
    value: float | Name | None = None
    """The value of a constant; text for infinities and NaN."""


class UniformEntry(msgspec.Struct):
    """A value that is the same for the whole launch."""

    name: Name
    path: Path
    """The parameter and the fields that lead to the value."""
    type: Name
    """A key of `types`."""
    is_differentiable: bool
    """True if the backward plan computes its gradient."""


class AxisEntry(msgspec.Struct):
    """An axis of an array."""

    array: Name
    axis: Number


class KernelEntry(Entry, tag_field="kind", tag="kernel", kw_only=True, omit_defaults=True):
    """A kernel; the extents of its launch are the sizes ``dim.0``, ``dim.1``, ..."""

    index_names: list[Name]
    """One name for each extent of the launch."""
    parameters: list[KernelArgument]
    uniforms: list[UniformEntry]
    axes_of_launch: list[list[AxisEntry]] = []
    """For each Index, the axes of arrays with the extent of the launch; empty if unknown."""


class TreeEntry(msgspec.Struct, omit_defaults=True):
    """An argument or result: an array, or a container of arrays.

    A texture or sampler has two parts: the array that stands for it, and its number.
    """

    kind: Literal["array", "texture", "sampler", "size", "number", "value", "tuple", "list",
                  "dict", "named tuple"]  # fmt: skip
    index: Annotated[int, msgspec.Meta(ge=-1, le=2**31 - 1)] = -1
    """For an array, its position in `inputs` or `outputs`."""
    size: SizeText = 0
    value: Name | bool | None = None
    """For a number, its Python text; floats have a point or exponent."""
    name: Name = ""
    """For a named tuple, its class."""
    names: list[Name] = []
    parts: list[TreeEntry] = []


class GraphParameter(msgspec.Struct, omit_defaults=True):
    """A parameter of the Python function; values are compiled in and not passed."""

    name: Name
    tree: TreeEntry
    default: TreeEntry | None = None
    """The default: numbers for calls that omit the parameter."""


class Assumptions(msgspec.Struct):
    """Conditions on the sizes of a call."""

    equal: list[tuple[SizeText, SizeText]]
    positive: list[SizeText]


class GraphEntry(Entry, tag_field="kind", tag="graph", kw_only=True):
    """A graph."""

    assumes: Assumptions
    parameters: list[GraphParameter]
    result: TreeEntry
