"""IR statements -> Slang text, with the user's names and order, one statement a line."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from shaderad.bodies.outputs import CheckIndex
from shaderad.bodies.ranges import InRange
from shaderad.bodies.write_numbers import NumberedAccumulate
from shaderad.ir.nodes import (
    STATEMENTS,
    Accumulate,
    AccumulateGradient,
    Assert,
    Assign,
    BackwardDiff,
    Break,
    Const,
    Continue,
    Evaluate,
    Expr,
    For,
    If,
    KnownNumber,
    Print,
    Return,
    Stmt,
    Store,
    While,
)
from shaderad.ir.tables import check_rows
from shaderad.ir.types import LocalArray, Type, memory_of
from shaderad.ir.walk import reads
from shaderad.lower.bindings import SiteKind
from shaderad.lower.prepare.known import Folded
from shaderad.lower.prepare.watches import Watch
from shaderad.lower.write import accumulate
from shaderad.lower.write.assignments import write_assign
from shaderad.lower.write.declarations import is_inside_one_block, mentions
from shaderad.lower.write.expressions import ExpressionWriter
from shaderad.lower.write.loop_statements import write_for, write_reverse, write_while
from shaderad.lower.write.piece import Piece
from shaderad.rules.nodes import ReverseFor

if TYPE_CHECKING:
    from shaderad.lower.write.module import Module


_LONG_BYTES = 256
"""Shorter local arrays compile faster without a loop over their elements."""


class FunctionWriter:
    """Writes a function body into a piece of the module."""

    def __init__(
        self,
        module: Module,
        piece: Piece,
        types: Mapping[str, Type],
        *,
        folded: Mapping[str, Folded] | None = None,
        watch: Watch | None = None,
    ) -> None:
        self.module = module
        self.piece = piece
        self.types = dict(types)
        self._watch = watch or Watch(module.mode, {})
        self.folded = folded or {}
        """The constant folding of names (``lower/prepare/known.py``)."""
        self.names = module.names.child()
        self.expressions = ExpressionWriter(self)
        self.is_silent = False
        """True inside loops that run again, whose first run has reported."""
        self._text_by_name: dict[str, str] = {}
        self._declared: set[str] = set()

    # -- names ----------------------------------------------------------------------------------

    def variable(self, name: str) -> str:
        """The text of a local."""
        if name not in self._text_by_name:
            self._text_by_name[name] = self.names.make(name)
        return self._text_by_name[name]

    def bind(self, name: str, text: str) -> None:
        """Makes `text`, declared elsewhere, the text of `name`."""
        self._text_by_name[name] = text
        self._declared.add(name)

    def parameter(self, name: str) -> str:
        self.declare(name)
        return self.variable(name)

    def declare(self, name: str) -> None:
        self._declared.add(name)

    def is_declared(self, name: str) -> bool:
        return name in self._declared

    def is_inside(self, index: Expr) -> bool:
        """True if an index of a local array, vector or matrix is known to be in range."""
        return isinstance(index, Const | KnownNumber)

    def text(self, e: Expr, strength: int = 0) -> str:
        return self.expressions.text(e, strength)

    # -- blocks and declarations ------------------------------------------------------------------

    def block(self, body: tuple[Stmt, ...]) -> None:
        """Writes statements; declares each local in the innermost block that has all its uses."""
        mentioned = [mentions(s) for s in body]
        for position, s in enumerate(body):
            self.piece.span = s.span if s.span.line else self.piece.span
            for name in sorted(mentioned[position], key=self._order):
                if name in self._declared or name not in self.types:
                    continue
                elsewhere = any(name in m for k, m in enumerate(mentioned) if k != position)
                if not elsewhere and is_inside_one_block(s, name):
                    continue
                self._write_declaration(name, s)
            self.statement(s)

    def _order(self, name: str) -> int:
        return list(self.types).index(name) if name in self.types else -1

    def _write_declaration(self, name: str, first: Stmt) -> None:
        is_bound_whole = isinstance(first, Assign) and first.name == name and not first.path
        if is_bound_whole and name not in reads((first,)):
            return  # The first assignment declares it.
        self.declare(name)
        self.make_zero(self.variable(name), self.types[name], is_new=True)

    def make_zero(self, variable: str, t: Type, *, is_new: bool) -> None:
        """Declares a variable as zero, or assigns zero."""
        types = self.module.types
        start = f"{types.spell(t)} {variable}" if is_new else variable
        if not (isinstance(t, LocalArray) and memory_of(t) > _LONG_BYTES):
            self.piece.add(f"{start} = {types.zero(t)};")
            return
        if is_new:
            self.piece.add(f"{start};")
        self.piece.add(f"clear({variable}, {types.zero(t.element)}, {self.module.zero()});")

    def statement(self, s: Stmt) -> None:
        if self.module.variant.checks == "nan":
            s = self._watch.statement(s)
        _WRITERS[type(s)](self, s)

    def nested(self, body: tuple[Stmt, ...], *, first: str = "", last: str = "") -> None:
        """Writes a block in braces, between its lines `first` and `last`."""
        self.piece.add("{")
        outer = set(self._declared)
        if first:
            self.piece.add(first)
        self.block(body)
        if last:
            self.piece.add(last)
        self._declared = outer
        self.piece.add("}")

    # -- statements -----------------------------------------------------------------------------

    def evaluate(self, s: Evaluate) -> None:
        if isinstance(s.call, CheckIndex) and (
            self.is_silent or isinstance(s.call.indices[0], InRange)
        ):
            return
        self.piece.add(f"{self.text(s.call)};")

    def branch(self, s: If) -> None:
        self.piece.add(f"if ({self.text(s.condition)})")
        self.nested(s.then)
        if len(s.otherwise) == 1 and isinstance(s.otherwise[0], If):
            inner = s.otherwise[0]
            at = len(self.piece.lines)
            self.branch(inner)
            text, span = self.piece.lines[at]
            indent = len(text) - len(text.lstrip())
            self.piece.lines[at] = (f"{text[:indent]}else {text[indent:]}", span)
        elif s.otherwise:
            self.piece.add("else")
            self.nested(s.otherwise)

    def returns(self, s: Return) -> None:
        if s.value is None:
            self.piece.add("return;")
        else:
            self.piece.add(f"return {self.text(s.value)};")

    def check(self, s: Assert) -> None:
        if self.is_silent:
            return
        site = self.module.site(SiteKind.ASSERT, s.span, s.text)
        self.piece.add(f"if (!({self.text(s.condition)}))")
        self.piece.indented(f"report<{self.module.report}>({site}, 0, 0);")

    def print(self, s: Print) -> None:
        site = self.module.print_site(s)
        words = [word for value in s.values for word in accumulate.words_of(self, value)]
        start = self.names.make("printed")
        self.piece.add(f"uint {start} = startPrint<Printer>({site}, {len(words)});")
        for k, word in enumerate(words):
            self.piece.add(f"printWord<Printer>({start}, {k}, {word});")


_WRITERS: dict[type[Stmt], Callable[..., None]] = {
    Assign: write_assign,
    Store: accumulate.write_store,
    Accumulate: accumulate.write_accumulate,
    NumberedAccumulate: accumulate.write_accumulate,
    AccumulateGradient: accumulate.write_gradient,
    Evaluate: FunctionWriter.evaluate,
    If: FunctionWriter.branch,
    Return: FunctionWriter.returns,
    Assert: FunctionWriter.check,
    Print: FunctionWriter.print,
    For: write_for,
    ReverseFor: write_reverse,
    While: write_while,
}
# Jumps and derivatives inside kernels were made other statements before.
check_rows(_WRITERS, STATEMENTS, but=(BackwardDiff, Break, Continue))
