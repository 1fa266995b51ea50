"""Subscripts -> elements, components, loads of arrays, reads and gradients behind pointers.

The gradient of an element has the element's own number in the gradient of its array. So the
differential of a struct with pointers needs no pointers: ``p.d.meshes[0].scale`` is the gradient of
the element that ``p.p.meshes[0]`` points to. Invariants: an index is an int; a constant index is in
range; a `Twin` never reaches the IR.
"""

from __future__ import annotations

import ast
from collections.abc import Mapping
from types import MappingProxyType

from shaderad.diagnostics import Error, Span, counted
from shaderad.frontend.body import BodyReader
from shaderad.frontend.conversions import constant, element_count
from shaderad.frontend.operators import as_number
from shaderad.ir import types
from shaderad.ir.nodes import Const, Element, Expr, Field, Load, PairPart, PointerIndex, Swizzle
from shaderad.ir.pointers import holds_pointers
from shaderad.language.annotations import AnnotationForm
from shaderad.language.intrinsics import KernelForm, is_form
from shaderad.language.values import (
    ArrayRef,
    Host,
    Sequence,
    TargetElement,
    Twin,
    Value,
    describe,
)

Part = Field | Swizzle | Element | PairPart
"""A part of a value."""
HOW_WRITTEN: Mapping[types.Access, str] = MappingProxyType({
    types.Access.IN: "it is read only: write to an `sad.Out` array",
    types.Access.ADD: "it only takes `+=` and `-=`",
    types.Access.MIN: "it only takes `b[j] = sad.min(b[j], v)`",
    types.Access.MAX: "it only takes `b[j] = sad.max(b[j], v)`",
    types.Access.GREATEST: "it only takes `b[j] = sad.max(b[j], v)`",
    types.Access.LISTS: "it only takes `+=`",
})  # fmt: skip
"""The help for a use of an array that its access forbids."""


def subscript(body: BodyReader, node: ast.Subscript, is_target: bool) -> Value:
    """``value[index]``.

    Raises:
        LanguageError: SR0307 for the wrong number of indices, SR0308 for a constant index that
            is out of range, SR0309 for an index that is no int, SR0310 for a value without
            elements.
    """
    owner = body.value(node.value, is_target=is_target)
    if isinstance(owner, ArrayRef):
        return _element_of_array(body, owner, node, is_target)
    if isinstance(owner, Sequence):
        return owner.parts[_constant_index(body, node.slice, len(owner.parts))]
    if isinstance(owner, Host):
        return _local_array_type(body, owner, node)
    if isinstance(owner, Twin):
        return _element_of_twin(body, owner, node, is_target)
    if not isinstance(owner, Expr):
        raise _no_elements(body, node, named(owner))
    t = owner.type
    if isinstance(t, types.Pointer):
        return _element_of_pointer(body, owner, t, node)
    if isinstance(t, types.Tuple):
        k = _constant_index(body, node.slice, len(t.elements))
        return Field(type=t.elements[k], value=owner, name=str(k), span=body.span(node))
    return _nested_elements(body, owner, node)


def named(owner: Value) -> str:
    """`owner` at the start of a message: a type alone has no quotes."""
    text = describe(owner)
    return text.strip("`") if text.startswith("`") else text


def _no_elements(
    body: BodyReader, node: ast.expr, owner: object, reason: str = "it has no elements"
) -> Error:
    return body.error("SR0310", node, type=owner, name="[...]", known=reason)


def _local_array_type(body: BodyReader, owner: Host, node: ast.Subscript) -> Host:
    """``sad.LocalArray[float, N]`` with a size known while compiling."""
    form = owner.object
    if not isinstance(form, AnnotationForm):
        raise _no_elements(body, node, owner.name)
    arguments: list[object] = []
    for item in _index_nodes(node):
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
    if len(nodes) > 1 and not (isinstance(owner.type, types.Matrix) and len(nodes) == 2):
        raise body.error("SR0307", node, type=owner.type, found=len(nodes), wanted=1)
    value = owner
    for item in nodes:
        value = _element(body, value, item, body.span(node))
    return value


def _index_nodes(node: ast.Subscript) -> list[ast.expr]:
    return node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]


def _element(body: BodyReader, owner: Expr, index_node: ast.expr, span: Span) -> Expr:
    t = owner.type
    count = element_count(t)
    if count is None:
        raise _no_elements(body, index_node, t)
    index = _index_of(body, index_node, count, str(t))
    if isinstance(t, types.Vector) and isinstance(index, Const):
        letter = "xyzw"[int(index.value)]
        return Swizzle(type=t.element, value=owner, components=letter, span=span)
    assert isinstance(t, types.Vector | types.Matrix | types.LocalArray)
    element = t.row if isinstance(t, types.Matrix) else t.element
    return Element(type=element, value=owner, index=index, span=span)


def root_of(value: Value) -> Value:
    """The value that contains the fields, components and elements of a place."""
    while isinstance(value, Part):
        value = value.value
    return value


