"""The command line: `shaderad COMMAND` -> a call of the library, and its findings as text.

Arguments are read here and nowhere else; what a command does is done by the module it calls.
"""

from __future__ import annotations

import sys
import tempfile
import traceback
from collections.abc import Callable, Generator
from contextlib import contextmanager
from enum import Enum
from importlib import metadata
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from shaderad.diagnostics import Error, error
from shaderad.diagnostics.wording import shortened

if TYPE_CHECKING:
    from shaderad.bundle import Built

app = typer.Typer(no_args_is_help=True, add_completion=False, pretty_exceptions_enable=False)


_BUILT, _CODE, _TOLD = "What is built", "What its code is like", "What is checked and told"
"""Groups of options in the help of `build`."""


class Bounds(Enum):
    """What an index out of range does."""

    RAISE = "raise"
    IGNORE = "ignore"
    UNCHECKED = "unchecked"


def main() -> None:
    """Runs the command line; an error of ours ends it with its message instead of a traceback."""
    try:
        app()
    except Error as failure:
        print(failure, file=sys.stderr)
        raise SystemExit(1) from None
    except Exception as failure:  # A traceback helps nobody but us.
        print(_bug(failure), file=sys.stderr)
        raise SystemExit(1) from None


def _bug(failure: Exception) -> Error:
    """An error of ours for one that should not have come, whose traceback goes to a file."""
    with tempfile.NamedTemporaryFile(
        "w", prefix="shaderad-", suffix=".txt", delete=False, encoding="utf-8"
    ) as file:
        traceback.print_exception(failure, file=file)
    said = " ".join(f"{type(failure).__name__}: {failure}".split())
    return error("SR0739", failure=said, path=file.name)


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


@app.command(no_args_is_help=True)
def build(
    source: Annotated[
        str, typer.Argument(metavar="FILE.py[:NAME]", help="The file; NAME builds one entry.")
    ],
    out: Annotated[
        Path,
        typer.Option(
            "--out",
            "-o",
            metavar="DIR",
            rich_help_panel=_BUILT,
            help="Where to; only files of an earlier build are replaced.",
        ),
    ],
    target: Annotated[
        list[str],
        typer.Option(
            metavar="NAME,..",
            rich_help_panel=_BUILT,
            help="Of spirv, spirv-core, hlsl, wgsl, metal.",
        ),
    ] = ["spirv,hlsl,wgsl"],  # noqa: B006 - typer copies it
    entry: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME",
            rich_help_panel=_BUILT,
            help="Build this kernel or graph; may be given again.",
        ),
    ] = None,
    wrt: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME,..",
            rich_help_panel=_BUILT,
            help="Differentiate by these inputs only: `gain`, `mesh.colors`, or `shade.gain` for "
            "one entry.",
        ),
    ] = None,
    define: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME=VALUE",
            rich_help_panel=_BUILT,
            help="The value of a sad.Const parameter; `shade.NAME=VALUE` sets it for one kernel.",
        ),
    ] = None,
    require_bwd: Annotated[
        bool,
        typer.Option(
            "--require-bwd", rich_help_panel=_BUILT, help="Fail where there is no gradient."
        ),
    ] = False,
    jvp: Annotated[
        bool, typer.Option("--jvp", rich_help_panel=_BUILT, help="Build forward mode as well.")
    ] = False,
    bounds: Annotated[
        Bounds,
        typer.Option(
            rich_help_panel=_CODE,
            help="What an index out of range does: raise binds a buffer for reports; unchecked "
            "leaves out the guards.",
        ),
    ] = Bounds.RAISE,
    atomics: Annotated[
        list[str] | None,
        typer.Option(
            metavar="[TARGET:]KIND",
            rich_help_panel=_CODE,
            help="How threads add to one float: native, exchange or compare-exchange.",
        ),
    ] = None,
    features: Annotated[
        list[str] | None,
        typer.Option(
            metavar="[TARGET:][no-]NAME",
            rich_help_panel=_CODE,
            help="What devices have: subgroups, float-atomics; separated by commas.",
        ),
    ] = None,
    workgroup: Annotated[
        int,
        typer.Option(
            metavar="THREADS", rich_help_panel=_CODE, help="Threads of a workgroup, in one row."
        ),
    ] = 64,
    space: Annotated[
        int,
        typer.Option(
            metavar="NUMBER",
            rich_help_panel=_CODE,
            help="Descriptor set, bind group or register space of all bindings.",
        ),
    ] = 0,
    binding_base: Annotated[
        int,
        typer.Option(
            metavar="NUMBER",
            rich_help_panel=_CODE,
            help="Slot of the constant buffer; the others follow it.",
        ),
    ] = 0,
    report: Annotated[
        bool,
        typer.Option(
            "--report",
            rich_help_panel=_TOLD,
            help="Tell what a thread of each entry point reads, writes and adds.",
        ),
    ] = False,
    as_json: Annotated[
        bool,
        typer.Option(
            "--json",
            rich_help_panel=_TOLD,
            help="Print one JSON document: result and report, or diagnostics.",
        ),
    ] = False,
    validate: Annotated[
        bool,
        typer.Option(
            "--validate/--no-validate",
            rich_help_panel=_TOLD,
            help="Ask spirv-val, glslangValidator and naga, where they are installed.",
        ),
    ] = True,
    verify: Annotated[
        bool,
        typer.Option(
            "--verify",
            rich_help_panel=_TOLD,
            help="Try gradients on the wgpu device here against finite differences.",
        ),
    ] = False,
    vet: Annotated[
        bool,
        typer.Option(
            "--vet",
            rich_help_panel=_TOLD,
            help="Keep in the manifest whether this wgpu takes the code.",
        ),
    ] = False,
) -> None:
    """Build the kernels and graphs of a Python file, primal and backward, for other hosts.

    DIR gets a folder for each target with one file an entry point and its Slang text, the Slang
    library, manifest.json, which says how to bind and dispatch them, and a header for C and C++.
    The same input gives the same bytes.

    Everything for Vulkan, D3D12 and WebGPU:

        shaderad build model.py -o out

    One kernel with a constant, for a web page and for Metal:

        shaderad build model.py:shade -o out --target wgsl,metal --define N=16

    For a host with its own buffers in set 0, and a gradient of the colors alone:

        shaderad build model.py -o out --space 1 --wrt mesh.colors

    As a test, with what each entry point costs:

        shaderad build model.py -o out --require-bwd --verify --report

    Exit codes: 0 everything was built (what cannot be differentiated without its
    backward), 1 something failed and DIR is as it was, 2 the command line is wrong.
    """
    import shaderad as sad
    from shaderad.bundle.constants import parse_defines

    with _as_json(is_asked=as_json), _progress() as tell:
        built = sad.build(
            source,
            out,
            entries=entry or (),
            targets=target,
            defines=parse_defines(define or []),
            bounds=bounds.value,
            atomics=atomics or (),
            features=features or (),
            workgroup=workgroup,
            space=space,
            binding_base=binding_base,
            wrt=wrt or (),
            require_backward=require_bwd,
            jvp=jvp,
            validate=validate,
            vet=vet,
            verify=verify,
            tell=tell,
        )
    _show_build(built, with_report=report, as_json=as_json)


