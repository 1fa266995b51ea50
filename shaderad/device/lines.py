"""An array operation -> its line in the user's program: the nearest frame outside of shaderad."""

from __future__ import annotations

import sys
from itertools import islice
from types import FrameType

from shaderad.diagnostics import NO_SPAN, DeviceError, Error, Span
from shaderad.diagnostics.tracebacks import PACKAGE

_CALLERS = ("jax", "torch")
"""Libraries that call the functions of `wrap`; their frames are not the user's."""


def user_span() -> Span:
    """The line that called into shaderad; `NO_SPAN` where no Python code did."""
    frame: FrameType | None = sys._getframe(1)  # pyright: ignore[reportPrivateUsage]
    while frame is not None and not _is_user(frame):
        frame = frame.f_back
    if frame is None:
        return NO_SPAN
    return _span(frame)


def _is_user(frame: FrameType) -> bool:
    if frame.f_code.co_filename.startswith(PACKAGE):
        return False
    package, _, _ = frame.f_globals.get("__name__", "").partition(".")
    return package not in _CALLERS


class AtUserLine:
    """A context that adds the line that called into shaderad to errors without a line."""

    def __enter__(self) -> None:
        pass

    def __exit__(self, _: object, failure: BaseException | None, __: object) -> None:
        # A lost or closed device is not the fault of the line that uses it first.
        if isinstance(failure, DeviceError):
            return
        if isinstance(failure, Error) and failure.span is None:
            raise failure.at(user_span()) from failure.__cause__


def _span(frame: FrameType) -> Span:
    code = frame.f_code
    # Every instruction has two bytes and one entry in `co_positions`.
    position = next(islice(code.co_positions(), frame.f_lasti // 2, None), None)
    line, end_line, start, end = position or (frame.f_lineno, None, None, None)
    if line is None or start is None or end is None or end_line != line:
        return Span(code.co_filename, frame.f_lineno)
    return Span(code.co_filename, line, start, end)
