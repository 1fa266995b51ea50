"""Kernels and traced graphs -> programs, verdicts, manifest and files, in this order.

Invariant: nothing is written before everything is built and validated.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Generic

from shaderad.bundle.format.description import FILE, SCHEMA_FILE
from shaderad.bundle.write.folder import write_folder
from shaderad.bundle.write.graph_entries import TracedGraph
from shaderad.bundle.write.header import header_text
from shaderad.bundle.write.manifest import manifest_bytes, manifest_of
from shaderad.bundle.write.plans import FileNames
from shaderad.bundle.write.programs import (
    AnyBuild,
    BegunPrograms,
    Chosen,
    ChosenKernel,
    EntryBuild,
    EntryPoint,
    GraphBuild,
    KernelBuild,
    Refusal,
    TargetPrograms,
    build_kernel,
)
from shaderad.bundle.write.validators import Validators, verdicts_of
from shaderad.compiler.artifact import Program, library_folder
from shaderad.compiler.compile import begin_compilations
from shaderad.compiler.formats import FORMATS
from shaderad.compiler.validate import Judgement
from shaderad.diagnostics import Error, Span, error
from shaderad.diagnostics.notebook import preformatted
from shaderad.lower.bindings import Mode
from shaderad.lower.targets import PROFILES, Profile
from shaderad.lower.write.names import abbreviated

if TYPE_CHECKING:
    from shaderad.bundle.write.verification import Verification

LIBRARY = "shaderad"
"""The folder of the Slang library in the output."""


def _say_nothing(step: str) -> None:
    del step


@dataclass(frozen=True, slots=True)
class Options:
    """The options of a build, the same for all of its entries."""

    profiles: tuple[Profile, ...]
    name: str
    """The name of the Python file, without suffix."""
    bounds: str = "raise"
    requires_backward: bool = False
    with_forward: bool = False
    validates: bool = True
    vets: bool = False
    """True if the manifest carries naga's verdicts."""
    verifies: bool = False
    tell: Callable[[str], None] = _say_nothing


@dataclass(frozen=True, slots=True, repr=False)
class Built:
    """The result of a build; its ``repr`` is the summary that the command prints."""

    folder: Path
    files: tuple[str, ...]
    """Paths in the folder."""
    kernels: tuple[KernelBuild, ...]
    graphs: tuple[GraphBuild, ...]
    judgements: tuple[Judgement, ...]
    """One for each entry point that a validator judged."""
    verifications: tuple[Verification, ...] = ()
    """One for each entry and target; empty without ``--verify``."""

    def __repr__(self) -> str:
        from shaderad.bundle.write.report import summary_lines

        return "\n".join(text for text, _ in summary_lines(self))

    def _repr_html_(self) -> str:
        return preformatted(repr(self))


def build_entries(
    kernels: Sequence[ChosenKernel],
    graphs: Sequence[TracedGraph],
    folder: Path,
    options: Options,
) -> Built:
    """Builds `kernels` and `graphs`, whose names differ, into `folder`."""
    validators = Validators(p.format for p in options.profiles if options.validates)
    try:
        begun_kernels, begun_graphs = _begun(kernels, graphs, validators, options)
        kernel_builds = tuple(_built(begun, validators, options) for begun in begun_kernels)
        graph_builds = tuple(_built(begun, validators, options) for begun in begun_graphs)
        judgements = validators.answers()
    finally:
        validators.close()
    builds: list[AnyBuild] = [*kernel_builds, *graph_builds]
    names = _file_names(builds)
    header = f"{options.name}.h"
    manifest = manifest_of(kernel_builds, graph_builds, options.profiles, names, LIBRARY, header)
    contents = {**_library(), **_program_files(builds, names)}
    lowered_by_file = {
        names[target, entry, point.stem][0]: point.lowered
        for target, entry, point in _entry_points(builds)
    }
    contents[header] = header_text(manifest, lowered_by_file, options.name).encode()
    contents[SCHEMA_FILE] = (Path(__file__).parents[1] / SCHEMA_FILE).read_bytes()
    if options.vets:
        code_files = (
            (names[target, entry, point.stem][0], point)
            for target, entry, point in _entry_points(builds)
        )
        manifest.verdicts = verdicts_of(code_files, options.tell)
    hashes = {path: hashlib.sha256(content).hexdigest() for path, content in contents.items()}
    contents[FILE] = manifest_bytes(manifest, hashes)
    verifications = _verified(contents, builds, options) if options.verifies else ()
    write_folder(folder, contents)
    return Built(folder, tuple(sorted(contents)), kernel_builds, graph_builds, judgements,
                 verifications)  # fmt: skip


def _verified(
    contents: Mapping[str, bytes], builds: Sequence[AnyBuild], options: Options
) -> tuple[Verification, ...]:
    from shaderad.bundle.write.verification import verified  # slow: imports the runtimes

    return verified(contents, builds, options.tell)


