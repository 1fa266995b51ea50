"""A `Program` -> `Code` in one format, through libslang in a child process and the disk cache.

The same program, library and compiler give the same bytes. A compiler that refuses, crashes or
hangs raises a `CompileError` in the host, at Python lines. Slang 2026.12 prints its log in two
forms, both with the file and line of `#line`:

    error[E30015]: undefined identifier          k.py(7): note 99999: an internal error ...
      --> model.py:12:27                         float f(float x) { double y = double(x); }
       |                                                             ^
    12 | float f(float v) { return sinn(v); }
       |                           ^^^^ undefined identifier 'sinn'.
    ---'
"""

from __future__ import annotations

import re
import tempfile
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from shaderad.compiler.artifact import Code, Program, SlangDiagnostic, library_folder
from shaderad.compiler.background import Pending, background
from shaderad.compiler.cache import Cache, default_cache, key_of
from shaderad.compiler.child import (
    TIMEOUT_SECONDS,
    ChildDied,
    ChildTimedOut,
    ChildUnavailable,
    children,
)
from shaderad.compiler.formats import FORMATS
from shaderad.compiler.library import compiler_version, library_digest, library_path, modules_of
from shaderad.compiler.own_sources import COMPILING, digest_of
from shaderad.diagnostics import Error, Span, error
from shaderad.diagnostics.progress import Work

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

_SEVERITY = r"(?P<severity>(?:abort compilation: )?(?:(?:fatal|internal) )?error|warning|note)"
_FRAMED = re.compile(_SEVERITY + r"\[(?P<code>\w+)\]:? (?P<message>.*)")
_PLAIN = re.compile(
    r"(?P<file>[^\n(]+)\((?P<line>\d+)(?:,\d+)?\): "
    + _SEVERITY
    + r" (?P<code>\w+): (?P<message>.*)"
)
_PLACE = re.compile(r"\s*-+> (?P<file>.+):(?P<line>\d+):\d+")
_MARK = re.compile(r":\d+:(?P<column>\d+)\n(?:.*\n)*?.*?(?P<carets>\^+)")
_FAILED_ASSERTION = "E41400"
_LABEL = re.compile(r"\s*\| +\^+ (?P<label>\S.*)")
# Errors that only report an earlier error.
_ECHOES = frozenset({"E39999", "E40003"})


def compile_program(
    program: Program,
    code_format: str,
    target: str = "",
    *,
    cache: Cache | None = None,
    library: Path | None = None,
    timeout: float = TIMEOUT_SECONDS,
    before: Callable[[], object] | None = None,
) -> Code:
    """Compiles the entry point of `program`, or reads its code from the cache.

    A module is compiled to its binary form.

    Args:
        program: An entry point, or a module.
        code_format: A key of `FORMATS`.
        target: The build target for messages; if empty, they name the format.
        cache: The cache of compiled code; `None` for `default_cache`.
        library: The folder of `shaderad.slang`; `None` for the installed one.
        timeout: Seconds of processor time after which the compiler is killed.
        before: Called before a compilation, but not on a cache hit.

    Raises:
        CompileError: SR0501 refused, SR0502 crashed, SR0503 took too long, SR0506 no child
            process, SR0508 killed.
        MissingPackageError: SR0505 no compiler installed.
    """
    form, target = FORMATS[code_format], target or code_format
    cache = cache or default_cache()
    folder = library or library_folder()
    digest = library_digest(folder)
    ours = digest_of(COMPILING)
    options = repr((form.number, form.profile))
    key = key_of("code", program.slang, program.name, options, digest, compiler_version(), ours)
    stored = cache.load(key, tuple[bytes, tuple[SlangDiagnostic, ...]])
    if stored is not None:
        return Code(code_format, *stored)
    if before is not None:
        before()
    with Work(program.name, "Slang"):
        request = _request(program, code_format, cache, folder)
        reply = _ask(request, program, target, cache, timeout)
    diagnostics = parse_log(reply["log"])
    if not reply["code"] or _failure(diagnostics) or "error[" in reply["log"]:
        raise _refusal(program, target, diagnostics, reply["log"])
    cache.store(key, (reply["code"], diagnostics))
    return Code(code_format, reply["code"], diagnostics)


