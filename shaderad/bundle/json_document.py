"""What a build did, or why it failed -> the one JSON document that `--json` prints.

For scripts and editors: fields are only ever added.
"""

from __future__ import annotations

from importlib import metadata

import msgspec

from shaderad.bundle.graph_entries import BuiltGraph
from shaderad.bundle.manifest import BuiltKernel
from shaderad.bundle.report import ReportRow, report_rows
from shaderad.bundle.stages import Built
from shaderad.diagnostics import Error
from shaderad.lower.validate import Judgement


class RefusalEntry(msgspec.Struct):
    """Why a mode was not built."""

    code: str | None
    message: str
    file: str
    line: int | None


class TargetModes(msgspec.Struct):
    """What one entry has for one target."""

    modes: list[str]
    refusals: dict[str, RefusalEntry]
    """By mode."""


class EntryResult(msgspec.Struct):
    """A kernel or graph."""

    name: str
    kind: str
    targets: dict[str, TargetModes]


class ValidatorResult(msgspec.Struct):
    """What a validator said of one entry point."""

    validator: str
    status: str
    reason: str


class VerificationResult(msgspec.Struct):
    """What came of trying the gradient of one entry for one target."""

    entry: str
    target: str
    is_verified: bool
    reason: str
    """Why not."""


class Diagnostic(msgspec.Struct):
    """An error, as an editor shows it: lines and columns count from 1."""

    code: str
    message: str
    file: str | None
    line: int | None
    column: int | None
    end_column: int | None
    """The first after it."""
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
    """A build that was written."""
    entries = [*built.kernels, *built.graphs]
    return _text(
        Document(
            shaderad=metadata.version("shaderad"),
            ok=True,
            folder=str(built.folder),
            files=[*built.files],
            entries=[_entry(one) for one in entries],
            validators=[_validator(one) for one in built.judgements],
            verifications=[
                VerificationResult(one.entry, one.target, not one.reason, one.reason)
                for one in built.verifications
            ],
            report=report_rows(entries),
        )
    )


def failure_text(failure: Error) -> str:
    """A build that wrote nothing."""
    version = metadata.version("shaderad")
    return _text(Document(shaderad=version, ok=False, diagnostics=[_diagnostic(failure)]))


def _text(document: Document) -> str:
    return msgspec.json.format(msgspec.json.encode(document), indent=1).decode()


def _entry(built: BuiltKernel | BuiltGraph) -> EntryResult:
    targets = {
        target: TargetModes(
            [*programs.modes],
            {
                mode.name.lower(): RefusalEntry(
                    one.code or None, one.reason, built.span.file, one.line or None
                )
                for mode, one in programs.refusals.items()
            },
        )
        for target, programs in built.by_target.items()
    }
    return EntryResult(built.name, "kernel" if isinstance(built, BuiltKernel) else "graph", targets)


def _validator(one: Judgement) -> ValidatorResult:
    return ValidatorResult(one.validator, one.status.value, one.reason)


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
