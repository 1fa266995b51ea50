"""Every message a user can see.

A raise site names a code and passes values: ``raise error("SR0207", span, kernel="smooth")``.
Each text is a row in the file of its group; no other code writes prose for users. Texts are lower
case, without full stop.
"""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager

from shaderad.diagnostics import (
    array_functions,
    build,
    compiler,
    derivatives,
    language,
    runtime,
    source,
    types,
)
from shaderad.diagnostics.errors import (
    NO_SPAN,
    BoundsError,
    CompileError,
    DerivativeError,
    DeviceError,
    Error,
    GradientError,
    LanguageError,
    LimitError,
    Message,
    NoAxesError,
    ShapeError,
    Span,
    UnknownNameError,
    render,
)
from shaderad.diagnostics.wording import counted, sentence

MESSAGES: dict[str, Message] = {
    **source.MESSAGES,
    **language.MESSAGES,
    **types.MESSAGES,
    **array_functions.MESSAGES,
    **derivatives.MESSAGES,
    **compiler.MESSAGES,
    **runtime.MESSAGES,
    **build.MESSAGES,
}


def error(code: str, span: Span | None = None, **values: object) -> Error:
    """The error of row `code` with `values` filled in, to be raised by the caller."""
    row = MESSAGES[code]

    def fill(template: str) -> str:
        return sentence(template, values)

    return row.kind(
        code,
        fill(row.message),
        span=span,
        label=fill(row.label),
        note=fill(row.note),
        help=fill(row.help),
    )


__all__ = [
    "MESSAGES",
    "NO_SPAN",
    "BoundsError",
    "CompileError",
    "DerivativeError",
    "DeviceError",
    "Error",
    "GradientError",
    "LanguageError",
    "LimitError",
    "Message",
    "NoAxesError",
    "ShapeError",
    "Span",
    "UnknownNameError",
    "counted",
    "error",
    "render",
]


@contextmanager
def nesting(name: str, span: Span | None) -> Generator[None, None, None]:
    """Converts `RecursionError` to SR0106: the source of kernel `name` nests too deep."""
    try:
        yield
    except RecursionError:
        raise error("SR0106", span, name=name) from None
