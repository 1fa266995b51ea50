"""Attributes -> fields, components, methods, members of modules and classes."""

from __future__ import annotations

import ast
import enum
from types import ModuleType

from shaderad.diagnostics import Span
from shaderad.diagnostics.foreign_names import remedy_for
from shaderad.frontend import textures
from shaderad.frontend.body import BodyReader
from shaderad.frontend.captured import value_of
from shaderad.frontend.subscripts import named, only_written, root_of
from shaderad.ir import types
from shaderad.ir.nodes import Expr, Field, Length, Load, PairPart, Swizzle, Var
from shaderad.ir.pointers import holds_pointers
from shaderad.language.structs import info_of
from shaderad.language.values import (
    MISSING,
    ArrayRef,
    BoundMethod,
    CapturedStruct,
    EnumMember,
    Host,
    ResourceRef,
    Sequence,
    StructRef,
    TextureMethod,
    Twin,
    Value,
)

_COMPONENTS = "xyzw"
_COMPONENT_BY_COLOR = dict(zip("rgba", _COMPONENTS, strict=True))


def attribute(body: BodyReader, node: ast.Attribute, is_target: bool) -> Value:
    """``value.name``."""
    owner = body.value(node.value, is_target=is_target)
    value = _attribute_of(body, owner, node, is_target)
    if value is not None:
        return value
    raise body.error("SR0310", node, type=named(owner), name=node.attr,
                     known=_known_attributes(body, owner, node.attr))  # fmt: skip


def _attribute_of(
    body: BodyReader, owner: Value, node: ast.Attribute, is_target: bool
) -> Value | None:
    name, span = node.attr, body.span(node)
    match owner:
        case Host():
            return _of_host(body, owner, node)
        case EnumMember() if name == "value":
            return owner
        case ArrayRef() | ResourceRef():
            return _of_array(owner, name, span)
        case StructRef():
            return _of_struct_ref(body, owner, name)
        case Twin():
            return _of_twin(body, owner, node, is_target)
        case Expr(type=types.Struct() as t):
            if name in t.type_by_field:
                return Field(type=t.type_by_field[name], value=owner, name=name, span=span)
            return _method(body, owner, t, name)
        case Expr(type=types.Vector()):
            return swizzle(owner, name, span)
        case Expr(type=types.Pair() as t):
            return _of_pair(owner, t, name, span)
        case _:
            return None


def _of_host(body: BodyReader, owner: Host, node: ast.Attribute) -> Value | None:
    thing, name = owner.object, f"{owner.name}.{node.attr}"
    info = info_of(thing) if isinstance(thing, type) else None
    if info is not None and node.attr in info.methods:
        return Host(info.methods[node.attr], f"{info.name}.{node.attr}")
    if isinstance(owner, CapturedStruct):
        own = info_of(thing)
        if own is not None and node.attr in own.methods:
            return BoundMethod(owner.constant(body.span(node)), own.methods[node.attr])
    is_space = isinstance(thing, ModuleType | type | enum.Enum)
    member = MISSING
    if is_space or not callable(thing) or hasattr(thing, "ir_type"):
        member = body.unit.captures.attribute(thing, node.attr)
    if member is not MISSING:
        return value_of(body, member, name, body.span(node))
    if not isinstance(thing, ModuleType):
        return None
    code, shown = ("SR0229", node.attr) if thing.__name__ == "shaderad" else ("SR0203", name)
    raise body.error(code, node, name=shown, remedy=remedy_for(node.attr, dir(thing)))


def _of_array(owner: ArrayRef | ResourceRef, name: str, span: Span) -> Value | None:
    if isinstance(owner, ResourceRef):
        is_method = isinstance(owner.type, types.TextureType) and name in textures.METHODS
        return TextureMethod(owner, name) if is_method else None
    if owner.part == "pair":
        return ArrayRef(owner.buffer, owner.type, name) if name in ("p", "d") else None
    if name != "shape":
        return None
    return Sequence(tuple(length(owner, axis, span) for axis in range(owner.type.rank)), span)


def length(array: ArrayRef, axis: int, span: Span) -> Length:
    return Length(type=types.INT, buffer=array.buffer, axis=axis, span=span)


def _of_struct_ref(body: BodyReader, owner: StructRef, name: str) -> Value | None:
    if owner.part == "pair":
        return _part_of_struct(owner, name) if name in ("p", "d") else None
    value = owner.get(name)
    if value is None and owner.part != "d":
        return _method(body, owner, owner.type, name)
    return value


