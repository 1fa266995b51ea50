"""Methods of textures -> reads by the texture unit, and reads of texels.

A read by the unit comes with a function in the kernel language that computes the same value from
texels; the derivatives of the function are those of the read. A higher room defines these
functions. This file declares the protocol that the front end needs, and `shaderad/__init__.py` says
where they come from.
"""

from __future__ import annotations

import ast
from types import MappingProxyType
from typing import Protocol

from shaderad.diagnostics import Span, error
from shaderad.frontend import user_functions
from shaderad.frontend.body import BodyReader
from shaderad.frontend.conversions import coerce
from shaderad.ir.dimensions import Dimension
from shaderad.ir.nodes import Call, Expr, Function, Swizzle, TextureCall, TextureRead
from shaderad.ir.types import (
    FLOAT,
    INT,
    SAMPLER,
    Access,
    BufferType,
    Scalar,
    TextureType,
    Type,
    Vector,
)
from shaderad.language.host import UserFunction
from shaderad.language.supplied import Supplied
from shaderad.language.values import (
    ArrayRef,
    PythonNumber,
    ResourceRef,
    Sequence,
    TextureMethod,
    Value,
    describe,
)


class Filters(Protocol):
    """The reads of textures as functions in the kernel language of one array of texels."""

    def sampling(self, read: TextureRead, dimension: Dimension, texel: Type) -> UserFunction:
        """``f(texels, size, settings, ...)``; the last parameters depend on `read`."""
        ...

    def loading(self, dimension: Dimension, texel: Type) -> UserFunction:
        """``f(texels, size, position, level)``."""
        ...

    @property
    def on_layer(self) -> UserFunction:
        """``f(size, place)``: a place with the number of its layer, for the unit."""
        ...

    @property
    def extent(self) -> UserFunction:
        """``f(extent, level)``: the extent of an axis on a level."""
        ...


FILTERS: Supplied[Filters] = Supplied()
METHODS = MappingProxyType({
    "sample": ("sampler", "uv"),
    "sample_level": ("sampler", "uv", "level"),
    "sample_grad": ("sampler", "uv", "dx", "dy"),
    "load": ("position", "level"),
    "shape": ("level",),
})  # fmt: skip
"""The parameters of each method."""
_READS = {
    "sample": TextureRead.BASE,
    "sample_level": TextureRead.LEVEL,
    "sample_grad": TextureRead.STEPS,
}
_OPTIONAL = "level"
"""The parameter that a call of `load` or `shape` may omit; it is 0 then."""


def call(body: BodyReader, method: TextureMethod, node: ast.Call) -> Value:
    """The value of ``texture.method(...)``.

    Raises:
        LanguageError: SR0231 for the wrong number of arguments, SR0233 for unknown keywords,
            SR0303 for their types.
    """
    arguments = _arguments(body, method, node)
    read = _Read(body, method.owner, body.span(node))
    match method.name:
        case "shape":
            return read.shape(arguments.get(_OPTIONAL, PythonNumber(0)))
        case "load":
            return read.texel(arguments["position"], arguments.get(_OPTIONAL, PythonNumber(0)))
        case _:
            (sampler, *where) = arguments.values()
            return read.filtered(sampler, _READS[method.name], where)


def _arguments(body: BodyReader, method: TextureMethod, node: ast.Call) -> dict[str, Value]:
    names = METHODS[method.name]
    needed = [n for n in names if n != _OPTIONAL or method.name == "sample_level"]
    for a in node.args:
        if isinstance(a, ast.Starred):
            raise body.error("SR0233", a, found="`*`")
    value_by_name = {name: body.value(a) for name, a in zip(names, node.args, strict=False)}
    for keyword in node.keywords:
        if keyword.arg is None or keyword.arg not in names or keyword.arg in value_by_name:
            raise body.unknown_keyword(keyword)
        value_by_name[keyword.arg] = body.value(keyword.value)
    if len(node.args) > len(names) or not value_by_name.keys() >= set(needed):
        wanted = ", ".join(needed + [f"{n}=0" for n in names if n not in needed])
        argument_count = len(node.args) + len(node.keywords)
        raise body.error("SR0231", node, name=method.name, found=argument_count,
                         wanted=f"{len(needed)}: {wanted}")  # fmt: skip
    return {name: value_by_name[name] for name in names if name in value_by_name}


