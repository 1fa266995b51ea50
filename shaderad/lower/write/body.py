"""A body while it is written: its text so far, the names and types of its locals."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from shaderad.ir import nodes
from shaderad.ir.types import LocalArray, Type, memory_of
from shaderad.lower.prepare.known import Folded
from shaderad.lower.write.text import Piece

if TYPE_CHECKING:
    from shaderad.lower.write.expressions import ExpressionWriter
    from shaderad.lower.write.module import Module

_LONG_BYTES = 256
"""Shorter local arrays compile faster without a loop over their elements."""


class BodyWriter(ABC):
    """Takes the text of statements and expressions, and names locals."""

    expressions: ExpressionWriter

    def __init__(
        self,
        module: Module,
        piece: Piece,
        types: Mapping[str, Type],
        folded: Mapping[str, Folded],
    ) -> None:
        self.module = module
        self.piece = piece
        self.types = dict(types)
        self.folded = folded
        """The constant folding of names (``lower/prepare/known.py``)."""
        self.names = module.names.child()
        self.is_silent = False
        """True inside loops that are replayed, because the first run has reported."""
        self._text_by_name: dict[str, str] = {}
        self.declared: set[str] = set()
        """Names that need no declaration in the block that is written."""

    @abstractmethod
    def text(self, e: nodes.Expr, strength: int = 0) -> str:
        """`e` as Slang text, in parentheses if its precedence is below `strength`."""

    @abstractmethod
    def nested(
        self, body: tuple[nodes.Stmt, ...], *, first: Sequence[str] = (), last: Sequence[str] = ()
    ) -> None:
        """Writes a block in braces, between the lines `first` and `last`."""

    def variable(self, name: str) -> str:
        if name not in self._text_by_name:
            self._text_by_name[name] = self.names.make(name)
        return self._text_by_name[name]

    def bind(self, name: str, text: str) -> None:
        """Makes `text`, declared elsewhere, the text of `name`."""
        self._text_by_name[name] = text
        self.declared.add(name)

    def parameter(self, name: str) -> str:
        self.declared.add(name)
        return self.variable(name)

    def copy_parameter(self, name: str) -> None:
        """Declares a local with the value of a parameter that the body assigns."""
        parameter, local = self.variable(name), self.names.make(name)
        self.bind(name, local)
        self.piece.add(f"{self.module.types.spell(self.types[name])} {local} = {parameter};")

    def is_inside(self, index: nodes.Expr) -> bool:
        """True if an index of a local array, vector or matrix is known to be in range."""
        return isinstance(index, nodes.Const | nodes.KnownNumber)

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
