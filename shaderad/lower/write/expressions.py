"""IR expressions -> Slang text."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any

from shaderad.bodies.outputs import AlreadyRead, CheckIndex
from shaderad.bodies.ranges import InRange
from shaderad.diagnostics import Span
from shaderad.ir import nodes, ops
from shaderad.ir.tables import check_rows
from shaderad.ir.types import (
    DOUBLE,
    FLOAT,
    INT,
    UINT,
    Kind,
    LocalArray,
    Matrix,
    Scalar,
    TextureType,
    Type,
    Vector,
    is_float,
    is_integer,
    scalar_of,
)
from shaderad.ir.walk import children
from shaderad.lower.bindings import SiteKind
from shaderad.lower.prepare.float_ranges import fits
from shaderad.lower.prepare.known import AtRunTime, with_hidden_divisor
from shaderad.lower.prepare.watches import Watched
from shaderad.lower.write import accumulate
from shaderad.lower.write.text import is_plain_number, literal
from shaderad.rules.nodes import Cotangent, Leap

if TYPE_CHECKING:
    from shaderad.lower.write.body import BodyWriter

# Precedence of operators; a higher one binds tighter.
_PRIMARY = 100
_PRECEDENCE = {
    "*": 90, "/": 90, "%": 90, "+": 80, "-": 80, "<": 60, "<=": 60, ">": 60, ">=": 60,
    "==": 50, "!=": 50, "&": 45, "^": 44, "|": 43, "&&": 30, "||": 20,
}  # fmt: skip
_UNARY = 95
_CONDITIONAL = 10
_BITCASTS = {Kind.FLOAT: "asfloat", Kind.INT: "asint", Kind.UINT: "asuint"}


def _divides_by_number(e: nodes.Apply) -> bool:
    """True for a quotient or rest of unsigned numbers whose divisor is a constant other than 0."""
    divisor = e.args[1]
    return e.type == UINT and isinstance(divisor, nodes.Const) and divisor.value != 0


class ExpressionWriter:
    """Writes the expressions of one function."""

    def __init__(self, function: BodyWriter) -> None:
        self.function = function
        self.module = function.module

    def text(self, e: nodes.Expr, strength: int = 0) -> str:
        """`e` as Slang text, in parentheses if its precedence is below `strength`."""
        text, own = self._spelled(e)
        return f"({text})" if own < strength else text

    def _spelled(self, e: nodes.Expr) -> tuple[str, int]:
        primary = _PRIMARIES.get(type(e))
        return _OPERATORS[type(e)](self, e) if primary is None else (primary(self, e), _PRIMARY)

    def arguments(self, args: Iterable[nodes.Expr]) -> str:
        return ", ".join(map(self.text, args))

    def const(self, e: nodes.Const) -> tuple[str, int]:
        assert isinstance(e.type, Scalar)
        if not is_plain_number(float(e.value), e.type):
            return self.module.bits_word(float(e.value), e.type), _PRIMARY
        text = literal(e.value, e.type)
        return text, _UNARY if text.startswith("-") else _PRIMARY

    # -- operators ------------------------------------------------------------------------------

    def apply(self, e: nodes.Apply) -> tuple[str, int]:
        e = with_hidden_divisor(e, self.function.folded)
        spelling = ops.slang_function(e.op, e.type)
        if "{" in spelling:
            return self._operator(e, spelling)
        if e.op in (ops.FLOOR_DIV, ops.MOD) and is_integer(e.type):
            if _divides_by_number(e):
                return self._infix(e, "/" if e.op is ops.FLOOR_DIV else "%")
            report, site = self._report(SiteKind.DIVISION, e.span, e.op.name)
            return f"{spelling}<{report}>({self.arguments(e.args)}, {site})", _PRIMARY
        return f"{spelling}({self.arguments(e.args)})", _PRIMARY

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
        return self._infix(e, spelling.split()[1])

    def _infix(self, e: nodes.Apply, symbol: str) -> tuple[str, int]:
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
        return f"{name}({self.arguments(e.args)})", _PRIMARY

    def at_run_time(self, e: AtRunTime) -> str:
        zero = self.module.zero()
        if e.type != FLOAT:
            zero = f"{self.module.types.spell(e.type)}({zero})"
        return f"atRunTime({self.text(e.value)}, {zero})"

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

    def cast(self, e: nodes.Cast) -> str:
        if is_integer(e.type) and is_float(e.value.type) and not fits(e.value, e.type):
            function = "toInt" if scalar_of(e.type) == INT else "toUint"
            return f"{function}({self.text(e.value)})"
        return self.construct(e)

    def construct(self, e: nodes.Construct | nodes.Cast | nodes.Splat) -> str:
        return f"{self.module.types.spell(e.type)}({self.arguments(children(e))})"

    def bitcast(self, e: nodes.Bitcast) -> str:
        if e.value.type == DOUBLE:
            return f"wordsOf({self.text(e.value)})"
        scalar = scalar_of(e.type)
        assert scalar is not None
        return f"{_BITCASTS[scalar.kind]}({self.text(e.value)})"

    # -- parts ----------------------------------------------------------------------------------

    def field(self, e: nodes.Field) -> str:
        name = self.module.field(e.value.type, e.name)
        return f"{self.text(e.value, _PRIMARY)}.{name}"

    def element(self, e: nodes.Element) -> str:
        container = e.value.type
        if isinstance(e.index, nodes.Const):
            index = int(e.index.value)
            if isinstance(container, Vector):
                return f"{self.text(e.value, _PRIMARY)}.{'xyzw'[index]}"
            return f"{self.text(e.value, _PRIMARY)}[{index}]"
        if self.function.is_inside(e.index):
            return f"{self.text(e.value, _PRIMARY)}[{self.text(e.index)}]"
        index, value = self.local_index(e.index, container), self.text(e.value)
        if isinstance(container, Matrix):
            return f"row({value}, {index})"
        function = "component" if isinstance(container, Vector) else "at"
        return f"{function}({value}, {index}, {self.module.types.zero(e.type)})"

    def local_index(self, index: nodes.Expr, container: Type) -> str:
        """The text of a checked position: `outside` for an index out of range."""
        assert isinstance(container, Vector | Matrix | LocalArray)
        count = container.row_count if isinstance(container, Matrix) else container.count
        if self.module.is_unchecked:
            return f"uint({self.text(index)})"
        report, site = self._report(SiteKind.BOUNDS, index.span, str(container))
        return f"localIndex<{report}>({self.text(index)}, {count}, {site})"

    # -- buffers --------------------------------------------------------------------------------

    def load(self, e: nodes.Load) -> str:
        index = self.checked_index(e.buffer, e.indices, e.span)
        tag = self.module.arrays.reader_tag(e.buffer)
        if isinstance(self.module.kernel.buffer(e.buffer).type, TextureType):
            return f"{tag}.texel({index})"
        element = self.module.types.spell(e.type)
        read = "readInside" if self.is_there(e.indices[0]) else "read"
        return f"{read}<{element}, {tag}>({index})"

    def filtered(self, e: nodes.TextureCall) -> str:
        """The read of a texture by its unit."""
        texture, sampler = self.module.arrays.filtered(e.texture, e.sampler)
        method = "SampleGrad" if e.read is nodes.TextureRead.STEPS else "SampleLevel"
        level = ", 0.0" if e.read is nodes.TextureRead.BASE else ""
        return f"{texture}.{method}({sampler}, {self.arguments(e.args[2:])}{level})"

    def is_there(self, index: nodes.Expr) -> bool:
        """True if an access with this first index needs no check."""
        is_known = isinstance(index, nodes.KnownNumber) and index.is_inside
        return is_known or isinstance(index, InRange) or self.module.is_unchecked

    def _report(self, kind: SiteKind, span: Span, name: str) -> tuple[str, str]:
        """The report type and site number of a place; replayed loops do not report."""
        if self.function.is_silent:
            return "NoReport", "0"
        return self.module.report, self.module.site(kind, span, name)

    def already_read(self, e: AlreadyRead) -> str:
        name = self.text(e.value)
        if self.is_there(e.indices[0]):
            return name
        return f"alreadyRead({self.checked_index(e.buffer, e.indices, e.span)}, {name})"

    def checked_index(self, buffer: str, indices: tuple[nodes.Expr, ...], span: Span) -> str:
        """The text of an element number: `outside` for an index out of range."""
        if isinstance(indices[0], nodes.KnownNumber):
            return self.text(indices[0])
        if isinstance(indices[0], nodes.PointerIndex):
            return self._pointed_index(buffer, indices[0], span)
        primal = self.module.shaped_as(buffer)
        tag = self.module.arrays.tag(primal)
        values = self.arguments(indices)
        if self.is_there(indices[0]):
            return f"elementNumber<{tag}>({values})"
        # An index of a tangent is reported by the access to the primal array.
        if self.function.is_silent or primal != buffer:
            return f"elementIndex<{tag}, NoReport>({values}, 0)"
        site = self.module.site(SiteKind.BOUNDS, span, buffer)
        return self.module.arrays.checked_index(buffer, values, site)

    def _pointed_index(self, buffer: str, e: nodes.PointerIndex, span: Span) -> str:
        """The element number behind a pointer, whose range is inside its array."""
        self.module.arrays.tag(buffer)
        pointer, index = self.text(e.pointer, _PRIMARY), self.text(e.index)
        if self.module.is_unchecked:
            return f"{pointer}.at({index})"
        name = self.module.kernel.buffer(buffer).shown_name
        report, site = self._report(SiteKind.BOUNDS, span, name)
        return f"{pointer}.at<{report}>({index}, {site})"

    def watched(self, e: Watched) -> str:
        name = self.module.shown_names.get(e.name, e.name)
        site = self.module.site(SiteKind.FINITE, e.span, name)
        spelled = self.module.types.spell(e.type)
        return f"watched<{spelled}, Report>({self.text(e.value)}, {site}, {e.kind})"

    def team_lane(self, e: nodes.TeamLane) -> str:
        if e.is_of_group:
            return f"groupTeamLane({e.size})"
        return self.in_team(f"teamLane({e.size})")

    def look_back(self, e: nodes.LookBack) -> str:
        tag = self.module.arrays.tag(e.buffer)
        numbers = ", ".join(f"uint({self.text(n)})" for n in (e.first, e.part, e.goal))
        lanes = "LookingWave" if e.is_by_wave else "LookingThread"
        text = f"lookBack<{tag}, {lanes}>({numbers}, asuint({self.text(e.total)}))"
        return self.in_team(text) if e.is_by_wave else text

    def in_team(self, text: str) -> str:
        """Notes that threads read values that other threads hold."""
        self.module.features.add("subgroups")
        return text

    def wrapped(self, e: nodes.Detach | InRange | nodes.KnownNumber) -> tuple[str, int]:
        return self._spelled(e.number if isinstance(e, nodes.KnownNumber) else e.value)


_OPERATORS: dict[type[nodes.Expr], Callable[..., tuple[str, int]]] = {
    nodes.Const: ExpressionWriter.const,
    nodes.Apply: ExpressionWriter.apply,
    nodes.Logical: ExpressionWriter.logical,
    nodes.Conditional: ExpressionWriter.conditional,
    nodes.Detach: ExpressionWriter.wrapped,
    nodes.KnownNumber: ExpressionWriter.wrapped,
    InRange: ExpressionWriter.wrapped,
}
"""Text and precedence."""
_PRIMARIES: dict[type[nodes.Expr], Callable[[ExpressionWriter, Any], str]] = {
    nodes.Zero: lambda w, e: w.module.types.zero(e.type),
    nodes.Var: lambda w, e: w.function.variable(e.name),
    nodes.Length: lambda w, e: f"int({w.module.arrays.extent(e.buffer, e.axis)})",
    nodes.PointerLength: lambda w, e: f"int({w.text(e.pointer, _PRIMARY)}.count)",
    nodes.Cast: ExpressionWriter.cast,
    nodes.Construct: ExpressionWriter.construct,
    nodes.Splat: ExpressionWriter.construct,
    nodes.Bitcast: ExpressionWriter.bitcast,
    nodes.Field: ExpressionWriter.field,
    nodes.Swizzle: lambda w, e: f"{w.text(e.value, _PRIMARY)}.{e.components}",
    nodes.Element: ExpressionWriter.element,
    nodes.Load: ExpressionWriter.load,
    nodes.TeamLane: ExpressionWriter.team_lane,
    nodes.OfLane: lambda w, e: w.in_team(f"ofLane({w.text(e.value)}, {e.mask})"),
    nodes.OfLaneBelow: lambda w, e: w.in_team(f"ofLaneBelow({w.text(e.value)}, {e.distance})"),
    nodes.OfTeam: lambda w, e: w.in_team(f"ofTeam({w.text(e.value)}, {e.lane}, {e.size})"),
    nodes.LookBack: ExpressionWriter.look_back,
    nodes.TextureCall: ExpressionWriter.filtered,
    nodes.Call: lambda w, e: f"{w.module.function(e.function)}({w.arguments(e.args)})",
    AlreadyRead: ExpressionWriter.already_read,
    AtRunTime: ExpressionWriter.at_run_time,
    CheckIndex: lambda w, e: w.checked_index(e.buffer, e.indices, e.span),
    Cotangent: lambda w, e: accumulate.cotangent_text(w.function, e),
    Leap: lambda w, e: f"leap({w.text(e.count)}, {w.text(e.states)})",
    Watched: ExpressionWriter.watched,
}
"""Texts that need no parentheses."""
# `Load` writes the numbers of elements; derivatives inside kernels were made before.
check_rows(
    _OPERATORS | _PRIMARIES,
    nodes.EXPRESSIONS,
    but=(nodes.PointerIndex, nodes.ForwardDiff, nodes.MakePair, nodes.PairPart),
)
