"""Uniformity analysis: finds additions to gradients that all threads of a wave make at one address.

A value is uniform if all active threads of a wave agree on it: it depends on constants, uniforms
and input elements at uniform indices, under uniform control flow.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from shaderad.bodies.outputs import CheckIndex
from shaderad.bodies.ranges import InRange
from shaderad.ir import nodes
from shaderad.ir.nodes import AccumulateGradient, Expr, Function, Stmt
from shaderad.ir.walk import all_expressions, blocks, called, children, indices, reachable
from shaderad.rules.nodes import Adjoint, InOut, Leap

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
"""Expressions that are uniform if their operands are."""


def uniform_additions(
    adjoint: Adjoint, uniform: Iterable[str], inputs: frozenset[str]
) -> list[AccumulateGradient]:
    """The additions under uniform control flow, at uniform addresses.

    Args:
        adjoint: The adjoint of a kernel's body.
        uniform: Its uniform parameters.
        inputs: Arrays that no thread writes.
    """
    search = _Search(inputs)
    search.calls[adjoint] = _Calls({p.name for p in adjoint.parameters} - set(uniform))
    while not search.is_settled:
        search.is_settled = True
        search.additions.clear()
        for f in list(search.calls):
            search.visit(f)
    return search.additions


@dataclass(frozen=True)
class _Calls:
    """The join over all calls of one adjoint."""

    varying: set[str]
    """Parameters that are not uniform in some call."""
    is_divergent: bool = False
    """True if some call is not under uniform control flow."""


@dataclass
class _Search:
    inputs: frozenset[str]
    calls: dict[Function, _Calls] = field(default_factory=dict[Function, _Calls])
    additions: list[AccumulateGradient] = field(default_factory=list[AccumulateGradient])
    is_settled: bool = False

    def visit(self, f: Function) -> None:
        calls = self.calls[f]
        varying = calls.varying | {p.name for p in f.parameters if isinstance(p, InOut)}
        while True:
            count = len(varying)
            self._assigned(f.body, varying, is_divergent=False)
            if len(varying) == count:
                break
        self._collect(f.body, varying, is_divergent=calls.is_divergent)

    def _varies(self, e: Expr, varying: set[str]) -> bool:
        if isinstance(e, nodes.Var):
            return e.name in varying
        if isinstance(e, nodes.Load):
            is_uniform = e.buffer in self.inputs
        elif isinstance(e, nodes.Call):
            is_uniform = self.inputs.issuperset(e.function.buffers)
        else:
            is_uniform = isinstance(e, _UNIFORM)
        return not is_uniform or any(self._varies(part, varying) for part in children(e))

    def _diverges(self, s: Stmt, varying: set[str]) -> bool:
        """True if threads may diverge in `s`."""
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
        """Adds the names that are assigned varying values to `varying`."""
        for s in body:
            inside = is_divergent or self._diverges(s, varying)
            if isinstance(s, nodes.Assign):
                values = (s.value, *indices(s.path))
                if is_divergent or any(self._varies(e, varying) for e in values):
                    varying.add(s.name)
            elif isinstance(s, nodes.Evaluate) and isinstance(s.call, nodes.Call):
                pairs = zip(s.call.function.parameters, s.call.args, strict=True)
                in_out = (arg for p, arg in pairs if isinstance(p, InOut))
                varying |= {arg.name for arg in in_out if isinstance(arg, nodes.Var)}
            elif isinstance(s, nodes.For) and inside:
                varying.add(s.variable)
            for block in blocks(s):
                self._assigned(block, varying, is_divergent=inside)

    def _collect(self, body: tuple[Stmt, ...], varying: set[str], *, is_divergent: bool) -> None:
        """Records the calls and the uniform additions of a body."""
        for s in body:
            if isinstance(s, AccumulateGradient) and not is_divergent and not s.is_store:
                address = (*s.indices, *indices(s.path))
                if not any(self._varies(e, varying) for e in address):
                    self.additions.append(s)
            if isinstance(s, nodes.Evaluate) and isinstance(s.call, nodes.Call):
                f, args = s.call.function, s.call.args
                if isinstance(f, Adjoint):
                    pairs = zip(f.parameters, args, strict=True)
                    names = {p.name for p, arg in pairs if self._varies(arg, varying)}
                    self._note(f, names, is_divergent=is_divergent)
            for e in all_expressions((s,)) if not blocks(s) else ():
                if isinstance(e, nodes.Call):
                    self._inside(e.function)
            inside = is_divergent or self._diverges(s, varying)
            for block in blocks(s):
                self._collect(block, varying, is_divergent=inside)

    def _inside(self, f: Function) -> None:
        """Treats adjoints that `f` calls as divergent, because `f` may hold jumps."""
        for g in (f, *reachable(f.body)):
            for inner in called(g.body):
                if isinstance(inner, Adjoint):
                    every = {p.name for p in inner.parameters}
                    self._note(inner, every, is_divergent=True)

    def _note(self, f: Adjoint, varying: set[str], *, is_divergent: bool) -> None:
        before = self.calls.get(f, _Calls(set()))
        joined = _Calls(before.varying | varying, before.is_divergent or is_divergent)
        if self.calls.get(f) != joined:
            self.calls[f] = joined
            self.is_settled = False
