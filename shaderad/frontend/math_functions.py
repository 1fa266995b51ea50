"""Python's ``math`` and builtin functions on numbers -> primitives, with Python's result types.

``math.floor``, ``math.ceil`` and ``math.trunc`` give ints, the others floats.
"""

from __future__ import annotations

import math
import types
from collections.abc import Callable, Mapping
from functools import reduce
from typing import Any

from shaderad.diagnostics import Error, Span, error
from shaderad.frontend.conversions import cast, coerce, double_help, expr, to_float, unify
from shaderad.frontend.operators import apply, power
from shaderad.ir import ops
from shaderad.ir.nodes import Expr
from shaderad.ir.tables import check_rows
from shaderad.ir.types import INT, Scalar, is_float, is_integer, with_scalar
from shaderad.language.values import PythonNumber, Value, describe

_NO_PRIMITIVES: frozenset[Any] = frozenset({math.log, math.trunc, math.cbrt})
_BY_NAME = {getattr(math, name): op for name, op in ops.PUBLIC.items() if name in vars(math)}
OP_BY_FUNCTION: Mapping[Any, ops.Op] = types.MappingProxyType(
    {f: op for f, op in _BY_NAME.items() if f not in _NO_PRIMITIVES}
    | {math.fabs: ops.ABS, math.floor: ops.FLOOR_INT, math.ceil: ops.CEIL_INT}
)
KNOWN: frozenset[Any] = _NO_PRIMITIVES | frozenset(OP_BY_FUNCTION)
NAMES = ", ".join(sorted(function.__name__ for function in KNOWN))


def call_math(function: Callable[..., object], args: tuple[Value, ...], span: Span) -> Value:
    """``math.function(*args)``; Python computes it if all arguments are numbers of the program.

    Raises:
        LanguageError: SR0231 for the wrong number of arguments, SR0312 for their types.
    """
    folded = fold(function, args, span)
    if folded is not None:
        return folded
    op = OP_BY_FUNCTION.get(function)
    if op is not None:
        if op in (ops.FLOOR_INT, ops.CEIL_INT):
            return to_int(op, args, span)
        return primitive(op, tuple(to_float(a) for a in args), span)
    if function is math.log:
        return _log(args, span)
    (value,) = exactly(function.__name__, args, 1, span)
    if function is math.trunc:
        return to_kind("int", value, INT, span)
    return _cbrt(to_float(value), span)


def fold(
    function: Callable[..., object], args: tuple[Value, ...], span: Span
) -> PythonNumber | None:
    """The result for numbers of the program; `None` if the device must compute it."""
    numbers = [a.value for a in args if isinstance(a, PythonNumber)]
    if not numbers or len(numbers) != len(args):
        return None
    try:
        result = function(*numbers)
    except (ValueError, ArithmeticError):
        return None
    except TypeError:
        help_ = "check the number and the types of the arguments"
        raise _untaken(function.__name__, args, span, help_) from None
    return PythonNumber(result, span) if isinstance(result, int | float) else None


def primitive(op: ops.Op, args: tuple[Value, ...], span: Span) -> Value:
    """A primitive on values, which are converted to one type.

    Raises:
        LanguageError: SR0231 for the wrong number of arguments, SR0312 for their types.
    """
    exactly(op.name, args, op.arity, span)
    if op == ops.POW:
        return power(to_float(args[0]), args[1], span)
    operands = _operands(op, args, span)
    result = None if operands is None else apply(op, operands, span)
    if result is None:
        raise _untaken(op.name, args, span, _WANTED[op.rule])
    return result


_WANTED: dict[ops.Rule, str] = {
    ops.Rule.FLOATS: "it takes floats, or float vectors or matrices of one type",
    ops.Rule.NUMBERS: "it takes numbers, or vectors or matrices, of one type",
    ops.Rule.TEST: "it takes one float, or a float vector",
    ops.Rule.REDUCE_BOOL: "it takes a bool vector, for example `v > 0.0`",
    ops.Rule.DOT: "it takes two float vectors of one type; of arrays of numbers write "
    "`sad.sum(a * b)`",
    ops.Rule.NORM: "it takes float vectors of one type; of arrays of numbers write "
    "`sad.norm(x, axis=-1)`",
    ops.Rule.VECTORS: "it takes float vectors of one type",
    ops.Rule.VECTOR3: "it takes two float3",
    ops.Rule.REFRACT: "it takes two float vectors of one type and a float",
    ops.Rule.MATMUL: "it takes matrix and matrix, matrix and vector, or vector and matrix",
    ops.Rule.TRANSPOSE: "it takes a matrix",
    ops.Rule.DETERMINANT: "it takes a square matrix",
    ops.Rule.SQUARE: "it takes a square matrix",
    ops.Rule.SELECT: "it takes a bool and two values of one type",
    ops.Rule.TO_INT: "it takes a float, or a float vector",
    ops.Rule.HASH: "it takes a uint: write `sad.uint(...)`",
    ops.Rule.UNIFORM01: "it takes a uint, for example `sad.pcg(sad.uint(i))`",
}
check_rows(_WANTED, (op.rule for op in ops.PUBLIC.values()))


