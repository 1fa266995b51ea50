"""Attributes and subscripts -> fields, components, elements, array loads.

Invariant: an index is an int; a constant index is in range.
"""

from __future__ import annotations

import ast
import enum
import types

from shaderad.diagnostics import Span
from shaderad.diagnostics.foreign_names import remedy_for
from shaderad.frontend import pointers
from shaderad.frontend.body import BodyReader
from shaderad.frontend.conversions import element_count
from shaderad.frontend.indices import constant_index, index_of
from shaderad.frontend.operators import as_number
from shaderad.ir.nodes import Const, Element, Expr, Field, Length, Load, PairPart, Swizzle, Var
from shaderad.ir.pointers import holds_pointers
from shaderad.ir.types import (
    INT,
    Access,
    LocalArray,
    Matrix,
    Pair,
    Pointer,
    Struct,
    Tuple,
    Type,
    Vector,
    tangent,
)
from shaderad.language.annotations import AnnotationForm
from shaderad.language.captures import MISSING, to_value
from shaderad.language.intrinsics import KernelForm
from shaderad.language.structs import info_of
from shaderad.language.values import (
    ArrayRef,
    BoundMethod,
    EnumMember,
    Host,
    Sequence,
    StructRef,
    TargetElement,
    Twin,
    Value,
    describe,
)

_COMPONENTS = "xyzw"
_COLOR = dict(zip("rgba", _COMPONENTS, strict=True))


# -- attributes -------------------------------------------------------------------------------


def _named(owner: Value) -> str:
    """`owner` at the start of a message: a type alone has no quotes."""
    text = describe(owner)
    return text.strip("`") if text.startswith("`") else text


def attribute(body: BodyReader, node: ast.Attribute, is_target: bool) -> Value:
    """``value.name``.

    Raises:
        LanguageError: SR0310 where the value has no such field, component or method.
    """
    owner = body.target(node.value) if is_target else body.value(node.value)
    if isinstance(owner, Twin):
        value = pointers.field_of_twin(body, owner, node, is_target)
    else:
        value = _attribute_of(body, owner, node)
    if value is not None:
        return value
    raise body.error("SR0310", node, type=_named(owner), name=node.attr,
                     known=_known_attributes(body, owner, node.attr))  # fmt: skip


def _attribute_of(body: BodyReader, owner: Value, node: ast.Attribute) -> Value | None:
    if isinstance(owner, Host):
        return _of_host(body, owner, node)
    if isinstance(owner, EnumMember) and node.attr == "value":
        return owner
    if isinstance(owner, ArrayRef):
        return _of_array(body, owner, node)
    if isinstance(owner, StructRef):
        return _of_struct_ref(body, owner, node.attr)
    if not isinstance(owner, Expr):
        return None
    if isinstance(owner.type, Struct):
        return _of_struct(body, owner, owner.type, node)
    if isinstance(owner.type, Vector):
        return swizzle(owner, node.attr, body.span(node))
    if isinstance(owner.type, Pair):
        return _of_pair(owner, owner.type, node.attr, body.span(node))
    return None


def _of_host(body: BodyReader, owner: Host, node: ast.Attribute) -> Value | None:
    info = info_of(owner.object) if isinstance(owner.object, type) else None
    if info is not None and node.attr in info.methods:
        return Host(info.methods[node.attr], f"{info.name}.{node.attr}")
    is_space = isinstance(owner.object, types.ModuleType | type | enum.Enum)
    member = MISSING
    if is_space or not callable(owner.object) or hasattr(owner.object, "ir_type"):
        member = body.unit.captures.attribute(owner.object, node.attr)
    if member is MISSING:
        if isinstance(owner.object, types.ModuleType):
            raise _unknown(body, owner.object, f"{owner.name}.{node.attr}", node)
        return None
    return to_value(member, f"{owner.name}.{node.attr}", body.span(node))


def _unknown(
    body: BodyReader, module: types.ModuleType, name: str, node: ast.Attribute
) -> Exception:
    remedy = remedy_for(node.attr, dir(module))
    if module.__name__ == "shaderad":
        return body.error("SR0229", node, name=node.attr, remedy=remedy)
    return body.error("SR0203", node, name=name, remedy=remedy)


def _of_array(body: BodyReader, owner: ArrayRef, node: ast.Attribute) -> Value | None:
    if owner.part == "pair":
        if node.attr in ("p", "d"):
            return ArrayRef(owner.buffer, owner.type, node.attr)
        return None
    if node.attr != "shape":
        return None
    axes = range(owner.type.rank)
    span = body.span(node)
    return Sequence(tuple(length(owner, axis, span) for axis in axes), span)


