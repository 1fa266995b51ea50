"""User functions -> functions that also give the tangent of their result.

``f(x, n)`` becomes ``f_push(x, n, x_dot)``, whose result is the pair of ``f(x, n)`` and its
tangent as a tuple; arguments without a tangent bring none. That of a function with a forward
derivative of the user's own calls both.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Protocol

from shaderad.diagnostics import error
from shaderad.ir import nodes
from shaderad.ir.made_names import made_name
from shaderad.ir.nodes import Function, Parameter
from shaderad.ir.types import Tuple, Type, is_differentiable
from shaderad.ir.walk import reachable, reads, statements, writes
from shaderad.rules import composing as c
from shaderad.rules.body import Body
from shaderad.rules.pairs import DERIVATIVE
from shaderad.rules.pushed import Pushed

WriteBody = Callable[
    ["Functions", Body, tuple[nodes.Stmt, ...], Mapping[str, Type], frozenset[str]], None
]


class Derivatives(Protocol):
    """What tangents ask of other derivatives."""

    def function(self, f: Function) -> Function:
        """`f` without pairs and derivatives."""
        ...

    def pulled(self, f: Function, wanted: tuple[int, ...]) -> Function:
        """``f_pull(x, n, y_bar)``, which gives the cotangents of the parameters `wanted`."""
        ...


@dataclass
class Functions:
    """The functions of one kernel with their tangents."""

    dots: Mapping[str, str]
    """The tangent of each of the kernel's buffers that has one."""
    extremes: frozenset[str]
    """The Min and Max arrays among them."""
    write: WriteBody
    derivatives: Derivatives
    is_first: bool = False
    """Whether a first derivative is asked for: one of the user's own is what they say it is."""
    read_together: frozenset[str] = frozenset()
    """Arrays whose elements are read with their tangents, where one check of the indices says."""
    _pushed: dict[tuple[Function, frozenset[int]], Function] = field(
        default_factory=dict[tuple[Function, frozenset[int]], Function]
    )
    _effects: dict[Function, bool] = field(default_factory=dict[Function, bool])

    def has_effect(self, f: Function) -> bool:
        """Whether a call of `f` writes an array that has a tangent."""
        if f not in self._effects:
            self._effects[f] = any(
                isinstance(s, nodes.Store | nodes.Accumulate) and s.buffer in self.dots
                for g in (f, *reachable(f.body))
                for s in statements(g.body)
            )
        return self._effects[f]

    def reads_tangents(self, f: Function) -> bool:
        """Whether `f` touches an array that has a tangent."""
        return any(name in self.dots for name in f.buffers)

    def of(self, f: Function, moving: frozenset[int]) -> Function:
        """`f` with tangents of the parameters `moving`."""
        key = (f, moving)
        if key not in self._pushed:
            has_own = f.backward is not None or f.forward is not None
            self._pushed[key] = (self._own if has_own else self._make)(f, moving)
        return self._pushed[key]

    def _own(self, f: Function, moving: frozenset[int]) -> Function:
        """That of a function whose derivatives are the user's own.

        Raises:
            DerivativeError: SR0412 where it has no forward one, SR0429 where it has one that is
                not meant to be the derivative of its value.
        """
        if f.forward is None:
            raise error("SR0412", f.span, function=f.name)
        if not (f.is_checked or self.is_first):
            raise error("SR0429", f.span, function=f.name)
        own = self.derivatives.function(f.forward)
        taken = {p.name for p in f.parameters}
        dots: list[Parameter] = []
        args: list[nodes.Expr] = []
        for k, p in enumerate(f.parameters):
            value: nodes.Expr = nodes.Var(type=p.type, name=p.name)
            if is_differentiable(p.type):
                dot: nodes.Expr = nodes.Zero(type=p.type)
                if k in moving:
                    dots.append(Parameter(name=made_name(f"{p.name}_dot", taken), type=p.type))
                    taken.add(dots[-1].name)
                    dot = nodes.Var(type=p.type, name=dots[-1].name)
                value = nodes.Construct(type=Tuple((p.type, p.type)), parts=(value, dot))
            args.append(value)
        given = tuple(nodes.Var(type=p.type, name=p.name) for p in f.parameters)
        value = nodes.Call(type=f.result, function=f, args=given, span=f.span)
        both = nodes.Call(type=own.result, function=own, args=tuple(args), span=f.span)
        result = Tuple((f.result, f.result))
        parts = (value, c.field(both, DERIVATIVE))
        end = nodes.Return(value=nodes.Construct(type=result, parts=parts), span=f.span)
        return Pushed(
            name=f"{f.name}_push", parameters=(*f.parameters, *dots), result=result, body=(end,),
            local_types={}, buffers=f.buffers, span=f.span,
        )  # fmt: skip

    def _make(self, f: Function, moving: frozenset[int]) -> Function:
        given = {p.name: p.type for p in f.parameters}
        types = {**f.local_types, **given}
        body = Body({*types, *reads(f.body), *writes(f.body)})
        dots = tuple(
            Parameter(name=body.dot(p.name), type=p.type)
            for k, p in enumerate(f.parameters)
            if k in moving
        )
        still = {
            p.name
            for k, p in enumerate(f.parameters)
            if is_differentiable(p.type) and k not in moving
        }
        changed = still & writes(f.body)
        for name in sorted(changed):
            zero = nodes.Zero(type=given[name])
            body.local_types[body.dot(name)] = given[name]
            body.add(nodes.Assign(name=body.dot(name), value=zero, span=f.span))
        self.write(self, body, f.body, types, frozenset(still - changed))
        result = Tuple((f.result, f.result)) if is_differentiable(f.result) else f.result
        return Pushed(
            name=f"{f.name}_push",
            parameters=(*f.parameters, *dots),
            result=result,
            shown=body.shown,
            temporaries=body.temporaries,
            body=tuple(body.statements),
            local_types={**f.local_types, **body.local_types},
            buffers=(*f.buffers, *(self.dots[b] for b in f.buffers if b in self.dots)),
            span=f.span,
        )
