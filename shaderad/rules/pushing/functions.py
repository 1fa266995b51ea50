"""User functions -> functions that also give the tangent of their result.

``f(x, n)`` becomes ``f_push(x, n, x_dot)``, whose result is the pair of ``f(x, n)`` and its
tangent as a tuple. A function with derivatives of the user's own stays as it is, beside a function
that calls ``fwd_diff`` of it (`rules/calls.py`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from shaderad.diagnostics import error
from shaderad.ir import nodes
from shaderad.ir.nodes import Function, Parameter
from shaderad.ir.types import Tuple, Type, is_differentiable
from shaderad.ir.walk import reachable, reads, statements, writes
from shaderad.rules import calls
from shaderad.rules.body import Body

WriteBody = Callable[["Functions", Body, tuple[nodes.Stmt, ...], Mapping[str, Type]], None]


@dataclass
class Functions:
    """The functions of one kernel with their tangents."""

    dots: Mapping[str, str]
    """The tangent of each of the kernel's buffers that has one."""
    extremes: frozenset[str]
    """The Min and Max arrays among them."""
    write: WriteBody
    is_first: bool = False
    """Whether a first derivative is asked for: one of the user's own is what they say it is."""
    _pushed: dict[Function, Function] = field(default_factory=dict[Function, Function])
    _own: dict[Function, Function] = field(default_factory=dict[Function, Function])
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

    def of(self, f: Function) -> Function:
        """`f` with tangents."""
        if f not in self._pushed:
            self._pushed[f] = self._make(f)
        return self._pushed[f]

    def of_own(self, f: Function) -> Function:
        """The tangent of `f`, whose derivatives are the user's own.

        Raises:
            DerivativeError: SR0412 where it has no forward one, SR0429 where it has one that is
                not meant to be the derivative of its value.
        """
        if not (f.is_checked or self.is_first):
            raise error("SR0429", f.span, function=f.name)
        if f not in self._own:
            self._own[f] = calls.push_function(f)
        return self._own[f]

    def _make(self, f: Function) -> Function:
        given = {p.name: p.type for p in f.parameters}
        types = {**f.local_types, **given}
        body = Body({*types, *reads(f.body), *writes(f.body)})
        dots = tuple(
            Parameter(name=body.dot(p.name), type=p.type)
            for p in f.parameters
            if is_differentiable(p.type)
        )
        self.write(self, body, f.body, types)
        result = Tuple((f.result, f.result)) if is_differentiable(f.result) else f.result
        return Function(
            name=f"{f.name}_push",
            parameters=(*f.parameters, *dots),
            result=result,
            body=tuple(body.statements),
            local_types={**f.local_types, **body.local_types},
            buffers=(*f.buffers, *(self.dots[b] for b in f.buffers if b in self.dots)),
            span=f.span,
        )