@dataclass(frozen=True, slots=True)
class _Begun(Generic[Chosen]):
    """One kernel or graph while its programs compile."""

    source: Chosen
    by_target: Mapping[str, BegunPrograms]


def _begun(
    kernels: Sequence[ChosenKernel],
    graphs: Sequence[TracedGraph],
    validators: Validators,
    options: Options,
) -> tuple[list[_Begun[ChosenKernel]], list[_Begun[TracedGraph]]]:
    """All entries for all targets, lowered; their programs compile in parallel.

    Raises:
        Error: An entry cannot be lowered, and no program before it has an error.
    """
    begun_kernels: list[_Begun[ChosenKernel]] = []
    begun_graphs: list[_Begun[TracedGraph]] = []
    try:
        for kernel in kernels:
            begun_kernel = _lowered(kernel, build_kernel, validators, options)
            begun_kernels.append(begun_kernel)
        if graphs:
            from shaderad.bundle.write.graph_programs import build_graph

            for graph in graphs:
                begun_graph = _lowered(graph, build_graph, validators, options)
                begun_graphs.append(begun_graph)
    except Error:
        for begun in (*begun_kernels, *begun_graphs):
            for programs in begun.by_target.values():
                programs.finished()
        raise
    return begun_kernels, begun_graphs


def _lowered(
    source: Chosen,
    build: Callable[..., BegunPrograms],
    validators: Validators,
    options: Options,
) -> _Begun[Chosen]:
    compile_with = partial(begin_compilations, before=validators.compilation_starts)
    by_target: dict[str, BegunPrograms] = {}
    for profile in options.profiles:
        options.tell(f"{source.name} for {profile.name}")
        by_target[profile.name] = build(
            source,
            profile,
            options.bounds,
            with_forward=options.with_forward,
            compile_with=compile_with,
        )
    return _Begun(source, by_target)


def _built(begun: _Begun[Chosen], validators: Validators, options: Options) -> EntryBuild[Chosen]:
    """An entry, compiled for every target; validators check one target while others compile."""
    source, by_target = begun.source, dict[str, TargetPrograms]()
    for target, programs in begun.by_target.items():
        by_target[target] = built = programs.finished()
        refusal = built.refusals.get(Mode.BACKWARD)
        if refusal is not None and options.requires_backward:
            raise _without_backward(source.name, source.span, refusal)
        if options.validates:
            validators.ask(built.entry_points, target, source.span)
    return EntryBuild(source, options.bounds, by_target)


def _without_backward(name: str, start: Span, refusal: Refusal) -> Exception:
    span = Span(start.file, refusal.line) if refusal.line else start
    return error("SR0710", span, kernel=name, reason=refusal.reason)


def _file_names(builds: Iterable[AnyBuild]) -> FileNames:
    """The files of every entry point and importable module.

    File systems may ignore case, so names that differ only in case get numbers. Names are cut at
    255 bytes.
    """
    names: FileNames = {}
    taken: set[str] = set()
    for target, entry, point in _entry_points(builds):
        path = _free(f"{target}/{abbreviated(point.stem)}", taken)
        suffix = FORMATS[PROFILES[target].format].suffix
        names[target, entry, point.stem] = (path + suffix, f"{path}.slang")
    for target, entry, module in _importable(builds):
        path = _free(f"{target}/{abbreviated(module.name)}", taken)
        names[target, entry, module.name] = ("", f"{path}.slang")
    return names


def _free(start: str, taken: set[str]) -> str:
    """Claims the name `start`, or `start` with the first free number."""
    path, number = start, 2
    while path.casefold() in taken:
        path, number = f"{start}_{number}", number + 1
    taken.add(path.casefold())
    return path


def _entry_points(builds: Iterable[AnyBuild]) -> Iterator[tuple[str, str, EntryPoint]]:
    """Target, entry and entry point, in the order of the manifest."""
    for build in builds:
        for target, programs in build.by_target.items():
            for point in programs.entry_points:
                yield target, build.name, point


def _importable(builds: Iterable[AnyBuild]) -> Iterator[tuple[str, str, Program]]:
    """Target, kernel and module of the kernel's functions; these are no entry points."""
    for build in builds:
        for target, programs in build.by_target.items():
            if programs.functions is not None:
                yield target, build.name, programs.functions


def _program_files(builds: Sequence[AnyBuild], names: FileNames) -> dict[str, bytes]:
    contents: dict[str, bytes] = {}
    for target, entry, point in _entry_points(builds):
        code, slang = names[target, entry, point.stem]
        contents[code] = point.code.content
        contents[slang] = point.lowered.program.slang.encode()
    for target, entry, module in _importable(builds):
        contents[names[target, entry, module.name][1]] = module.slang.encode()
    return contents


def _library() -> dict[str, bytes]:
    paths = sorted(library_folder().glob("*.slang"))
    return {f"{LIBRARY}/{path.name}": path.read_bytes() for path in paths}
