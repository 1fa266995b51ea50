"""``for`` and ``while`` -> IR loops, and the names that are assigned after them."""

from __future__ import annotations

import ast
import builtins

from shaderad.frontend import calls, operators
from shaderad.frontend.body import BodyReader
from shaderad.frontend.conversions import coerce, expr
from shaderad.frontend.scope import Flow, LoopFlow, join
from shaderad.frontend.unrolling import repeats_as_numbers
from shaderad.ir.nodes import Assign, Const, Expr, For, Return, Stmt, Var, While
from shaderad.ir.types import BOOL, INT
from shaderad.ir.walk import statements
from shaderad.language.intrinsics import KernelForm
from shaderad.language.values import Host, PythonNumber, describe


def for_loop(body: BodyReader, node: ast.For) -> None:
    """``for i in range(..)`` and its forms.

    Raises:
        LanguageError: SR0202 for ``else``, SR0210 for anything but ranges, SR0217 for limits.
    """
    _refuse_else(body, node)
    start, stop, step, limit, is_unrolled = _range(body, node.iter)
    if not isinstance(node.target, ast.Name):
        raise body.error("SR0202", node.target, found="several loop variables",
                         help="a range gives one int")  # fmt: skip
    name, scope = node.target.id, body.scope
    body.check_bindable(node.target)
    is_own = name in scope.names.loop_only and name not in scope.parameters
    if is_unrolled and is_own and repeats_as_numbers(body, node, name):
        _repeat(body, node, name, _constant_range(start, stop, step))
        return
    variable = name if is_own else scope.fresh(name)
    body.declare(variable, INT)
    head: tuple[Stmt, ...] = ()
    runs = _runs(start, stop, step)
    before = scope.assigned
    if is_own:
        scope.loop_variables.append(name)
    else:
        local = scope.local_name_by_name.get(name, name)
        _declare_copy(body, node.target, local)
        copy = Var(type=INT, name=variable, span=body.span(node.target))
        head = (Assign(name=local, value=copy, span=body.span(node.target)),)
        scope.assign(local)
    inner, flow, end = _body(body, node.body)
    if is_own:
        scope.loop_variables.pop()
    ends = [end, *flow.continues, *flow.breaks]
    scope.assigned = join(*ends) if runs else join(before, *ends)
    body.emit(
        For(variable=variable, start=start, stop=stop, step=step, limit=limit,
            is_unrolled=is_unrolled, body=(*head, *inner), span=body.span(node.iter))
    )  # fmt: skip


def _declare_copy(body: BodyReader, target: ast.Name, local: str) -> None:
    declared = body.scope.types.setdefault(local, INT)
    if declared != INT:
        raise body.error("SR0317", target, name=target.id, type=declared, found="`int`",
                         help="use another name for the loop variable")  # fmt: skip


def _body(body: BodyReader, statements: list[ast.stmt]) -> tuple[tuple[Stmt, ...], LoopFlow, Flow]:
    """The statements of a loop body, its exits, and the names assigned at its end."""
    flow = LoopFlow()
    body.scope.loops.append(flow)
    inner = body.read_block(statements)
    body.scope.loops.pop()
    return inner, flow, body.scope.assigned


def _repeat(body: BodyReader, node: ast.For, name: str, values: range) -> None:
    """Reads the body once for each value of the loop variable, as a number."""
    numbers = body.scope.numbers
    for value in values:
        numbers[name] = PythonNumber(value, body.span(node.target))
        body.unit.readers.block(body, node.body)
    numbers.pop(name, None)


def _runs(*bounds: Expr) -> bool:
    """True if the range is constant and not empty."""
    return all(isinstance(b, Const) for b in bounds) and len(_constant_range(*bounds)) > 0


def _constant_range(*bounds: Expr) -> range:
    return range(*(int(b.value) for b in bounds if isinstance(b, Const)))


def _range(body: BodyReader, node: ast.expr) -> tuple[Expr, Expr, Expr, int | None, bool]:
    """Start, stop, step, limit, and True if the loop is unrolled."""
    callee = body.value(node.func) if isinstance(node, ast.Call) else None
    thing = callee.object if isinstance(callee, Host) else None
    is_unrolled = thing == KernelForm("static_range")
    is_limited = thing == KernelForm("range")
    if not isinstance(node, ast.Call) or not (thing is builtins.range or is_unrolled or is_limited):
        value = callee if callee is not None else body.value(node)
        raise body.error("SR0210", node, found=describe(value))
    limit: int | None = None
    for keyword in node.keywords:
        if keyword.arg != "limit" or not is_limited:
            raise body.error("SR0233", keyword.value, found=f"`{keyword.arg or '**'}=`")
        limit = calls.constant_argument(body, keyword.value, "limit")
    if not 1 <= len(node.args) <= 3:
        raise body.error("SR0231", node, name="range", found=len(node.args), wanted="1 to 3")
    bounds = [_bound(body, a) for a in node.args]
    if len(bounds) == 1:
        bounds.insert(0, Const(type=INT, value=0, span=body.span(node)))
    if len(bounds) == 2:
        bounds.append(Const(type=INT, value=1, span=body.span(node)))
    start, stop, step = bounds
    if isinstance(step, Const) and step.value == 0:
        raise body.error("SR0223", node)
    if is_unrolled and not all(isinstance(b, Const) for b in bounds):
        raise body.error("SR0224", node)
    return start, stop, step, limit, is_unrolled


def _bound(body: BodyReader, node: ast.expr) -> Expr:
    return coerce(body.value(node), INT, body.span(node))


def while_loop(body: BodyReader, node: ast.While) -> None:
    """``while condition`` and ``while sad.limit(condition, 64)``.

    Raises:
        LanguageError: SR0250 for a loop without an exit.
    """
    _refuse_else(body, node)
    test, limit = node.test, None
    if isinstance(test, ast.Call) and body.host_object(test.func) == KernelForm("limit"):
        if len(test.args) != 2 or test.keywords:
            raise body.error("SR0231", test, name="limit", found=len(test.args), wanted=2)
        limit = calls.constant_argument(body, test.args[1], "limit")
        test = test.args[0]
    with body.conditional():
        condition = operators.condition(body.value(test), body.span(test))
    if isinstance(condition, PythonNumber) and not condition.value:
        return
    scope = body.scope
    before = scope.assigned
    inner, flow, _ = _body(body, node.body)
    is_endless = isinstance(condition, PythonNumber) and limit is None
    if is_endless and not flow.breaks and not any(isinstance(s, Return) for s in statements(inner)):
        raise body.error("SR0250", node.test)
    scope.assigned = join(*flow.breaks) if is_endless else join(before, *flow.breaks)
    condition = expr(condition, body.span(test))
    assert condition.type == BOOL
    body.emit(While(condition=condition, limit=limit, body=inner, span=body.span(node.test)))


def _refuse_else(body: BodyReader, node: ast.For | ast.While) -> None:
    if node.orelse:
        raise body.error("SR0202", node.orelse[0], found="`else` of a loop",
                         help="set a bool before the loop and test it after")  # fmt: skip
