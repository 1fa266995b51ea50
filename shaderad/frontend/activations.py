"""`relu`, `sigmoid`, `silu`, `gelu`, `softplus`: formulas that kernels, arrays and NumPy share.

Each is composed so that no intermediate value overflows. If a formula has two branches, a select
chooses the element itself, and its derivative at 0 is that of the function; `abs` and `max` have
other derivatives there.
"""

from __future__ import annotations

import ast
import math
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any, Protocol

from shaderad.frontend import math_functions, operators
from shaderad.frontend.body import BodyReader
from shaderad.frontend.conversions import cast, expr, to_float
from shaderad.ir import ops
from shaderad.ir.types import FLOAT, HALF, scalar_of, with_scalar
from shaderad.language.values import PythonNumber, Value


class Arithmetic(Protocol):
    """Operators and primitives on one kind of value."""

    def binary(self, name: str, left: Any, right: Any, /) -> Any:
        """``left op right`` of Python's operator with this name in ``ir/ops.py``."""
        ...

    def unary(self, name: str, x: Any, /) -> Any:
        """``op x``, likewise."""
        ...

    def primitive(self, op: ops.Op, /, *operands: Any) -> Any:
        """``sad.<op>``."""
        ...

    def kept(self, x: Any, /) -> Any:
        """`x`, computed once for several uses."""
        ...


def relu(of: Arithmetic, x: Any) -> Any:
    return of.primitive(ops.SELECT, of.binary("less_equal", x, 0), 0, x)


def sigmoid(of: Arithmetic, x: Any) -> Any:
    is_negative = of.binary("less", x, 0.0)
    exponent = of.primitive(ops.SELECT, is_negative, x, of.unary("negate", x))
    small = of.kept(of.primitive(ops.EXP, exponent))
    numerator = of.primitive(ops.SELECT, is_negative, small, 1.0)
    return of.binary("divide", numerator, of.binary("add", 1.0, small))


def silu(of: Arithmetic, x: Any) -> Any:
    return of.binary("mul", x, sigmoid(of, x))


def softplus(of: Arithmetic, x: Any) -> Any:
    is_positive = of.binary("greater", x, 0.0)
    small = of.primitive(ops.EXP, of.primitive(ops.SELECT, is_positive, of.unary("negate", x), x))
    positive = of.primitive(ops.SELECT, is_positive, x, 0.0)
    return of.binary("add", positive, of.primitive(ops.LOG1P, small))


def exact_gelu(of: Arithmetic, x: Any) -> Any:
    """``0.5 * x * erfc(-x / sqrt(2))``: 1 + erf would cancel where x is negative."""
    tail = of.primitive(ops.ERFC, of.binary("mul", x, -math.sqrt(0.5)))
    return of.binary("mul", of.binary("mul", x, 0.5), tail)


_SATURATED = 30.0
"""Beyond this, `approximate_gelu` is x or 0 in double precision, and its derivative is 1 or 0."""


def approximate_gelu(of: Arithmetic, x: Any) -> Any:
    """``x * sigmoid(2 * u)``, which is ``0.5 * x * (1 + tanh(u))`` and does not cancel."""
    inner = of.kept(of.primitive(ops.CLAMP, x, -_SATURATED, _SATURATED))
    square = of.binary("mul", of.binary("mul", 0.044715, inner), inner)
    cubic = of.binary("mul", inner, of.binary("add", 1.0, square))
    scaled = of.binary("mul", 2.0 * math.sqrt(2.0 / math.pi), cubic)
    return of.binary("mul", x, sigmoid(of, of.kept(scaled)))


Formula = Callable[[Arithmetic, Any], Any]
FORMULAS: Mapping[str, Formula] = MappingProxyType({
    "relu": relu, "sigmoid": sigmoid, "silu": silu, "softplus": softplus, "gelu": exact_gelu,
})  # fmt: skip
"""The activations by their ``sad`` names; `gelu` also has an approximation."""
GELUS: Mapping[str, Formula] = MappingProxyType({"none": exact_gelu, "tanh": approximate_gelu})
"""The formulas of `gelu` by the value of its argument ``approximate``."""
_HOME = "shaderad.functions.activations"
_BINARY: Mapping[str, ast.operator] = MappingProxyType(
    {"add": ast.Add(), "mul": ast.Mult(), "divide": ast.Div()}
)
_COMPARE: Mapping[str, ast.cmpop] = MappingProxyType(
    {"less": ast.Lt(), "less_equal": ast.LtE(), "greater": ast.Gt()}
)


def activation_name(thing: object) -> str | None:
    """The name of an activation that kernels may call; `None` for anything else."""
    name = getattr(thing, "__name__", "")
    return name if getattr(thing, "__module__", "") == _HOME and name in FORMULAS else None


class _InKernel:
    """Arithmetic on values of a kernel."""

    def __init__(self, body: BodyReader, node: ast.expr) -> None:
        self._body = body
        self._node = node
        self._span = body.span(node)

    def binary(self, name: str, left: Any, right: Any) -> Value:
        sides = self._value(left), self._value(right)
        if name in _COMPARE:
            return operators.compare(_COMPARE[name], *sides, self._span)
        return operators.binary(_BINARY[name], *sides, self._span)

    def unary(self, name: str, x: Any) -> Value:
        assert name == ops.NEG.name
        return operators.unary(ast.USub(), self._value(x), self._span)

    def primitive(self, op: ops.Op, *operands: Any) -> Value:
        return math_functions.primitive(op, tuple(map(self._value, operands)), self._span)

    def kept(self, x: Any) -> Value:
        return self._body.once(expr(self._value(x), self._span), "part", self._node)

    def _value(self, x: Any) -> Value:
        return PythonNumber(x, self._span) if isinstance(x, int | float) else x


def call(body: BodyReader, name: str, node: ast.Call) -> Value:
    """An activation of a number, vector or matrix in a kernel.

    Raises:
        LanguageError: SR0231 for the wrong number of arguments, SR0233 for unknown keywords, SR0312
            for an unknown ``approximate``.
    """
    formula = FORMULAS[name]
    for keyword in node.keywords:
        if name != "gelu" or keyword.arg != "approximate":
            raise body.unknown_keyword(keyword)
        mode = keyword.value.value if isinstance(keyword.value, ast.Constant) else None
        if mode not in GELUS:
            written = f"`approximate={ast.unparse(keyword.value)}`"
            raise body.error("SR0312", keyword.value, name=name, found=written,
                             help='write `"none"` or `"tanh"`')  # fmt: skip
        formula = GELUS[str(mode)]
    if len(node.args) != 1:
        raise body.error("SR0231", node, name=name, found=len(node.args), wanted=1)
    span, argument = body.span(node), body.value(node.args[0])
    x = expr(argument if name == "relu" else to_float(argument), span)
    is_half = scalar_of(x.type) == HALF and name != "relu"
    wide = cast(x, with_scalar(x.type, FLOAT)) if is_half else x
    of = _InKernel(body, node)
    activation = expr(formula(of, of.kept(wide)), span)
    return cast(activation, x.type) if is_half else activation
