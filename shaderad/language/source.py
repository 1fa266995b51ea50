"""A Python function -> its syntax tree with positions in the file, and the names that it binds.

Invariants: every node has the line and column of the file. Names are function-scoped as in Python;
a name bound anywhere in the body is local everywhere in it.
"""

from __future__ import annotations

import ast
import inspect
import linecache
from dataclasses import dataclass
from types import FunctionType

from shaderad.diagnostics import Span, error


@dataclass(frozen=True)
class Source:
    """The position of a function, and the lines of its file when it was decorated."""

    name: str
    file: str
    first_line: int
    lines: list[str]
    """The whole file; a list shared with other functions, never changed."""

    @property
    def span(self) -> Span:
        """The first line, of the decorator or ``def``; does not parse."""
        text = self._line(self.first_line).rstrip("\n")
        return Span(self.file, self.first_line, len(text) - len(text.lstrip()), len(text))

    def parse(self) -> ast.FunctionDef:
        """The function's tree."""
        if not self.lines:
            raise error("SR0101", None, name=self.name, file=self.file)
        tree = _parse_block(self.lines[self.first_line - 1 :], self.first_line)
        if isinstance(tree, ast.FunctionDef) and tree.name == self.name:
            return tree
        statement = type(tree).__name__
        if isinstance(tree, ast.AsyncFunctionDef):
            raise error("SR0103", self.span, found="an `async def`")
        raise error("SR0102", self.span, name=self.name, found=statement)

    def of(self, node: ast.AST) -> Span:
        """The span of `node` on its first line."""
        line = getattr(node, "lineno", self.first_line)
        start = getattr(node, "col_offset", 0)
        end = getattr(node, "end_col_offset", start + 1)
        text = self._line(line)
        # ast counts bytes of UTF-8; spans count characters.
        start = len(text.encode()[:start].decode(errors="ignore"))
        if getattr(node, "end_lineno", line) != line:
            return Span(self.file, line, start, len(text.rstrip()))
        return Span(self.file, line, start, len(text.encode()[:end].decode(errors="ignore")))

    def _line(self, line: int) -> str:
        return self.lines[line - 1] if 0 < line <= len(self.lines) else ""


def source_of(function: FunctionType) -> Source:
    """The source of a function; reads the file now, since it may be edited later."""
    code = function.__code__
    linecache.checkcache(code.co_filename)
    lines = linecache.getlines(code.co_filename, function.__globals__)
    return Source(function.__name__, code.co_filename, code.co_firstlineno, lines)


def _parse_block(lines: list[str], first_line: int) -> ast.stmt | None:
    """Parses the first block of `lines`, whatever its indent, keeping lines and columns."""
    try:
        block = inspect.getblock(lines)
        # An indented block parses under an `if`; unlike dedenting, that keeps its columns.
        prefix = "if True:\n" if block and block[0][:1] in (" ", "\t") else ""
        module = ast.parse(prefix + "".join(block))
    except (SyntaxError, IndexError):
        return None
    if not module.body:
        return None
    tree = module.body[0]
    if prefix and isinstance(tree, ast.If):
        tree = tree.body[0]
    ast.increment_lineno(tree, first_line - 1 - bool(prefix))
    return tree


class BoundNames(ast.NodeVisitor):
    """The names of one function body.

    Attributes:
        bound: Every name that the body assigns or loops over.
        loop_only: Loop variables that are neither assigned otherwise nor read outside their
            loops: they become variables of IR loops.
        mentioned: Every name that occurs; generated names avoid them.
    """

    def __init__(self, function: ast.FunctionDef) -> None:
        self.bound: set[str] = set()
        self.mentioned: set[str] = {a.arg for a in ast.walk(function) if isinstance(a, ast.arg)}
        self._targets: set[str] = set()
        self._others: set[str] = set()
        self._active: list[str] = []
        self._reads: list[tuple[str, tuple[str, ...]]] = []
        for statement in function.body:
            self.visit(statement)
        outside = {name for name, active in self._reads if name not in active}
        self.loop_only = self._targets - self._others - outside

    def visit_Name(self, node: ast.Name) -> None:
        self.mentioned.add(node.id)
        if isinstance(node.ctx, ast.Load):
            self._reads.append((node.id, tuple(self._active)))
        else:
            self.bound.add(node.id)
            self._others.add(node.id)

    def visit_AugAssign(self, node: ast.AugAssign) -> None:
        if isinstance(node.target, ast.Name):
            self._reads.append((node.target.id, tuple(self._active)))
        self.generic_visit(node)

    def visit_If(self, node: ast.If) -> None:
        """Iterates over ``elif``s, which nest: long chains would exceed the recursion limit."""
        while True:
            self.visit(node.test)
            for statement in node.body:
                self.visit(statement)
            following = node.orelse[0] if len(node.orelse) == 1 else None
            if not isinstance(following, ast.If):
                break
            node = following
        for statement in node.orelse:
            self.visit(statement)

    def visit_For(self, node: ast.For) -> None:
        self.visit(node.iter)
        if not isinstance(node.target, ast.Name):
            self.visit(node.target)
            return
        name = node.target.id
        self.bound.add(name)
        self.mentioned.add(name)
        self._targets.add(name)
        if name in self._active:
            self._others.add(name)
        self._active.append(name)
        for statement in node.body:
            self.visit(statement)
        self._active.pop()
        for statement in node.orelse:
            self.visit(statement)
