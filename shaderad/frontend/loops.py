"""``for`` and ``while`` -> IR loops, and the names that are assigned after them.

Lowering unrolls ``static_range`` loops, whose variable is an int of the kernel. Where the body
needs the variable while compiling (an exponent, a bound of another ``static_range``, a ``limit=``,
an argument for a `sad.Const` parameter), the body is read once per value instead. Invariant: such a
body has no ``break`` or ``continue`` of its own loop.
"""

from __future__ import annotations

import ast
import builtins
from collections.abc import Iterator
from typing import NamedTuple

from shaderad.diagnostics import LanguageError
from shaderad.frontend.body import BodyReader, Flow, LoopFlow, join
from shaderad.frontend.conversions import expr
from shaderad.frontend.expressions import read_condition
from shaderad.ir.nodes import Assign, Const, Expr, For, Return, Stmt, Var, While
from shaderad.ir.types import INT, Tuple
from shaderad.ir.walk import statements
from shaderad.language.annotations import ConstType
from shaderad.language.host import UserFunction
from shaderad.language.intrinsics import is_form
from shaderad.language.signatures import signature_of
from shaderad.language.values import Host, PythonNumber, Sequence, describe


class _Range(NamedTuple):
    start: Expr
    stop: Expr
    step: Expr
    limit: int | None
    is_unrolled: bool

    @property
    def values(self) -> range | None:
        """The values of the loop variable, if the bounds are constants."""
        bounds = [int(b.value) for b in self[:3] if isinstance(b, Const)]
        return range(*bounds) if len(bounds) == 3 else None


def for_loop(body: BodyReader, node: ast.For) -> None:
    """``for i in range(...)`` and its forms.

    Raises:
        LanguageError: SR0202 for ``else``, SR0210 for anything but ranges, SR0217 for limits.
    """
    _refuse_else(body, node)
    bounds = _range(body, node.iter)
    if not isinstance(node.target, ast.Name):
        raise body.error("SR0202", node.target, found="several loop variables",
                         help="a range gives one int")  # fmt: skip
    name, scope, span = node.target.id, body.scope, body.span(node.target)
    body.check_bindable(node.target)
    is_own = name in scope.names.loop_only and name not in scope.parameters
    if bounds.is_unrolled and is_own and _repeats_as_numbers(body, node, name):
        for value in bounds.values or ():
            scope.numbers[name] = PythonNumber(value, span)
            body.read(node.body)
        scope.numbers.pop(name, None)
        return
    variable = name if is_own else scope.fresh(name)
    scope.types[variable] = INT
    head: tuple[Stmt, ...] = ()
    before = scope.assigned
    if is_own:
        scope.loop_variables.append(name)
    else:
        local = _declared_copy(body, node.target)
        head = (Assign(name=local, value=Var(type=INT, name=variable, span=span), span=span),)
        scope.assign(local)
    inner, flow, end = _body(body, node.body)
    if is_own:
        scope.loop_variables.pop()
    ends = [end, *flow.continues, *flow.breaks]
    scope.assigned = join(*ends) if bounds.values else join(before, *ends)
    body.emit(
        For(variable=variable, **bounds._asdict(), body=(*head, *inner), span=body.span(node.iter))
    )


def _declared_copy(body: BodyReader, target: ast.Name) -> str:
    """The IR name of a local that takes the loop variable."""
    local = body.scope.ir_name(target.id)
    declared = body.scope.types.setdefault(local, INT)
    if declared != INT:
        raise body.error("SR0317", target, name=target.id, type=declared, found="`int`",
                         help="use another name for the loop variable")  # fmt: skip
    return local


def _body(body: BodyReader, nodes: list[ast.stmt]) -> tuple[tuple[Stmt, ...], LoopFlow, Flow]:
    """The statements of a loop body, its exits, and the names assigned at its end."""
    flow = LoopFlow()
    body.scope.loops.append(flow)
    inner = body.read_block(nodes)
    body.scope.loops.pop()
    return inner, flow, body.scope.assigned


def _range(body: BodyReader, node: ast.expr) -> _Range:
    callee = body.value(node.func) if isinstance(node, ast.Call) else None
    thing = callee.object if isinstance(callee, Host) else None
    is_unrolled = is_form(thing, "static_range")
    is_limited = is_form(thing, "range")
    if not isinstance(node, ast.Call) or not (thing is builtins.range or is_unrolled or is_limited):
        value = callee if callee is not None else body.value(node)
        raise body.error("SR0210", node, found=describe(value))
    limit: int | None = None
    for keyword in node.keywords:
        if keyword.arg != "limit" or not is_limited:
            raise body.unknown_keyword(keyword)
        limit = _limit(body, keyword.value)
    if not 1 <= len(node.args) <= 3:
        raise body.error("SR0231", node, name="range", found=len(node.args), wanted="1 to 3")
    bounds = [body.coerced(a, INT) for a in node.args]
    if len(bounds) == 1:
        bounds.insert(0, Const(type=INT, value=0, span=body.span(node)))
    if len(bounds) == 2:
        bounds.append(Const(type=INT, value=1, span=body.span(node)))
    start, stop, step = bounds
    if isinstance(step, Const) and step.value == 0:
        raise body.error("SR0223", node)
    if is_unrolled and not all(isinstance(b, Const) for b in bounds):
        raise body.error("SR0224", node)
    return _Range(start, stop, step, limit, is_unrolled)


