"""Python's operators on typed values -> primitives with Python's semantics.

Operators on numbers of the program are folded; others become an `Apply` with operands of one type.
"""

from __future__ import annotations

import ast
import operator
from collections.abc import Callable
from typing import Any

from shaderad.diagnostics import Span, error
from shaderad.frontend.conversions import constant, expr, to_float, unify
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

_ARITHMETIC: dict[type[ast.operator], ops.Op] = {
    ast.Add: ops.ADD,
    ast.Sub: ops.SUB,
    ast.Mult: ops.MUL,
    ast.Div: ops.DIV,
    ast.FloorDiv: ops.FLOOR_DIV,
    ast.Mod: ops.MOD,
}
_BITWISE: dict[type[ast.operator], ops.Op] = {
    ast.BitAnd: ops.BIT_AND,
    ast.BitOr: ops.BIT_OR,
    ast.BitXor: ops.BIT_XOR,
    ast.LShift: ops.SHIFT_LEFT,
    ast.RShift: ops.SHIFT_RIGHT,
}
_COMPARE: dict[type[ast.cmpop], tuple[ops.Op, Callable[[Any, Any], bool]]] = {
    ast.Eq: (ops.EQ, operator.eq),
    ast.NotEq: (ops.NE, operator.ne),
    ast.Lt: (ops.LT, operator.lt),
    ast.LtE: (ops.LE, operator.le),
    ast.Gt: (ops.GT, operator.gt),
    ast.GtE: (ops.GE, operator.ge),
}
_EACH_VALUE = "compare with each value: `x == a or x == b`"
_REFUSED_COMPARISONS: dict[type[ast.cmpop], tuple[str, str]] = {
    ast.Is: ("is", "write `==`"),
    ast.IsNot: ("is not", "write `!=`"),
    ast.In: ("in", _EACH_VALUE),
    ast.NotIn: ("not in", _EACH_VALUE),
}
_FOLD: dict[type[ast.operator], Callable[[Any, Any], Any]] = {
    node: getattr(operator, name)
    for node, name in {
        ast.Add: "add",
        ast.Sub: "sub",
        ast.Mult: "mul",
        ast.Div: "truediv",
        ast.FloorDiv: "floordiv",
        ast.Mod: "mod",
        ast.Pow: "pow",
        ast.BitAnd: "and_",
        ast.BitOr: "or_",
        ast.BitXor: "xor",
        ast.LShift: "lshift",
        ast.RShift: "rshift",
    }.items()
}
SYMBOLS: dict[type[ast.AST], str] = {
    ast.Add: "+", ast.Sub: "-", ast.Mult: "*", ast.Div: "/", ast.FloorDiv: "//", ast.Mod: "%",
    ast.Pow: "**", ast.MatMult: "@", ast.BitAnd: "&", ast.BitOr: "|", ast.BitXor: "^",
    ast.LShift: "<<", ast.RShift: ">>", ast.Eq: "==", ast.NotEq: "!=", ast.Lt: "<",
    ast.LtE: "<=", ast.Gt: ">", ast.GtE: ">=", ast.USub: "-", ast.UAdd: "+", ast.Invert: "~",
    ast.Not: "not",
}  # fmt: skip
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


def binary(symbol: ast.operator, left: Value, right: Value, span: Span) -> Value:
    """``left symbol right``.

    Raises:
        LanguageError: SR0304 for operands that do not mix, SR0311 for bool in arithmetic,
            SR0314 for a constant division by zero, SR0315 for ``int ** int``.
    """
    kind = type(symbol)
    if _is_bool(left) or _is_bool(right):
        if kind not in (ast.BitAnd, ast.BitOr, ast.BitXor):
            found = describe(left if _is_bool(left) else right)
            raise error("SR0311", span, symbol=SYMBOLS[kind], found=found)
    elif isinstance(left, PythonNumber) and isinstance(right, PythonNumber):
        return _fold(kind, left, right, span)
    _check_divisor(kind, right, span)
    if kind is ast.Pow:
        return power(left, right, span)
    if kind is ast.MatMult:
        result = apply(ops.MATMUL, (expr(left, span), expr(right, span)), span)
    else:
        if kind is ast.Div:
            left, right = _floats_if_integers(left, right)
        result = apply_unified((_ARITHMETIC | _BITWISE)[kind], (left, right), span)
    if result is None:
        raise _refuse(kind, left, right, span)
    return result


