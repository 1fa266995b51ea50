"""Left-hand sides: ``name.field[k].xy``, ``b[j].x``, ``x.d`` -> a root and the steps from it."""

from __future__ import annotations

import ast
from dataclasses import dataclass, replace

from shaderad.diagnostics import Error
from shaderad.frontend.body import BodyReader
from shaderad.ir.nodes import (
    Element,
    ElementStep,
    Expr,
    Field,
    FieldStep,
    Load,
    PairPart,
    PartStep,
    Step,
    Swizzle,
    SwizzleStep,
    Var,
)
from shaderad.ir.types import Pair
from shaderad.language.host import DerivativeFunction
from shaderad.language.values import TargetElement, Value, describe


@dataclass(frozen=True)
class AssignedPlace:
    """A left-hand side: ``root<path>``; `value` is the expression that reads it."""

    root: Var | TargetElement
    path: tuple[Step, ...]
    value: Expr


def read_place(body: BodyReader, node: ast.expr) -> AssignedPlace:
    """The place that a target names; variable indices are evaluated once.

    Raises:
        LanguageError: SR0201 for values that cannot be assigned, SR0205 for a part of a parameter,
            SR0209 for a component written twice.
    """
    value = body.target(node)
    if not isinstance(value, Expr):
        raise body.error("SR0201", node, found=describe(value))
    return _place(body, value, node)


def _place(body: BodyReader, value: Expr, node: ast.expr) -> AssignedPlace:
    steps: list[Step] = []
    kept = _kept(body, value)
    at = kept
    while not isinstance(at, Var | TargetElement):
        step = _step(body, at, node)
        if isinstance(at, Load):
            how = "it is read only: write to an `sad.Out` array"
            name = ast.unparse(node)
            raise body.error("SR0208", node, name=name, access="a place behind a pointer", how=how)
        if step is None or not isinstance(at, Field | Swizzle | Element | PairPart):
            raise body.error("SR0201", node, found="an expression")
        steps.append(step)
        at = at.value
    steps.reverse()
    if isinstance(at, Var):
        _check_root(body, at, steps, node)
    return AssignedPlace(at, tuple(steps), kept)


def _kept(body: BodyReader, value: Expr) -> Expr:
    """The place with every variable index in a local, so that it is evaluated once.

    Indices of arrays stay: writes to arrays contain them once, and lowering analyses them.
    """
    if isinstance(value, Element):
        return replace(value, value=_kept(body, value.value), index=body.keep(value.index, "index"))
    if isinstance(value, Field | Swizzle | PairPart):
        return replace(value, value=_kept(body, value.value))
    return value


def _step(body: BodyReader, at: Expr, node: ast.expr) -> Step | None:
    if isinstance(at, Field):
        return FieldStep(name=at.name)
    if isinstance(at, Swizzle):
        if len(set(at.components)) != len(at.components):
            raise body.error("SR0209", node, found=at.components)
        return SwizzleStep(components=at.components)
    if isinstance(at, Element):
        return ElementStep(index=at.index)
    if isinstance(at, PairPart):
        if at.part != "d":
            raise body.error("SR0205", node, name="the primal of a pair",
                             help="make a new pair: `sad.diff_pair(p, d)`")  # fmt: skip
        return PartStep()
    return None


def root_of(value: Value) -> Value:
    """The value that contains the fields, components and elements of a place."""
    while isinstance(value, Field | Swizzle | Element | PairPart):
        value = value.value
    return value


def _check_root(body: BodyReader, root: Var, steps: list[Step], node: ast.expr) -> None:
    if not steps:
        # `self.scale` of a struct that holds arrays: its fields are parameters of their own.
        raise _changed_parameter(body, node, ast.unparse(node))
    name = _parameter_of(body, root.name)
    if name is not None and not _is_cotangent(body, root, steps[0]):
        raise _changed_parameter(body, node, name)


def _parameter_of(body: BodyReader, name: str) -> str | None:
    """The parameter that a name holds on some path to here; `None` for other locals."""
    scope = body.scope
    if name not in scope.types:
        return name
    for parameter, local in scope.local_name_by_name.items():
        if local == name and parameter in scope.parameters and not scope.is_assigned(name):
            return parameter
    return None


def _is_cotangent(body: BodyReader, root: Var, step: Step) -> bool:
    """True if the place is ``x.d`` of a pair parameter of a backward derivative."""
    function = body.function
    is_backward = isinstance(function, DerivativeFunction) and not function.is_forward
    return is_backward and isinstance(root.type, Pair) and isinstance(step, PartStep)


def _changed_parameter(body: BodyReader, node: ast.expr, name: str) -> Error:
    return body.error("SR0205", node, name=f"parameter `{name}`",
                      help=f"copy it first: `own = {name}`, and write `own`")  # fmt: skip