def _operands(op: ops.Op, args: tuple[Value, ...], span: Span) -> tuple[Expr, ...] | None:
    match op.rule:
        case ops.Rule.SELECT:
            sides = unify(args[1:], span) or tuple(a for a in args[1:] if isinstance(a, Expr))
            return (expr(args[0], span), *sides) if len(sides) == 2 else None
        case ops.Rule.REFRACT:
            first, second, eta = expr(args[0], span), expr(args[1], span), args[2]
            scalar = ops.scalar_of(first.type)
            if scalar is not None and isinstance(eta, PythonNumber) and is_float(scalar):
                eta = coerce(eta, scalar, span)
            return first, second, expr(eta, span)
        case ops.Rule.HASH | ops.Rule.UNIFORM01:
            is_number = isinstance(args[0], PythonNumber)
            return (coerce(args[0], ops.UINT, span) if is_number else expr(args[0], span),)
        case ops.Rule.MATMUL | ops.Rule.REDUCE_BOOL:
            return tuple(expr(a, span) for a in args)
        case ops.Rule.FLOATS | ops.Rule.TEST:
            return unify(tuple(_float_if_int(a) for a in args), span)
        case _:
            return unify(args, span)


def _float_if_int(value: Value) -> Value:
    """An int as float, for functions of floats; int vectors stay."""
    if isinstance(value, PythonNumber) or (isinstance(value, Expr) and value.type == INT):
        return to_float(value)
    return value


def to_int(op: ops.Op, args: tuple[Value, ...], span: Span) -> Value:
    """``math.floor``, ``math.ceil``, ``round``: a float as int; ints stay."""
    (value,) = exactly(op.name, args, 1, span)
    if isinstance(value, Expr) and is_integer(value.type):
        return value
    return primitive(op, args, span)


def to_kind(name: str, value: Value, scalar: Scalar, span: Span) -> Expr:
    """``int(x)``, ``math.trunc(x)`` and ``bool(x)``."""
    e = expr(value, span)
    if ops.scalar_of(e.type) is None:
        raise _untaken(name, (value,), span, "it takes a number")
    return cast(e, with_scalar(e.type, scalar))


def smallest(op: ops.Op, args: tuple[Value, ...], span: Span) -> Value:
    """``min`` and ``max`` of two or more values, folded from the left."""
    if len(args) < 2:
        raise error("SR0231", span, name=op.name, found=len(args), wanted="two or more")
    folded = fold(min if op == ops.MIN else max, args, span)
    if folded is not None:
        return folded
    return reduce(lambda a, b: primitive(op, (a, b), span), args)


def _log(args: tuple[Value, ...], span: Span) -> Value:
    if len(args) not in (1, 2):
        raise error("SR0231", span, name="log", found=len(args), wanted="1 or 2")
    numbers = tuple(to_float(a) for a in args)
    # A constant base takes the type of the number: double stays double.
    logs = tuple(primitive(ops.LOG, (a,), span) for a in unify(numbers, span) or numbers)
    return logs[0] if len(logs) == 1 else primitive(ops.DIV, logs, span)


def _cbrt(value: Value, span: Span) -> Value:
    """``sign(x) * pow(abs(x), 1/3)``."""
    size = primitive(ops.ABS, (value,), span)
    root = power(size, PythonNumber(1.0 / 3.0), span)
    return primitive(ops.MUL, (primitive(ops.SIGN, (value,), span), root), span)


def exactly(name: object, args: tuple[Value, ...], count: int, span: Span) -> tuple[Value, ...]:
    """`args`, of which there are `count`; else raises SR0231."""
    if len(args) != count:
        raise error("SR0231", span, name=name, found=len(args), wanted=count)
    return args


def _untaken(name: str, args: tuple[Value, ...], span: Span, help_: str) -> Error:
    passed = ", ".join(map(describe, args)) or "nothing"
    return error("SR0312", span, name=name, found=passed, help=double_help(args) or help_)
