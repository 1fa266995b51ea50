"""Removes ``print`` from kernels and functions.

Derivatives replay the primal, in whole or in part, and a replay must be silent. A user-defined
derivative is not a replay: its prints stay, except in a build, which removes every print.
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
    ForwardDiff,
    Function,
    Kernel,
    Print,
    Stmt,
)
from shaderad.ir.walk import map_blocks, reachable, rewrite_statement, statements

AnyKernel = TypeVar("AnyKernel", bound=Kernel)
# `None` stands for a silent key: an entry that held its own key would never be freed.
_silent_kernels: WeakKeyDictionary[Kernel, Kernel | None] = WeakKeyDictionary()
_silent_functions: WeakKeyDictionary[Function, Function | None] = WeakKeyDictionary()


def prints(body: Iterable[Stmt]) -> list[Print]:
    """Every ``print`` that a body reaches: those of called functions first."""
    body = tuple(body)
    bodies = (*(f.body for f in reachable(body)), body)
    return [s for block in bodies for s in statements(block) if isinstance(s, Print)]


def silent(kernel: AnyKernel) -> AnyKernel:
    """`kernel` as derivatives replay it; `kernel` itself if it does not print."""
    if kernel not in _silent_kernels:
        result = _Silencer().kernel(kernel)
        _silent_kernels[kernel] = None if result is kernel else result
    return cast("AnyKernel", _silent_kernels[kernel] or kernel)


def silent_function(function: Function) -> Function:
    """`function` as ``fwd_diff`` and ``bwd_diff`` replay it."""
    if function not in _silent_functions:
        result = _Silencer().function(function)
        _silent_functions[function] = None if result is function else result
    return _silent_functions[function] or function


def without_prints(kernel: Kernel) -> tuple[Kernel, list[Print]]:
    """`kernel` without any ``print``, and the removed statements."""
    silencer = _Silencer(with_derivatives=True)
    result = silencer.kernel(kernel)
    return (result if silencer.removed else kernel), silencer.removed


class _Silencer:
    """Removes ``print`` from bodies; a body or function without prints keeps its identity."""

    def __init__(self, *, with_derivatives: bool = False) -> None:
        self._with_derivatives = with_derivatives
        self._silent: dict[Function, Function] = {}
        self._with_own: list[Function] = []
        """Silent functions whose user-defined derivatives are not silenced yet: a derivative may
        call its own function, so the function comes first."""
        self.removed: list[Print] = []

    def kernel(self, kernel: AnyKernel) -> AnyKernel:
        body = self._body(kernel.body)
        while self._with_own:
            f = self._with_own.pop()
            for name, own in (("backward", f.backward), ("forward", f.forward)):
                if own is not None:
                    object.__setattr__(f, name, self.function(own))
        return kernel if body is kernel.body else replace(kernel, body=body)

    def function(self, f: Function) -> Function:
        if f not in self._silent:
            body = self._body(f.body)
            has_own = self._with_derivatives and (f.backward or f.forward) is not None
            self._silent[f] = f if body is f.body and not has_own else replace(f, body=body)
            if has_own:
                self._with_own.append(self._silent[f])
        return self._silent[f]

    def _body(self, body: tuple[Stmt, ...]) -> tuple[Stmt, ...]:
        new = tuple(t for s in body for t in self._statement(s))
        is_same = len(new) == len(body) and all(a is b for a, b in zip(new, body, strict=True))
        return body if is_same else new

    def _statement(self, s: Stmt) -> tuple[Stmt, ...]:
        if isinstance(s, Print):
            self.removed.append(s)
            return ()
        s = map_blocks(s, self._body)
        if isinstance(s, BackwardDiff):
            f = self.function(s.function)
            s = s if f is s.function else replace(s, function=f)
        return (rewrite_statement(s, self._call),)

    def _call(self, e: Expr) -> Expr:
        if isinstance(e, Call | ForwardDiff):
            f = self.function(e.function)
            return e if f is e.function else replace(e, function=f)
        return e
