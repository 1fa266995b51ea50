"""User functions -> their adjoints: ``f_bwd(x, n, y_bar, x_bar)`` adds to `x_bar`.

An adjoint runs its function again, keeping what partial derivatives need, and goes back over it. A
function with a backward derivative of the user's own has that for its adjoint.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace

from shaderad.bodies.heads import structured
from shaderad.diagnostics import error
from shaderad.ir import nodes
from shaderad.ir.nodes import Expr, Function, Parameter, Stmt
from shaderad.ir.types import VOID, Pair, Type, is_differentiable, tangent
from shaderad.ir.walk import (
    all_expressions,
    reachable,
    reads,
    rewrite_body,
    rewrite_statement,
    statements,
    writes,
    writes_memory,
)
from shaderad.rules.body import Body
from shaderad.rules.pulling.activity import writes_cotangents
from shaderad.rules.pulling.nodes import Adjoint, NotPulled, Place
from shaderad.rules.pulling.sums import add_to

Write = Callable[["Functions", Function, frozenset[int]], Adjoint]


@dataclass
class Functions:
    """The functions of one kernel with their adjoints."""

    wanted: frozenset[str]
    """Arrays whose gradients are wanted."""
    seeds: frozenset[str]
    """Written arrays that have cotangents."""
    write: Write
    _adjoints: dict[tuple[Function, frozenset[int]], Function] = field(
        default_factory=dict[tuple[Function, frozenset[int]], Function]
    )
    _primals: dict[Function, Function] = field(default_factory=dict[Function, Function])

    def has_cotangents(self, f: Function) -> bool:
        """Whether a call of `f` writes what has a cotangent."""
        return writes_cotangents(f, self.seeds)

    def adjoint(self, f: Function, wanted: frozenset[int]) -> Function:
        """The adjoint of `f` that adds to the cotangents of the parameters `wanted`."""
        key = (f, wanted)
        if key not in self._adjoints:
            if f.backward is None and f.forward is not None:
                raise error("SR0411", f.span, function=f.name)
            make = self.write if f.backward is None else _own_adjoint
            self._adjoints[key] = make(self, f, wanted)
        return self._adjoints[key]

    def primal(self, f: Function) -> Function:
        """`f` as it runs on the way to its derivative: it writes nothing."""
        if not writes_memory(f):
            return f
        if f not in self._primals:
            body = rewrite_body(_without_writes(f.body), self._primal_call)
            self._primals[f] = replace(f, body=body, backward=None, forward=None)
        return self._primals[f]

    def _primal_call(self, e: Expr) -> Expr:
        return replace(e, function=self.primal(e.function)) if isinstance(e, nodes.Call) else e


def parameters_of(
    f: Function, wanted: frozenset[int], bars: dict[str, str], result_bar: str
) -> tuple[Parameter, ...]:
    """Those of an adjoint: of `f`, the cotangent of its result, and the places that it adds to."""
    given = [Parameter(name=result_bar, type=f.result)] if is_differentiable(f.result) else []
    places = [
        Place(name=bars[p.name], type=p.type) for k, p in enumerate(f.parameters) if k in wanted
    ]
    return (*f.parameters, *given, *places)


def _own_adjoint(_: Functions, f: Function, wanted: frozenset[int]) -> Adjoint:
    """What the user wrote, whose pairs start at 0 and are added to the caller's cotangents."""
    own = f.backward
    assert own is not None
    primals = {p.name: p.type.primal for p in own.parameters if isinstance(p.type, Pair)}
    if any(tangent(t) != t for t in primals.values()):
        raise NotPulled("a pair of more than floats")
    types = {**own.local_types, **{p.name: p.type for p in own.parameters}}
    plain = structured(own.body, VOID, types)
    body = Body({*plain.local_types, *reads(plain.body), *writes(plain.body)})
    dots = {name: body.fresh(f"{name}_d") for name in primals}
    made = tuple(_unpaired_statement(s, primals, dots) for s in plain.body)
    inside = [made, *(g.body for g in reachable(made))]
    if any(_takes_derivatives(part) for part in inside):
        raise NotPulled("a derivative that takes derivatives")
    names = [p.name for p in own.parameters[: len(f.parameters)]]
    bars = {name: body.fresh(f"{name}_bar") for name in names}
    start = tuple(
        nodes.Assign(name=d, value=nodes.Zero(type=primals[name])) for name, d in dots.items()
    )
    end = Body(())
    for k in sorted(wanted):
        t = f.parameters[k].type
        bar, dot = nodes.Var(type=t, name=bars[names[k]]), nodes.Var(type=t, name=dots[names[k]])
        add_to(end, bar, (), dot)
    given = [Parameter(name=p.name, type=primals.get(p.name, p.type)) for p in own.parameters]
    places = [
        Place(name=bars[names[k]], type=f.parameters[k].type)
        for k in range(len(names))
        if k in wanted
    ]
    local_types = {n: t for n, t in plain.local_types.items() if not isinstance(t, Pair)}
    return Adjoint(
        name=own.name,
        parameters=(*given, *places),
        result=VOID,
        body=(*start, *made, *end.statements),
        local_types={**local_types, **{d: primals[n] for n, d in dots.items()}},
        buffers=f.buffers,
        span=own.span,
    )


def _takes_derivatives(body: tuple[Stmt, ...]) -> bool:
    return any(isinstance(s, nodes.BackwardDiff) for s in statements(body)) or any(
        isinstance(e.type, Pair) for e in all_expressions(body)
    )


def _unpaired_statement(s: Stmt, primals: dict[str, Type], dots: dict[str, str]) -> Stmt:
    """A statement of a derivative, with the two parts of each pair as names of their own."""
    if isinstance(s, nodes.Assign) and s.name in primals:
        if not s.path or not isinstance(s.path[0], nodes.PartStep):
            raise NotPulled("a pair that is assigned whole")
        s = replace(s, name=dots[s.name], path=s.path[1:])
    if isinstance(s, nodes.If):
        then, otherwise = (
            tuple(_unpaired_statement(t, primals, dots) for t in block)
            for block in (s.then, s.otherwise)
        )
        s = replace(s, then=then, otherwise=otherwise)
    elif isinstance(s, nodes.For | nodes.While):
        s = replace(s, body=tuple(_unpaired_statement(t, primals, dots) for t in s.body))
    return rewrite_statement(s, lambda e: _unpaired(e, dots))


def _unpaired(e: Expr, dots: dict[str, str]) -> Expr:
    if isinstance(e, nodes.PairPart) and isinstance(e.value, nodes.Var):
        name = e.value.name if e.part == "p" else dots[e.value.name]
        return nodes.Var(type=e.type, name=name, span=e.span)
    return e


def _without_writes(body: tuple[Stmt, ...]) -> tuple[Stmt, ...]:
    return tuple(new for s in body for new in _silent(s))


def _silent(s: Stmt) -> tuple[Stmt, ...]:
    if isinstance(s, nodes.Store | nodes.Accumulate | nodes.Print):
        return ()
    if isinstance(s, nodes.If):
        then, otherwise = _without_writes(s.then), _without_writes(s.otherwise)
        return (replace(s, then=then, otherwise=otherwise),)
    if isinstance(s, nodes.For | nodes.While):
        return (replace(s, body=_without_writes(s.body)),)
    return (s,)
