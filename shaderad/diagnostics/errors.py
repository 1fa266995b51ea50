"""The exception classes of shaderad, and their text with the Python source line."""

from __future__ import annotations

import linecache
import re
import string
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

__all__ = [
    "BoundsError",
    "CallError",
    "CompileError",
    "DerivativeError",
    "DeviceError",
    "Error",
    "GradientError",
    "LanguageError",
    "LimitError",
    "MissingPackageError",
    "NoAxesError",
    "ShapeError",
    "UnknownNameError",
]


class Error(Exception):
    """Base of all errors that shaderad raises on purpose.

    Attributes:
        code: Stable identifier such as ``"SR0210"``.
        span: The Python source that caused it, or `None`; never `NO_SPAN`.
        message: The problem, in one line.
    """

    __module__ = "shaderad"  # tracebacks and pickles use the public name

    def __init_subclass__(cls) -> None:
        cls.__module__ = Error.__module__

    def __init__(
        self,
        code: str,
        message: str,
        *,
        span: Span | None = None,
        label: str = "",
        note: str = "",
        help: str = "",  # noqa: A002 - the word users see
    ) -> None:
        self.code = code
        self.span = None if span == NO_SPAN else span
        self.message = message
        self.label = label
        self.note = note
        self.help = help
        super().__init__(render(self))

    def at(self, span: Span) -> Error:
        """A copy of the error at `span`."""
        return self._changed(span=span)

    def noting(self, lines: Iterable[str]) -> Error:
        """A copy of the error with more lines of note."""
        return self._changed(note="\n".join(filter(None, (self.note, *lines))))

    def helped(self, line: str) -> Error:
        """A copy of the error with another line of help."""
        return self._changed(help=line)

    def _changed(self, **parts: Any) -> Error:
        return type(self)(self.code, self.message, **(self._parts | parts))

    @property
    def _parts(self) -> dict[str, Any]:
        return {name: getattr(self, name) for name in ("span", "label", "note", "help")}

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickles all fields, because the default of exceptions keeps only the text."""
        return (partial(type(self), **self._parts), (self.code, self.message))


class LanguageError(Error):
    """The Python source uses something that kernels do not have, or types disagree."""


class UnknownNameError(LanguageError, AttributeError):
    """`shaderad` has no such name; an AttributeError, so that `hasattr` and `getattr` work."""


class CallError(LanguageError, TypeError):
    """A call with arguments that the function does not have; a TypeError, as in Python."""


class ShapeError(Error):
    """A shape, size or element type does not fit."""


class NoAxesError(ShapeError, TypeError):
    """An array without axes has no length; a TypeError, so that it is not taken for a sequence."""


class DerivativeError(Error):
    """A derivative cannot be computed correctly, and is therefore refused."""


class CompileError(Error):
    """A target cannot express the kernel, or the compiler failed on the generated code."""


class DeviceError(Error):
    """A device is missing, lost, out of memory, or lacks a feature."""


class MissingPackageError(DeviceError, ImportError):
    """A package of Python is missing; an ImportError, so that `except ImportError` works."""


class BoundsError(Error, IndexError):
    """An index was outside its array while `bounds="raise"`, or an `assert` failed."""


class LimitError(Error):
    """A loop ran past its `limit`."""


class GradientError(Error):
    """`gradcheck` found a wrong gradient, or `checks` a gradient that is not finite."""


@dataclass(frozen=True, slots=True)
class Span:
    """A stretch of one Python source line; columns count from 0, the end is exclusive."""

    file: str
    line: int
    column: int = 0
    end_column: int = 0

    @property
    def file_name(self) -> str:
        """The name of the file without its folder, escaped to one line."""
        return one_line(re.split(r"[/\\]", self.file)[-1])

    @property
    def place(self) -> str:
        """``file:line``, escaped to one line."""
        return f"{one_line(self.file)}:{self.line}"

    def text(self) -> str:
        """The source line without its newline; empty if the file is missing."""
        return linecache.getline(self.file, self.line).rstrip("\n")


NO_SPAN = Span("<shaderad>", 0)
"""The span of code without a Python line; messages do not show it."""


@dataclass(frozen=True, slots=True)
class Message:
    """A row: the class of the error and its texts, with `{names}` for values (see `sentence`)."""

    kind: type[Error]
    message: str
    label: str = ""
    note: str = ""
    help: str = ""


def render(shown: Error) -> str:
    """The terminal form: header, source line with carets, note, help."""
    lines = [f"error[{shown.code}]: {shown.message}"]
    gutter = text = ""
    if shown.span is not None:
        number = str(shown.span.line)
        gutter = " " * len(number)
        lines.append(f"{gutter}--> {shown.span.place}:{shown.span.column + 1}")
        text = shown.span.text()
        if text:
            text, column, end = _excerpt(text, shown.span.column, shown.span.end_column)
            lines.append(f"{gutter} |")
            lines.append(f"{number} | {text}")
            lines.append(f"{gutter} | {' ' * column}{'^' * (end - column)} {shown.label}".rstrip())
            lines.append(f"{gutter} |")
    if shown.label and not text:
        fact = shown.label.removeprefix("found ")
        lines.append(f"{gutter} = {'note' if fact == shown.label else 'found'}: {fact}")
    lines += [f"{gutter} = note: {part}" for part in shown.note.splitlines()]
    lines += [f"{gutter} = help: {part}" for part in shown.help.splitlines()]
    return "\n".join(lines)


_EXCERPT_WIDTH = 160
_MARGIN = 40


def _excerpt(text: str, column: int, end: int) -> tuple[str, int, int]:
    """At most `_EXCERPT_WIDTH` columns around the marked ones, and the range of the marked ones."""
    end = max(column + 1, min(end, len(text)))
    if len(text) <= _EXCERPT_WIDTH:
        return text, column, end
    start = max(0, min(column - _MARGIN, len(text) - _EXCERPT_WIDTH))
    stop = start + _EXCERPT_WIDTH
    before, after = "..." if start else "", "..." if stop < len(text) else ""
    offset = len(before) - start
    return f"{before}{text[start:stop]}{after}", column + offset, min(end, stop) + offset


# -- wording ----------------------------------------------------------------------------------


def counted(count: object, singular: str, plural: str = "") -> str:
    """The count and its noun; the default plural adds an s.

    Any count other than the number 1, such as the text ``1 or 2``, takes the plural.
    """
    return f"{count} {singular if count == 1 else plural or f'{singular}s'}"


def sentence(template: str, values: Mapping[str, object]) -> str:
    """`template` with its ``{names}`` filled in; ``{count:index|indices}`` becomes ``1 index``."""
    return shortened(_Sentence().vformat(template, (), values))


def shortened(text: str) -> str:
    """`text` with very long words cut."""
    return _LONG_WORD.sub(r"\1...", text)


_LONG_WORD = re.compile(r"(\w{100})\w{20,}")


def text_of(value: object) -> str:
    """The ``repr`` of a value in a message.

    A class whose ``repr`` waits for the device or is long has a ``__summary__`` instead.
    """
    summary = getattr(type(value), "__summary__", None)
    return repr(value) if summary is None else summary(value)


def one_line(text: str) -> str:
    """`text` with escapes for control characters, which file names may contain."""
    return "".join(c if c.isprintable() else ascii(c)[1:-1] for c in text)


class _Sentence(string.Formatter):
    def format_field(self, value: object, format_spec: str) -> str:
        singular, bar, plural = format_spec.partition("|")
        if bar:
            return counted(value, singular, plural)
        is_summarised = not format_spec and hasattr(type(value), "__summary__")
        return text_of(value) if is_summarised else super().format_field(value, format_spec)
