"""Short ways to write IR in tests: names, numbers, statements over floats and ints."""

from __future__ import annotations

from shaderad.decorators import KernelFunction
from shaderad.ir import ops
from shaderad.ir.nodes import (
    Apply,
    Assign,
    Const,
    Expr,
    For,
    If,
    Kernel,
    Stmt,
    Var,
)
from shaderad.ir.types import BOOL, FLOAT, INT, Type


def var(name: str, t: Type = FLOAT) -> Var:
    return Var(type=t, name=name)


def number(value: float) -> Const:
    return Const(type=INT if isinstance(value, int) else FLOAT, value=value)


def add(a: Expr, b: Expr) -> Apply:
    return Apply(type=a.type, op=ops.ADD, args=(a, b))


def times(a: Expr, b: Expr) -> Apply:
    return Apply(type=a.type, op=ops.MUL, args=(a, b))


def positive(name: str) -> Expr:
    return Apply(type=BOOL, op=ops.GT, args=(var(name), number(0.0)))


def put(name: str, value: Expr) -> Assign:
    return Assign(name=name, value=value)


def when(name: str, *then: Stmt, otherwise: tuple[Stmt, ...] = ()) -> If:
    return If(condition=positive(name), then=then, otherwise=otherwise)


def repeat(variable: str, stop: Expr | int, *body: Stmt, limit: int | None = None) -> For:
    end = number(stop) if isinstance(stop, int) else stop
    return For(variable=variable, start=number(0), stop=end, step=number(1), limit=limit, body=body)


def kernel_of(kernel: KernelFunction) -> Kernel:
    return kernel.specialise({})
