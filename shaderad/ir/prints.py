"""Kernels and functions that print -> the same without it.

Derivatives run the primal again, whole or in part, so they are made of what does not print. A
derivative of the user's own is no such replay: it prints for itself, except where a build leaves
every print out.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import TypeVar, cast
from weakref import WeakKeyDictionary

from shaderad.ir.nodes import (
    BackwardDiff,
    Call,
    Expr,
    For,
    ForwardDiff,
    Function,
    If,
    Kernel,
    Print,
    Stmt,
    While,
)
from shaderad.ir.walk import reachable, rewrite_statement, statements

AnyKernel = TypeVar("AnyKernel", bound=Kernel)
# `None` for what prints nothing: an entry that held its own key would live for ever.
_silent_kernels: WeakKeyDictionary[Kernel, Kernel | None] = WeakKeyDictionary()
_silent_functions: WeakKeyDictionary[Function, Function | None] = WeakKeyDictionary()


def prints(body: Iterable[Stmt]) -> list[Print]:
    """Every ``print`` that a body reaches, in the order of functions, not of execution."""
    body = tuple(body)
    bodies = (*(f.body for f in reachable(body)), body)
    return [s for one in bodies for s in statements(one) if isinstance(s, Print)]


def silent(kernel: AnyKernel) -> AnyKernel:
    """`kernel` as derivatives replay it; one that does not print is itself."""
    if kernel not in _silent_kernels:
        made = _Silence().kernel(kernel)
        _silent_kernels[kernel] = None if made is kernel else made
    return cast("AnyKernel", _silent_kernels[kernel] or kernel)


def silent_function(function: Function) -> Function:
    """`function` as ``fwd_diff`` and ``bwd_diff`` run it."""
    if function not in _silent_functions:
        made = _Silence().function(function)
        _silent_functions[function] = None if made is function else made
    return _silent_functions[function] or function


def without_prints(kernel: Kernel) -> tuple[Kernel, list[Print]]:
    """`kernel` without a ``print`` anywhere, and those that were left out."""
    silence = _Silence(with_derivatives=True)
    made = silence.kernel(kernel)
    return (made if silence.left_out else kernel), silence.left_out


class _Silence:
    """Takes ``print`` out of bodies; what has none keeps its identity."""

    def __init__(self, *, with_derivatives: bool = False) -> None:
        self._with_derivatives = with_derivatives
        self._made: dict[Function, Function] = {}
        self._with_own: list[Function] = []
        """Made functions whose derivatives are still those of before: these may call them."""
        self.left_out: list[Print] = []

    def kernel(self, kernel: AnyKernel) -> AnyKernel:
        body = self._body(kernel.body)
        while self._with_own:
            made = self._with_own.pop()
            for name, own in (("backward", made.backward), ("forward", made.forward)):
                if own is not None:
                    object.__setattr__(made, name, self.function(own))
        return kernel if body is kernel.body else replace(kernel, body=body)

    def function(self, f: Function) -> Function:
        if f not in self._made:
            body = self._body(f.body)
            has_own = self._with_derivatives and (f.backward or f.forward) is not None
            self._made[f] = f if body is f.body and not has_own else replace(f, body=body)
            if has_own:
                self._with_own.append(self._made[f])
        return self._made[f]

    def _body(self, body: tuple[Stmt, ...]) -> tuple[Stmt, ...]:
        found = tuple(new for s in body for new in self._statement(s))
        is_same = len(found) == len(body) and all(a is b for a, b in zip(found, body, strict=True))
        return body if is_same else found

    def _statement(self, s: Stmt) -> tuple[Stmt, ...]:
        if isinstance(s, Print):
            self.left_out.append(s)
            return ()
        if isinstance(s, If):
            then, otherwise = self._body(s.then), self._body(s.otherwise)
            if then is not s.then or otherwise is not s.otherwise:
                s = replace(s, then=then, otherwise=otherwise)
        elif isinstance(s, For | While):
            body = self._body(s.body)
            s = s if body is s.body else replace(s, body=body)
        elif isinstance(s, BackwardDiff):
            f = self.function(s.function)
            s = s if f is s.function else replace(s, function=f)
        return (rewrite_statement(s, self._calls),)

    def _calls(self, e: Expr) -> Expr:
        if isinstance(e, Call | ForwardDiff):
            f = self.function(e.function)
            return e if f is e.function else replace(e, function=f)
        return e