def begin_compilations(
    programs: Sequence[Program],
    code_format: str,
    target: str = "",
    *,
    before: Callable[[], object] | None = None,
) -> list[Pending[Code]]:
    """Calls `compile_program` in the background; each result can be awaited on its own."""
    compiled = partial(compile_program, code_format=code_format, target=target, before=before)
    return [background().begin(partial(compiled, program), program.name) for program in programs]


def code_with_lines(program: Program, code_format: str) -> Code | None:
    """The code with line directives to `program.slang`, for messages of validators.

    `None` if the format has no line directives or the compiler fails; bypasses the cache.
    """
    if not FORMATS[code_format].has_line_directives:
        return None
    cache = default_cache()
    request = _request(program, code_format, cache, library_folder()) | {"lines": True}
    try:
        reply = _ask(request, program, code_format, cache, TIMEOUT_SECONDS)
    except Error:
        return None
    return Code(code_format, reply["code"]) if reply["code"] else None


def _request(program: Program, code_format: str, cache: Cache, library: Path) -> dict[str, Any]:
    folders = library_path(cache=cache, library=library, modules=modules_of(program))
    return {
        "kind": "compile",
        "slang": program.slang,
        "entry": "" if program.is_module else program.name,
        "format": code_format,
        "folders": list(map(str, folders)),
        "digest": library_digest(library),
        "lines": False,
    }


def _ask(
    request: dict[str, Any], program: Program, target: str, cache: Cache, timeout: float
) -> dict[str, Any]:
    values: dict[str, Any] = {"entry": program.name, "target": target}
    size = len(program.slang.encode())
    try:
        reply = children().request(request, timeout)
    except ChildDied as death:
        stderr = death.stderr[-500:] or "it printed nothing"
        values |= {"cause": death.cause, "stderr": stderr}
        if death.was_killed:
            raise error("SR0508", **values, size=size) from None
        raise error("SR0502", **values, path=_keep_text(program, cache)) from None
    except ChildTimedOut as late:
        values |= {"compiler": late.compiler, "excess": late.excess, "size": size}
        raise error("SR0503", **values, path=_keep_text(program, cache)) from None
    except ChildUnavailable as failure:
        raise error("SR0506", reason=failure) from None
    if "missing" in reply:
        raise error("SR0505")
    if "failure" in reply:
        path = _keep_text(program, cache)
        raise error("SR0502", **values, cause=reply["failure"], path=path, stderr="")
    return reply


def _refusal(
    program: Program, target: str, diagnostics: tuple[SlangDiagnostic, ...], log: str
) -> Error:
    first = _failure(diagnostics)
    if first is None:
        first = SlangDiagnostic(
            "error", "", log.strip() or "no code, and no reason given", "", 0, ""
        )
    if program.has_user_text:
        return _user_refusal(program, target, diagnostics, first)
    # The location of an internal error is in a separate note.
    placed = first if first.line else next((d for d in diagnostics if d.line), first)
    return error(
        "SR0501",
        _span_of(placed, program),
        entry=program.name,
        target=target,
        message=first.message,
        number=first.code or "no code",
        excerpt=placed.excerpt or "(no place given)",
    )


