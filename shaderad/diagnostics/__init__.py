"""Every message that a user can see.

A raise site names a code and passes values: ``raise error("SR0210", span, found="a list")``.
Each message is a row in the file of its group, and no other code writes prose for users. Texts are
in lower case, without a full stop.
"""

# ruff: noqa: F403, F405
from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager

from shaderad.diagnostics import (
    array_functions,
    build,
    derivatives,
    errors,
    language,
    runtime,
    slang_kernels,
    types,
)
from shaderad.diagnostics.errors import *
from shaderad.diagnostics.errors import (
    NO_SPAN,
    Message,
    Span,
    counted,
    render,
    sentence,
    text_of,
)

__all__ = [
    "MESSAGES",
    "NO_SPAN",
    "Message",
    "Span",
    "counted",
    "error",
    "nesting",
    "render",
    "text_of",
]
__all__ += errors.__all__

MESSAGES: dict[str, Message] = {
    **language.MESSAGES,
    **types.MESSAGES,
    **array_functions.MESSAGES,
    **derivatives.MESSAGES,
    **build.MESSAGES,
    **runtime.MESSAGES,
    **slang_kernels.MESSAGES,
}


def error(code: str, span: Span | None = None, **values: object) -> Error:
    """The error of row `code` with `values` filled in, for the caller to raise."""
    row = MESSAGES[code]
    texts = (row.message, row.label, row.note, row.help)
    message, label, note, help_ = (sentence(text, values) for text in texts)
    return row.kind(code, message, span=span, label=label, note=note, help=help_)


@contextmanager
def nesting(name: str, span: Span | None) -> Generator[None, None, None]:
    """Converts `RecursionError` to SR0106, because the source of kernel `name` nests too deep."""
    try:
        yield
    except RecursionError:
        raise error("SR0106", span, name=name) from None
