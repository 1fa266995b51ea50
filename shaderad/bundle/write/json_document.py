"""The result of a build, or its error -> the JSON document that `--json` prints.

Scripts and editors read it, so fields are added, but never changed or removed.
"""

from __future__ import annotations

from importlib import metadata

import msgspec

from shaderad.bundle.write.programs import AnyBuild, ChosenKernel
from shaderad.bundle.write.report import ReportRow, report_rows
from shaderad.bundle.write.stages import Built
from shaderad.diagnostics import Error


class RefusalEntry(msgspec.Struct):
    """The reason why a mode was not built."""

    code: str | None
    message: str
    file: str
    line: int | None


class TargetModes(msgspec.Struct):
    """The modes of one entry for one target."""

    modes: list[str]
    refusals: dict[str, RefusalEntry]
    """By mode."""


class EntryResult(msgspec.Struct):
    """A kernel or graph."""

    name: str
    kind: str
    targets: dict[str, TargetModes]


class ValidatorResult(msgspec.Struct):
    """The answer of a validator about one entry point."""

    validator: str
    status: str
    reason: str


class VerificationResult(msgspec.Struct):
    """The outcome of `--verify` for one entry and target."""

    entry: str
    target: str
    is_verified: bool
    reason: str
    """The reason why the gradient was not verified."""


class Diagnostic(msgspec.Struct):
    """An error for an editor: lines and columns count from 1."""

    code: str
    message: str
    file: str | None
    line: int | None
    column: int | None
    end_column: int | None
    """Exclusive."""
    label: str
    note: str
    help: str


class Document(msgspec.Struct, kw_only=True):
    """The document."""

    shaderad: str
    ok: bool
    folder: str | None = None
    files: list[str] = []
    entries: list[EntryResult] = []
    validators: list[ValidatorResult] = []
    verifications: list[VerificationResult] = []
    report: list[ReportRow] = []
    diagnostics: list[Diagnostic] = []


def success_text(built: Built) -> str:
    """The document of a successful build."""
    builds = [*built.kernels, *built.graphs]
    return _text(
        Document(
            shaderad=metadata.version("shaderad"),
            ok=True,
            folder=str(built.folder),
            files=[*built.files],
            entries=[*map(_entry, builds)],
            validators=[
                ValidatorResult(j.validator, j.status.value, j.reason) for j in built.judgements
            ],
            verifications=[
                VerificationResult(v.entry, v.target, not v.reason, v.reason)
                for v in built.verifications
            ],
            report=report_rows(builds),
        )
    )


def failure_text(failure: Error) -> str:
    """The document of a build that failed and wrote nothing."""
    version = metadata.version("shaderad")
    return _text(Document(shaderad=version, ok=False, diagnostics=[_diagnostic(failure)]))


def _text(document: Document) -> str:
    return msgspec.json.format(msgspec.json.encode(document), indent=1).decode()


def _entry(build: AnyBuild) -> EntryResult:
    targets = {
        target: TargetModes(
            [mode.name.lower() for mode in programs.by_mode],
            {
                mode.name.lower(): RefusalEntry(
                    refusal.code or None, refusal.reason, build.span.file, refusal.line or None
                )
                for mode, refusal in programs.refusals.items()
            },
        )
        for target, programs in build.by_target.items()
    }
    kind = "kernel" if isinstance(build.source, ChosenKernel) else "graph"
    return EntryResult(build.name, kind, targets)


def _diagnostic(failure: Error) -> Diagnostic:
    span = failure.span
    has_columns = span is not None and span.end_column > 0
    return Diagnostic(
        code=failure.code,
        message=failure.message,
        file=span.file if span else None,
        line=span.line if span else None,
        column=span.column + 1 if span and has_columns else None,
        end_column=span.end_column + 1 if span and has_columns else None,
        label=failure.label,
        note=failure.note,
        help=failure.help,
    )
