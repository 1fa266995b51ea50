"""Which additions to gradients all threads of a wave make together, at one address.

A value is uniform where all threads that run together have the same: what is made of constants, of
uniforms and of elements of inputs at uniform indices, under control flow that is uniform itself.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from shaderad.bodies.outputs import CheckIndex
from shaderad.bodies.ranges import InRange
from shaderad.ir import nodes
from shaderad.ir.nodes import AccumulateGradient, Expr, Function, Stmt
from shaderad.ir.walk import all_expressions, called, children, reachable
from shaderad.rules.pulling.nodes import Adjoint, Leap, Place

_UNIFORM = (
    nodes.Const,
    nodes.Zero,
    nodes.Apply,
    nodes.Logical,
    nodes.Conditional,
    nodes.Cast,
    nodes.Bitcast,
    nodes.Construct,
    nodes.Splat,
    nodes.Field,
    nodes.Swizzle,
    nodes.Element,
    nodes.KnownNumber,
    nodes.Length,
    nodes.Detach,
    CheckIndex,
    InRange,
    Leap,
)
"""Expressions that are uniform where their operands are."""


def uniform_additions(
    adjoint: Adjoint, uniform: Iterable[str], inputs: frozenset[str]
) -> list[AccumulateGradient]:
    """The additions under uniform control flow, at uniform places.

    Args:
        adjoint: Of a kernel's body.
        uniform: The parameters that are.
        inputs: Arrays that no thread writes.
    """
    given = set(uniform)
    search = _Search(inputs)
    search.calls[adjoint] = _Calls({p.name for p in adjoint.parameters if p.name not in given})
    while not search.is_settled:
        search.is_settled = True
        search.found.clear()
        for f in list(search.calls):
            search.visit(f)
    return search.found


@dataclass(frozen=True)
class _Calls:
    """What all calls of one adjoint have in common."""

    varying: set[str]
    """Its parameters that are not uniform."""
    is_divergent: bool = False
    """Whether one of the calls is not under uniform control flow."""


@dataclass
class _Search:
    inputs: frozenset[str]
    calls: dict[Function, _Calls] = field(default_factory=dict[Function, _Calls])
    found: list[AccumulateGradient] = field(default_factory=list[AccumulateGradient])
    is_settled: bool = False

    def visit(self, f: Function) -> None:
        known = self.calls[f]
        varying = known.varying | {p.name for p in f.parameters if isinstance(p, Place)}
        while True:
            count = len(varying)
            self._assigned(f.body, varying, is_divergent=False)
            if len(varying) == count:
                break
        self._collect(f.body, varying, is_divergent=known.is_divergent)

    def _varies(self, e: Expr, varying: set[str]) -> bool:
        if isinstance(e, nodes.Var):
            return e.name in varying
        if isinstance(e, nodes.Load):
            is_known = e.buffer in self.inputs
        elif isinstance(e, nodes.Call):
            is_known = self.inputs.issuperset(e.function.buffers)
        else:
            is_known = isinstance(e, _UNIFORM)
        return not is_known or any(self._varies(part, varying) for part in children(e))

    def _diverges(self, s: Stmt, varying: set[str]) -> bool:
        """Whether threads part ways in `s`."""
        if isinstance(s, nodes.If):
            return self._varies(s.condition, varying)
        if isinstance(s, nodes.For):
            bounds = (s.start, s.stop, s.step)
            is_varying = any(self._varies(e, varying) for e in bounds)
            return is_varying or not varying.isdisjoint(s.exits)
        if isinstance(s, nodes.While):
            return self._varies(s.condition, varying) or not varying.isdisjoint(s.exits)
        return False

    def _assigned(self, body: tuple[Stmt, ...], varying: set[str], *, is_divergent: bool) -> None:
        """Adds the names that get values which are not uniform."""
        for s in body:
            inside = is_divergent or self._diverges(s, varying)
            if isinstance(s, nodes.Assign):
                values = (s.value, *_indices(s.path))
                if is_divergent or any(self._varies(e, varying) for e in values):
                    varying.add(s.name)
            elif isinstance(s, nodes.Evaluate) and isinstance(s.call, nodes.Call):
                places = zip(s.call.function.parameters, s.call.args, strict=True)
                varying |= {
                    arg.name
                    for p, arg in places
                    if isinstance(p, Place) and isinstance(arg, nodes.Var)
                }
            elif isinstance(s, nodes.For) and inside:
                varying.add(s.variable)
            for block in _blocks(s):
                self._assigned(block, varying, is_divergent=inside)

    def _collect(self, body: tuple[Stmt, ...], varying: set[str], *, is_divergent: bool) -> None:
        """Notes the calls and the additions of a body."""
        for s in body:
            if isinstance(s, AccumulateGradient) and not is_divergent and not s.is_store:
                places = (*s.indices, *_indices(s.path))
                if not any(self._varies(e, varying) for e in places):
                    self.found.append(s)
            if isinstance(s, nodes.Evaluate) and isinstance(s.call, nodes.Call):
                self._call(s.call, varying, is_divergent=is_divergent)
            for e in all_expressions((s,)) if not _blocks(s) else ():
                if isinstance(e, nodes.Call):
                    self._inside(e.function)
            inside = is_divergent or self._diverges(s, varying)
            for block in _blocks(s):
                self._collect(block, varying, is_divergent=inside)

    def _call(self, call: nodes.Call, varying: set[str], *, is_divergent: bool) -> None:
        f = call.function
        if not isinstance(f, Adjoint):
            self._inside(f)
            return
        names = {
            p.name
            for p, arg in zip(f.parameters, call.args, strict=True)
            if self._varies(arg, varying)
        }
        self._note(f, names, is_divergent=is_divergent)

    def _inside(self, f: Function) -> None:
        """What another function calls may be called by any of the threads: it has jumps."""
        for g in (f, *reachable(f.body)):
            for inner in called(g.body):
                if isinstance(inner, Adjoint):
                    every = {p.name for p in inner.parameters}
                    self._note(inner, every, is_divergent=True)

    def _note(self, f: Adjoint, varying: set[str], *, is_divergent: bool) -> None:
        known = self.calls.get(f, _Calls(set()))
        joined = _Calls(known.varying | varying, known.is_divergent or is_divergent)
        if self.calls.get(f) != joined:
            self.calls[f] = joined
            self.is_settled = False


def _blocks(s: Stmt) -> tuple[tuple[Stmt, ...], ...]:
    if isinstance(s, nodes.If):
        return (s.then, s.otherwise)
    return (s.body,) if isinstance(s, nodes.For | nodes.While) else ()


def _indices(path: tuple[nodes.Step, ...]) -> list[Expr]:
    return [step.index for step in path if isinstance(step, nodes.ElementStep)]