def _user_refusal(
    program: Program, target: str, diagnostics: Sequence[SlangDiagnostic], first: SlangDiagnostic
) -> Error:
    """The error of a program with a user's text, at the user's line and column."""
    placed = next((d for d in (first, *diagnostics) if _span_of(d, program) is not None), None)
    message, span = first.message.splitlines()[-1], None
    if placed is not None:
        span = _span_of(placed, program)
    elif first.code == _FAILED_ASSERTION:
        message = "an array is accessed with more or fewer indices than it has axes"
    mark = None if placed is None else _MARK.search(placed.excerpt)
    if span is not None and mark is not None:
        column = int(mark["column"]) - 1
        span = replace(span, column=column, end_column=column + len(mark["carets"]))
    if span is None:  # Before the user's text: in what calls it. After it: a missing bracket.
        before = reversed(program.spans[: first.line])
        span = next((s for s in (*before, *program.spans) if s is not None), None)
    values = {"entry": program.name, "target": target, "message": message}
    return error("SR0510", span, **values, number=first.code or "an internal error")


def _keep_text(program: Program, cache: Cache) -> Path:
    """Writes the module to a file that a user can attach to an issue; returns its path."""
    name = f"{program.name}-{key_of(program.slang)[:12]}.slang"
    for folder in _folders_of_failures(cache):
        try:
            folder.mkdir(exist_ok=True)
            (folder / name).write_text(program.slang, encoding="utf-8")
        except OSError:
            continue
        return folder / name
    return Path(name)


def _folders_of_failures(cache: Cache) -> Iterator[Path]:
    cache_folder = cache.usable(create=True)
    if cache_folder is not None:
        yield cache_folder / "failed"
    yield Path(tempfile.mkdtemp(prefix="shaderad-"))


# -- the log of the compiler -------------------------------------------------------------------


def parse_log(log: str) -> tuple[SlangDiagnostic, ...]:
    """The diagnostics in `log`, in order; errors that only report another one are dropped."""
    diagnostics = tuple(_read(block) for block in _blocks(log))
    return tuple(d for d in diagnostics if d.code not in _ECHOES) or diagnostics


def _failure(diagnostics: tuple[SlangDiagnostic, ...]) -> SlangDiagnostic | None:
    """The first error with a location, else the first error, else `None`."""
    errors = [d for d in diagnostics if d.severity == "error"]
    placed = [d for d in errors if d.line]
    return next(iter(placed or errors), None)


def _span_of(diagnostic: SlangDiagnostic, program: Program) -> Span | None:
    """The line in the Python source; columns are unusable, as they refer to the generated text."""
    if not diagnostic.line:
        return None
    if not diagnostic.file.endswith(".py"):
        is_library = diagnostic.file.endswith(".slang") and "shaders" in diagnostic.file
        spans = () if is_library else program.spans
        span = spans[diagnostic.line - 1] if diagnostic.line <= len(spans) else None
        return span if span is not None and span.line else None
    text = Span(diagnostic.file, diagnostic.line).text()
    indent = len(text) - len(text.lstrip())
    return Span(diagnostic.file, diagnostic.line, indent, len(text))


def _blocks(log: str) -> Iterator[list[str]]:
    """The lines of each diagnostic; text before the first one is dropped."""
    block: list[str] = []
    for line in log.splitlines():
        if _FRAMED.match(line) or _PLAIN.match(line):
            if block:
                yield block
            block = [line]
        elif block:
            block.append(line)
    if block:
        yield block


def _read(block: list[str]) -> SlangDiagnostic:
    head = _FRAMED.match(block[0]) or _PLAIN.match(block[0])
    assert head is not None
    place = head if "file" in head.groupdict() else None
    label = ""
    for line in block[1:]:
        place = place or _PLACE.match(line)
        matched = _LABEL.match(line)
        label = label or (matched["label"] if matched else "")
    severity = "error" if head["severity"].endswith("error") else head["severity"]
    return SlangDiagnostic(
        severity=severity,
        code=head["code"],
        message=label.removesuffix(".") or head["message"].removesuffix("."),
        file=place["file"].strip() if place else "",
        line=int(place["line"]) if place else 0,
        excerpt="\n".join(line.rstrip() for line in block[1:] if line.strip() not in ("", "--'")),
    )
