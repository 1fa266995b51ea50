"""Left-hand sides: ``name.field[k].xy``, ``b[j].x``, ``x.d`` -> a root and the steps from it."""

from __future__ import annotations

import ast
from dataclasses import dataclass, replace

from shaderad.frontend.body import BodyReader
from shaderad.frontend.subscripts import HOW_WRITTEN
from shaderad.ir import nodes
from shaderad.ir.types import Access, Pair
from shaderad.language.host import DerivativeFunction
from shaderad.language.values import TargetElement, Value, describe


@dataclass(frozen=True)
class AssignedPlace:
    """A left-hand side: ``root<path>``; `value` is the expression that reads it."""

    root: nodes.Var | TargetElement
    path: tuple[nodes.Step, ...]
    value: nodes.Expr


def read_place(body: BodyReader, node: ast.expr) -> AssignedPlace:
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
    at = kept
    while not isinstance(at, nodes.Var | TargetElement):
        if isinstance(at, nodes.Load):
            raise body.error("SR0208", node, name=ast.unparse(node), how=HOW_WRITTEN[Access.IN],
                             access="a place behind a pointer")  # fmt: skip
        if not isinstance(at, nodes.Field | nodes.Swizzle | nodes.Element | nodes.PairPart):
            raise body.error("SR0201", node, found="an expression")
        steps.append(_step(body, at, node))
        at = at.value
    steps.reverse()
    if isinstance(at, nodes.Var):
        _check_root(body, at, steps, node)
    return AssignedPlace(at, tuple(steps), kept)


def _kept(body: BodyReader, value: nodes.Expr) -> nodes.Expr:
    """The place with every variable index in a local, so that it is evaluated once.

    Indices of arrays stay: writes to arrays contain them once, and lowering analyses them.
    """
    if isinstance(value, nodes.Element):
        return replace(value, value=_kept(body, value.value), index=body.keep(value.index, "index"))
    if isinstance(value, nodes.Field | nodes.Swizzle | nodes.PairPart):
        return replace(value, value=_kept(body, value.value))
    return value


def _step(
    body: BodyReader,
    at: nodes.Field | nodes.Swizzle | nodes.Element | nodes.PairPart,
    node: ast.expr,
) -> nodes.Step:
    match at:
        case nodes.Field():
            return nodes.FieldStep(name=at.name)
        case nodes.Element():
            return nodes.ElementStep(index=at.index)
        case nodes.Swizzle():
            if len(set(at.components)) != len(at.components):
                raise body.error("SR0209", node, found=at.components)
            return nodes.SwizzleStep(components=at.components)
        case nodes.PairPart():
            if at.part != "d":
                raise body.error("SR0205", node, name="the primal of a pair",
                                 help="make a new pair: `sad.diff_pair(p, d)`")  # fmt: skip
            return nodes.PartStep()


def root_of(value: Value) -> Value:
    """The value that contains the fields, components and elements of a place."""
    while isinstance(value, nodes.Field | nodes.Swizzle | nodes.Element | nodes.PairPart):
        value = value.value
    return value


def _check_root(body: BodyReader, root: nodes.Var, steps: list[nodes.Step], node: ast.expr) -> None:
    # Without steps, `self.scale` of a struct that holds arrays: a parameter of its own.
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
    return is_backward and isinstance(root.type, Pair) and isinstance(step, nodes.PartStep)
