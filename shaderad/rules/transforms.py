"""``fwd_diff`` and ``bwd_diff`` inside bodies -> calls of functions that were pushed and pulled.

A pair becomes a tuple of its primal and its derivative, so that what handles pairs is ordinary code
to whatever differentiates it again.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from shaderad.ir import nodes
from shaderad.ir.made_names import made_name
from shaderad.ir.nodes import Expr, Function, Stmt
from shaderad.ir.types import VOID, LocalArray, Pair, Tuple, Type, is_differentiable, tangent
from shaderad.ir.walk import blocks, expressions, map_children, reachable, rewrite_body, statements
from shaderad.rules import composing as c
from shaderad.rules.pulling.functions import Functions as Adjoints
from shaderad.rules.pulling.functions import NotPulled
from shaderad.rules.pushing.functions import Functions as Tangents
from shaderad.rules.pushing.statements import push_body


@dataclass
class Transforms:
    """The transforms of one kernel."""

    adjoints: Adjoints | None = None
    """What makes adjoints; `None` where ``bwd_diff`` stands in the way of another derivative."""
    _tangents: Tangents = field(
        default_factory=lambda: Tangents({}, frozenset(), push_body, is_first=True)
    )
    _made: dict[Function, Function] = field(default_factory=dict[Function, Function])

    def body(
        self, body: tuple[Stmt, ...], types: dict[str, Type]
    ) -> tuple[tuple[Stmt, ...], dict[str, Type]]:
        """`body` without transforms and pairs, and the types of its names.

        Raises:
            NotPulled: Where something stands in the way.
        """
        if not _has_any(body) and not any(isinstance(t, Pair) for t in types.values()):
            return rewrite_body(body, self._called), types
        types = {name: _plain(t) for name, t in types.items()}
        return self._block(body, types), types

    def function(self, f: Function) -> Function:
        """`f` without them; itself where there are none."""
        if f not in self._made:
            types = {**f.local_types, **{p.name: p.type for p in f.parameters}}
            body, types = self.body(f.body, types)
            parameters = tuple(replace(p, type=_plain(p.type)) for p in f.parameters)
            if body == f.body and parameters == f.parameters:
                self._made[f] = f
            else:
                locals_ = {n: t for n, t in types.items() if n not in {p.name for p in parameters}}
                self._made[f] = replace(
                    f, parameters=parameters, result=_plain(f.result), body=body,
                    local_types=locals_,
                )  # fmt: skip
        return self._made[f]

    def _called(self, e: Expr) -> Expr:
        if isinstance(e, nodes.Call):
            f = self.function(e.function)
            return e if f is e.function else replace(e, function=f)
        return e

    # -- statements -------------------------------------------------------------------------------

    def _block(self, body: tuple[Stmt, ...], types: dict[str, Type]) -> tuple[Stmt, ...]:
        return tuple(new for s in body for new in self._statement(s, types))

    def _statement(self, s: Stmt, types: dict[str, Type]) -> tuple[Stmt, ...]:
        if isinstance(s, nodes.BackwardDiff):
            return self._pulled(s, types)
        inner = {
            name: self._block(getattr(s, name), types)
            for name in ("then", "otherwise", "body")
            if blocks(s) and hasattr(s, name)
        }
        bare = replace(s, **dict.fromkeys(inner, ())) if inner else s
        made = map_children(bare, self._expression)
        if isinstance(made, nodes.Assign) and any(
            isinstance(step, nodes.PartStep) for step in made.path
        ):
            path = tuple(
                nodes.FieldStep(name="1") if isinstance(step, nodes.PartStep) else step
                for step in made.path
            )
            made = replace(made, path=path)
        return (replace(made, **inner) if inner else made,)

    def _pulled(self, s: nodes.BackwardDiff, types: dict[str, Type]) -> tuple[Stmt, ...]:
        """The adjoint of the function, which adds to cotangents that start at 0."""
        if self.adjoints is None:
            raise NotPulled("bwd_diff inside")
        f = s.function
        _check(f)
        wanted = [k for k, p in enumerate(f.parameters) if is_differentiable(p.type)]
        adjoint = self.adjoints.adjoint(self.function(f), frozenset(wanted))
        args = [self._expression(a) for a in s.args]
        bars: list[nodes.Var] = []
        before: list[Stmt] = []
        after: list[Stmt] = []
        for k in wanted:
            pair, t = args[k], f.parameters[k].type
            if tangent(t) != t or not isinstance(pair, nodes.Var):
                raise NotPulled("a pair of more than floats")
            name = made_name(f"{pair.name}_bar", types)
            types[name] = t
            bars.append(nodes.Var(type=t, name=name))
            before.append(nodes.Assign(name=name, value=nodes.Zero(type=t), span=s.span))
            after.append(
                nodes.Assign(
                    name=pair.name, path=(nodes.FieldStep(name="1"),), value=bars[-1], span=s.span
                )
            )
            args[k] = c.field(pair, "0")
        given = [*args]
        if is_differentiable(f.result):
            if tangent(f.result) != f.result:
                raise NotPulled("a cotangent of more than floats")
            given.append(self._expression(s.cotangent))
        call = nodes.Call(type=VOID, function=adjoint, args=(*given, *bars), span=s.span)
        return (*before, nodes.Evaluate(call=call, span=s.span), *after)

    # -- expressions ------------------------------------------------------------------------------

    def _expression(self, e: Expr) -> Expr:
        e = map_children(e, self._expression)
        if isinstance(e, nodes.ForwardDiff):
            return self._pushed(e)
        if isinstance(e, nodes.MakePair):
            return nodes.Construct(type=_plain(e.type), parts=(e.primal, e.derivative), span=e.span)
        if isinstance(e, nodes.PairPart) and isinstance(e.value.type, Tuple):
            return c.field(e.value, "0" if e.part == "p" else "1")
        if isinstance(e.type, Pair):
            e = replace(e, type=_plain(e.type))
        return self._called(e)

    def _pushed(self, e: nodes.ForwardDiff) -> Expr:
        _check(e.function)
        f = self.function(e.function)
        if tangent(f.result) != f.result or not is_differentiable(f.result):
            raise NotPulled("a tangent of more than floats")
        if f.forward is not None:
            own = self.function(f.forward)
            return nodes.Call(type=own.result, function=own, args=e.args, span=e.span)
        args: list[Expr] = []
        dots: list[Expr] = []
        for p, arg in zip(f.parameters, e.args, strict=True):
            if not is_differentiable(p.type):
                args.append(arg)
                continue
            if tangent(p.type) != p.type or not isinstance(arg, nodes.Construct | nodes.Var):
                raise NotPulled("a pair of more than floats")
            args.append(c.field(arg, "0"))
            dots.append(c.field(arg, "1"))
        pushed = self.function(self._tangents.of(f))
        return nodes.Call(type=pushed.result, function=pushed, args=(*args, *dots), span=e.span)


def _check(f: Function) -> None:
    """An adjoint is neither pushed nor pulled."""
    for g in (f, *reachable(f.body)):
        if any(isinstance(s, nodes.BackwardDiff) for s in statements(g.body)):
            raise NotPulled("a derivative of bwd_diff")


def _has_any(body: tuple[Stmt, ...]) -> bool:
    kinds = nodes.ForwardDiff | nodes.MakePair | nodes.PairPart
    return any(
        isinstance(s, nodes.BackwardDiff) or any(isinstance(e, kinds) for e in expressions(s))
        for s in statements(body)
    )


def _plain(t: Type) -> Type:
    """`t` with a tuple for a pair."""
    if isinstance(t, Pair):
        if tangent(t.primal) != t.primal:
            raise NotPulled("a pair of more than floats")
        return Tuple((t.primal, tangent(t.primal)))
    if isinstance(t, LocalArray):
        return LocalArray(_plain(t.element), t.count)
    if isinstance(t, Tuple):
        return Tuple(tuple(map(_plain, t.elements)))
    return t
