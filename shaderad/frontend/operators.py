"""Python's operators on typed values -> primitives with Python's semantics.

Operators on numbers of the program are folded; others become an `Apply` with operands of one type.
"""

from __future__ import annotations

import ast
import operator
from collections.abc import Callable
from typing import Any, NamedTuple

from shaderad.diagnostics import Error, Span, error
from shaderad.frontend.conversions import COMPONENTS, constant, double_help, expr, to_float, unify
from shaderad.ir import ops
from shaderad.ir.nodes import Apply, Const, Expr
from shaderad.ir.types import (
    BOOL,
    FLOAT,
    INT,
    Matrix,
    Scalar,
    Vector,
    is_bool,
    is_float,
    is_integer,
    scalar_of,
)
from shaderad.language.values import PythonNumber, Value, describe


class _Operator(NamedTuple):
    symbol: str
    op: ops.Op
    function: str
    """The name in `operator`, for numbers of the program."""


_BINARY: dict[type[ast.operator], _Operator] = {
    ast.Add: _Operator("+", ops.ADD, "add"),
    ast.Sub: _Operator("-", ops.SUB, "sub"),
    ast.Mult: _Operator("*", ops.MUL, "mul"),
    ast.Div: _Operator("/", ops.DIV, "truediv"),
    ast.FloorDiv: _Operator("//", ops.FLOOR_DIV, "floordiv"),
    ast.Mod: _Operator("%", ops.MOD, "mod"),
    ast.Pow: _Operator("**", ops.POW, "pow"),
    ast.MatMult: _Operator("@", ops.MATMUL, "matmul"),
    ast.BitAnd: _Operator("&", ops.BIT_AND, "and_"),
    ast.BitOr: _Operator("|", ops.BIT_OR, "or_"),
    ast.BitXor: _Operator("^", ops.BIT_XOR, "xor"),
    ast.LShift: _Operator("<<", ops.SHIFT_LEFT, "lshift"),
    ast.RShift: _Operator(">>", ops.SHIFT_RIGHT, "rshift"),
}
_LOGICAL = (ast.BitAnd, ast.BitOr, ast.BitXor)
_BITWISE = (*_LOGICAL, ast.LShift, ast.RShift)
_UNARY: dict[type[ast.unaryop], tuple[str, Callable[[Any], Any]]] = {
    ast.UAdd: ("+", operator.pos),
    ast.USub: ("-", operator.neg),
    ast.Invert: ("~", operator.invert),
}
_COMPARE: dict[type[ast.cmpop], _Operator] = {
    ast.Eq: _Operator("==", ops.EQ, "eq"),
    ast.NotEq: _Operator("!=", ops.NE, "ne"),
    ast.Lt: _Operator("<", ops.LT, "lt"),
    ast.LtE: _Operator("<=", ops.LE, "le"),
    ast.Gt: _Operator(">", ops.GT, "gt"),
    ast.GtE: _Operator(">=", ops.GE, "ge"),
}
_EACH_VALUE = "compare with each value: `x == a or x == b`"
_REFUSED_COMPARISONS: dict[type[ast.cmpop], tuple[str, str]] = {
    ast.Is: ("is", "write `==`"),
    ast.IsNot: ("is not", "write `!=`"),
    ast.In: ("in", _EACH_VALUE),
    ast.NotIn: ("not in", _EACH_VALUE),
}
# Larger powers and shifts fit no type; folding them would only cost time and memory.
_FOLD_BIT_LIMIT = 4096


def apply(op: ops.Op, args: tuple[Expr, ...], span: Span) -> Apply | None:
    """The primitive on converted operands; `None` where its type rule does not admit them."""
    result = ops.result_type(op, tuple(a.type for a in args))
    return None if result is None else Apply(type=result, op=op, args=args, span=span)


def apply_unified(op: ops.Op, args: tuple[Value, ...], span: Span) -> Apply | None:
    """The primitive on operands converted to one type; `None` where they do not mix."""
    operands = unify(args, span)
    return None if operands is None else apply(op, operands, span)