def _check_divisor(kind: type[ast.operator], divisor: Value, span: Span) -> None:
    """Raises SR0314 for a constant zero: drivers give any result for division by it."""
    number = as_number(divisor)
    if kind in (ast.Div, ast.FloorDiv, ast.Mod) and number is not None and number.value == 0:
        raise error("SR0314", span, symbol=SYMBOLS[kind])


def _floats_if_integers(left: Value, right: Value) -> tuple[Value, Value]:
    """The operands of ``/``: two integers become floats."""
    if all(isinstance(v, PythonNumber) or (isinstance(v, Expr) and is_integer(v.type))
           for v in (left, right)):  # fmt: skip
        return to_float(left), to_float(right)
    return left, right


def _is_bool(value: Value) -> bool:
    if isinstance(value, PythonNumber):
        return isinstance(value.value, bool)
    return isinstance(value, Expr) and is_bool(value.type)


def _fold(
    kind: type[ast.operator], left: PythonNumber, right: PythonNumber, span: Span
) -> PythonNumber:
    _check_divisor(kind, right, span)
    is_huge = kind in (ast.Pow, ast.LShift) and isinstance(left.value, int) and (
        isinstance(right.value, int) and abs(right.value) > _FOLD_BIT_LIMIT
    )  # fmt: skip
    if kind not in _FOLD or is_huge:
        raise _refuse(kind, left, right, span)
    try:
        result = _FOLD[kind](left.value, right.value)
    except (TypeError, ValueError, ArithmeticError) as failure:
        raise _refuse(kind, left, right, span) from failure
    if not isinstance(result, int | float):
        raise _refuse(kind, left, right, span)
    return PythonNumber(result, span)


def _refuse(kind: type[ast.operator], left: Value, right: Value, span: Span) -> Exception:
    types = [v.type for v in (left, right) if isinstance(v, Expr)]
    help_ = "convert one side: `float(..)` in a kernel, `sad.cast(.., float)` of arrays"
    if kind is ast.MatMult:
        help_ = "the matrix product takes matrix @ matrix, matrix @ vector, vector @ matrix"
        if all(isinstance(t, Vector) for t in types):
            help_ = "write `sad.dot(a, b)` for the inner product"
    elif any(isinstance(t, Matrix) for t in types) and any(isinstance(t, Vector) for t in types):
        help_ = "write `@` for the matrix product"
    elif kind in _BITWISE:
        help_ = "bitwise operators take int, uint or bool on both sides"
    return error("SR0304", span, symbol=SYMBOLS[kind], left=describe(left), right=describe(right),
                 help=help_)  # fmt: skip


def power(base: Value, exponent: Value, span: Span) -> Value:
    """``base ** exponent``: products for a whole constant, `POW` for everything else."""
    whole = _whole(exponent)
    if isinstance(base, Expr) and is_integer(base.type) and _is_real(exponent):
        base = expr(to_float(base), span)  # 3 ** 2.0 is 9.0
    if isinstance(base, Expr) and whole is not None:
        if whole >= 0 and (is_integer(base.type) or is_float(base.type)):
            return _integer_power(base, whole, span)
        if is_integer(base.type):
            base = expr(to_float(base), span)
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
        raise _refuse(ast.Pow, base, exponent, span)
    return result


def _is_real(exponent: Value) -> bool:
    number = as_number(exponent)
    return number is not None and isinstance(number.value, float)


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


