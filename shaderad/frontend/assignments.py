"""Assignments -> IR: names, components, array elements, unpacking, ``+=``.

A name has one type. The access of an array decides which statements may write it: In none, Out
``=``, Add ``+=`` and ``-=``, Min and Max ``b[j] = sad.min(b[j], v)``; gradients take ``+=`` and
``-=``.
"""

from __future__ import annotations

import ast

from shaderad.diagnostics import Span, error
from shaderad.frontend import operators
from shaderad.frontend.body import BodyReader, is_simple
from shaderad.frontend.conversions import coerce, expr, natural_type
from shaderad.frontend.places import AssignedPlace, read_place, root_of
from shaderad.ir import ops
from shaderad.ir.nodes import (
    Accumulate,
    AccumulateGradient,
    Assign,
    Expr,
    Field,
    Load,
    PointerIndex,
    Store,
    Swizzle,
    Var,
)
from shaderad.ir.pointers import holds_pointers, without_targets
from shaderad.ir.types import (
    BOOL,
    FLOAT,
    INT,
    Access,
    BufferType,
    Scalar,
    Struct,
    Tuple,
    Type,
    Vector,
    Void,
    is_float,
)
from shaderad.ir.walk import rewrite_expression
from shaderad.language.annotations import ConstType, IndexType, resolve
from shaderad.language.intrinsics import Intrinsic
from shaderad.language.values import PythonNumber, Sequence, TargetElement, Value, describe


def assign(body: BodyReader, node: ast.Assign) -> None:
    """``a = b = value``."""
    if len(node.targets) == 1 and _is_extreme(body, node.targets[0], node.value):
        return
    value = body.value(node.value)
    if len(node.targets) > 1 and isinstance(value, Expr):
        value = body.keep(value, "value")
    for target in node.targets:
        assign_to(body, target, value, node.value)


def annotated(body: BodyReader, node: ast.AnnAssign) -> None:
    """``x: float = 0``: the annotation is the name's type."""
    span = body.span(node.annotation)
    text = ast.unparse(node.annotation)
    t = resolve(text, body.function.namespace(), span, body.unit.structs)
    if not isinstance(node.target, ast.Name):
        raise body.error("SR0202", node, found="an annotated element",
                         help="annotate names only")  # fmt: skip
    if not _is_local(t):
        raise error("SR0301", span, found=text, why="a local name holds a value")
    body.check_bindable(node.target)
    if node.value is not None and holds_pointers(t):
        t = coerce(body.value(node.value), t, body.span(node.value)).type
    local = body.scope.local_name_by_name.get(node.target.id, node.target.id)
    declared = body.scope.types.get(local, t)
    if declared != t:
        raise body.error("SR0317", node.target, name=node.target.id, type=declared, found=f"`{t}`",
                         help="use another name")  # fmt: skip
    body.declare(local, t)
    if node.value is None:
        return
    bind(body, node.target, coerce(body.value(node.value), t, body.span(node.value)), node.value)


def _is_local(t: Type) -> bool:
    if isinstance(t, Struct):
        return not t.holds_buffers
    return not isinstance(t, BufferType | Void | ConstType | IndexType)


def assign_to(body: BodyReader, target: ast.expr, value: Value, source: ast.expr) -> None:
    """Writes `value`, which was read from `source`, to one target."""
    if isinstance(target, ast.Name):
        bind(body, target, value, source)
    elif isinstance(target, ast.Tuple | ast.List):
        _unpack(body, target, value, source)
    elif isinstance(target, ast.Starred):
        raise body.error("SR0202", target, found="`*`", help="write every name out")
    else:
        place = read_place(body, target)
        span = body.span(source)
        _write(body, place, coerce(value, place.value.type, span), target)


def bind(body: BodyReader, target: ast.Name, value: Value, source: ast.expr) -> None:
    """Binds a name.

    Raises:
        LanguageError: SR0206 for an Index, array or pair, SR0317 where its type would change.
    """
    name, span = target.id, body.span(source)
    body.check_bindable(target)
    local = body.scope.local_name_by_name.get(name, name)
    declared = body.scope.types.get(local)
    if declared is None:
        new = expr(value, span)
        body.declare(local, new.type)
    else:
        new = _as_type_of(body, name, declared, value, target, span)
    body.emit(Assign(name=local, value=new, span=body.span(target)))
    body.scope.assign(local)


