"""Pushed functions: user functions that also return the tangent of their result.

``f(x, n)`` becomes ``f_push(x, n, x_dot)``, which returns the tuple of ``f(x, n)`` and its tangent;
only active arguments have tangents. For a function with a user-defined forward derivative,
``f_push`` calls both.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Protocol

from shaderad.diagnostics import error
from shaderad.ir import nodes
from shaderad.ir.nodes import Function, Parameter
from shaderad.ir.types import Tuple, Type, is_differentiable
from shaderad.ir.walk import made_name, reads, writes, writes_to
from shaderad.rules import composing as c
from shaderad.rules.body import Body
from shaderad.rules.pairs import DERIVATIVE
from shaderad.rules.pushed import Pushed

WriteBody = Callable[
    ["PushedFunctions", Body, tuple[nodes.Stmt, ...], Mapping[str, Type], frozenset[str]], None
]


class PullProvider(Protocol):
    """The transforms that pushed functions depend on; implemented by `rules/transforms.py`."""

    def function(self, f: Function) -> Function:
        """`f` without pairs and derivatives."""
        ...

    def pulled(self, f: Function, wanted: tuple[int, ...]) -> Function:
        """``f_pull(x, n, y_bar)``: the tuple of cotangents of the parameters `wanted`."""
        ...


@dataclass
class PushedFunctions:
    """The pushed functions of one kernel."""

    dots: Mapping[str, str]
    """Buffers of the kernel -> their tangent buffers."""
    extremes: frozenset[str]
    """The Min and Max arrays in `dots`."""
    write: WriteBody
    derivatives: PullProvider
    is_first: bool = False
    """True for first derivatives, which may use a user-defined derivative that is not checked."""
    read_together: frozenset[str] = frozenset()
    """Arrays whose elements and tangents are loaded with one bounds check."""
    _pushed: dict[tuple[Function, frozenset[int]], Function] = field(
        default_factory=dict[tuple[Function, frozenset[int]], Function]
    )
    _effects: dict[Function, bool] = field(default_factory=dict[Function, bool])

    def has_effect(self, f: Function) -> bool:
        """True if a call of `f` writes an array that has a tangent."""
        if f not in self._effects:
            self._effects[f] = writes_to(f, self.dots)
        return self._effects[f]

    def reads_tangents(self, f: Function) -> bool:
        """True if `f` accesses an array that has a tangent."""
        return any(name in self.dots for name in f.buffers)

    def of(self, f: Function, active: frozenset[int]) -> Function:
        """`f` with tangents of the parameters `active`."""
        key = (f, active)
        if key not in self._pushed:
            has_own = f.backward is not None or f.forward is not None
            self._pushed[key] = (self._own if has_own else self._make)(f, active)
        return self._pushed[key]

    def _own(self, f: Function, active: frozenset[int]) -> Function:
        """The pushed function of one with user-defined derivatives.

        Raises:
            DerivativeError: SR0412 if it has no forward derivative, SR0429 if that is declared not
                to be the derivative of the value, and a second derivative is taken.
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
                if k in active:
                    dots.append(Parameter(name=made_name(f"{p.name}_dot", taken), type=p.type))
                    taken.add(dots[-1].name)
                    dot = nodes.Var(type=p.type, name=dots[-1].name)
                value = nodes.Construct(type=Tuple((p.type, p.type)), parts=(value, dot))
            args.append(value)
        primals = tuple(nodes.Var(type=p.type, name=p.name) for p in f.parameters)
        value = nodes.Call(type=f.result, function=f, args=primals, span=f.span)
        both = nodes.Call(type=own.result, function=own, args=tuple(args), span=f.span)
        result = Tuple((f.result, f.result))
        parts = (value, c.field(both, DERIVATIVE))
        end = nodes.Return(value=nodes.Construct(type=result, parts=parts), span=f.span)
        return Pushed(
            name=f"{f.name}_push", parameters=(*f.parameters, *dots), result=result, body=(end,),
            local_types={}, buffers=f.buffers, span=f.span,
        )  # fmt: skip

    def _make(self, f: Function, active: frozenset[int]) -> Function:
        given = {p.name: p.type for p in f.parameters}
        types = {**f.local_types, **given}
        body = Body({*types, *reads(f.body), *writes(f.body)})
        dots = tuple(
            Parameter(name=body.dot(p.name), type=p.type)
            for k, p in enumerate(f.parameters)
            if k in active
        )
        constants = {
            p.name
            for k, p in enumerate(f.parameters)
            if is_differentiable(p.type) and k not in active
        }
        changed = constants & writes(f.body)
        for name in sorted(changed):
            zero = nodes.Zero(type=given[name])
            body.local_types[body.dot(name)] = given[name]
            body.add(nodes.Assign(name=body.dot(name), value=zero, span=f.span))
        self.write(self, body, f.body, types, frozenset(constants - changed))
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