def unary(symbol: ast.unaryop, value: Value, span: Span) -> Value:
    """``-x``, ``+x``, ``~x``, ``not x``.

    Raises:
        LanguageError: SR0305 for ``not`` of no bool, SR0304 for operands of another kind.
    """
    if isinstance(symbol, ast.Not):
        return negate_condition(value, span)
    if isinstance(value, PythonNumber) and not isinstance(value.value, bool):
        return _fold_unary(symbol, value, span)
    result: Value | None = None
    operand = expr(value, span)
    if isinstance(symbol, ast.UAdd) and (is_float(operand.type) or is_integer(operand.type)):
        result = operand
    elif isinstance(symbol, ast.USub):
        result = apply(ops.NEG, (operand,), span)
    elif isinstance(symbol, ast.Invert):
        result = apply(ops.NOT if is_bool(operand.type) else ops.BIT_NOT, (operand,), span)
    if result is not None:
        return result
    raise error("SR0316", span, symbol=SYMBOLS[type(symbol)], found=describe(value))


def _fold_unary(symbol: ast.unaryop, value: PythonNumber, span: Span) -> PythonNumber:
    if isinstance(symbol, ast.UAdd):
        return PythonNumber(value.value, span)
    if isinstance(symbol, ast.USub):
        return PythonNumber(-value.value, span)
    if isinstance(value.value, bool):
        return PythonNumber(
            not value.value, span
        )  # as on bools of the kernel, and unlike Python's -2
    if isinstance(value.value, int):
        return PythonNumber(~value.value, span)
    raise error("SR0316", span, symbol="~", found=describe(value))


def condition(value: Value, span: Span) -> Expr | PythonNumber:
    """The value as a condition: a bool, constant or computed.

    Raises:
        LanguageError: SR0305, because numbers have no truth value here.
    """
    if isinstance(value, PythonNumber) and isinstance(value.value, bool):
        return value
    if isinstance(value, Expr) and value.type == BOOL:
        return value
    help_ = "compare it, for example `.. != 0`"
    if isinstance(value, Expr) and isinstance(value.type, Vector) and is_bool(value.type):
        help_ = "write `sad.any(..)` or `sad.all(..)`, and `& | ~` by component"
    raise error("SR0305", span, found=describe(value), help=help_)


def negate_condition(value: Value, span: Span) -> Value:
    checked = condition(value, span)
    if isinstance(checked, PythonNumber):
        return PythonNumber(not checked.value, span)
    return Apply(type=BOOL, op=ops.NOT, args=(checked,), span=span)


def compare(symbol: ast.cmpop, left: Value, right: Value, span: Span) -> Value:
    """``left symbol right``: bool, by component for vectors.

    Raises:
        LanguageError: SR0202 for ``is`` and ``in``, SR0304 for operands that do not mix.
    """
    if type(symbol) not in _COMPARE:
        word, help_ = _REFUSED_COMPARISONS[type(symbol)]
        raise error("SR0202", span, found=f"`{word}`", help=help_)
    op, fold = _COMPARE[type(symbol)]
    if isinstance(left, PythonNumber) and isinstance(right, PythonNumber):
        return PythonNumber(fold(left.value, right.value), span)
    result = apply_unified(op, (left, right), span)
    if result is None:
        raise error("SR0304", span, symbol=SYMBOLS[type(symbol)], left=describe(left),
                    right=describe(right), help=_compare_help(left, right))  # fmt: skip
    return result


def _compare_help(left: Value, right: Value) -> str:
    types = [v.type for v in (left, right) if isinstance(v, Expr)]
    if types and all(scalar_of(t) is None for t in types):
        return "compare their fields"
    if any(is_bool(t) for t in types):
        return "a bool compares with a bool, by `==` and `!=`"
    return "convert one side: `int(..)` in a kernel, `sad.cast(.., int)` of arrays"


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
