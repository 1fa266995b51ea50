"""Kernels and traced graphs -> programs, verdicts, manifest and files, in this order.

Nothing is written before everything is built and judged.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Self, TypeVar

from shaderad.bundle.description import FILE, SCHEMA_FILE
from shaderad.bundle.dispatches import FileNames
from shaderad.bundle.folder import write_folder
from shaderad.bundle.graph_entries import BuiltGraph, TracedGraph
from shaderad.bundle.header import header_text
from shaderad.bundle.judging import Judges
from shaderad.bundle.manifest import BuiltKernel, manifest_bytes, manifest_of
from shaderad.bundle.profiles import PROFILES, Profile
from shaderad.bundle.programs import ChosenKernel, Dispatch, Programs, Refusal, build_programs
from shaderad.bundle.verdicts import verdicts_of
from shaderad.diagnostics import Span, error
from shaderad.lower.artifact import Program, library_folder
from shaderad.lower.compile import compile_programs
from shaderad.lower.names import abbreviated
from shaderad.lower.validate import Judgement

LIBRARY = "shaderad"
"""The folder of the Slang library in the output."""

if TYPE_CHECKING:
    from shaderad.bundle.graph_programs import GraphPrograms
    from shaderad.bundle.verification import Verification

AnyPrograms = TypeVar("AnyPrograms", Programs, "GraphPrograms")


def _say_nothing(step: str) -> None:
    del step


@dataclass(frozen=True, slots=True)
class Options:
    """What is the same for everything that a build makes."""

    profiles: tuple[Profile, ...]
    name: str
    """Of the Python file, without suffix."""
    bounds: str = "raise"
    requires_backward: bool = False
    with_forward: bool = False
    validates: bool = True
    vets: bool = False
    """Whether the manifest says what naga takes."""
    verifies: bool = False
    tell: Callable[[str], None] = _say_nothing


@dataclass(frozen=True, slots=True)
class Built:
    """What a build did."""

    folder: Path
    files: tuple[str, ...]
    """Paths in the folder."""
    kernels: tuple[BuiltKernel, ...]
    graphs: tuple[BuiltGraph, ...]
    judgements: tuple[Judgement, ...]
    """One an entry point that a validator was asked about."""
    verifications: tuple[Verification, ...] = ()
    """One an entry and target, where that was asked for."""


def build_entries(
    kernels: Iterable[ChosenKernel],
    graphs: Iterable[TracedGraph],
    folder: Path,
    options: Options,
) -> Built:
    """Builds `kernels` and `graphs`, whose names differ, into `folder`."""
    with _Building(options) as building:
        built_kernels = [
            BuiltKernel(one, options.bounds,
                        {p.name: building.kernel(one, p) for p in options.profiles})
            for one in kernels
        ]  # fmt: skip
        built_graphs = [
            BuiltGraph(one, options.bounds,
                       {p.name: building.graph(one, p) for p in options.profiles})
            for one in graphs
        ]  # fmt: skip
        judgements = building.judges.answers()
    built = [*built_kernels, *built_graphs]
    names = _file_names(built)
    header = f"{options.name}.h"
    manifest = manifest_of(built_kernels, built_graphs, options.profiles, names, LIBRARY, header)
    contents = {**_library(), **_programs(built, names)}
    contents[header] = header_text(manifest, options.name).encode()
    contents[SCHEMA_FILE] = (Path(__file__).parent / SCHEMA_FILE).read_bytes()
    if options.vets:
        manifest.verdicts = verdicts_of(_dispatches(built, names), options.tell)
    hashes = {path: hashlib.sha256(content).hexdigest() for path, content in contents.items()}
    contents[FILE] = manifest_bytes(manifest, hashes)
    verifications = _verified(contents, built, options) if options.verifies else ()
    write_folder(folder, contents)
    return Built(folder, tuple(sorted(contents)), tuple(built_kernels), tuple(built_graphs),
                 judgements, verifications)  # fmt: skip


def _verified(
    contents: Mapping[str, bytes], built: Iterable[BuiltKernel | BuiltGraph], options: Options
) -> tuple[Verification, ...]:
    from shaderad.bundle.verification import verified  # It imports all that runs kernels.

    return verified(contents, built, options.tell)


class _Building:
    """Lowers and compiles one after the other, and has validators judge it meanwhile."""

    def __init__(self, options: Options) -> None:
        self._options = options
        targets = {profile.name for profile in options.profiles}
        self.judges = Judges(expects_wgsl=options.validates and "wgsl" in targets)
        self._compile = partial(compile_programs, before=self.judges.compilation_starts)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *failure: object) -> None:
        self.judges.close()

    def kernel(self, chosen: ChosenKernel, profile: Profile) -> Programs:
        options, kernel = self._options, chosen.kernel
        options.tell(f"{kernel.name} for {profile.name}")
        programs = build_programs(
            chosen,
            profile,
            options.bounds,
            with_forward=options.with_forward,
            compile_with=self._compile,
        )
        return self._checked(programs, kernel.name, kernel.span)

    def graph(self, graph: TracedGraph, profile: Profile) -> GraphPrograms:
        from shaderad.bundle.graph_programs import build_graph

        options = self._options
        options.tell(f"{graph.name} for {profile.name}")
        programs = build_graph(
            graph,
            profile,
            options.bounds,
            with_forward=options.with_forward,
            compile_with=self._compile,
        )
        return self._checked(programs, graph.name, graph.span)

    def _checked(self, programs: AnyPrograms, name: str, span: Span) -> AnyPrograms:
        _check_backward(name, span, programs.refusal, self._options)
        if self._options.validates:
            self.judges.ask(programs.dispatches, span)
        return programs


def _check_backward(name: str, start: Span, refusal: Refusal | None, options: Options) -> None:
    if refusal is None or not options.requires_backward:
        return
    span = Span(start.file, refusal.line) if refusal.line else start
    raise error("SR0710", span, kernel=name, reason=refusal.reason)


def _file_names(entries: Sequence[BuiltKernel | BuiltGraph]) -> FileNames:
    """File systems may not tell cases apart: names that differ in case only are numbered.

    They end names at 255 bytes.
    """
    found: FileNames = {}
    taken: set[str] = set()
    for built in entries:
        for target, programs in built.by_target.items():
            for dispatch in programs.dispatches:
                path = _free(f"{target}/{abbreviated(dispatch.stem)}", taken)
                files = (path + PROFILES[target].suffix, f"{path}.slang")
                found[target, built.name, dispatch.stem] = files
    for built, target, functions in _importable(entries):
        path = _free(f"{target}/{abbreviated(functions.name)}", taken)
        found[target, built.name, functions.name] = ("", f"{path}.slang")
    return found


def _free(start: str, taken: set[str]) -> str:
    """`start`, or a number after it, which is taken from now on."""
    path, number = start, 2
    while path.casefold() in taken:
        path, number = f"{start}_{number}", number + 1
    taken.add(path.casefold())
    return path


def _importable(
    entries: Iterable[BuiltKernel | BuiltGraph],
) -> Iterator[tuple[BuiltKernel, str, Program]]:
    """The modules of functions, which are no entry points, with their kernels and targets."""
    for built in entries:
        if isinstance(built, BuiltKernel):
            for target, programs in built.by_target.items():
                if programs.functions is not None:
                    yield built, target, programs.functions


def _dispatches(
    entries: Iterable[BuiltKernel | BuiltGraph], names: FileNames
) -> Iterator[tuple[str, Dispatch]]:
    """Every compiled entry point and its file."""
    for built in entries:
        for target, programs in built.by_target.items():
            for dispatch in programs.dispatches:
                yield names[target, built.name, dispatch.stem][0], dispatch


def _programs(entries: Sequence[BuiltKernel | BuiltGraph], names: FileNames) -> dict[str, bytes]:
    contents: dict[str, bytes] = {}
    for built in entries:
        for target, programs in built.by_target.items():
            for dispatch in programs.dispatches:
                code, slang = names[target, built.name, dispatch.stem]
                contents[code] = dispatch.code.content
                contents[slang] = dispatch.lowered.program.slang.encode()
    for built, target, functions in _importable(entries):
        _, slang = names[target, built.name, functions.name]
        contents[slang] = functions.slang.encode()
    return contents


def _library() -> dict[str, bytes]:
    paths = sorted(library_folder().glob("*.slang"))
    return {f"{LIBRARY}/{path.name}": path.read_bytes() for path in paths}
