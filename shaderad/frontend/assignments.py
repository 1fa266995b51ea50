"""Assignments -> IR: names, components, array elements, unpacking, ``+=``.

A left-hand side, ``name.field[k].xy``, ``b[j].x`` or ``x.d``, is a root and the steps from it.
A name has one type. The access of an array decides which statements may write it: In none, Out
``=``, Add ``+=`` and ``-=``, Min and Max ``b[j] = sad.min(b[j], v)``; gradients take ``+=`` and
``-=``.
"""

from __future__ import annotations

import ast
from collections.abc import Callable
from dataclasses import dataclass, replace

from shaderad.diagnostics import Span, error
from shaderad.frontend import operators
from shaderad.frontend.body import BodyReader
from shaderad.frontend.conversions import coerce, expr, is_choice, natural_type
from shaderad.frontend.subscripts import HOW_WRITTEN, Part, forbidden, root_of
from shaderad.ir import nodes, ops, types
from shaderad.ir.pointers import holds_pointers, without_targets
from shaderad.ir.types import Access
from shaderad.ir.walk import rewrite_expression
from shaderad.language.annotations import ConstType, IndexType, resolve
from shaderad.language.host import DerivativeFunction
from shaderad.language.intrinsics import Intrinsic
from shaderad.language.values import PythonNumber, Sequence, TargetElement, Value, describe


def assign(body: BodyReader, node: ast.Assign) -> None:
    """``a = b = value``."""
    if len(node.targets) == 1 and _is_extreme(body, node.targets[0], node.value):
        return
    value = body.value(node.value)
    if len(node.targets) > 1 and isinstance(value, nodes.Expr):
        value = body.keep(value, "value")
    for target in node.targets:
        _assign_to(body, target, value, node.value)


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
        t = body.coerced(node.value, t).type
    declared = body.scope.types.setdefault(body.scope.ir_name(node.target.id), t)
    if declared != t:
        raise body.error("SR0317", node.target, name=node.target.id, type=declared, found=f"`{t}`",
                         help="use another name")  # fmt: skip
    if node.value is not None:
        _bind(body, node.target, body.coerced(node.value, t), node.value)


def _is_local(t: types.Type) -> bool:
    if isinstance(t, types.Struct):
        return not t.holds_buffers
    return not isinstance(t, types.BufferType | types.Void | ConstType | IndexType)


def _assign_to(body: BodyReader, target: ast.expr, value: Value, source: ast.expr) -> None:
    """Writes `value`, which was read from `source`, to one target."""
    if isinstance(target, ast.Name):
        _bind(body, target, value, source)
    elif isinstance(target, ast.Tuple | ast.List):
        _unpack(body, target, value, source)
    elif isinstance(target, ast.Starred):
        raise body.error("SR0202", target, found="`*`", help="write every name out")
    else:
        place = _read_place(body, target)
        _write(body, place, coerce(value, place.value.type, body.span(source)), target)


def _bind(body: BodyReader, target: ast.Name, value: Value, source: ast.expr) -> None:
    """Binds a name.

    Raises:
        LanguageError: SR0206 for an Index, array or pair, SR0317 where its type would change.
    """
    span, scope = body.span(source), body.scope
    body.check_bindable(target)
    local = scope.ir_name(target.id)
    declared = scope.types.get(local)
    new = expr(value, span) if declared is None else _as_type(body, declared, value, target, span)
    scope.types.setdefault(local, new.type)
    body.emit(nodes.Assign(name=local, value=new, span=body.span(target)))
    scope.assign(local)


def _as_type(
    body: BodyReader, t: types.Type, value: Value, target: ast.Name, span: Span
) -> nodes.Expr:
    """The value as the type `t` of its target."""
    own_type = value.type if isinstance(value, nodes.Expr) else None
    if isinstance(value, PythonNumber) and not _takes(t, value):
        own_type = natural_type(value)
    mixes = own_type == types.INT and isinstance(t, types.Scalar) and types.is_float(t)
    mixes |= is_choice(value) and types.is_float(t)
    if own_type is not None and own_type != t and not mixes:
        help_ = "convert the value, or use another name"
        if t == types.INT and own_type == types.FLOAT:
            help_ = f"start it as a float: `{target.id} = 0.0`"
        if t == types.FLOAT and own_type == types.DOUBLE:
            help_ = f"start it as a double: `{target.id} = sad.double(0.0)`"
        if without_targets(own_type) == without_targets(t):
            help_ = "its pointers lead elsewhere: use another name"
        value_type = f"`{own_type}`"
        raise body.error("SR0317", target, name=target.id, type=t, found=value_type, help=help_)
    return coerce(value, t, span)


def _takes(t: types.Type, number: PythonNumber) -> bool:
    """True if a number of the program is in range and converts to `t`."""
    if not isinstance(t, types.Scalar) or isinstance(number.value, bool) != (t == types.BOOL):
        return False
    return types.is_float(t) or not isinstance(number.value, float)


