"""User functions -> their adjoints: ``f_bwd(x, n, y_bar, x_bar)`` adds to `x_bar`.

An adjoint runs its function again, keeping what partial derivatives need, and goes back over it. A
function with a backward derivative of the user's own has that for its adjoint.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Protocol

from shaderad.bodies.heads import structured
from shaderad.diagnostics import error
from shaderad.ir import nodes
from shaderad.ir.nodes import Expr, Function, Parameter, Stmt
from shaderad.ir.types import VOID, Pair, Type, is_differentiable, tangent
from shaderad.ir.walk import (
    children,
    expressions,
    has_loops,
    reads,
    rewrite_body,
    rewrite_statement,
    statements,
    writes,
    writes_memory,
)
from shaderad.rules import composing as c
from shaderad.rules.body import Body
from shaderad.rules.pairs import DERIVATIVE, plain_type
from shaderad.rules.pulling.activity import writes_cotangents
from shaderad.rules.pulling.nodes import Adjoint, Place, Split
from shaderad.rules.pulling.sums import add_to

Write = Callable[["Functions", Function, frozenset[int]], Adjoint]
WriteSplit = Callable[["Functions", Function, frozenset[int]], Split]


class Derivatives(Protocol):
    """What adjoints ask of other derivatives."""

    def pushed(self, f: Function, moving: tuple[int, ...]) -> Function:
        """``f_push(x, n, x_dot)``, which gives the tuple of ``f(x, n)`` and its tangent.

        The parameters `moving` have tangents.
        """
        ...

    def plain(
        self, body: tuple[Stmt, ...], types: Mapping[str, Type], *, adds: bool = False
    ) -> tuple[tuple[Stmt, ...], dict[str, Type]]:
        """A body without pairs and derivatives, and the types of its names.

        Where it `adds`, what its ``bwd_diff`` add to gradients of arrays is the caller's.
        """
        ...


@dataclass
class Functions:
    """The functions of one kernel with their adjoints."""

    wanted: frozenset[str]
    """Arrays whose gradients are wanted."""
    seeds: frozenset[str]
    """Written arrays that have cotangents."""
    write: Write
    write_split: WriteSplit
    derivatives: Derivatives
    adds: bool = True
    """Whether what derivatives of the user's own add to gradients of arrays is added."""
    _adjoints: dict[tuple[Function, frozenset[int]], Adjoint] = field(
        default_factory=dict[tuple[Function, frozenset[int]], Adjoint]
    )
    _splits: dict[tuple[Function, frozenset[int]], Split | None] = field(
        default_factory=dict[tuple[Function, frozenset[int]], Split | None]
    )
    _primals: dict[Function, Function] = field(default_factory=dict[Function, Function])

    def has_cotangents(self, f: Function) -> bool:
        """Whether a call of `f` writes what has a cotangent."""
        return writes_cotangents(f, self.seeds)

    def adjoint(self, f: Function, wanted: frozenset[int]) -> Adjoint:
        """The adjoint of `f` that adds to the cotangents of the parameters `wanted`."""
        key = (f, wanted)
        if key not in self._adjoints:
            if f.backward is None and f.forward is not None:
                raise error("SR0411", f.span, function=f.name)
            make = self.write if f.backward is None else _own_adjoint
            self._adjoints[key] = make(self, f, wanted)
        return self._adjoints[key]

    def split(self, f: Function, wanted: frozenset[int]) -> Split | None:
        """The adjoint of `f` in two parts, where running it again would take a loop."""
        key = (f, wanted)
        if key not in self._splits:
            is_ours = f.backward is None and f.forward is None and not writes_memory(f)
            is_worth_it = is_ours and has_loops(f)
            self._splits[key] = self.write_split(self, f, wanted) if is_worth_it else None
        return self._splits[key]

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