# -- arrays -----------------------------------------------------------------------------------


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
    name, t, span = array.buffer, array.type.element, body.span(node)
    indices = tuple(_index_of(body, n, None, f"`{name}`") for n in plain)
    body.buffers.setdefault(name, array.type)
    if is_target:
        t = types.tangent(t) if array.part == "d" else t
        return TargetElement(
            type=t, buffer=name, indices=indices, array=array, is_unique=is_unique, span=span
        )
    _check_readable(body, array, node)
    return Load(type=t, buffer=name, indices=indices, span=span)


def _check_readable(body: BodyReader, array: ArrayRef, node: ast.expr) -> None:
    if array.part == "pair":
        raise _no_elements(body, node, "a pair", f"write `{array.buffer}.p[...]`")
    if array.part == "d":
        raise forbidden(body, array, node, "it only takes `+=`")
    if array.type.access not in (types.Access.IN, types.Access.OUT):
        raise forbidden(body, array, node)


def forbidden(body: BodyReader, array: ArrayRef, node: ast.expr, how: str = "") -> Error:
    """SR0208 for a use that an array does not allow; by default `how` follows from its access."""
    access, name = array.type.access, array.buffer
    how = how or HOW_WRITTEN[access]
    if array.part != "d":
        return body.error("SR0208", node, name=name, access=access.described, how=how)
    return body.error("SR0208", node, name=f"{name}.d", access="an accumulated gradient", how=how)


def _without_unique(body: BodyReader, node: ast.expr) -> ast.expr:
    """The index inside ``sad.unique(index)``; any other index as it is."""
    if not isinstance(node, ast.Call) or not is_form(body.host_object(node.func), "unique"):
        return node
    body.check_count(node, "unique", 1)
    return node.args[0]


# -- indices ----------------------------------------------------------------------------------


def _index_of(body: BodyReader, node: ast.expr, count: int | None, owner: str) -> Expr:
    """An index as an int expression, below `count` unless that is `None`."""
    value = body.value(node)
    number = as_number(value)
    if number is not None and type(number.value) is int:
        if number.value < 0 or (count is not None and number.value >= count):
            why = "positions count from 0" if count is None else _size(count)
            raise body.error("SR0308", node, found=number.value, owner=owner, why=why)
        return constant(number, types.INT, body.span(node))
    if isinstance(value, Expr) and value.type == types.INT:
        return value
    if isinstance(value, Host) and isinstance(value.object, KernelForm):
        raise body.error("SR0211", node)
    raise body.error("SR0309", node, found=describe(value))


def _constant_index(body: BodyReader, node: ast.expr, count: int) -> int:
    """An index into a tuple; negative ones count from the end."""
    value = body.value(node)
    number = as_number(value)
    if number is None or type(number.value) is not int:
        raise body.error("SR0319", node, found=describe(value))
    if not -count <= number.value < count:
        raise body.error("SR0308", node, found=number.value, owner="the tuple", why=_size(count))
    return number.value % count


def _size(count: int) -> str:
    return f"it has {counted(count, 'element')}"


# -- pointers ---------------------------------------------------------------------------------


def _element_of_pointer(
    body: BodyReader, pointer: Expr, t: types.Pointer, node: ast.Subscript
) -> Load:
    """``pointer[k]`` as a read."""
    if isinstance(node.slice, ast.Tuple):
        raise body.error("SR0307", node, type=t, found=len(node.slice.elts), wanted=1)
    index = _index_of(body, node.slice, None, f"`{ast.unparse(node.value)}`")
    span = body.span(node)
    number = PointerIndex(type=types.INT, pointer=pointer, index=index, span=span)
    body.buffers.setdefault(t.target, types.BufferType(types.Access.IN, t.element))
    return Load(type=t.element, buffer=t.target, indices=(number,), span=span)


def _element_of_twin(body: BodyReader, owner: Twin, node: ast.Subscript, is_target: bool) -> Value:
    """``p.d.meshes[k]``: the gradient of an element, to be written.

    Raises:
        LanguageError: SR0208 where it is read, SR0310 for no pointer, or elements without gradient.
    """
    t = owner.primal.type
    if not isinstance(t, types.Pointer):
        raise _no_elements(body, node, f"{t}.d")
    primal = _element_of_pointer(body, owner.primal, t, node)
    derivative = None
    if types.is_differentiable(t.element):
        derivative = TargetElement(
            type=types.tangent(t.element),
            buffer=primal.buffer,
            indices=primal.indices,
            array=ArrayRef(primal.buffer, types.BufferType(types.Access.IN, t.element), "d"),
            span=primal.span,
        )
    if holds_pointers(t.element):
        return Twin(primal, derivative)
    if derivative is None:
        raise _no_elements(body, node, f"{t}.d", f"`{t.element}` holds no float")
    if not is_target:
        raise only_written(body, node)
    return derivative


def only_written(body: BodyReader, node: ast.expr) -> Error:
    """SR0208 for a read of a gradient behind a pointer."""
    return body.error("SR0208", node, name=ast.unparse(node), access="a gradient behind a pointer",
                      how="it only takes `+=`, `-=` and `=`")  # fmt: skip
