"""IR expressions -> Slang text."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING

from shaderad.bodies.outputs import AlreadyRead, CheckIndex
from shaderad.bodies.ranges import InRange
from shaderad.diagnostics import Span
from shaderad.ir import nodes, ops
from shaderad.ir.tables import check_rows
from shaderad.ir.types import (
    FLOAT,
    UINT,
    Kind,
    LocalArray,
    Matrix,
    Scalar,
    Type,
    Vector,
    is_float,
    is_integer,
    scalar_of,
)
from shaderad.ir.walk import children
from shaderad.lower.bindings import SiteKind
from shaderad.lower.prepare.known import AtRunTime, with_hidden_divisor
from shaderad.lower.prepare.watches import Watched
from shaderad.lower.write import accumulate
from shaderad.lower.write.text import is_plain_number, literal
from shaderad.rules.nodes import Cotangent, Leap

if TYPE_CHECKING:
    from shaderad.lower.write.functions import FunctionWriter

# Precedence of operators; a higher one binds tighter.
_PRIMARY = 100
_PRECEDENCE = {
    "*": 90, "/": 90, "+": 80, "-": 80, "<": 60, "<=": 60, ">": 60, ">=": 60,
    "==": 50, "!=": 50, "&": 45, "^": 44, "|": 43, "&&": 30, "||": 20,
}  # fmt: skip
_UNARY = 95
_CONDITIONAL = 10
_BITCASTS = {Kind.FLOAT: "asfloat", Kind.INT: "asint", Kind.UINT: "asuint"}


class ExpressionWriter:
    """Writes the expressions of one function."""

    def __init__(self, function: FunctionWriter) -> None:
        self._function = function
        self._module = function.module

    def text(self, e: nodes.Expr, strength: int = 0) -> str:
        """`e` as Slang text, in parentheses if its precedence is below `strength`."""
        text, own = self._spelled(e)
        return f"({text})" if own < strength else text

    def _spelled(self, e: nodes.Expr) -> tuple[str, int]:
        write = _WRITERS.get(type(e))
        if write is None:
            raise TypeError(f"no Slang text for {type(e).__name__}")
        return write(self, e)

    def _arguments(self, args: Iterable[nodes.Expr]) -> str:
        return ", ".join(map(self.text, args))

    # -- leaves ---------------------------------------------------------------------------------

    def const(self, e: nodes.Const) -> tuple[str, int]:
        assert isinstance(e.type, Scalar)
        if not is_plain_number(float(e.value), e.type):
            return self._module.bits_word(float(e.value), e.type), _PRIMARY
        text = literal(e.value, e.type)
        return text, _UNARY if text.startswith("-") else _PRIMARY

    def zero(self, e: nodes.Zero) -> tuple[str, int]:
        return self._module.types.zero(e.type), _PRIMARY

    def var(self, e: nodes.Var) -> tuple[str, int]:
        return self._function.variable(e.name), _PRIMARY

    def length(self, e: nodes.Length) -> tuple[str, int]:
        return f"int({self._module.arrays.extent(e.buffer, e.axis)})", _PRIMARY

    # -- operators ------------------------------------------------------------------------------

    def apply(self, e: nodes.Apply) -> tuple[str, int]:
        e = with_hidden_divisor(e, self._function.folded)
        spelling = ops.slang_function(e.op, e.type)
        if "{" in spelling:
            return self._operator(e, spelling)
        if e.op in (ops.FLOOR_DIV, ops.MOD) and is_integer(e.type):
            report, site = self._report(SiteKind.DIVISION, e.span, e.op.name)
            return f"{spelling}<{report}>({self._arguments(e.args)}, {site})", _PRIMARY
        return f"{spelling}({self._arguments(e.args)})", _PRIMARY

    def _operator(self, e: nodes.Apply, spelling: str) -> tuple[str, int]:
        if self.has_matrix_form(e):
            return self._matrix_operator(e)
        if e.op is ops.NEG and isinstance(e.type, Vector):
            # Slang writes `-(a + b)` as `vec3(0) - a + b` in WGSL.
            factor = 2**32 - 1 if e.type.element == UINT else -1
            text = self.text(e.args[0], _PRECEDENCE["*"] + 1)
            return f"{literal(factor, e.type.element)} * {text}", _PRECEDENCE["*"]
        if len(e.args) == 1:
            symbol = spelling[0]
            if e.op in (ops.BIT_NOT, ops.NOT) and scalar_of(e.args[0].type) == Scalar(Kind.BOOL):
                symbol = "!"
            return symbol + self.text(e.args[0], _PRIMARY), _UNARY
        symbol = spelling.split()[1]
        strength = _PRECEDENCE[symbol]
        sides = self._sides(e)
        left, right = self.text(sides[0], strength), self.text(sides[1], strength + 1)
        if e.op is ops.NE and is_float(e.args[0].type):
            # naga evaluates `!=` of WGSL to false for NaN.
            return f"!({left} == {right})", _UNARY
        return f"{left} {symbol} {right}", strength

    def has_matrix_form(self, e: nodes.Apply) -> bool:
        """True if `e` is a matrix whose operator is missing on some target.

        WGSL and Metal neither negate nor divide matrices. glslang reads HLSL's product by component
        as the matrix product.
        """
        if not isinstance(e.type, Matrix):
            return False
        is_product = e.op is ops.MUL and all(s.type == e.type for s in self._sides(e))
        return is_product or e.op in (ops.NEG, ops.DIV)

    def _matrix_operator(self, e: nodes.Apply) -> tuple[str, int]:
        if e.op is ops.NEG:
            return f"{self.text(e.args[0], _PRECEDENCE['*'])} * -1.0", _PRECEDENCE["*"]
        name = "multiplyMatrix" if e.op is ops.MUL else "divideMatrix"
        return f"{name}({self._arguments(e.args)})", _PRIMARY

    def at_run_time(self, e: AtRunTime) -> tuple[str, int]:
        zero = self._module.zero()
        if e.type != FLOAT:
            zero = f"{self._module.types.spell(e.type)}({zero})"
        return f"atRunTime({self.text(e.value)}, {zero})", _PRIMARY

    def _sides(self, e: nodes.Apply) -> tuple[nodes.Expr, nodes.Expr]:
        """Operands without splats: Slang promotes a scalar to a vector or matrix."""
        left, right = e.args
        if isinstance(left, nodes.Splat) and not isinstance(right, nodes.Splat):
            return left.value, right
        if isinstance(right, nodes.Splat) and not isinstance(left, nodes.Splat):
            return left, right.value
        return left, right

    def logical(self, e: nodes.Logical) -> tuple[str, int]:
        symbol = "&&" if e.is_and else "||"
        own = _PRECEDENCE[symbol]
        return f"{self.text(e.left, own)} {symbol} {self.text(e.right, own + 1)}", own

    def conditional(self, e: nodes.Conditional) -> tuple[str, int]:
        condition, if_true, if_false = (self.text(p, _CONDITIONAL + 1) for p in children(e))
        return f"{condition} ? {if_true} : {if_false}", _CONDITIONAL

    # -- conversions ----------------------------------------------------------------------------

    def construct(self, e: nodes.Construct | nodes.Cast | nodes.Splat) -> tuple[str, int]:
        return f"{self._module.types.spell(e.type)}({self._arguments(children(e))})", _PRIMARY

    def bitcast(self, e: nodes.Bitcast) -> tuple[str, int]:
        scalar = scalar_of(e.type)
        assert scalar is not None
        return f"{_BITCASTS[scalar.kind]}({self.text(e.value)})", _PRIMARY

    # -- parts ----------------------------------------------------------------------------------

    def field(self, e: nodes.Field) -> tuple[str, int]:
        name = self._module.field(e.value.type, e.name)
        return f"{self.text(e.value, _PRIMARY)}.{name}", _PRIMARY

    def swizzle(self, e: nodes.Swizzle) -> tuple[str, int]:
        return f"{self.text(e.value, _PRIMARY)}.{e.components}", _PRIMARY

    def element(self, e: nodes.Element) -> tuple[str, int]:
        container = e.value.type
        if isinstance(e.index, nodes.Const):
            index = int(e.index.value)
            if isinstance(container, Vector):
                return f"{self.text(e.value, _PRIMARY)}.{'xyzw'[index]}", _PRIMARY
            return f"{self.text(e.value, _PRIMARY)}[{index}]", _PRIMARY
        if self._function.is_inside(e.index):
            return f"{self.text(e.value, _PRIMARY)}[{self.text(e.index)}]", _PRIMARY
        index, value = self.local_index(e.index, container), self.text(e.value)
        if isinstance(container, Matrix):
            return f"row({value}, {index})", _PRIMARY
        function = "component" if isinstance(container, Vector) else "at"
        return f"{function}({value}, {index}, {self._module.types.zero(e.type)})", _PRIMARY

    def local_index(self, index: nodes.Expr, container: Type) -> str:
        """The text of a checked position: `outside` for an index out of range."""
        assert isinstance(container, Vector | Matrix | LocalArray)
        count = container.row_count if isinstance(container, Matrix) else container.count
        if self._module.is_unchecked:
            return f"uint({self.text(index)})"
        report, site = self._report(SiteKind.BOUNDS, index.span, str(container))
        return f"localIndex<{report}>({self.text(index)}, {count}, {site})"

    # -- buffers --------------------------------------------------------------------------------

    def load(self, e: nodes.Load) -> tuple[str, int]:
        index = self.checked_index(e.buffer, e.indices, e.span)
        tag = self._module.arrays.tag(e.buffer)
        element = self._module.types.spell(e.type)
        read = "readInside" if self._is_there(e.indices[0]) else "read"
        return f"{read}<{element}, {tag}>({index})", _PRIMARY

    def _is_there(self, index: nodes.Expr) -> bool:
        """True if an access with this first index needs no check."""
        is_known = isinstance(index, nodes.KnownNumber) and index.is_inside
        return is_known or isinstance(index, InRange) or self._module.is_unchecked

    def _report(self, kind: SiteKind, span: Span, name: str) -> tuple[str, str]:
        """The report type and site number of a place; loops that run again do not report."""
        if self._function.is_silent:
            return "NoReport", "0"
        return self._module.report, self._module.site(kind, span, name)

    def already_read(self, e: AlreadyRead) -> tuple[str, int]:
        name = self.text(e.value)
        if self._is_there(e.indices[0]):
            return name, _PRIMARY
        return f"alreadyRead({self.checked_index(e.buffer, e.indices, e.span)}, {name})", _PRIMARY

    def cotangent(self, e: Cotangent) -> tuple[str, int]:
        return accumulate.cotangent_text(self._function, e), _PRIMARY

    def leap(self, e: Leap) -> tuple[str, int]:
        return f"leap({self.text(e.count)}, {self.text(e.states)})", _PRIMARY

    def check_index(self, e: CheckIndex) -> tuple[str, int]:
        return self.checked_index(e.buffer, e.indices, e.span), _PRIMARY

    def checked_index(self, buffer: str, indices: tuple[nodes.Expr, ...], span: Span) -> str:
        """The text of an element number: `outside` for an index out of range."""
        if isinstance(indices[0], nodes.KnownNumber):
            return self.text(indices[0])
        if isinstance(indices[0], nodes.PointerIndex):
            return self._pointed_index(buffer, indices[0], span)
        primal = self._module.shaped_as(buffer)
        tag = self._module.arrays.tag(primal)
        values = self._arguments(indices)
        if self._is_there(indices[0]):
            return f"elementNumber<{tag}>({values})"
        # An index of a tangent is reported by the access to the primal array.
        if self._function.is_silent or primal != buffer:
            return f"elementIndex<{tag}, NoReport>({values}, 0)"
        site = self._module.site(SiteKind.BOUNDS, span, buffer)
        return self._module.arrays.checked_index(buffer, values, site)

    def _pointed_index(self, buffer: str, e: nodes.PointerIndex, span: Span) -> str:
        """The element number behind a pointer, whose range is inside its array."""
        self._module.arrays.tag(buffer)
        pointer, index = self.text(e.pointer, _PRIMARY), self.text(e.index)
        if self._module.is_unchecked:
            return f"{pointer}.at({index})"
        name = self._module.kernel.buffer(buffer).shown_name
        report, site = self._report(SiteKind.BOUNDS, span, name)
        return f"{pointer}.at<{report}>({index}, {site})"

    def pointer_length(self, e: nodes.PointerLength) -> tuple[str, int]:
        return f"int({self.text(e.pointer, _PRIMARY)}.count)", _PRIMARY

    def watched(self, e: Watched) -> tuple[str, int]:
        name = self._module.shown_names.get(e.name, e.name)
        site = self._module.site(SiteKind.FINITE, e.span, name)
        spelled = self._module.types.spell(e.type)
        return f"watched<{spelled}, Report>({self.text(e.value)}, {site}, {e.kind})", _PRIMARY

    # -- calls and derivatives ------------------------------------------------------------------

    def call(self, e: nodes.Call) -> tuple[str, int]:
        name = self._module.function(e.function)
        return f"{name}({self._arguments(e.args)})", _PRIMARY

    def wrapped(self, e: nodes.Detach | InRange | nodes.KnownNumber) -> tuple[str, int]:
        return self._spelled(e.number if isinstance(e, nodes.KnownNumber) else e.value)


_WRITERS: dict[type[nodes.Expr], Callable[..., tuple[str, int]]] = {
    nodes.Const: ExpressionWriter.const,
    nodes.Zero: ExpressionWriter.zero,
    nodes.Var: ExpressionWriter.var,
    nodes.Length: ExpressionWriter.length,
    nodes.PointerLength: ExpressionWriter.pointer_length,
    nodes.Apply: ExpressionWriter.apply,
    nodes.Logical: ExpressionWriter.logical,
    nodes.Conditional: ExpressionWriter.conditional,
    nodes.Cast: ExpressionWriter.construct,
    nodes.Bitcast: ExpressionWriter.bitcast,
    nodes.Construct: ExpressionWriter.construct,
    nodes.Splat: ExpressionWriter.construct,
    nodes.Field: ExpressionWriter.field,
    nodes.Swizzle: ExpressionWriter.swizzle,
    nodes.Element: ExpressionWriter.element,
    nodes.Load: ExpressionWriter.load,
    AlreadyRead: ExpressionWriter.already_read,
    AtRunTime: ExpressionWriter.at_run_time,
    CheckIndex: ExpressionWriter.check_index,
    Cotangent: ExpressionWriter.cotangent,
    Leap: ExpressionWriter.leap,
    Watched: ExpressionWriter.watched,
    InRange: ExpressionWriter.wrapped,
    nodes.KnownNumber: ExpressionWriter.wrapped,
    nodes.Call: ExpressionWriter.call,
    nodes.Detach: ExpressionWriter.wrapped,
}
# `Load` writes the numbers of elements; derivatives inside kernels were made before.
check_rows(
    _WRITERS,
    nodes.EXPRESSIONS,
    but=(nodes.PointerIndex, nodes.ForwardDiff, nodes.MakePair, nodes.PairPart),
)