def _unpack(body: BodyReader, target: ast.Tuple | ast.List, value: Value, source: ast.expr) -> None:
    """``a, b = b, a``: evaluates all values, then writes all targets."""
    parts = _parts(body, value, body.span(source))
    if parts is None:
        raise body.error("SR0243", target, found=describe(value))
    if len(parts) != len(target.elts):
        raise body.error("SR0318", target, found=len(parts), wanted=len(target.elts))
    kept = [_copied(body, p, body.span(source)) for p in parts]
    for element, part in zip(target.elts, kept, strict=True):
        _assign_to(body, element, part, source)


def _copied(body: BodyReader, part: Value, span: Span) -> Value:
    """The part in a local of its own, because the targets may overwrite its operands."""
    if not isinstance(part, nodes.Expr):
        return part
    if isinstance(part, nodes.Var) and part.name in body.scope.types:
        return body.in_local(part, part.name, span)
    return body.keep(part, "part")


def _parts(body: BodyReader, value: Value, span: Span) -> list[Value] | None:
    if isinstance(value, Sequence):
        return list(value.parts)
    if not isinstance(value, nodes.Expr):
        return None
    if isinstance(value.type, types.Tuple):
        whole = body.keep(value, "results")
        elements = value.type.elements
        return [
            nodes.Field(type=t, value=whole, name=str(k), span=span) for k, t in enumerate(elements)
        ]
    if isinstance(value.type, types.Vector):
        whole = body.keep(value, "vector")
        t = value.type.element
        letters = "xyzw"[: value.type.count]
        return [nodes.Swizzle(type=t, value=whole, components=c, span=span) for c in letters]
    return None


# -- places -----------------------------------------------------------------------------------


@dataclass(frozen=True)
class AssignedPlace:
    """A left-hand side: ``root<path>``; `value` is the expression that reads it."""

    root: nodes.Var | TargetElement
    path: tuple[nodes.Step, ...]
    value: nodes.Expr


def _read_place(body: BodyReader, node: ast.expr) -> AssignedPlace:
    """The place that a target names; variable indices are evaluated once.

    Raises:
        LanguageError: SR0201 for values that cannot be assigned, SR0205 for a part of a parameter,
            SR0209 for a component written twice.
    """
    value = body.value(node, is_target=True)
    if not isinstance(value, nodes.Expr):
        raise body.error("SR0201", node, found=describe(value))
    steps: list[nodes.Step] = []
    kept = _kept(body, value)
    part = kept
    while not isinstance(part, nodes.Var | TargetElement):
        if isinstance(part, nodes.Load):
            raise body.error("SR0208", node, name=ast.unparse(node), how=HOW_WRITTEN[Access.IN],
                             access="a place behind a pointer")  # fmt: skip
        if not isinstance(part, Part):
            raise body.error("SR0201", node, found="an expression")
        steps.append(_step(body, part, node))
        part = part.value
    steps.reverse()
    if isinstance(part, nodes.Var):
        _check_root(body, part, steps, node)
    return AssignedPlace(part, tuple(steps), kept)


def _kept(body: BodyReader, value: nodes.Expr) -> nodes.Expr:
    """The place with every variable index in a local, so that it is evaluated once.

    Indices of arrays stay in place, because a write contains them once and lowering analyses them.
    """
    if isinstance(value, nodes.Element):
        return replace(value, value=_kept(body, value.value), index=body.keep(value.index, "index"))
    if isinstance(value, nodes.Field | nodes.Swizzle | nodes.PairPart):
        return replace(value, value=_kept(body, value.value))
    return value


def _step(body: BodyReader, part: Part, node: ast.expr) -> nodes.Step:
    match part:
        case nodes.Field():
            return nodes.FieldStep(name=part.name)
        case nodes.Element():
            return nodes.ElementStep(index=part.index)
        case nodes.Swizzle():
            if len(set(part.components)) != len(part.components):
                raise body.error("SR0209", node, found=part.components)
            return nodes.SwizzleStep(components=part.components)
        case nodes.PairPart():
            if part.part != "d":
                raise body.error("SR0205", node, name="the primal of a pair",
                                 help="make a new pair: `sad.diff_pair(p, d)`")  # fmt: skip
            return nodes.PartStep()


def _check_root(body: BodyReader, root: nodes.Var, steps: list[nodes.Step], node: ast.expr) -> None:
    # Without steps the root is a parameter: `self.scale` of a struct that holds arrays.
    name = _parameter_of(body, root.name) if steps else ast.unparse(node)
    if name is not None and not (steps and _is_cotangent(body, root, steps[0])):
        raise body.error("SR0205", node, name=f"parameter `{name}`",
                         help=f"copy it first: `own = {name}`, and write `own`")  # fmt: skip


def _parameter_of(body: BodyReader, name: str) -> str | None:
    """The parameter that a name holds on some path to here; `None` for other locals."""
    scope = body.scope
    if name not in scope.types:
        return name
    for parameter, local in scope.local_name_by_name.items():
        if local == name and parameter in scope.parameters and not scope.is_assigned(name):
            return parameter
    return None


