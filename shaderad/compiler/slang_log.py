"""The log of the Slang compiler -> diagnostics, each at its Python line.

Slang 2026.12 prints two forms, both with the file and line of `#line`:

    error[E30015]: undefined identifier          k.py(7): note 99999: an internal error ...
      --> model.py:12:27                         float f(float x) { double y = double(x); }
       |                                                             ^
    12 | float f(float v) { return sinn(v); }
       |                           ^^^^ undefined identifier 'sinn'.
    ---'
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from shaderad.compiler.artifact import Program, SlangDiagnostic
from shaderad.diagnostics import Span

if TYPE_CHECKING:
    from collections.abc import Iterator

_SEVERITY = r"(?P<severity>(?:abort compilation: )?(?:(?:fatal|internal) )?error|warning|note)"
_FRAMED = re.compile(_SEVERITY + r"\[(?P<code>\w+)\]:? (?P<message>.*)")
_PLAIN = re.compile(
    r"(?P<file>[^\n(]+)\((?P<line>\d+)(?:,\d+)?\): "
    + _SEVERITY
    + r" (?P<code>\w+): (?P<message>.*)"
)
_PLACE = re.compile(r"\s*-+> (?P<file>.+):(?P<line>\d+):\d+")
_LABEL = re.compile(r"\s*\| +\^+ (?P<label>\S.*)")
# Errors that only report an earlier error.
_ECHOES = frozenset({"E39999", "E40003"})


def parse(log: str) -> tuple[SlangDiagnostic, ...]:
    """The diagnostics in `log`, in order; errors that only report another one are dropped."""
    diagnostics = tuple(_read(block) for block in _blocks(log))
    return tuple(d for d in diagnostics if d.code not in _ECHOES) or diagnostics


def failure(diagnostics: tuple[SlangDiagnostic, ...]) -> SlangDiagnostic | None:
    """The first error with a place, else the first error, else `None`."""
    errors = [d for d in diagnostics if d.severity == "error"]
    placed = [d for d in errors if d.line]
    return next(iter(placed or errors), None)


def span_of(diagnostic: SlangDiagnostic, program: Program) -> Span | None:
    """The place in the Python source, by lines: columns are those of the generated text."""
    if not diagnostic.line:
        return None
    if not diagnostic.file.endswith(".py"):
        is_library = diagnostic.file.endswith(".slang") and "shaders" in diagnostic.file
        spans = () if is_library else program.spans
        span = spans[diagnostic.line - 1] if diagnostic.line <= len(spans) else None
        return span if span is not None and span.line else None
    text = Span(diagnostic.file, diagnostic.line).text()
    indent = len(text) - len(text.lstrip())
    return Span(diagnostic.file, diagnostic.line, indent, len(text))


def _blocks(log: str) -> Iterator[list[str]]:
    """The lines of each diagnostic; text before the first one is dropped."""
    block: list[str] = []
    for line in log.splitlines():
        if _FRAMED.match(line) or _PLAIN.match(line):
            if block:
                yield block
            block = [line]
        elif block:
            block.append(line)
    if block:
        yield block


def _read(block: list[str]) -> SlangDiagnostic:
    head = _FRAMED.match(block[0]) or _PLAIN.match(block[0])
    assert head is not None
    place = head if "file" in head.groupdict() else None
    label = ""
    for line in block[1:]:
        place = place or _PLACE.match(line)
        matched = _LABEL.match(line)
        label = label or (matched["label"] if matched else "")
    severity = "error" if head["severity"].endswith("error") else head["severity"]
    return SlangDiagnostic(
        severity=severity,
        code=head["code"],
        message=label.removesuffix(".") or head["message"].removesuffix("."),
        file=place["file"].strip() if place else "",
        line=int(place["line"]) if place else 0,
        excerpt="\n".join(line.rstrip() for line in block[1:] if line.strip() not in ("", "--'")),
    )
