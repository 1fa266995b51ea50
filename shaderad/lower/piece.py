"""Generated text, line by line, each with the Python line that it comes from."""

from __future__ import annotations

from collections.abc import Sequence

from shaderad.diagnostics import Span

LINE_LENGTH = 100
"""Calls beyond it are broken; other lines may be longer."""


class Piece:
    """A stretch of text at global level, with the Python line of each of its lines."""

    def __init__(self) -> None:
        self.lines: list[tuple[str, Span | None]] = []
        self._depth = 0
        self.span: Span | None = None

    def add(self, text: str = "") -> None:
        """One line at the current depth; braces change the depth of those that follow."""
        if text.startswith("}"):
            self._depth -= 1
        self.lines.append((("    " * self._depth + text).rstrip(), self.span))
        if text == "{":
            self._depth += 1

    def indented(self, text: str) -> None:
        """One line a step deeper: the only statement of an if or loop."""
        self._depth += 1
        self.add(text)
        self._depth -= 1

    def call(self, head: str, arguments: Sequence[str]) -> None:
        """``head(arguments);``, with an argument a line where one line would be too long."""
        line = f"{head}({', '.join(arguments)});"
        if 4 * self._depth + len(line) <= LINE_LENGTH:
            self.add(line)
            return
        self.add(f"{head}(")
        for argument in arguments[:-1]:
            self.indented(f"{argument},")
        self.indented(f"{arguments[-1]});")

    def open(self, head: str) -> None:
        self.add(head)
        self.add("{")

    def close(self, tail: str = "}") -> None:
        self.add(tail)
