"""The command line: `shaderad COMMAND` -> a call of the library, and its findings as text.

Arguments are read here and nowhere else; what a command does is done by the module it calls.
"""

from __future__ import annotations

import sys
from importlib import metadata
from typing import Annotated

import typer

from shaderad.diagnostics import Error

app = typer.Typer(no_args_is_help=True, add_completion=False, pretty_exceptions_enable=False)


def main() -> None:
    """Runs the command line; an error of ours ends it with its message instead of a traceback."""
    try:
        app()
    except Error as failure:
        print(failure, file=sys.stderr)
        raise SystemExit(1) from None


def _show_version(is_asked: bool) -> None:
    if is_asked:
        print(metadata.version("shaderad"))
        raise typer.Exit


@app.callback()
def common(
    version: Annotated[
        bool, typer.Option("--version", callback=_show_version, is_eager=True)
    ] = False,
) -> None:
    """Differentiable GPU kernels: Python in, readable Slang with gradients out."""


@app.command()
def doctor() -> None:
    """Report drivers, devices and what each runtime can do here; say how to mend the rest."""
    from shaderad.doctor import can_run, examine, report_lines

    findings = examine()
    for text, kind in report_lines(findings):
        _show(text, STYLES[kind])
    raise typer.Exit(0 if can_run(findings) else 1)


STYLES = {"area": "bold", "ok": "green", "none": "yellow", "failed": "red", "fact": ""}


def _show(text: str, style: str) -> None:
    """One line; in colour where a person reads it."""
    if not sys.stdout.isatty():
        print(text)
        return
    import rich
    from rich.text import Text

    rich.get_console().print(Text(text, style=style), soft_wrap=True)
