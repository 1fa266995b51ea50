"""Assignments -> IR: names, components, array elements, unpacking, ``+=``.

A name has one type. What an array takes depends on its access: In nothing, Out ``=``, Add ``+=``
and ``-=``, Min and Max ``b[j] = sad.min(b[j], v)``, gradients ``+=`` and ``-=``.
"""

from __future__ import annotations

import ast

from shaderad.diagnostics import Span, error
from shaderad.frontend import operators
from shaderad.frontend.annotations import ConstType, IndexType, resolve
from shaderad.frontend.body import Body, is_simple
from shaderad.frontend.conversions import coerce, expr, natural_type
from shaderad.frontend.intrinsics import Intrinsic
from shaderad.frontend.places import Place, read_place, root_of
from shaderad.frontend.values import Host, Known, Sequence, TargetElement, Value, describe
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


def assign(body: Body, node: ast.Assign) -> None:
    """``a = b = value``."""
    if len(node.targets) == 1 and _is_extreme(body, node.targets[0], node.value):
        return
    value = body.value(node.value)
    if len(node.targets) > 1 and isinstance(value, Expr):
        value = body.keep(value, "value")
    for target in node.targets:
        assign_to(body, target, value, node.value)


def annotated(body: Body, node: ast.AnnAssign) -> None:
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
    known = body.scope.types.get(local, t)
    if known != t:
        raise body.error("SR0317", node.target, name=node.target.id, type=known, found=f"`{t}`",
                         help="use another name")  # fmt: skip
    body.declare(local, t)
    if node.value is None:
        return
    bind(body, node.target, coerce(body.value(node.value), t, body.span(node.value)), node.value)


def _is_local(t: Type) -> bool:
    if isinstance(t, Struct):
        return not t.holds_buffers
    return not isinstance(t, BufferType | Void | ConstType | IndexType)


def assign_to(body: Body, target: ast.expr, value: Value, source: ast.expr) -> None:
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


def bind(body: Body, target: ast.Name, value: Value, source: ast.expr) -> None:
    """Binds a name.

    Raises:
        LanguageError: SR0206 for Index names and arrays, SR0317 where its type would change.
    """
    name, span = target.id, body.span(source)
    body.check_bindable(target)
    local = body.scope.local_name_by_name.get(name, name)
    known = body.scope.types.get(local)
    if known is None:
        found = expr(value, span)
        known = found.type
        body.declare(local, known)
    else:
        found = _as_type_of(body, name, known, value, target, span)
    body.emit(Assign(name=local, value=found, span=body.span(target)))
    body.scope.assign(local)


def _as_type_of(body: Body, name: str, t: Type, value: Value, target: ast.expr, span: Span) -> Expr:
    found = value.type if isinstance(value, Expr) else None
    if isinstance(value, Known) and not _takes(t, value):
        found = natural_type(value)
    mixes = found == INT and isinstance(t, Scalar) and is_float(t)
    if found is not None and found != t and not mixes:
        help_ = "convert the value, or use another name"
        if t == INT and found == FLOAT:
            help_ = f"start it as a float: `{name} = 0.0`"
        if without_targets(found) == without_targets(t):
            help_ = "its pointers lead elsewhere: use another name"
        raise body.error("SR0317", target, name=name, type=t, found=f"`{found}`", help=help_)
    return coerce(value, t, span)


def _takes(t: Type, number: Known) -> bool:
    """Whether a number of the program can become a `t` where it is in range."""
    if not isinstance(t, Scalar) or isinstance(number.value, bool) != (t == BOOL):
        return False
    return is_float(t) or not isinstance(number.value, float)


def _unpack(body: Body, target: ast.Tuple | ast.List, value: Value, source: ast.expr) -> None:
    """``a, b = b, a``: all values first, then all targets."""
    parts = _parts(body, value, body.span(source))
    if parts is None:
        raise body.error("SR0243", target, found=describe(value))
    if len(parts) != len(target.elts):
        raise body.error("SR0318", target, found=len(parts), wanted=len(target.elts))
    kept = [_copied(body, p, body.span(source)) for p in parts]
    for element, part in zip(target.elts, kept, strict=True):
        assign_to(body, element, part, source)


def _copied(body: Body, part: Value, span: Span) -> Value:
    """The part as it is now, whatever the targets overwrite."""
    if not isinstance(part, Expr):
        return part
    if isinstance(part, Var) and part.name in body.scope.types:
        name = body.scope.fresh(part.name)
        body.declare(name, part.type)
        body.scope.assign(name)
        body.emit(Assign(name=name, value=part, span=span))
        return Var(type=part.type, name=name, span=span)
    return part if is_simple(part) else body.keep(part, "part")


def _parts(body: Body, value: Value, span: Span) -> list[Value] | None:
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


def _write(body: Body, place: Place, value: Expr, target: ast.expr) -> None:
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


def augmented(body: Body, node: ast.AugAssign) -> None:
    """``target op= value``; indices are evaluated once."""
    if isinstance(node.target, ast.Name):
        current = body.value(ast.copy_location(ast.Name(node.target.id, ast.Load()), node.target))
        made = operators.binary(node.op, current, body.value(node.value), body.span(node))
        bind(body, node.target, made, node.value)
        return
    place = read_place(body, node.target)
    value = body.value(node.value)
    if isinstance(place.root, TargetElement):
        _augment_element(body, place, place.root, node, value)
        return
    made = operators.binary(node.op, place.value, value, body.span(node))
    found = coerce(made, place.value.type, body.span(node))
    body.emit(
        Assign(name=place.root.name, path=place.path, value=found, span=body.span(node.target))
    )


def _augment_element(
    body: Body, place: Place, root: TargetElement, node: ast.AugAssign, value: Value
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
    added = coerce(value, place.value.type, body.span(node.value))
    if isinstance(node.op, ast.Sub):
        negated = operators.unary(ast.USub(), added, body.span(node.value))
        added = expr(negated, body.span(node.value))
    kind = AccumulateGradient if is_gradient else Accumulate
    body.emit(
        kind(buffer=root.buffer, indices=root.indices, path=place.path, value=added, span=span)
    )


def _update_out(
    body: Body, place: Place, root: TargetElement, node: ast.AugAssign, value: Value
) -> None:
    """``out[i] += v`` at the thread's own index: the local value is read back."""
    current = _as_read(place.value)
    made = operators.binary(node.op, current, value, body.span(node))
    found = coerce(made, place.value.type, body.span(node))
    body.emit(
        Store(buffer=root.buffer, indices=root.indices, path=place.path, value=found,
              is_unique=root.is_unique, span=body.span(node.target))
    )  # fmt: skip


def _as_read(value: Expr) -> Expr:
    """The place as a value: the array element is loaded."""

    def read(e: Expr) -> Expr:
        if isinstance(e, TargetElement):
            return Load(type=e.type, buffer=e.buffer, indices=e.indices, span=e.span)
        return e

    return rewrite_expression(value, read)


def _is_extreme(body: Body, target: ast.expr, source: ast.expr) -> bool:
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


def _extreme_op(body: Body, source: ast.Call) -> ops.Op | None:
    if not isinstance(source.func, ast.Name | ast.Attribute):
        return None
    if isinstance(source.func, ast.Name) and source.func.id in body.scope.names.bound:
        return None
    value = body.value(source.func)
    if not isinstance(value, Host):
        return None
    thing = value.object
    if isinstance(thing, Intrinsic):
        return thing.op if thing.op in (ops.MIN, ops.MAX) else None
    if thing is min:
        return ops.MIN
    return ops.MAX if thing is max else None
