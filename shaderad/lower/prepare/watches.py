"""`checks="nan"`: a statement -> the statement with its floats watched for NaN and infinity.

The primal watches values, forward mode tangents, backward mode additions to cotangents. Invariant:
no value changes (shaders/checks.slang). Constants and copies of names are not watched: an infinity
in the source is intended, and the value of a name was watched when it was computed.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from shaderad.ir import nodes, ops
from shaderad.ir.types import Tuple, is_differentiable, is_float
from shaderad.ir.walk import children, map_children
from shaderad.lower.bindings import Mode

_KINDS = {Mode.PRIMAL: "ofValue", Mode.FORWARD: "ofTangent", Mode.BACKWARD: "ofCotangent"}
_PARTS = (nodes.Field, nodes.Swizzle, nodes.Element)
_COMPOSED = (*_PARTS, nodes.Construct, nodes.Splat, nodes.Detach)


@dataclass(frozen=True, kw_only=True)
class Watched(nodes.Expr):
    """`value`, reported if it is not finite."""

    value: nodes.Expr
    name: str
    """The name in reports: the local, array or parameter that gets the value."""
    kind: str
    """Value, tangent or cotangent (shaders/checks.slang)."""


@dataclass(frozen=True)
class Watch:
    """The watch of one function."""

    mode: Mode
    shown: Mapping[str, str]
    """The primal name of each local and array that holds tangents or cotangents."""

    def statement(self, s: nodes.Stmt) -> nodes.Stmt:
        """`s` with its results watched, without nested statements."""
        if self.mode not in _KINDS:
            return s
        if isinstance(s, nodes.Assign):
            return replace(s, value=self._assigned(s))
        if isinstance(s, nodes.Store | nodes.Accumulate):
            return replace(s, value=self._value(s.value, s.buffer))
        if isinstance(s, nodes.AccumulateGradient):
            return replace(s, value=self._watched(s.value, s.buffer))
        if isinstance(s, nodes.Return) and s.value is not None:
            return replace(s, value=self._result(s.value))
        return replace(s, call=self._arguments(s.call)) if isinstance(s, nodes.Evaluate) else s

    def _assigned(self, s: nodes.Assign) -> nodes.Expr:
        value = s.value
        if self.mode is Mode.BACKWARD and isinstance(value, nodes.Apply) and value.op is ops.ADD:
            place, added = value.args
            if _root(place) == s.name:
                return replace(value, args=(place, self._value(added, s.name)))
        return self._value(value, s.name)

    def _result(self, e: nodes.Expr) -> nodes.Expr:
        """The watched result; functions with tangents return a tuple of value and tangents."""
        if self.mode is Mode.PRIMAL:
            return self._watched(e, "the result")
        is_pushed = self.mode is Mode.FORWARD and isinstance(e.type, Tuple)
        if is_pushed and isinstance(e, nodes.Construct):
            value, *dots = e.parts
            return replace(e, parts=(value, *(self._watched(d, "the result") for d in dots)))
        return e

    def _value(self, e: nodes.Expr, name: str) -> nodes.Expr:
        """`e`, watched if `name` is watched in this mode."""
        if self.mode is Mode.PRIMAL:
            return self._watched(e, self.shown.get(name, name))
        return self._watched(e, self.shown[name]) if name in self.shown else e

    def _watched(self, e: nodes.Expr, name: str) -> nodes.Expr:
        if self._is_settled(e):
            return e
        if is_float(e.type):
            kind = _KINDS[self.mode]
            value = self._arguments(e)
            return Watched(type=e.type, value=value, name=name, kind=kind, span=e.span)
        if isinstance(e, nodes.Construct):
            return replace(e, parts=tuple(self._watched(p, name) for p in e.parts))
        if isinstance(e, nodes.Conditional):
            if_true, if_false = (self._watched(side, name) for side in (e.if_true, e.if_false))
            return replace(e, if_true=if_true, if_false=if_false)
        return self._arguments(e)

    def _arguments(self, e: nodes.Expr) -> nodes.Expr:
        """`e` with the arguments of its calls watched."""
        is_call = isinstance(e, nodes.Call)
        if isinstance(e, nodes.Detach) or not (is_call or is_differentiable(e.type)):
            return e
        if isinstance(e, nodes.Call) and self.mode is Mode.PRIMAL:
            named = zip(e.args, e.function.parameters, strict=True)
            return replace(e, args=tuple(self._watched(a, p.name) for a, p in named))
        return map_children(e, self._arguments)

    def _is_settled(self, e: nodes.Expr) -> bool:
        """True if `e` consists of constants and watched names."""
        if isinstance(e, nodes.Var):
            return self.mode is Mode.PRIMAL or e.name in self.shown
        if isinstance(e, nodes.Const | nodes.Zero):
            return True
        is_negation = isinstance(e, nodes.Apply) and e.op is ops.NEG
        is_composed = is_negation or isinstance(e, _COMPOSED)
        return is_composed and all(map(self._is_settled, children(e)))


def _root(e: nodes.Expr) -> str:
    """The name of which `e` is a part, or empty."""
    while isinstance(e, _PARTS):
        e = e.value
    return e.name if isinstance(e, nodes.Var) else ""