def _as_type_of(
    body: BodyReader, name: str, t: Type, value: Value, target: ast.expr, span: Span
) -> Expr:
    own_type = value.type if isinstance(value, Expr) else None
    if isinstance(value, PythonNumber) and not _takes(t, value):
        own_type = natural_type(value)
    mixes = own_type == INT and isinstance(t, Scalar) and is_float(t)
    if own_type is not None and own_type != t and not mixes:
        help_ = "convert the value, or use another name"
        if t == INT and own_type == FLOAT:
            help_ = f"start it as a float: `{name} = 0.0`"
        if without_targets(own_type) == without_targets(t):
            help_ = "its pointers lead elsewhere: use another name"
        raise body.error("SR0317", target, name=name, type=t, found=f"`{own_type}`", help=help_)
    return coerce(value, t, span)


def _takes(t: Type, number: PythonNumber) -> bool:
    """True if a number of the program, in range, converts to `t`."""
    if not isinstance(t, Scalar) or isinstance(number.value, bool) != (t == BOOL):
        return False
    return is_float(t) or not isinstance(number.value, float)


def _unpack(body: BodyReader, target: ast.Tuple | ast.List, value: Value, source: ast.expr) -> None:
    """``a, b = b, a``: evaluates all values, then writes all targets."""
    parts = _parts(body, value, body.span(source))
    if parts is None:
        raise body.error("SR0243", target, found=describe(value))
    if len(parts) != len(target.elts):
        raise body.error("SR0318", target, found=len(parts), wanted=len(target.elts))
    kept = [_copied(body, p, body.span(source)) for p in parts]
    for element, part in zip(target.elts, kept, strict=True):
        assign_to(body, element, part, source)


def _copied(body: BodyReader, part: Value, span: Span) -> Value:
    """The part in a local of its own: the targets may overwrite its operands."""
    if not isinstance(part, Expr):
        return part
    if isinstance(part, Var) and part.name in body.scope.types:
        name = body.scope.fresh(part.name)
        body.declare(name, part.type)
        body.scope.assign(name)
        body.emit(Assign(name=name, value=part, span=span))
        return Var(type=part.type, name=name, span=span)
    return part if is_simple(part) else body.keep(part, "part")


def _parts(body: BodyReader, value: Value, span: Span) -> list[Value] | None:
    if isinstance(value, Sequence):
        return list(value.parts)
    if not isinstance(value, Expr):
        return None
    if isinstance(value.type, Tuple):
        whole = body.keep(value, "results")
        types = value.type.elements
        return [Field(type=t, value=whole, name=str(k), span=span) for k, t in enumerate(types)]
    if isinstance(value.type, Vector):
        whole = body.keep(value, "vector")
        t = value.type.element
        letters = "xyzw"[: value.type.count]
        return [Swizzle(type=t, value=whole, components=c, span=span) for c in letters]
    return None


# -- places -----------------------------------------------------------------------------------


def _write(body: BodyReader, place: AssignedPlace, value: Expr, target: ast.expr) -> None:
    """``place = value``."""
    root, span = place.root, body.span(target)
    if isinstance(root, Var):
        body.emit(Assign(name=root.name, path=place.path, value=value, span=span))
        return
    array = root.array
    if isinstance(root.indices[0], PointerIndex):
        body.emit(
            AccumulateGradient(buffer=root.buffer, indices=root.indices, path=place.path,
                               value=value, is_store=True, span=span)
        )  # fmt: skip
        return
    if array.part == "d":
        raise body.error("SR0208", target, name=f"{array.buffer}.d",
                         access="an accumulated gradient", how="it only takes `+=`")  # fmt: skip
    access = array.type.access
    if access is not Access.OUT:
        raise body.error("SR0208", target, name=array.buffer, access=access.described,
                         how=_HOW[access])  # fmt: skip
    body.emit(
        Store(buffer=root.buffer, indices=root.indices, path=place.path, value=value,
              is_unique=root.is_unique, span=span)
    )  # fmt: skip


_HOW = {
    Access.IN: "it is read only: write to an `sad.Out` array",
    Access.ADD: "it only takes `+=` and `-=`",
    Access.MIN: "it only takes `b[j] = sad.min(b[j], v)`",
    Access.MAX: "it only takes `b[j] = sad.max(b[j], v)`",
}