def _limit(body: BodyReader, node: ast.expr) -> int:
    """A positive whole number known while compiling."""
    value = body.value(node)
    if isinstance(value, PythonNumber) and type(value.value) is int and value.value > 0:
        return value.value
    raise body.error("SR0217", node, name="limit", found=describe(value))


def while_loop(body: BodyReader, node: ast.While) -> None:
    """``while condition`` and ``while sad.limit(condition, 64)``."""
    _refuse_else(body, node)
    test, limit = node.test, None
    if isinstance(test, ast.Call) and is_form(body.host_object(test.func), "limit"):
        body.check_count(test, "limit", 2)
        limit = _limit(body, test.args[1])
        test = test.args[0]
    with body.conditional():
        condition = read_condition(body, test)
    if isinstance(condition, PythonNumber) and not condition.value:
        return
    before = body.scope.assigned
    inner, flow, _ = _body(body, node.body)
    is_endless = isinstance(condition, PythonNumber) and limit is None
    if is_endless and not flow.breaks and not any(isinstance(s, Return) for s in statements(inner)):
        raise body.error("SR0250", node.test)
    body.scope.assigned = join(*flow.breaks) if is_endless else join(before, *flow.breaks)
    condition = expr(condition, body.span(test))
    body.emit(While(condition=condition, limit=limit, body=inner, span=body.span(node.test)))


def _refuse_else(body: BodyReader, node: ast.For | ast.While) -> None:
    if node.orelse:
        raise body.error("SR0202", node.orelse[0], found="`else` of a loop",
                         help="set a bool before the loop and test it after")  # fmt: skip


# -- loops whose body is read for each value ----------------------------------------------------


def _repeats_as_numbers(body: BodyReader, loop: ast.For, name: str) -> bool:
    """True if the body of an unrolled loop needs its variable `name` while compiling."""
    parts = (part for s in loop.body for node in ast.walk(s) for part in _constants(body, node))
    return any(_mentions(part, name) for part in parts) and not _is_left(loop.body)


def _constants(body: BodyReader, node: ast.AST) -> Iterator[ast.expr]:
    """The operands of one node that must be, or should be, constants."""
    match node:
        case ast.BinOp(op=ast.Pow()):
            yield node.right
        case ast.AugAssign(op=ast.Pow()):
            yield node.value
        case ast.Subscript() if _is_tuple(body, node.value):
            yield node.slice
        case ast.Call():
            yield from (k.value for k in node.keywords if k.arg == "limit")
            yield from _constant_arguments(body, node)
        case _:
            return


def _is_tuple(body: BodyReader, node: ast.expr) -> bool:
    """True for a tuple that is captured, local, or the shape of an array, and for its parts."""
    while isinstance(node, ast.Subscript):
        node = node.value
    root = node.value if isinstance(node, ast.Attribute) else node
    if not isinstance(root, ast.Name):
        return False
    if root.id in body.scope.names.bound:
        return isinstance(body.scope.types.get(body.scope.ir_name(root.id)), Tuple)
    try:
        return isinstance(body.value(node), Sequence)
    except LanguageError:  # The error is raised when the body is read.
        return False


def _constant_arguments(body: BodyReader, node: ast.Call) -> list[ast.expr]:
    """The arguments of a call that may have to be constants."""
    try:
        thing = body.host_object(node.func)
    except LanguageError:  # The callee depends on names that the loop assigns.
        return []
    arguments = [*node.args, *(k.value for k in node.keywords)]
    if is_form(thing, "limit"):
        return arguments[1:]
    if isinstance(thing, UserFunction):
        has_constants = any(isinstance(t, ConstType) for _, t in signature_of(thing).parameters)
        return arguments if has_constants else []
    return arguments if is_form(thing, "static_range") else []


def _mentions(part: ast.expr, name: str) -> bool:
    return any(isinstance(node, ast.Name) and node.id == name for node in ast.walk(part))


def _is_left(nodes: list[ast.stmt]) -> bool:
    """True if the loop over these statements has a ``break`` or ``continue``."""
    return any(
        isinstance(s, ast.Break | ast.Continue)
        or (isinstance(s, ast.If) and _is_left([*s.body, *s.orelse]))
        for s in nodes
    )
