"""``pointer[k]`` -> reads of the target array, and gradients behind ``p.d``.

The gradient of an element has the element's own number in the gradient of its array. So the
differential of a struct with pointers needs no pointers: ``p.d.meshes[0].scale`` is the gradient of
the element that ``p.p.meshes[0]`` points to. Invariant: a `Twin` never reaches the IR.
"""

from __future__ import annotations

import ast

from shaderad.diagnostics import Error
from shaderad.frontend.body import BodyReader
from shaderad.frontend.indices import index_of
from shaderad.frontend.places import root_of
from shaderad.ir.nodes import Expr, Field, Load, PointerIndex
from shaderad.ir.pointers import holds_pointers
from shaderad.ir.types import (
    INT,
    Access,
    BufferType,
    Pointer,
    Struct,
    is_differentiable,
    tangent,
)
from shaderad.language.values import ArrayRef, TargetElement, Twin, Value


def element(body: BodyReader, pointer: Expr, node: ast.Subscript) -> Load:
    """``pointer[k]`` as a read.

    Raises:
        LanguageError: SR0307 for more than one index.
    """
    assert isinstance(pointer.type, Pointer)
    if isinstance(node.slice, ast.Tuple):
        count = len(node.slice.elts)
        raise body.error("SR0307", node, type=pointer.type, found=count, wanted=1)
    index = index_of(body, node.slice, None, f"`{ast.unparse(node.value)}`")
    span, target = body.span(node), pointer.type.target
    number = PointerIndex(type=INT, pointer=pointer, index=index, span=span)
    body.buffers.setdefault(target, _array(pointer.type))
    return Load(type=pointer.type.element, buffer=target, indices=(number,), span=span)


def _array(t: Pointer) -> BufferType:
    return BufferType(Access.IN, t.element)


def element_of_twin(body: BodyReader, owner: Twin, node: ast.Subscript, is_target: bool) -> Value:
    """``p.d.meshes[k]``: the gradient of an element, to be written.

    Raises:
        LanguageError: SR0208 where it is read, SR0310 for no pointer, or elements without gradient.
    """
    t = owner.primal.type
    if not isinstance(t, Pointer):
        raise body.error("SR0310", node, type=f"{t}.d", name="[..]", known="it has no elements")
    primal = element(body, owner.primal, node)
    derivative = None
    if is_differentiable(t.element):
        derivative = TargetElement(
            type=tangent(t.element),
            buffer=primal.buffer,
            indices=primal.indices,
            array=ArrayRef(primal.buffer, _array(t), "d"),
            span=primal.span,
        )
    if holds_pointers(t.element):
        return Twin(primal, derivative)
    if derivative is None:
        raise body.error("SR0310", node, type=f"{t}.d", name="[..]",
                         known=f"`{t.element}` holds no float")  # fmt: skip
    if not is_target:
        raise _only_written(body, node)
    return derivative


def field_of_twin(
    body: BodyReader, owner: Twin, node: ast.Attribute, is_target: bool
) -> Value | None:
    """``p.d.field``; `None` for a field that does not exist or has no gradient.

    Raises:
        LanguageError: SR0208 where a gradient behind a pointer is read.
    """
    t = owner.primal.type
    if not isinstance(t, Struct) or node.attr not in t.type_by_field:
        return None
    inner, span = t.type_by_field[node.attr], body.span(node)
    primal = Field(type=inner, value=owner.primal, name=node.attr, span=span)
    derivative = None
    if owner.derivative is not None and is_differentiable(inner):
        derivative = Field(type=tangent(inner), value=owner.derivative, name=node.attr, span=span)
    if holds_pointers(inner):
        return Twin(primal, derivative)
    if derivative is not None and not is_target and isinstance(root_of(owner.primal), Load):
        raise _only_written(body, node)
    return derivative


def _only_written(body: BodyReader, node: ast.expr) -> Error:
    return body.error("SR0208", node, name=ast.unparse(node), access="a gradient behind a pointer",
                      how="it only takes `+=`, `-=` and `=`")  # fmt: skip
