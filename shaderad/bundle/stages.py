"""Kernels of the IR -> programs, verdicts, manifest and files, in this order.

Nothing is written before everything is built and judged.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from shaderad.bundle.description import FILE
from shaderad.bundle.folder import write_folder
from shaderad.bundle.manifest import BuiltKernel, manifest_bytes
from shaderad.bundle.profiles import PROFILES, Profile
from shaderad.bundle.programs import Naga, Programs, Refusal, build_programs, judge
from shaderad.diagnostics import Span, error
from shaderad.ir.nodes import Kernel
from shaderad.lower.artifact import library_folder
from shaderad.lower.validate import Judgement

LIBRARY = "shaderad"
"""The folder of the Slang library in the output."""

FileNames = dict[tuple[str, str], tuple[str, str]]
"""By target and stem: the files of the code and of its Slang text."""


def _say_nothing(step: str) -> None:
    del step


@dataclass(frozen=True, slots=True)
class Options:
    """What is the same for every kernel of a build."""

    profiles: tuple[Profile, ...]
    bounds: str = "raise"
    requires_backward: bool = False
    validates: bool = True
    tell: Callable[[str], None] = _say_nothing


@dataclass(frozen=True, slots=True)
class Built:
    """What a build did."""

    folder: Path
    files: tuple[str, ...]
    """Paths in the folder."""
    kernels: tuple[BuiltKernel, ...]
    judgements: tuple[Judgement, ...]
    """One an entry point that a validator was asked about."""


def build_kernels(
    kernels: Iterable[Kernel],
    constants: Mapping[str, Mapping[str, object]],
    folder: Path,
    options: Options,
) -> Built:
    """Builds `kernels`, whose names differ, into `folder`; `constants` by kernel and parameter."""
    naga = Naga()
    judgements: list[Judgement] = []
    built: list[BuiltKernel] = []
    for kernel in kernels:
        by_target: dict[str, Programs] = {}
        for profile in options.profiles:
            options.tell(f"{kernel.name} for {profile.name}")
            programs = build_programs(kernel, profile, options.bounds)
            _check_backward(kernel, programs.refusal, options)
            if options.validates:
                judgements += judge(programs, naga)
            by_target[profile.name] = programs
        built.append(BuiltKernel(kernel, constants.get(kernel.name, {}), options.bounds, by_target))
    names = _file_names(built)
    contents = {**_library(), **_programs(built, names)}
    hashes = {path: hashlib.sha256(content).hexdigest() for path, content in contents.items()}
    contents[FILE] = manifest_bytes(built, names, hashes, LIBRARY)
    write_folder(folder, contents)
    return Built(folder, tuple(sorted(contents)), tuple(built), tuple(judgements))


def _check_backward(kernel: Kernel, refusal: Refusal | None, options: Options) -> None:
    if refusal is None or not options.requires_backward:
        return
    span = Span(kernel.span.file, refusal.line) if refusal.line else kernel.span
    raise error("SR0710", span, kernel=kernel.name, reason=refusal.reason)


def _file_names(kernels: Iterable[BuiltKernel]) -> FileNames:
    """File systems may not tell cases apart: names that differ in case only are numbered."""
    found: FileNames = {}
    taken: set[str] = set()
    for built in kernels:
        for target, programs in built.by_target.items():
            for dispatch in (*programs.primal, *programs.backward):
                path, number = f"{target}/{dispatch.stem}", 2
                while path.casefold() in taken:
                    path, number = f"{target}/{dispatch.stem}_{number}", number + 1
                taken.add(path.casefold())
                files = (path + PROFILES[target].suffix, f"{path}.slang")
                found[target, dispatch.stem] = files
    return found


def _programs(kernels: Iterable[BuiltKernel], names: FileNames) -> dict[str, bytes]:
    contents: dict[str, bytes] = {}
    for built in kernels:
        for target, programs in built.by_target.items():
            for dispatch in (*programs.primal, *programs.backward):
                code, slang = names[target, dispatch.stem]
                contents[code] = dispatch.code.content
                contents[slang] = dispatch.lowered.program.slang.encode()
    return contents


def _library() -> dict[str, bytes]:
    paths = sorted(library_folder().glob("*.slang"))
    return {f"{LIBRARY}/{path.name}": path.read_bytes() for path in paths}