def binary(node: ast.operator, left: Value, right: Value, span: Span) -> Value:
    """``left node right``.

    Raises:
        LanguageError: SR0304 for operands that do not mix, SR0311 for bool in arithmetic,
            SR0314 for a constant division by zero, SR0315 for ``int ** int``.
    """
    symbol, op, _ = _BINARY[type(node)]
    divisor = as_number(right)
    is_any_bool = _is_bool(left) or _is_bool(right)
    if is_any_bool and not isinstance(node, _LOGICAL):
        operand = describe(left if _is_bool(left) else right)
        raise error("SR0311", span, symbol=symbol, found=operand)
    if isinstance(node, ast.Div | ast.FloorDiv | ast.Mod) and divisor and divisor.value == 0:
        raise error("SR0314", span, symbol=symbol)  # The result depends on the driver.
    if isinstance(left, PythonNumber) and isinstance(right, PythonNumber) and not is_any_bool:
        return _fold(node, left, right, span)
    if isinstance(node, ast.Pow):
        return power(left, right, span)
    if isinstance(node, ast.MatMult):
        result = apply(op, (expr(left, span), expr(right, span)), span)
    else:
        if isinstance(node, ast.Div) and _is_integer(left) and _is_integer(right):
            left, right = to_float(left), to_float(right)
        result = apply_unified(op, (left, right), span)
    if result is None:
        raise _refusal(node, left, right, span)
    return result


def _is_integer(value: Value) -> bool:
    """True for integers, and for numbers of the program, which take any type."""
    return isinstance(value, PythonNumber) or (isinstance(value, Expr) and is_integer(value.type))


def _is_bool(value: Value) -> bool:
    if isinstance(value, PythonNumber):
        return isinstance(value.value, bool)
    return isinstance(value, Expr) and is_bool(value.type)


def _fold(node: ast.operator, left: PythonNumber, right: PythonNumber, span: Span) -> PythonNumber:
    is_huge = isinstance(node, ast.Pow | ast.LShift) and isinstance(left.value, int) and (
        isinstance(right.value, int) and abs(right.value) > _FOLD_BIT_LIMIT
    )  # fmt: skip
    if is_huge:
        raise _refusal(node, left, right, span)
    try:
        result = getattr(operator, _BINARY[type(node)].function)(left.value, right.value)
    except (TypeError, ValueError, ArithmeticError) as failure:
        raise _refusal(node, left, right, span) from failure
    if not isinstance(result, int | float):
        raise _refusal(node, left, right, span)
    return PythonNumber(result, span)


def _refusal(node: ast.operator, left: Value, right: Value, span: Span) -> Error:
    types = [v.type for v in (left, right) if isinstance(v, Expr)]
    help_ = "convert one side: `float(...)` in a kernel, `sad.cast(..., float)` of arrays"
    if isinstance(node, ast.MatMult):
        help_ = "the matrix product takes matrix @ matrix, matrix @ vector, vector @ matrix"
        if any(isinstance(t, Vector) for t in types) and any(isinstance(t, Scalar) for t in types):
            help_ = COMPONENTS
        if all(isinstance(t, Vector) for t in types):
            help_ = "write `sad.dot(a, b)` for the inner product"
    elif any(isinstance(t, Matrix) for t in types) and any(isinstance(t, Vector) for t in types):
        help_ = "write `@` for the matrix product"
    elif isinstance(node, _BITWISE):
        help_ = "bitwise operators take int, uint or bool on both sides"
    else:
        help_ = double_help((left, right)) or help_
    return error("SR0304", span, symbol=_BINARY[type(node)].symbol, left=describe(left),
                 right=describe(right), help=help_)  # fmt: skip


def power(base: Value, exponent: Value, span: Span) -> Value:
    """``base ** exponent``: products for a whole constant, `POW` for everything else."""
    whole, number = _whole(exponent), as_number(exponent)
    if isinstance(base, Expr) and is_integer(base.type):
        is_real = number is not None and isinstance(number.value, float)
        if is_real or (whole is not None and whole < 0):
            base = expr(to_float(base), span)  # 3 ** 2.0 is 9.0
    if isinstance(base, Expr) and whole is not None:
        if whole >= 0 and (is_integer(base.type) or is_float(base.type)):
            return _integer_power(base, whole, span)
        if is_float(base.type):
            inner = _integer_power(base, -whole, span)
            return Apply(type=base.type, op=ops.RCP, args=(inner,), span=span)
    exponent_type = exponent.type if isinstance(exponent, Expr) else None
    if isinstance(base, Expr) and is_integer(base.type) and exponent_type in (INT, ops.UINT):
        raise error("SR0315", span, found=describe(exponent))
    is_int_number = isinstance(base, PythonNumber) and isinstance(base.value, int)
    if is_int_number and exponent_type is not None and is_integer(exponent_type):
        raise error("SR0315", span, found=describe(exponent))
    result = apply_unified(ops.POW, (to_float(base), to_float(exponent)), span)
    if result is None:
        raise _refusal(ast.Pow(), base, exponent, span)
    return result


