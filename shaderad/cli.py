"""The command line: `shaderad COMMAND` -> a call of the library, and its result as text.

It only parses arguments; the modules that it calls do the work.
"""

from __future__ import annotations

import sys
import tempfile
import traceback
from collections.abc import Callable, Generator
from contextlib import contextmanager
from enum import Enum
from functools import partial
from importlib import metadata
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from shaderad.diagnostics import Error, error
from shaderad.diagnostics.errors import shortened
from shaderad.lower.targets import DEFAULT_TARGETS, PROFILES

if TYPE_CHECKING:
    from shaderad.bundle import Built

app = typer.Typer(no_args_is_help=True, add_completion=False, pretty_exceptions_enable=False)

# Groups of options in the help of `build`.
_entry = partial(typer.Option, rich_help_panel="Input and output")
_code = partial(typer.Option, rich_help_panel="Generated code")
_report = partial(typer.Option, rich_help_panel="Checks and reports")


class Bounds(Enum):
    """The effect of an index out of range."""

    RAISE = "raise"
    IGNORE = "ignore"
    UNCHECKED = "unchecked"


def main() -> None:
    """Runs the command line; prints errors as messages, without traceback, and exits with 1."""
    try:
        app()
    except Error as failure:
        print(failure, file=sys.stderr)
        raise SystemExit(1) from None
    except Exception as failure:  # A traceback would only help developers.
        print(_bug(failure), file=sys.stderr)
        raise SystemExit(1) from None


def _bug(failure: Exception) -> Error:
    """Wraps an unexpected exception; its traceback is written to a file."""
    with tempfile.NamedTemporaryFile(
        "w", prefix="shaderad-", suffix=".txt", delete=False, encoding="utf-8"
    ) as file:
        traceback.print_exception(failure, file=file)
    text = " ".join(f"{type(failure).__name__}: {failure}".split())
    return error("SR0739", failure=text, path=file.name)


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
def doctor(
    deep: Annotated[
        bool,
        typer.Option("--deep", help="Also run programs and gradients on every adapter: minutes."),
    ] = False,
) -> None:
    """Report drivers, devices and runtimes of this machine, and remedies for what is missing.

    With `--deep`, sums of elements that threads share, reductions, scans, sorts and matrix products
    run on each adapter, with their gradients, and are compared with NumPy. Conformance cases,
    random programs, samples and benchmarks take a clone: `scripts/run gpu`.
    """
    from shaderad.doctor import can_run, examine, examine_deeply, report_lines

    findings = examine()
    if deep:
        findings += examine_deeply()
    for text, kind in report_lines(findings):
        _show(text, STYLES[kind])
    is_right = all(f.status != "failed" for f in findings if f.area == "trials")
    raise typer.Exit(0 if can_run(findings) and is_right else 1)