@app.command(no_args_is_help=True)
def inspect(
    folder: Annotated[Path, typer.Argument(metavar="DIR", help="What `build -o` wrote.")],
) -> None:
    """Tell what a built folder holds: entries, bindings, files, features, plans, refusals.

    Needs neither compiler nor device. Exit codes: 0 all files are as they were built, 1 the
    folder holds no build, one of another version, or files that differ, 2 the command line is
    wrong.
    """
    from shaderad.bundle.inspection import inspect as inspected

    has_failed = False
    for text, kind in inspected(folder):
        has_failed |= kind == "failed"
        _show(text, STYLES[kind])
    if has_failed:
        raise typer.Exit(1)


def _show_build(built: Built, *, with_report: bool, as_json: bool) -> None:
    if as_json:
        from shaderad.bundle.json_document import success_text

        print(success_text(built))
        return
    from shaderad.bundle.summary import summary_lines

    for text, kind in summary_lines(built):
        _show(text, STYLES[kind])
    if with_report:
        from shaderad.bundle.report import report_lines, report_rows

        for text in report_lines(report_rows([*built.kernels, *built.graphs])):
            _show(text, "")


@contextmanager
def _as_json(*, is_asked: bool) -> Generator[None]:
    """Errors go to standard output as JSON, where that is asked for."""
    try:
        yield
    except Exception as failure:
        if not is_asked:
            raise
        from shaderad.bundle.json_document import failure_text

        print(failure_text(failure if isinstance(failure, Error) else _bug(failure)))
        raise typer.Exit(1) from None


@contextmanager
def _progress() -> Generator[Callable[[str], None]]:
    """What is being done: a line that changes where a person watches, else one a step."""
    if not sys.stderr.isatty():
        yield lambda step: print(f"build: {shortened(step)}", file=sys.stderr, flush=True)
        return
    from rich.console import Console

    from shaderad.diagnostics.progress import TERMINAL

    with TERMINAL, Console(stderr=True).status("build") as status:
        yield lambda step: status.update(f"build: {shortened(step)}")


STYLES = {"area": "bold", "ok": "green", "none": "yellow", "failed": "red", "fact": ""}


def _show(text: str, style: str) -> None:
    """One line; in colour where a person reads it."""
    if not sys.stdout.isatty():
        print(text)
        return
    import rich
    from rich.text import Text

    rich.get_console().print(Text(text, style=style), soft_wrap=True)
