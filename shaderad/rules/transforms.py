"""Replaces ``fwd_diff`` and ``bwd_diff`` in bodies by calls of pushed and pulled functions.

Pairs become tuples, so the result is ordinary code, which can be differentiated again.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import lru_cache

from shaderad.diagnostics import error
from shaderad.ir import composing as c
from shaderad.ir import nodes
from shaderad.ir.nodes import Expr, Function, Kernel, Stmt
from shaderad.ir.types import VOID, Tuple, Type, is_differentiable
from shaderad.ir.walk import made_name, map_children, map_statement, reachable, statements
from shaderad.rules.nodes import Adjoint, InOut, Pull, PushedKernel
from shaderad.rules.pairs import (
    DERIVATIVE,
    PRIMAL,
    holds_pairs,
    plain,
    plain_path,
    plain_type,
)
from shaderad.rules.pulling.functions import Adjoints
from shaderad.rules.pushing import kernels as pushing
from shaderad.rules.pushing.kernels import PushedFunctions

_Pulls = dict[tuple[Function, tuple[int, ...], bool], Function]


@lru_cache(maxsize=256)
def push_kernel(kernel: Kernel, active: frozenset[str]) -> PushedKernel:
    """`kernel` with tangents of the inputs `active`: see `rules/pushing/kernels.py`."""
    transforms = Transforms()
    return pushing.push_kernel(transforms.kernel(kernel), active, transforms)


def _check(f: Function, transform: str, span: nodes.Span) -> None:
    """Raises SR0410 if `f`, which a kernel differentiates, writes floats to arrays."""
    for g in (f, *reachable(f.body)):
        for s in statements(g.body):
            is_write = isinstance(s, nodes.Store | nodes.Accumulate)
            if is_write and is_differentiable(s.value.type):
                raise error("SR0410", span, transform=transform, function=g.name)


@dataclass
class Transforms:
    """The derivatives that one kernel takes in its body; arrays are constants."""

    _plain: dict[tuple[Function, bool], Function] = field(
        default_factory=dict[tuple[Function, bool], Function]
    )
    _pulls: _Pulls = field(default_factory=_Pulls)
    _adds: bool = False
    """True inside a user-defined derivative, which adds to gradients of arrays."""

    def __post_init__(self) -> None:
        none: frozenset[str] = frozenset()
        self._first = PushedFunctions({}, none, self, is_first=True)
        self._second = PushedFunctions({}, none, self)
        self._adjoints = {adds: Adjoints(none, none, self, adds=adds) for adds in (False, True)}

    def kernel(self, kernel: Kernel) -> Kernel:
        """`kernel` without derivatives and pairs in its body."""
        body, types = self.body(kernel.body, kernel.local_types)
        return kernel if body == kernel.body else replace(kernel, body=body, local_types=types)

    def function(self, f: Function) -> Function:
        """`f` without derivatives and pairs in its body; `f` itself if there are none."""
        key = (f, self._adds)
        if key not in self._plain:
            self._plain[key] = f if isinstance(f, Adjoint) else self._plain_function(f)
        return self._plain[key]

    def pushed(self, f: Function, active: tuple[int, ...]) -> Function:
        return self.function(self._second.of(self.function(f), frozenset(active)))

    def pulled(self, f: Function, wanted: tuple[int, ...]) -> Function:
        f = self.function(f)
        key = (f, wanted, self._adds)
        if key not in self._pulls:
            adjoint = self._adjoints[self._adds].adjoint(f, frozenset(wanted))
            self._pulls[key] = _pull_of(f, adjoint, wanted)
        return self._pulls[key]

    def body(
        self, body: tuple[Stmt, ...], types: Mapping[str, Type]
    ) -> tuple[tuple[Stmt, ...], dict[str, Type]]:
        """`body` without derivatives and pairs, and the types of its names."""
        has_pairs = holds_pairs(body) or any(plain_type(t) != t for t in types.values())
        if has_pairs or any(isinstance(s, nodes.BackwardDiff) for s in statements(body)):
            return self.plain(body, types, adds=self._adds)
        return self._block(body, new_types := dict(types)), new_types

    def plain(
        self, body: tuple[Stmt, ...], types: Mapping[str, Type], *, adds: bool = False
    ) -> tuple[tuple[Stmt, ...], dict[str, Type]]:
        new_types = {name: plain_type(t) for name, t in types.items()}
        outer, self._adds = self._adds, adds
        try:
            return self._block(body, new_types), new_types
        finally:
            self._adds = outer

    def _plain_function(self, f: Function) -> Function:
        names = {p.name for p in f.parameters}
        body, types = self.body(f.body, {**f.local_types, **{p.name: p.type for p in f.parameters}})
        parameters = tuple(replace(p, type=plain_type(p.type)) for p in f.parameters)
        if body == f.body and parameters == f.parameters:
            return f
        local_types = {n: t for n, t in types.items() if n not in names}
        return replace(f, parameters=parameters, result=plain_type(f.result), body=body,
                       local_types=local_types)  # fmt: skip

    # -- statements -------------------------------------------------------------------------------

    def _block(self, body: tuple[Stmt, ...], types: dict[str, Type]) -> tuple[Stmt, ...]:
        return tuple(new for s in body for new in self._statement(s, types))

    def _statement(self, s: Stmt, types: dict[str, Type]) -> tuple[Stmt, ...]:
        if isinstance(s, nodes.BackwardDiff):
            return self._pulled_statement(s, types)
        new = map_statement(s, self._expression, lambda block: self._block(block, types))
        return (replace(new, path=plain_path(new.path)) if isinstance(new, nodes.Assign) else new,)

    def _pulled_statement(self, s: nodes.BackwardDiff, types: dict[str, Type]) -> tuple[Stmt, ...]:
        """Assigns the result of the pulled function to ``.d`` of each pair."""
        f = s.function
        _check(f, "bwd_diff", s.span)
        wanted = tuple(k for k, p in enumerate(f.parameters) if is_differentiable(p.type))
        if not wanted:
            return ()
        pulled = self.pulled(f, wanted)
        args = [self._expression(a) for a in s.args]
        pairs = [args[k] for k in wanted]
        for k in wanted:
            args[k] = c.field(args[k], PRIMAL)
        if is_differentiable(f.result):
            args.append(self._expression(s.cotangent))
        name = made_name("pulled", types)
        types[name] = pulled.result
        call = nodes.Call(type=pulled.result, function=pulled, args=tuple(args), span=s.span)
        bars = nodes.Var(type=pulled.result, name=name)
        out: list[Stmt] = [nodes.Assign(name=name, value=call, span=s.span)]
        for k, pair in enumerate(pairs):
            assert isinstance(pair, nodes.Var)
            path, bar = (nodes.FieldStep(name=DERIVATIVE),), c.field(bars, str(k))
            out.append(nodes.Assign(name=pair.name, path=path, value=bar, span=s.span))
        return tuple(out)

    # -- expressions ------------------------------------------------------------------------------

    def _expression(self, e: Expr) -> Expr:
        new = plain(map_children(e, self._expression), e)
        if isinstance(new, nodes.ForwardDiff):
            return self._pushed_call(new)
        if isinstance(new, nodes.Call):
            f = self.function(new.function)
            return new if f is new.function else replace(new, function=f)
        return new

    def _pushed_call(self, e: nodes.ForwardDiff) -> Expr:
        """The call of the pushed function; differentiable arguments of `e` are lowered pairs."""
        _check(e.function, "fwd_diff", e.span)
        args: list[Expr] = []
        dots: dict[int, Expr] = {}
        for k, (p, arg) in enumerate(zip(e.function.parameters, e.args, strict=True)):
            is_pair = isinstance(arg.type, Tuple) and is_differentiable(p.type)
            args.append(c.field(arg, PRIMAL) if is_pair else arg)
            dot = c.field(arg, DERIVATIVE) if is_pair else None
            if dot is not None and not c.is_zero(dot):
                dots[k] = dot
        f = self.function(self._first.of(self.function(e.function), frozenset(dots)))
        return nodes.Call(type=f.result, function=f, args=(*args, *dots.values()), span=e.span)


def _pull_of(f: Function, adjoint: Adjoint, wanted: tuple[int, ...]) -> Function:
    """The function that calls the `adjoint` of `f` with cotangents that start at 0.

    A user-defined derivative that is declared not to be the Jacobian of `f` gives an ordinary
    function, which is differentiated as it is written.
    """
    arguments = tuple(p for p in adjoint.parameters if not isinstance(p, InOut))
    in_out = (p for p in adjoint.parameters if isinstance(p, InOut))
    bars = [nodes.Var(type=p.type, name=p.name) for p in in_out]
    result = Tuple(tuple(bar.type for bar in bars))
    start = tuple(
        nodes.Assign(name=bar.name, value=nodes.Zero(type=bar.type), span=f.span) for bar in bars
    )
    end = nodes.Return(value=nodes.Construct(type=result, parts=tuple(bars)), span=f.span)
    local_types = {bar.name: bar.type for bar in bars}
    name, buffers, span = f"{f.name}_pull", f.buffers, f.span
    if f.backward is not None and not f.is_checked:
        return Function(
            name=name, parameters=arguments, result=result, body=(*start, *adjoint.body, end),
            local_types={**adjoint.local_types, **local_types}, buffers=buffers, span=span,
        )  # fmt: skip
    args = (*(nodes.Var(type=p.type, name=p.name) for p in arguments), *bars)
    call = nodes.Evaluate(call=nodes.Call(type=VOID, function=adjoint, args=args), span=f.span)
    return Pull(
        name=name, parameters=arguments, result=result, body=(*start, call, end),
        local_types=local_types, buffers=buffers, span=span, primal=f, wanted=wanted,
    )  # fmt: skip
