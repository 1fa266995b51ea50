"""Adjoints of user functions: ``f_bwd(x, n, y_bar, x_bar)`` adds to `x_bar`.

An adjoint recomputes its function in the forward sweep. A user-defined backward derivative, where
there is one, takes its place.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from shaderad.bodies.structured import structured
from shaderad.diagnostics import error
from shaderad.ir import composing as c
from shaderad.ir import nodes
from shaderad.ir.body import Body
from shaderad.ir.nodes import Expr, Function, Parameter, Stmt
from shaderad.ir.types import VOID, Pair, Type, tangent
from shaderad.ir.walk import (
    children,
    expressions,
    has_loops,
    map_statements,
    reads,
    rewrite_body,
    rewrite_statement,
    statements,
    writes,
    writes_memory,
    writes_to,
)
from shaderad.rules.derivatives import Derivatives
from shaderad.rules.nodes import Adjoint, InOut, Split
from shaderad.rules.pairs import DERIVATIVE, plain_type
from shaderad.rules.pulling.bodies import pull_function, split_function
from shaderad.rules.pulling.cotangents import add_to


@dataclass
class Adjoints:
    """The adjoints of the functions of one kernel."""

    wanted: frozenset[str]
    """Arrays whose gradients are wanted."""
    seeds: frozenset[str]
    """Written arrays that have cotangents."""
    derivatives: Derivatives
    adds: bool = True
    """True if user-defined derivatives add to the gradients of arrays."""
    _adjoints: dict[tuple[Function, frozenset[int]], Adjoint] = field(
        default_factory=dict[tuple[Function, frozenset[int]], Adjoint]
    )
    _splits: dict[tuple[Function, frozenset[int]], Split | None] = field(
        default_factory=dict[tuple[Function, frozenset[int]], Split | None]
    )
    _primals: dict[Function, Function] = field(default_factory=dict[Function, Function])

    def has_cotangents(self, f: Function) -> bool:
        """True if a call of `f` writes an array that has a cotangent."""
        return writes_to(f, self.seeds)

    def adjoint(self, f: Function, wanted: frozenset[int]) -> Adjoint:
        """The adjoint of `f` that adds to the cotangents of the parameters `wanted`."""
        key = (f, wanted)
        if key not in self._adjoints:
            if f.backward is None and f.forward is not None:
                raise error("SR0411", f.span, function=f.name)
            make = pull_function if f.backward is None else _own_adjoint
            self._adjoints[key] = make(self, f, wanted)
        return self._adjoints[key]

    def split(self, f: Function, wanted: frozenset[int]) -> Split | None:
        """The adjoint of `f` in two parts; `None` unless recomputing `f` would run a loop."""
        key = (f, wanted)
        if key not in self._splits:
            is_ours = f.backward is None and f.forward is None and not writes_memory(f)
            is_worth_it = is_ours and has_loops(f)
            self._splits[key] = split_function(self, f, wanted) if is_worth_it else None
        return self._splits[key]

    def primal(self, f: Function) -> Function:
        """`f` without writes, as the forward sweep calls it."""
        if not writes_memory(f):
            return f
        if f not in self._primals:
            kinds = nodes.Store | nodes.Accumulate | nodes.Print
            silent = map_statements(f.body, lambda s: () if isinstance(s, kinds) else (s,))
            body = rewrite_body(silent, self._primal_call)
            self._primals[f] = replace(f, body=body, backward=None, forward=None)
        return self._primals[f]

    def _primal_call(self, e: Expr) -> Expr:
        return replace(e, function=self.primal(e.function)) if isinstance(e, nodes.Call) else e


def _own_adjoint(adjoints: Adjoints, f: Function, wanted: frozenset[int]) -> Adjoint:
    """The user-defined backward derivative, whose pairs start with ``.d`` = 0 and are added last.

    A pair that is only used as ``.p`` and ``.d`` becomes two names.
    """
    own = f.backward
    assert own is not None
    types = {**own.local_types, **{p.name: p.type for p in own.parameters}}
    plain = structured(own.body, VOID, types)
    body = Body({*types, *plain.local_types, *reads(plain.body), *writes(plain.body)})
    pairs = {p.name: p.type for p in own.parameters if isinstance(p.type, Pair)}
    whole = _used_whole(plain.body) & pairs.keys()
    dots = {name: body.fresh(f"{name}_d") for name in pairs if name not in whole}
    pair_of = {name: body.fresh(f"{name}_pair") for name in whole}
    statements = map_statements(plain.body, lambda s: (_unpaired_statement(s, dots, pair_of),))
    start: list[Stmt] = []
    local_types = {n: t for n, t in plain.local_types.items() if n not in pairs}
    for name, t in pairs.items():
        zero = c.zero(tangent(t.primal))
        if name in dots:
            local_types[dots[name]] = tangent(t.primal)
            start.append(nodes.Assign(name=dots[name], value=zero, span=own.span))
        else:
            local_types[pair_of[name]] = t
            pair = nodes.MakePair(type=t, primal=c.variable(name, t.primal), derivative=zero)
            start.append(nodes.Assign(name=pair_of[name], value=pair, span=own.span))
    if not adjoints.adds:
        kind = nodes.AccumulateGradient
        statements = map_statements(statements, lambda s: () if isinstance(s, kind) else (s,))
    statements, local_types = adjoints.derivatives.plain(
        (*start, *statements), local_types, adds=adjoints.adds
    )
    names = [p.name for p in own.parameters[: len(f.parameters)]]
    bars = {k: body.fresh(f"{names[k]}_bar") for k in sorted(wanted)}
    end = Body(())
    for k, bar in bars.items():
        t, name = f.parameters[k].type, names[k]
        if name in dots:
            dot: Expr = c.variable(dots[name], t)
        else:
            pair_name = pair_of[name]
            dot = c.field(c.variable(pair_name, local_types[pair_name]), DERIVATIVE)
        add_to(end, c.variable(bar, t), (), dot)
    primals = [Parameter(name=p.name, type=plain_type(_primal(p.type))) for p in own.parameters]
    added_to = [InOut(name=bar, type=f.parameters[k].type) for k, bar in bars.items()]
    return Adjoint(
        name=own.name, parameters=(*primals, *added_to), result=VOID,
        body=(*statements, *end.statements), local_types=local_types, buffers=f.buffers,
        span=own.span, shown={dot: name for name, dot in dots.items()}, is_own=True,
    )  # fmt: skip


def _primal(t: Type) -> Type:
    return t.primal if isinstance(t, Pair) else t


def _used_whole(body: tuple[Stmt, ...]) -> set[str]:
    """Names that are read or assigned other than as ``.p`` or ``.d`` of a pair."""
    names: set[str] = set()
    for s in statements(body):
        if isinstance(s, nodes.Assign) and not (s.path and isinstance(s.path[0], nodes.PartStep)):
            names.add(s.name)
        for e in (s, *expressions(s)):
            if not isinstance(e, nodes.PairPart):
                names |= {part.name for part in children(e) if isinstance(part, nodes.Var)}
    return names


def _unpaired_statement(s: Stmt, dots: Mapping[str, str], pair_of: Mapping[str, str]) -> Stmt:
    """`s`, with names from `dots` for ``.d`` of split pairs, and from `pair_of` for whole pairs."""
    if isinstance(s, nodes.Assign) and s.name in dots:
        s = replace(s, name=dots[s.name], path=s.path[1:])
    elif isinstance(s, nodes.Assign) and s.name in pair_of:
        s = replace(s, name=pair_of[s.name])
    return rewrite_statement(s, lambda e: _unpaired(e, dots, pair_of))


def _unpaired(e: Expr, dots: Mapping[str, str], pair_of: Mapping[str, str]) -> Expr:
    if isinstance(e, nodes.Var) and e.name in pair_of:
        return replace(e, name=pair_of[e.name])
    if isinstance(e, nodes.PairPart) and isinstance(e.value, nodes.Var) and e.value.name in dots:
        name = e.value.name if e.part == "p" else dots[e.value.name]
        return nodes.Var(type=e.type, name=name, span=e.span)
    return e