def _is_cotangent(body: BodyReader, root: nodes.Var, step: nodes.Step) -> bool:
    """True if the place is ``x.d`` of a pair parameter of a backward derivative."""
    function = body.function
    is_backward = isinstance(function, DerivativeFunction) and not function.is_forward
    return is_backward and isinstance(root.type, types.Pair) and isinstance(step, nodes.PartStep)


# -- elements ---------------------------------------------------------------------------------


def _write(body: BodyReader, place: AssignedPlace, value: nodes.Expr, target: ast.expr) -> None:
    """``place = value``."""
    root, span = place.root, body.span(target)
    if isinstance(root, nodes.Var):
        body.emit(nodes.Assign(name=root.name, path=place.path, value=value, span=span))
        return
    if isinstance(root.indices[0], nodes.PointerIndex):
        body.emit(_to_element(nodes.AccumulateGradient, place, root, value, span, is_store=True))
        return
    if root.array.part == "d":
        raise forbidden(body, root.array, target, "it only takes `+=`")
    if root.array.type.access is not Access.OUT:
        raise forbidden(body, root.array, target)
    body.emit(_to_element(nodes.Store, place, root, value, span, is_unique=root.is_unique))


def _to_element(
    kind: Callable[..., nodes.Stmt],
    place: AssignedPlace,
    root: TargetElement,
    value: nodes.Expr,
    span: Span,
    **flags: bool,
) -> nodes.Stmt:
    """A write of `kind` to the array element of a place."""
    return kind(
        buffer=root.buffer, indices=root.indices, path=place.path, value=value, span=span, **flags
    )


def augmented(body: BodyReader, node: ast.AugAssign) -> None:
    """``target op= value``; indices are evaluated once."""
    span = body.span(node)
    if isinstance(node.target, ast.Name):
        current = body.value(ast.copy_location(ast.Name(node.target.id, ast.Load()), node.target))
        result = operators.binary(node.op, current, body.value(node.value), span)
        _bind(body, node.target, result, node.value)
        return
    place = _read_place(body, node.target)
    value = body.value(node.value)
    root = place.root
    is_element = isinstance(root, TargetElement)
    if is_element and (root.array.part == "d" or root.array.type.access is not Access.OUT):
        _accumulate(body, place, root, node, value)
        return
    result = operators.binary(node.op, _as_read(place.value), value, span)
    _write(body, place, coerce(result, place.value.type, span), node.target)


def _accumulate(
    body: BodyReader, place: AssignedPlace, root: TargetElement, node: ast.AugAssign, value: Value
) -> None:
    """``total[j] += v`` and ``x.d[j] -= v``."""
    is_gradient = root.array.part == "d"
    if not is_gradient and root.array.type.access not in (Access.ADD, Access.LISTS):
        raise forbidden(body, root.array, node.target)
    if not isinstance(node.op, ast.Add | ast.Sub):
        raise forbidden(body, root.array, node.target, HOW_WRITTEN[Access.ADD])
    span = body.span(node.value)
    addend = coerce(value, place.value.type, span)
    if isinstance(node.op, ast.Sub):
        addend = expr(operators.unary(ast.USub(), addend, span), span)
    kind = nodes.AccumulateGradient if is_gradient else nodes.Accumulate
    body.emit(_to_element(kind, place, root, addend, body.span(node.target)))


def _as_read(value: nodes.Expr) -> nodes.Expr:
    """The place as a value, with a load of its array element."""

    def read(e: nodes.Expr) -> nodes.Expr:
        if isinstance(e, TargetElement):
            return nodes.Load(type=e.type, buffer=e.buffer, indices=e.indices, span=e.span)
        return e

    return rewrite_expression(value, read)


def _is_extreme(body: BodyReader, target: ast.expr, source: ast.expr) -> bool:
    """Emits ``b[j] = sad.min(b[j], v)`` on an array of extremes; false for everything else."""
    if not isinstance(target, ast.Subscript | ast.Attribute) or not isinstance(source, ast.Call):
        return False
    callee = body.host_object(source.func)
    op = callee.op if isinstance(callee, Intrinsic) else None
    if callee is min or callee is max:
        op = ops.MIN if callee is min else ops.MAX
    if op not in (ops.MIN, ops.MAX) or len(source.args) != 2:
        return False
    array = root_of(body.value(target, is_target=True))
    wanted = {Access.MIN: ops.MIN, Access.MAX: ops.MAX, Access.GREATEST: ops.MAX}
    if not isinstance(array, TargetElement) or wanted.get(array.array.type.access) != op:
        return False
    spelled = ast.unparse(target)
    others = [a for a in source.args if ast.unparse(a) != spelled]
    if len(others) != 1:
        return False
    place = _read_place(body, target)
    assert isinstance(place.root, TargetElement)
    value = body.coerced(others[0], place.value.type)
    body.emit(_to_element(nodes.Accumulate, place, place.root, value, body.span(target)))
    return True