def _whole(exponent: Value) -> int | None:
    if isinstance(exponent, Const) and exponent.type in (INT, FLOAT):
        exponent = PythonNumber(exponent.value)
    if not isinstance(exponent, PythonNumber) or isinstance(exponent.value, bool):
        return None
    is_whole = float(exponent.value).is_integer() and abs(exponent.value) < 2**31
    return int(exponent.value) if is_whole else None


def _integer_power(base: Expr, exponent: int, span: Span) -> Apply:
    count = Const(type=INT, value=exponent, span=span)
    return Apply(type=base.type, op=ops.POWI, args=(base, count), span=span)


def unary(node: ast.unaryop, value: Value, span: Span) -> Value:
    """``-x``, ``+x``, ``~x``, ``not x``.

    Raises:
        LanguageError: SR0305 for ``not`` of no bool, SR0316 for operands of another kind.
    """
    if isinstance(node, ast.Not):
        checked = condition(value, span)
        if isinstance(checked, PythonNumber):
            return PythonNumber(not checked.value, span)
        return Apply(type=BOOL, op=ops.NOT, args=(checked,), span=span)
    symbol, fold = _UNARY[type(node)]
    result: Value | None = None
    if isinstance(value, PythonNumber) and not isinstance(value.value, bool):
        if isinstance(value.value, int) or not isinstance(node, ast.Invert):
            result = PythonNumber(fold(value.value), span)
    else:
        operand = expr(value, span)
        if isinstance(node, ast.USub):
            result = apply(ops.NEG, (operand,), span)
        elif isinstance(node, ast.Invert):
            result = apply(ops.NOT if is_bool(operand.type) else ops.BIT_NOT, (operand,), span)
        elif is_float(operand.type) or is_integer(operand.type):
            result = operand
    if result is None:
        raise error("SR0316", span, symbol=symbol, found=describe(value))
    return result


def condition(value: Value, span: Span) -> Expr | PythonNumber:
    """The value as a condition: a bool, constant or computed."""
    if isinstance(value, PythonNumber) and isinstance(value.value, bool):
        return value
    if isinstance(value, Expr) and value.type == BOOL:
        return value
    help_ = "compare it, for example `... != 0`"
    if isinstance(value, Expr) and isinstance(value.type, Vector) and is_bool(value.type):
        help_ = "write `sad.any(...)` or `sad.all(...)`, and `& | ~` by component"
    raise error("SR0305", span, found=describe(value), help=help_)


def compare(node: ast.cmpop, left: Value, right: Value, span: Span) -> Value:
    """``left node right``: bool, by component for vectors."""
    if type(node) not in _COMPARE:
        word, help_ = _REFUSED_COMPARISONS[type(node)]
        raise error("SR0202", span, found=f"`{word}`", help=help_)
    symbol, op, function = _COMPARE[type(node)]
    if isinstance(left, PythonNumber) and isinstance(right, PythonNumber):
        return PythonNumber(getattr(operator, function)(left.value, right.value), span)
    result = apply_unified(op, (left, right), span)
    if result is None:
        raise error("SR0304", span, symbol=symbol, left=describe(left), right=describe(right),
                    help=_compare_help(left, right))  # fmt: skip
    return result


def _compare_help(left: Value, right: Value) -> str:
    types = [v.type for v in (left, right) if isinstance(v, Expr)]
    if types and all(scalar_of(t) is None for t in types):
        return "compare their fields"
    if any(is_bool(t) for t in types):
        return "a bool compares with a bool, by `==` and `!=`"
    instead = "convert one side: `int(...)` in a kernel, `sad.cast(..., int)` of arrays"
    return double_help((left, right)) or instead


def as_number(value: Value) -> PythonNumber | None:
    """The number of a constant value, typed or not; `None` for other values."""
    if isinstance(value, PythonNumber):
        return value
    if isinstance(value, Const) and isinstance(value.type, Scalar):
        return PythonNumber(value.value, value.span)
    return None


def typed_constant(value: PythonNumber, scalar: Scalar, span: Span) -> PythonNumber | Const:
    """A constant of type `scalar`: a typed `Const` unless a plain number implies the type."""
    checked = constant(value, scalar, span)
    return PythonNumber(checked.value, span) if scalar in (INT, FLOAT, BOOL) else checked
