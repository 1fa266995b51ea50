"""Names that kernels and arrays share (``sad.max``, ``float3``, ...) -> functions on arrays.

The frontend calls these functions when one of its names is called on device arrays.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from shaderad.arrays.arrays import Array
from shaderad.calls.array_function import array_function
from shaderad.diagnostics.call_errors import unknown_keyword
from shaderad.functions import layout, linalg, reductions
from shaderad.functions.reductions import Axes
from shaderad.ir import ops, types
from shaderad.ir.pointers import comes_apart
from shaderad.language.structs import StructInfo
from shaderad.runtime.buffers import element_axes
from shaderad.trace import elements

_TESTS = (ops.ANY_OF, ops.ALL_OF)
_REDUCTIONS = (ops.MIN, ops.MAX, *_TESTS)

_matmul = array_function(linalg.matmul)
_primitive = array_function(elements.primitive)
_dot = array_function(linalg.dot)
detached = array_function(elements.detach)
_struct_of = array_function(elements.struct_of)


def intrinsic(op: ops.Op, args: tuple[Any, ...], keywords: dict[str, Any]) -> Any:
    """``sad.<op>(...)`` of arrays: reductions for one argument of `min`, `max`, `any`, `all`.

    Raises:
        CallError: SR0292 for an unknown keyword.
    """
    if op in _REDUCTIONS and (len(args) == 1 or op in _TESTS):
        return _reduction(op, *args, **_checked(op, keywords, "axis", "keepdims"))
    if op == ops.TRANSPOSE and args and not _holds_matrices(args[0]):
        return _transpose(*args, **_checked(op, keywords, "axes"))
    _checked(op, keywords)
    if op == ops.DOT and len(args) == op.arity:
        return _dot(*args)
    return _matmul(*args) if op == ops.MATMUL else _primitive(op, *args)


def _checked(op: ops.Op, keywords: dict[str, Any], *names: str) -> dict[str, Any]:
    """`keywords`, after checking that all of them are among `names`."""
    for keyword in keywords:
        if keyword not in names:
            positional = op.parameters[:1] if names else op.parameters
            form = ", ".join((*positional, *(f"{name}=..." for name in names)))
            raise unknown_keyword(op.name, keyword, names, form)
    return keywords


@array_function
def _reduction(op: ops.Op, x: Any, axis: Axes = None, *, keepdims: bool = False) -> Array:
    return reductions.reduced_by(op, x, axis, keepdims)


@array_function
def _transpose(x: Any, axes: Sequence[int] | None = None) -> Array:
    return layout.transpose(x, axes)


def _holds_matrices(x: Any) -> bool:
    return isinstance(x, Array) and isinstance(x.element, types.Matrix)


def struct_array(info: StructInfo, fields: dict[str, Any]) -> Array | None:
    """``Struct(a, b)`` on arrays gives an array of structs; `None` if every field is one value."""
    t = info.ir_type
    is_plain = set(fields) == set(t.type_by_field) and not comes_apart(t)
    if not is_plain or not any(_has_rows(fields[name], field) for name, field in t.fields):
        return None
    return _struct_of(info, fields)


def _has_rows(x: Any, field: types.Type) -> bool:
    """True if `x` is an array of several values of a field; its last axes may be components."""
    if not isinstance(x, Array):
        return False
    own = 0 if x.element == field else len(element_axes(field))
    return len(x.shape) > own
