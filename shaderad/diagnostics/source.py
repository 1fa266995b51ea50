"""SR01: the Python source of kernels, functions and structs."""

from __future__ import annotations

from shaderad.diagnostics.errors import LanguageError, Message

MESSAGES: dict[str, Message] = {
    "SR0101": Message(
        LanguageError,
        "the source of `{name}` is not available",
        label="`{file}`",
        note="kernels and functions are read from their Python source",
        help="define it in a file; the interactive prompt and `exec` keep no source",
    ),
    "SR0102": Message(
        LanguageError,
        "the source of `{name}` has changed since it was imported",
        label="`def {name}` is not here any more",
        help="import the module again, or restart Python",
    ),
    "SR0103": Message(
        LanguageError,
        "kernels, functions and structs are made from `def` and `class`",
        label="found {found}",
        help="write a `def` with annotated parameters",
    ),
    "SR0106": Message(
        LanguageError,
        "`{name}` nests deeper than Python's stack can follow",
        note="a sum of hundreds of terms is one expression inside another, for each of them",
        help="split long expressions over several statements, or write a loop",
    ),
    "SR0105": Message(
        LanguageError,
        "another decorator has wrapped `{name}`",
        note="a kernel is read from its own `def`; what a wrapper adds would be lost",
        help="remove the other decorator, or put it above `@sad.kernel`",
    ),
    "SR0104": Message(
        LanguageError,
        "struct `{name}` cannot have {found}",
        help="{help}",
    ),
}