def _own_adjoint(functions: Functions, f: Function, wanted: frozenset[int]) -> Adjoint:
    """What the user wrote, whose pairs start at 0 and are added to the caller's cotangents.

    A pair that only `.p` and `.d` are read of becomes two names.
    """
    own = f.backward
    assert own is not None
    types = {**own.local_types, **{p.name: p.type for p in own.parameters}}
    plain = structured(own.body, VOID, types)
    body = Body({*types, *plain.local_types, *reads(plain.body), *writes(plain.body)})
    pairs = {p.name: p.type for p in own.parameters if isinstance(p.type, Pair)}
    whole = _used_whole(plain.body) & pairs.keys()
    dots = {name: body.fresh(f"{name}_d") for name in pairs if name not in whole}
    held = {name: body.fresh(f"{name}_pair") for name in whole}
    made = tuple(_unpaired_statement(s, dots, held) for s in plain.body)
    start: list[Stmt] = []
    local_types = {n: t for n, t in plain.local_types.items() if n not in pairs}
    for name, t in pairs.items():
        zero = nodes.Zero(type=tangent(t.primal))
        if name in dots:
            local_types[dots[name]] = tangent(t.primal)
            start.append(nodes.Assign(name=dots[name], value=zero, span=own.span))
        else:
            local_types[held[name]] = t
            primal = nodes.Var(type=t.primal, name=name)
            pair = nodes.MakePair(type=t, primal=primal, derivative=zero)
            start.append(nodes.Assign(name=held[name], value=pair, span=own.span))
    if not functions.adds:
        made = _without_gradients(made)
    made, local_types = functions.derivatives.plain(
        (*start, *made), local_types, adds=functions.adds
    )
    names = [p.name for p in own.parameters[: len(f.parameters)]]
    bars = {k: body.fresh(f"{names[k]}_bar") for k in sorted(wanted)}
    end = Body(())
    for k, bar in bars.items():
        t, name = f.parameters[k].type, names[k]
        if name in dots:
            dot: Expr = nodes.Var(type=t, name=dots[name])
        else:
            dot = c.field(nodes.Var(type=local_types[held[name]], name=held[name]), DERIVATIVE)
        add_to(end, nodes.Var(type=t, name=bar), (), dot)
    given = [Parameter(name=p.name, type=plain_type(_primal(p.type))) for p in own.parameters]
    places = [Place(name=bar, type=f.parameters[k].type) for k, bar in bars.items()]
    return Adjoint(
        name=own.name,
        parameters=(*given, *places),
        result=VOID,
        body=(*made, *end.statements),
        local_types=local_types,
        buffers=f.buffers,
        span=own.span,
        shown={dot: name for name, dot in dots.items()},
        is_own=True,
    )


def _primal(t: Type) -> Type:
    return t.primal if isinstance(t, Pair) else t


def _used_whole(body: tuple[Stmt, ...]) -> set[str]:
    """The names of pairs that stand elsewhere than before ``.p`` and ``.d``."""
    found: set[str] = set()
    for s in statements(body):
        if isinstance(s, nodes.Assign) and not (s.path and isinstance(s.path[0], nodes.PartStep)):
            found.add(s.name)
        for e in (s, *expressions(s)):
            if not isinstance(e, nodes.PairPart):
                found |= {part.name for part in children(e) if isinstance(part, nodes.Var)}
    return found


def _unpaired_statement(s: Stmt, dots: Mapping[str, str], held: Mapping[str, str]) -> Stmt:
    """A statement of a derivative under the names of pairs and of their derivatives."""
    if isinstance(s, nodes.Assign) and s.name in dots:
        s = replace(s, name=dots[s.name], path=s.path[1:])
    elif isinstance(s, nodes.Assign) and s.name in held:
        s = replace(s, name=held[s.name])
    if isinstance(s, nodes.If):
        then, otherwise = (
            tuple(_unpaired_statement(t, dots, held) for t in block)
            for block in (s.then, s.otherwise)
        )
        s = replace(s, then=then, otherwise=otherwise)
    elif isinstance(s, nodes.For | nodes.While):
        s = replace(s, body=tuple(_unpaired_statement(t, dots, held) for t in s.body))
    return rewrite_statement(s, lambda e: _unpaired(e, dots, held))


def _unpaired(e: Expr, dots: Mapping[str, str], held: Mapping[str, str]) -> Expr:
    if isinstance(e, nodes.Var) and e.name in held:
        return replace(e, name=held[e.name])
    if isinstance(e, nodes.PairPart) and isinstance(e.value, nodes.Var) and e.value.name in dots:
        name = e.value.name if e.part == "p" else dots[e.value.name]
        return nodes.Var(type=e.type, name=name, span=e.span)
    return e


def _without_writes(body: tuple[Stmt, ...]) -> tuple[Stmt, ...]:
    return _without(body, (nodes.Store, nodes.Accumulate, nodes.Print))


def _without_gradients(body: tuple[Stmt, ...]) -> tuple[Stmt, ...]:
    return _without(body, (nodes.AccumulateGradient,))


def _without(body: tuple[Stmt, ...], kinds: tuple[type[Stmt], ...]) -> tuple[Stmt, ...]:
    """`body` without statements of some kinds."""
    return tuple(_inner_without(s, kinds) for s in body if not isinstance(s, kinds))


def _inner_without(s: Stmt, kinds: tuple[type[Stmt], ...]) -> Stmt:
    if isinstance(s, nodes.If):
        then, otherwise = _without(s.then, kinds), _without(s.otherwise, kinds)
        return replace(s, then=then, otherwise=otherwise)
    if isinstance(s, nodes.For | nodes.While):
        return replace(s, body=_without(s.body, kinds))
    return s