class _Read:
    """One read of a texture."""

    def __init__(self, body: BodyReader, texture: ResourceRef, span: Span) -> None:
        self._body = body
        assert isinstance(texture.type, TextureType)
        self._type = texture.type
        self._texture = texture
        self._span = span

    def filtered(self, sampler: Value, read: TextureRead, where: list[Value]) -> Call:
        """A read through a sampler; one that targets cannot do is computed from texels."""
        t, span = self._type, self._span
        if not isinstance(sampler, ResourceRef) or sampler.type != SAMPLER:
            raise error("SR0303", span, found=describe(sampler), wanted=SAMPLER,
                        help="pass a parameter that is annotated `sad.Sampler`")  # fmt: skip
        row = t.dimension.row
        place, step = _place(FLOAT, row.axes), _place(FLOAT, row.step_axes)
        types = (place, *(FLOAT if read is TextureRead.LEVEL else step for _ in where[1:]))
        make = FILTERS.functions.sampling
        function = self._specialised(
            make(read, t.dimension, t.element),
            self._texels,
            TextureType.number,
            SAMPLER.number,
            *types,
        )
        coordinates = [coerce(v, wanted, span) for v, wanted in zip(where, types, strict=True)]
        if row.samples_layers:
            on_layer = self._specialised(FILTERS.functions.on_layer, TextureType.number, place)
            at = (self._texture.number, coordinates[0])
            coordinates[0] = Call(type=place, function=on_layer, args=at, span=span)
        args = (self._texture.number, sampler.number, *coordinates)
        if not row.is_filtered:
            return Call(type=t.element, function=function, args=args, span=span)
        name = self._texture.content.buffer
        return TextureCall(type=t.element, function=function, args=args, read=read,
                           texture=name, sampler=sampler.content.buffer, span=span)  # fmt: skip

    def texel(self, position: Value, level: Value) -> Call:
        t = self._type
        place = _place(INT, t.dimension.row.axes)
        function = self._specialised(
            FILTERS.functions.loading(t.dimension, t.element),
            self._texels,
            TextureType.number,
            place,
            INT,
        )
        place_in_level = coerce(position, place, self._span)
        args = (self._texture.number, place_in_level, coerce(level, INT, self._span))
        return Call(type=t.element, function=function, args=args, span=self._span)

    def shape(self, level: Value) -> Sequence:
        """The extents of a level, as those of an array: rows before columns."""
        function = self._specialised(FILTERS.functions.extent, INT, INT)
        on = self._body.keep(coerce(level, INT, self._span), "level")
        size, row = self._texture.number, self._type.dimension.row

        def extent(letter: str) -> Expr:
            whole = Swizzle(type=INT, value=size, components=letter)
            if not row.is_halved(letter):
                return whole
            return Call(type=INT, function=function, args=(whole, on), span=self._span)

        return Sequence(tuple(map(extent, row.extents)), self._span)

    @property
    def _texels(self) -> ArrayRef:
        name, t = self._texture.content.buffer, self._type
        return ArrayRef(name, BufferType(Access.IN, t.element))

    def _specialised(self, function: UserFunction, *slots: user_functions.Slot) -> Function:
        specialised = user_functions.specialise(self._body.unit, function, slots, self._span)
        user_functions.note_buffers(self._body, specialised)
        return specialised


def _place(scalar: Scalar, axes: int) -> Type:
    """The type of coordinates, of steps, and of positions of texels."""
    return scalar if axes == 1 else Vector(scalar, axes)
