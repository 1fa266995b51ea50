"""Kernels and traced graphs -> programs, verdicts, manifest and files, in this order.

Nothing is written before everything is built and judged.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from shaderad.bundle.description import FILE, SCHEMA_FILE
from shaderad.bundle.dispatches import FileNames
from shaderad.bundle.folder import write_folder
from shaderad.bundle.graph_manifest import BuiltGraph
from shaderad.bundle.graph_programs import GraphPrograms, TracedGraph, build_graph
from shaderad.bundle.header import header_text
from shaderad.bundle.manifest import BuiltKernel, manifest_bytes, manifest_of
from shaderad.bundle.profiles import PROFILES, Profile
from shaderad.bundle.programs import (
    ChosenKernel,
    Dispatch,
    Naga,
    Programs,
    Refusal,
    build_programs,
    judge,
)
from shaderad.bundle.verdicts import verdicts_of
from shaderad.diagnostics import Span, error
from shaderad.lower.artifact import library_folder
from shaderad.lower.validate import Judgement

LIBRARY = "shaderad"
"""The folder of the Slang library in the output."""

AnyPrograms = TypeVar("AnyPrograms", Programs, GraphPrograms)


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


def build_entries(
    kernels: Iterable[ChosenKernel],
    graphs: Iterable[TracedGraph],
    folder: Path,
    options: Options,
) -> Built:
    """Builds `kernels` and `graphs`, whose names differ, into `folder`."""
    judge_all = _Judge(options)
    built_kernels = [
        BuiltKernel(one, options.bounds,
                    {p.name: judge_all(_build_kernel(one, p, options)) for p in options.profiles})
        for one in kernels
    ]  # fmt: skip
    built_graphs = [
        BuiltGraph(one, options.bounds,
                   {p.name: judge_all(_build_graph(one, p, options)) for p in options.profiles})
        for one in graphs
    ]  # fmt: skip
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
    write_folder(folder, contents)
    return Built(folder, tuple(sorted(contents)), tuple(built_kernels), tuple(built_graphs),
                 tuple(judge_all.found))  # fmt: skip


def _build_kernel(chosen: ChosenKernel, profile: Profile, options: Options) -> Programs:
    kernel = chosen.kernel
    options.tell(f"{kernel.name} for {profile.name}")
    forward = options.with_forward
    programs = build_programs(chosen, profile, options.bounds, with_forward=forward)
    _check_backward(kernel.name, kernel.span, programs.refusal, options)
    return programs


def _build_graph(graph: TracedGraph, profile: Profile, options: Options) -> GraphPrograms:
    options.tell(f"{graph.name} for {profile.name}")
    forward = options.with_forward
    programs = build_graph(graph, profile, options.bounds, with_forward=forward)
    _check_backward(graph.name, graph.span, programs.refusal, options)
    return programs


class _Judge:
    """Asks validators about programs, and keeps what they say."""

    def __init__(self, options: Options) -> None:
        self.found: list[Judgement] = []
        self._validates = options.validates
        self._naga = Naga()

    def __call__(self, programs: AnyPrograms) -> AnyPrograms:
        if self._validates:
            self.found += judge(programs.dispatches, self._naga)
        return programs


def _check_backward(name: str, start: Span, refusal: Refusal | None, options: Options) -> None:
    if refusal is None or not options.requires_backward:
        return
    span = Span(start.file, refusal.line) if refusal.line else start
    raise error("SR0710", span, kernel=name, reason=refusal.reason)


def _file_names(entries: Iterable[BuiltKernel | BuiltGraph]) -> FileNames:
    """File systems may not tell cases apart: names that differ in case only are numbered."""
    found: FileNames = {}
    taken: set[str] = set()
    for built in entries:
        for target, programs in built.by_target.items():
            for dispatch in programs.dispatches:
                path, number = f"{target}/{dispatch.stem}", 2
                while path.casefold() in taken:
                    path, number = f"{target}/{dispatch.stem}_{number}", number + 1
                taken.add(path.casefold())
                files = (path + PROFILES[target].suffix, f"{path}.slang")
                found[target, built.name, dispatch.stem] = files
    return found


def _dispatches(
    entries: Iterable[BuiltKernel | BuiltGraph], names: FileNames
) -> Iterator[tuple[str, Dispatch]]:
    """Every compiled entry point and its file."""
    for built in entries:
        for target, programs in built.by_target.items():
            for dispatch in programs.dispatches:
                yield names[target, built.name, dispatch.stem][0], dispatch


def _programs(entries: Iterable[BuiltKernel | BuiltGraph], names: FileNames) -> dict[str, bytes]:
    contents: dict[str, bytes] = {}
    for built in entries:
        for target, programs in built.by_target.items():
            for dispatch in programs.dispatches:
                code, slang = names[target, built.name, dispatch.stem]
                contents[code] = dispatch.code.content
                contents[slang] = dispatch.lowered.program.slang.encode()
    return contents


def _library() -> dict[str, bytes]:
    paths = sorted(library_folder().glob("*.slang"))
    return {f"{LIBRARY}/{path.name}": path.read_bytes() for path in paths}