def length(array: ArrayRef, axis: int, span: Span) -> Length:
    return Length(type=INT, buffer=array.buffer, axis=axis, span=span)


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
        elif isinstance(value, Var) and isinstance(value.type, Pair):
            half = _of_pair(value, value.type, part, value.span)
            assert half is not None
            parts.append((name, half))
        elif part == "p":
            parts.append((name, value))
    return StructRef(owner.type, tuple(parts), "" if part == "p" else "d")


def _of_struct(body: BodyReader, owner: Expr, t: Struct, node: ast.Attribute) -> Value | None:
    if node.attr in t.type_by_field:
        return Field(
            type=t.type_by_field[node.attr], value=owner, name=node.attr, span=body.span(node)
        )
    return _method(body, owner, t, node.attr)


def _method(body: BodyReader, owner: Value, t: Struct, name: str) -> Value | None:
    info = body.unit.struct_info(t)
    if info is None or name not in info.methods:
        return None
    return BoundMethod(owner, info.methods[name])


def _of_pair(owner: Expr, t: Pair, name: str, span: Span) -> Value | None:
    if name == "p":
        return PairPart(type=t.primal, value=owner, part="p", span=span)
    if name != "d":
        return None
    derivative = PairPart(type=tangent(t.primal), value=owner, part="d", span=span)
    if not holds_pointers(t.primal):
        return derivative
    return Twin(PairPart(type=t.primal, value=owner, part="p", span=span), derivative)


def swizzle(owner: Expr, letters: str, span: Span) -> Swizzle | None:
    """``v.zx`` or ``v.bgr``; `None` where the vector lacks one of the components."""
    assert isinstance(owner.type, Vector)
    if letters and set(letters) <= set(_COLOR):
        letters = "".join(_COLOR[c] for c in letters)
    if not 1 <= len(letters) <= 4 or not set(letters) <= set(_COMPONENTS[: owner.type.count]):
        return None
    scalar = owner.type.element
    t: Type = scalar if len(letters) == 1 else Vector(scalar, len(letters))
    return Swizzle(type=t, value=owner, components=letters, span=span)


def _known_attributes(body: BodyReader, owner: Value, name: str) -> str:
    t = owner.type if isinstance(owner, Expr | StructRef) else None
    if isinstance(t, Struct):
        info = body.unit.struct_info(t)
        methods = [] if info is None else [f"{m}()" for m in info.methods]
        return "it has " + ", ".join([n for n, _ in t.fields] + methods)
    if isinstance(t, Vector):
        letters = ", ".join(_COMPONENTS[: t.count])
        return f"it has {letters} (or {', '.join('rgba'[: t.count])}) and combinations"
    if isinstance(t, Matrix) and name == "T":
        return "write `sad.transpose(m)`"
    if isinstance(t, Pair) or getattr(owner, "part", "") == "pair":
        return "a pair has `.p` and `.d`"
    if isinstance(owner, ArrayRef):
        return "an array has `.shape` and `len()`"
    if isinstance(t, Pointer) or isinstance(owner, Twin):
        return "what a pointer leads to is read as `pointer[k]`, and counted by `len(pointer)`"
    return "there is none"


# -- subscripts -------------------------------------------------------------------------------


def subscript(body: BodyReader, node: ast.Subscript, is_target: bool) -> Value:
    """``value[index]``.

    Raises:
        LanguageError: SR0307 for the wrong number of indices, SR0308 for a constant index that
            is out of range, SR0309 for an index that is no int, SR0310 for a value without
            elements.
    """
    owner = body.target(node.value) if is_target else body.value(node.value)
    span = body.span(node)
    if isinstance(owner, ArrayRef):
        return _element_of_array(body, owner, node, is_target)
    if isinstance(owner, Sequence):
        return owner.parts[constant_index(body, node.slice, len(owner.parts))]
    if isinstance(owner, Host):
        return _local_array_type(body, owner, node)
    if isinstance(owner, Twin):
        return pointers.element_of_twin(body, owner, node, is_target)
    if isinstance(owner, Expr) and isinstance(owner.type, Pointer):
        return pointers.element(body, owner, node)
    if isinstance(owner, Expr):
        if isinstance(owner.type, Tuple):
            index = constant_index(body, node.slice, len(owner.type.elements))
            return Field(type=owner.type.elements[index], value=owner, name=str(index), span=span)
        return _nested_elements(body, owner, node)
    raise body.error("SR0310", node, type=_named(owner), name="[..]",
                     known="it has no elements")  # fmt: skip