def _part_of_struct(owner: StructRef, part: str) -> StructRef:
    parts: list[tuple[str, Value]] = []
    for name, value in owner.parts:
        if isinstance(value, ArrayRef) and value.part == "pair":
            parts.append((name, ArrayRef(value.buffer, value.type, part)))
        elif isinstance(value, StructRef) and value.part == "pair":
            parts.append((name, _part_of_struct(value, part)))
        elif isinstance(value, Var) and isinstance(value.type, types.Pair):
            half = _of_pair(value, value.type, part, value.span)
            assert half is not None
            parts.append((name, half))
        elif part == "p":
            parts.append((name, value))
    return StructRef(owner.type, tuple(parts), "" if part == "p" else "d")


def _method(body: BodyReader, owner: Value, t: types.Struct, name: str) -> Value | None:
    info = body.unit.struct_info(t)
    if info is None or name not in info.methods:
        return None
    return BoundMethod(owner, info.methods[name])


def _of_pair(owner: Expr, t: types.Pair, name: str, span: Span) -> Value | None:
    if name not in ("p", "d"):
        return None
    primal = PairPart(type=t.primal, value=owner, part="p", span=span)
    if name == "p":
        return primal
    derivative = PairPart(type=types.tangent(t.primal), value=owner, part="d", span=span)
    return Twin(primal, derivative) if holds_pointers(t.primal) else derivative


def swizzle(owner: Expr, letters: str, span: Span) -> Swizzle | None:
    """``v.zx`` or ``v.bgr``; `None` where the vector lacks one of the components."""
    assert isinstance(owner.type, types.Vector)
    if letters and set(letters) <= set(_COMPONENT_BY_COLOR):
        letters = "".join(_COMPONENT_BY_COLOR[c] for c in letters)
    if not 1 <= len(letters) <= 4 or not set(letters) <= set(_COMPONENTS[: owner.type.count]):
        return None
    scalar = owner.type.element
    t: types.Type = scalar if len(letters) == 1 else types.Vector(scalar, len(letters))
    return Swizzle(type=t, value=owner, components=letters, span=span)


def _known_attributes(body: BodyReader, owner: Value, name: str) -> str:
    t = owner.type if isinstance(owner, Expr | StructRef) else None
    if isinstance(t, types.Struct):
        info = body.unit.struct_info(t)
        methods = [] if info is None else [f"{m}()" for m in info.methods]
        return "it has " + ", ".join([n for n, _ in t.fields] + methods)
    if isinstance(t, types.Vector):
        letters = ", ".join(_COMPONENTS[: t.count])
        return f"it has {letters} (or {', '.join('rgba'[: t.count])}) and combinations"
    if isinstance(t, types.Matrix) and name == "T":
        return "write `sad.transpose(m)`"
    if isinstance(t, types.Pair) or getattr(owner, "part", "") == "pair":
        return "a pair has `.p` and `.d`"
    if isinstance(owner, ResourceRef) and isinstance(owner.type, types.TextureType):
        return f"a texture has {', '.join(f'{m}()' for m in textures.METHODS)}"
    if isinstance(owner, ArrayRef):
        return "an array has `.shape` and `len()`"
    if isinstance(t, types.Pointer) or isinstance(owner, Twin):
        return "what a pointer leads to is read as `pointer[k]`, and counted by `len(pointer)`"
    return "there is none"


def _of_twin(body: BodyReader, owner: Twin, node: ast.Attribute, is_target: bool) -> Value | None:
    """``p.d.field``; `None` for a field that does not exist or has no gradient.

    Raises:
        LanguageError: SR0208 where a gradient behind a pointer is read.
    """
    t, name, span = owner.primal.type, node.attr, body.span(node)
    if not isinstance(t, types.Struct) or name not in t.type_by_field:
        return None
    inner = t.type_by_field[name]
    derivative = None
    if owner.derivative is not None and types.is_differentiable(inner):
        derivative = Field(type=types.tangent(inner), value=owner.derivative, name=name, span=span)
    if holds_pointers(inner):
        return Twin(Field(type=inner, value=owner.primal, name=name, span=span), derivative)
    if derivative is not None and not is_target and isinstance(root_of(owner.primal), Load):
        raise only_written(body, node)
    return derivative