@app.command(no_args_is_help=True)
def build(
    source: Annotated[
        str, typer.Argument(metavar="FILE.py[:NAME]", help="The file; NAME builds one entry.")
    ],
    out: Annotated[
        Path,
        _entry(
            "--out",
            "-o",
            metavar="DIR",
            help="The output folder; only files of an earlier build are replaced.",
        ),
    ],
    target: Annotated[
        list[str],
        _entry(metavar="NAME,...", help=f"Any of {', '.join(PROFILES)}."),
    ] = [*DEFAULT_TARGETS],  # noqa: B006 - typer copies it
    entry: Annotated[
        list[str] | None,
        _entry(metavar="NAME", help="Build this kernel or graph; may be given again."),
    ] = None,
    wrt: Annotated[
        list[str] | None,
        _entry(
            metavar="NAME,...",
            help="Differentiate by these inputs only: `gain`, `mesh.colors`, or `shade.gain` for "
            "one entry; `none` builds no derivatives.",
        ),
    ] = None,
    define: Annotated[
        list[str] | None,
        _entry(
            metavar="NAME=VALUE",
            help="The value of a sad.Const parameter; `shade.NAME=VALUE` sets it for one kernel.",
        ),
    ] = None,
    require_bwd: Annotated[
        bool,
        _entry("--require-bwd", help="Fail where there is no gradient."),
    ] = False,
    jvp: Annotated[bool, _entry("--jvp", help="Build forward mode as well.")] = False,
    bounds: Annotated[
        Bounds,
        _code(
            help="The effect of an index out of range: raise binds a buffer for reports; unchecked "
            "compiles no guards."
        ),
    ] = Bounds.RAISE,
    atomics: Annotated[
        list[str] | None,
        _code(
            metavar="[TARGET:]KIND",
            help="How threads add to one float: native, exchange or compare-exchange.",
        ),
    ] = None,
    features: Annotated[
        list[str] | None,
        _code(
            metavar="[TARGET:][no-]NAME",
            help="Features of the devices: subgroups, float-atomics; separated by commas.",
        ),
    ] = None,
    workgroup: Annotated[
        int,
        _code(metavar="THREADS", help="Threads of a workgroup, in one row."),
    ] = 64,
    space: Annotated[
        int,
        _code(
            metavar="NUMBER", help="Descriptor set, bind group or register space of all bindings."
        ),
    ] = 0,
    binding_base: Annotated[
        int,
        _code(metavar="NUMBER", help="Slot of the constant buffer; the others follow it."),
    ] = 0,
    report: Annotated[
        bool,
        _report(
            "--report",
            help="Report the memory traffic and atomics of a thread of each entry point.",
        ),
    ] = False,
    as_json: Annotated[
        bool,
        _report("--json", help="Print one JSON document: result and report, or diagnostics."),
    ] = False,
    validate: Annotated[
        bool,
        _report(
            "--validate/--no-validate",
            help="Ask spirv-val, glslangValidator and naga, where they are installed.",
        ),
    ] = True,
    verify: Annotated[
        bool,
        _report(
            "--verify",
            help="Check gradients on this machine's wgpu device against finite differences.",
        ),
    ] = False,
    vet: Annotated[
        bool,
        _report(
            "--vet", help="Write the verdicts of this machine's wgpu on the code to the manifest."
        ),
    ] = False,
) -> None:
    """Build the kernels and graphs of a Python file, primal and backward, for other hosts.

    Writes to DIR: a folder for each target with the code and Slang text of each entry point, the
    Slang library, manifest.json, and a header for C and C++. The manifest tells hosts how to bind
    and dispatch. The same input gives the same bytes.

    Everything for Vulkan, D3D12 and WebGPU:

        shaderad build model.py -o out

    One kernel with a constant, for a web page and for Metal:

        shaderad build model.py:shade -o out --target wgsl,metal --define N=16

    For a host with its own buffers in set 0, and a gradient of the colors alone:

        shaderad build model.py -o out --space 1 --wrt mesh.colors

    As a test, with what each entry point costs:

        shaderad build model.py -o out --require-bwd --verify --report

    Exit codes: 0 everything was built (entries without a derivative have no backward), 1 the build
    failed and DIR is unchanged, 2 the command line is wrong.
    """
    import shaderad as sad
    from shaderad.bundle.write.command_options import parse_defines

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
    folder: Annotated[Path, typer.Argument(metavar="DIR", help="The output of `build -o`.")],
) -> None:
    """Show the content of a built folder: entries, bindings, files, features, plans, refusals.

    Needs neither compiler nor device. Exit codes: 0 all files are intact, 1 the folder holds no
    build, a build of another version, or changed files, 2 the command line is wrong.
    """
    from shaderad.bundle.read.inspection import inspect as inspected

    has_failed = False
    for text, kind in inspected(folder):
        has_failed |= kind == "failed"
        _show(text, STYLES[kind])
    if has_failed:
        raise typer.Exit(1)


def _show_build(built: Built, *, with_report: bool, as_json: bool) -> None:
    if as_json:
        from shaderad.bundle.write.json_document import success_text

        print(success_text(built))
        return
    from shaderad.bundle.write.report import summary_lines

    for text, kind in summary_lines(built):
        _show(text, STYLES[kind])
    if with_report:
        from shaderad.bundle.write.report import report_lines, report_rows

        for text in report_lines(report_rows([*built.kernels, *built.graphs])):
            _show(text, "")


@contextmanager
def _as_json(*, is_asked: bool) -> Generator[None]:
    """Prints errors as JSON to standard output if `is_asked`."""
    try:
        yield
    except Exception as failure:
        if not is_asked:
            raise
        from shaderad.bundle.write.json_document import failure_text

        print(failure_text(failure if isinstance(failure, Error) else _bug(failure)))
        raise typer.Exit(1) from None


@contextmanager
def _progress() -> Generator[Callable[[str], None]]:
    """Shows the current step: in a status line on a terminal, else as one line per step."""
    if not sys.stderr.isatty():
        yield lambda step: print(f"build: {shortened(step)}", file=sys.stderr, flush=True)
        return
    from rich.console import Console

    from shaderad.diagnostics.progress import TERMINAL

    with TERMINAL, Console(stderr=True).status("build") as status:
        yield lambda step: status.update(f"build: {shortened(step)}")


STYLES = {"area": "bold", "ok": "green", "none": "yellow", "failed": "red", "fact": ""}


def _show(text: str, style: str) -> None:
    """Prints one line, in colour on a terminal."""
    if not sys.stdout.isatty():
        print(text)
        return
    import rich
    from rich.text import Text

    rich.get_console().print(Text(text, style=style), soft_wrap=True)