def _local_array_type(body: BodyReader, owner: Host, node: ast.Subscript) -> Host:
    """``sad.LocalArray[float, N]`` with a size known while compiling."""
    form = owner.object
    if not isinstance(form, AnnotationForm):
        raise body.error("SR0310", node, type=owner.name, name="[..]", known="it has no elements")
    nodes = _index_nodes(node)
    arguments: list[object] = []
    for item in nodes:
        value = body.value(item)
        number = as_number(value)
        if number is not None:
            arguments.append(number.value)
        elif isinstance(value, Host):
            arguments.append(value.object)
        else:
            raise body.error("SR0319", item, found=describe(value))
    return Host(form[tuple(arguments)], ast.unparse(node))


def _nested_elements(body: BodyReader, owner: Expr, node: ast.Subscript) -> Expr:
    """``v[k]``, and ``m[r, c]``, which is ``m[r][c]``."""
    nodes = _index_nodes(node)
    if len(nodes) > 1 and not (isinstance(owner.type, Matrix) and len(nodes) == 2):
        raise body.error("SR0307", node, type=owner.type, found=len(nodes), wanted=1)
    value = owner
    for item in nodes:
        value = _element(body, value, item, body.span(node))
    return value


def _index_nodes(node: ast.Subscript) -> list[ast.expr]:
    return node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]


def _element(body: BodyReader, owner: Expr, index_node: ast.expr, span: Span) -> Expr:
    count = element_count(owner.type)
    if count is None:
        raise body.error("SR0310", index_node, type=owner.type, name="[..]",
                         known="it has no elements")  # fmt: skip
    index = index_of(body, index_node, count, str(owner.type))
    t = owner.type
    if isinstance(t, Vector) and isinstance(index, Const):
        letter = _COMPONENTS[int(index.value)]
        return Swizzle(type=t.element, value=owner, components=letter, span=span)
    assert isinstance(t, Vector | Matrix | LocalArray)
    return Element(
        type=t.row if isinstance(t, Matrix) else t.element, value=owner, index=index, span=span
    )


def _element_of_array(
    body: BodyReader, array: ArrayRef, node: ast.Subscript, is_target: bool
) -> Expr:
    nodes = _index_nodes(node)
    plain = [_without_unique(body, n) for n in nodes]
    is_unique = plain != nodes
    if is_unique and not is_target:
        raise body.error("SR0211", node)
    if len(plain) == 1 and array.type.rank > 1 and isinstance(plain[0], ast.Tuple):
        plain = plain[0].elts  # b[sad.unique((y, x))]
    if len(plain) != array.type.rank:
        raise body.error("SR0307", node, type=array.type, found=len(plain), wanted=array.type.rank)
    indices = tuple(index_of(body, n, None, f"`{array.buffer}`") for n in plain)
    t, span = array.type.element, body.span(node)
    body.buffers.setdefault(array.buffer, array.type)
    if is_target:
        t = tangent(t) if array.part == "d" else t
        return TargetElement(
            type=t,
            buffer=array.buffer,
            indices=indices,
            array=array,
            is_unique=is_unique,
            span=span,
        )
    _check_readable(body, array, node)
    return Load(type=t, buffer=array.buffer, indices=indices, span=span)


def _check_readable(body: BodyReader, array: ArrayRef, node: ast.AST) -> None:
    access = array.type.access
    if array.part == "pair":
        raise body.error("SR0310", node, type="a pair", name="[..]",
                         known=f"write `{array.buffer}.p[..]`")  # fmt: skip
    if array.part == "d":
        raise body.error("SR0208", node, name=f"{array.buffer}.d", access="an accumulated gradient",
                         how="it only takes `+=`")  # fmt: skip
    if access in (Access.ADD, Access.MIN, Access.MAX):
        how = {Access.ADD: "it only takes `+=` and `-=`"}.get(
            access, f"it only takes `b[j] = sad.{access.value.lower()}(b[j], v)`"
        )
        raise body.error("SR0208", node, name=array.buffer, access=access.described, how=how)


def _without_unique(body: BodyReader, node: ast.expr) -> ast.expr:
    """The index inside ``sad.unique(index)``; any other index as it is."""
    if not isinstance(node, ast.Call) or body.host_object(node.func) != KernelForm("unique"):
        return node
    if len(node.args) != 1 or node.keywords:
        raise body.error("SR0231", node, name="unique", found=len(node.args), wanted=1)
    return node.args[0]