def augmented(body: BodyReader, node: ast.AugAssign) -> None:
    """``target op= value``; indices are evaluated once."""
    if isinstance(node.target, ast.Name):
        current = body.value(ast.copy_location(ast.Name(node.target.id, ast.Load()), node.target))
        result = operators.binary(node.op, current, body.value(node.value), body.span(node))
        bind(body, node.target, result, node.value)
        return
    place = read_place(body, node.target)
    value = body.value(node.value)
    if isinstance(place.root, TargetElement):
        _augment_element(body, place, place.root, node, value)
        return
    result = operators.binary(node.op, place.value, value, body.span(node))
    result = coerce(result, place.value.type, body.span(node))
    body.emit(
        Assign(name=place.root.name, path=place.path, value=result, span=body.span(node.target))
    )


def _augment_element(
    body: BodyReader, place: AssignedPlace, root: TargetElement, node: ast.AugAssign, value: Value
) -> None:
    access, span = root.array.type.access, body.span(node.target)
    is_gradient = root.array.part == "d"
    if not is_gradient and access is Access.OUT:
        _update_out(body, place, root, node, value)
        return
    if not is_gradient and access is not Access.ADD:
        raise body.error("SR0208", node.target, name=root.buffer,
                         access=access.described, how=_HOW[access])  # fmt: skip
    if not isinstance(node.op, ast.Add | ast.Sub):
        name = f"{root.buffer}.d" if is_gradient else root.buffer
        raise body.error("SR0208", node.target, name=name,
                         access="an accumulated gradient" if is_gradient else access.described,
                         how="it only takes `+=` and `-=`")  # fmt: skip
    addend = coerce(value, place.value.type, body.span(node.value))
    if isinstance(node.op, ast.Sub):
        negated = operators.unary(ast.USub(), addend, body.span(node.value))
        addend = expr(negated, body.span(node.value))
    kind = AccumulateGradient if is_gradient else Accumulate
    body.emit(
        kind(buffer=root.buffer, indices=root.indices, path=place.path, value=addend, span=span)
    )


def _update_out(
    body: BodyReader, place: AssignedPlace, root: TargetElement, node: ast.AugAssign, value: Value
) -> None:
    """``out[i] += v``: a store of the sum."""
    current = _as_read(place.value)
    result = operators.binary(node.op, current, value, body.span(node))
    result = coerce(result, place.value.type, body.span(node))
    body.emit(
        Store(buffer=root.buffer, indices=root.indices, path=place.path, value=result,
              is_unique=root.is_unique, span=body.span(node.target))
    )  # fmt: skip


def _as_read(value: Expr) -> Expr:
    """The place as a value, with a load of its array element."""

    def read(e: Expr) -> Expr:
        if isinstance(e, TargetElement):
            return Load(type=e.type, buffer=e.buffer, indices=e.indices, span=e.span)
        return e

    return rewrite_expression(value, read)


def _is_extreme(body: BodyReader, target: ast.expr, source: ast.expr) -> bool:
    """Emits ``b[j] = sad.min(b[j], v)`` on a Min or Max array; false for everything else."""
    if not isinstance(target, ast.Subscript | ast.Attribute) or not isinstance(source, ast.Call):
        return False
    op = _extreme_op(body, source)
    if op is None or len(source.args) != 2:
        return False
    array = root_of(body.target(target))
    wanted = {Access.MIN: ops.MIN, Access.MAX: ops.MAX}
    if not isinstance(array, TargetElement) or wanted.get(array.array.type.access) != op:
        return False
    spelled = ast.unparse(target)
    others = [a for a in source.args if ast.unparse(a) != spelled]
    if len(others) != 1:
        return False
    place = read_place(body, target)
    root = place.root
    assert isinstance(root, TargetElement)
    value = coerce(body.value(others[0]), place.value.type, body.span(others[0]))
    body.emit(
        Accumulate(buffer=root.buffer, indices=root.indices, path=place.path, value=value,
                   span=body.span(target))
    )  # fmt: skip
    return True


def _extreme_op(body: BodyReader, source: ast.Call) -> ops.Op | None:
    callee = body.host_object(source.func)
    if isinstance(callee, Intrinsic):
        return callee.op if callee.op in (ops.MIN, ops.MAX) else None
    if callee is min:
        return ops.MIN
    return ops.MAX if callee is max else None
