"""What was built -> `manifest.json`: all that a host needs in order to bind and dispatch it.

Invariant: only names, numbers and hashes; no path of this machine, no time. The same build gives
the same bytes.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from importlib import metadata

import msgspec

from shaderad.bodies.extents import axes_of_launch
from shaderad.bundle import description as to
from shaderad.bundle.description import SCHEMA
from shaderad.bundle.digest import BLANK, with_digest
from shaderad.bundle.dispatches import (
    FileNames,
    compiler_options,
    no_derivative,
    site_entries,
)
from shaderad.bundle.document import Manifest
from shaderad.bundle.graph_description import GraphEntry
from shaderad.bundle.graph_entries import BuiltGraph
from shaderad.bundle.places import places
from shaderad.bundle.profiles import Profile
from shaderad.bundle.programs import ChosenKernel, Dispatch, Programs, launch_shaped_names
from shaderad.bundle.type_names import Types
from shaderad.diagnostics import Span, error
from shaderad.frontend.captures import known_number
from shaderad.ir.nodes import NO_SPAN, Kernel, KernelParameter
from shaderad.ir.pointers import comes_apart
from shaderad.ir.types import BufferType
from shaderad.lower.bindings import Lowered, Resource, Word
from shaderad.lower.compile import compiler_version


@dataclass(frozen=True, slots=True)
class BuiltKernel:
    """One kernel for every target."""

    chosen: ChosenKernel
    bounds: str
    by_target: Mapping[str, Programs]

    @property
    def kernel(self) -> Kernel:
        return self.chosen.kernel

    @property
    def span(self) -> Span:
        return self.kernel.span

    @property
    def name(self) -> str:
        return self.kernel.name


class _Listing(msgspec.Struct):
    """What a later build reads of a manifest, whatever its version."""

    schema: str
    files: dict[str, str]


def manifest_of(
    kernels: Iterable[BuiltKernel],
    graphs: Iterable[BuiltGraph],
    profiles: Iterable[Profile],
    file_of: FileNames,
    library: str,
    header: str,
) -> Manifest:
    """The manifest, but for the hashes of files.

    Args:
        kernels: In the order of the file.
        graphs: Likewise.
        profiles: Of all targets.
        file_of: By target, entry and stem: the files of the code and of its Slang text. A module
            of functions goes by its name, and has no code.
        library: The folder of the Slang library.
        header: The file for C and C++.
    """
    types = Types()
    return Manifest(
        shaderad=metadata.version("shaderad"),
        digest=BLANK,
        compiler=f"slangpy {compiler_version()}",
        slang_library=library,
        kernels=[_kernel(built, file_of, types) for built in kernels],
        graphs=_graphs(list(graphs), file_of, types),
        targets={one.name: _target(one) for one in profiles},
        types=types.table(),
        header=header,
        files={},
    )


def _graphs(built: list[BuiltGraph], file_of: FileNames, types: Types) -> list[GraphEntry]:
    if not built:
        return []
    from shaderad.bundle.graph_manifest import graph_entry

    return [graph_entry(one, file_of, types) for one in built]


def manifest_bytes(manifest: Manifest, hashes: Mapping[str, str]) -> bytes:
    """The text of `manifest` with the hashes of every file of the folder but this one, by path.

    Raises:
        CompileError: SR0715, where it says more than `sad.load` takes.
    """
    files = {path: hashes[path] for path in sorted(hashes)}
    content = msgspec.json.encode(msgspec.structs.replace(manifest, files=files))
    try:
        msgspec.json.decode(content, type=Manifest)
    except msgspec.ValidationError as failure:
        raise error("SR0715", reason=failure) from None
    return with_digest(msgspec.json.format(content, indent=1) + b"\n")


def listed_files(text: bytes) -> frozenset[str]:
    """The files that a manifest of ours lists; none where it is not one."""
    try:
        listing = msgspec.json.decode(text, type=_Listing)
    except msgspec.MsgspecError:
        return frozenset()
    return frozenset(listing.files) if listing.schema == SCHEMA else frozenset()


def _target(profile: Profile) -> to.TargetEntry:
    return to.TargetEntry(
        atomics=profile.atomics,
        features=[*profile.features],
        storage_buffer_limit=profile.limits.storage_buffers,
        workgroup=profile.workgroup,
        space=profile.space,
        first_binding=profile.first_binding,
    )


def _kernel(built: BuiltKernel, file_of: FileNames, types: Types) -> to.KernelEntry:
    kernel = built.kernel
    wanted, launch_shaped = built.chosen.wanted, launch_shaped_names(kernel)
    return to.KernelEntry(
        name=kernel.name,
        file=kernel.span.file_name,
        line=kernel.span.line,
        bounds=built.bounds,
        index_names=list(kernel.index_names),
        axes_of_launch=[
            [to.AxisEntry(array, axis) for array, axis in axes] for axes in axes_of_launch(kernel)
        ],
        parameters=[_parameter(p, built.chosen.constants) for p in kernel.parameters],
        arrays=[
            to.ArrayEntry(
                name=b.name,
                path=[*b.path],
                access=b.access,
                type=types.name(b.type.element),
                rank=b.type.rank,
                is_differentiable=b.name in wanted,
                has_launch_shape=b.name in launch_shaped,
            )
            for b in kernel.buffers
        ],
        uniforms=[
            to.UniformEntry(u.name, [*u.path], types.name(u.type), u.name in wanted)
            for u in kernel.uniforms
        ],
        targets={
            target: _programs(programs, (target, built.name), file_of, types)
            for target, programs in built.by_target.items()
        },
    )


def _parameter(parameter: KernelParameter, constants: Mapping[str, object]) -> to.Parameter:
    name, t = parameter.name, parameter.type
    if parameter.is_const:
        return to.Parameter(name, str(t), "constant", _constant(constants[name]))
    if isinstance(t, BufferType):
        return to.Parameter(name, str(t.element), "array")
    return to.Parameter(name, str(t), "struct of arrays" if comes_apart(t) else "uniform")


def _constant(given: object) -> float | str:
    """The number; JSON has none for infinities and NaN, which are text as Python writes it."""
    known = known_number(given, NO_SPAN)
    assert known is not None, "the front end takes nothing else"
    return known.value if math.isfinite(known.value) else str(known.value)


def _programs(
    programs: Programs,
    at: tuple[str, str],
    file_of: FileNames,
    types: Types,
) -> to.ProgramsEntry:
    def described(dispatches: tuple[Dispatch, ...]) -> list[to.DispatchEntry]:
        return [_dispatch(d, file_of[*at, d.stem], types) for d in dispatches]

    return to.ProgramsEntry(
        primal=described(programs.primal),
        backward=described(programs.backward),
        forward=described(programs.forward),
        no_backward=no_derivative(programs.refusal),
        no_forward=no_derivative(programs.forward_refusal),
        functions=file_of[*at, programs.functions.name][1] if programs.functions else "",
    )


def _dispatch(dispatch: Dispatch, files: tuple[str, str], types: Types) -> to.DispatchEntry:
    lowered = dispatch.lowered
    program = lowered.program
    place = places(program, dispatch.code)
    constants, names = program.bindings[0], {b.slot: b.name for b in program.bindings}
    return to.DispatchEntry(
        mode=lowered.mode,
        entry_point=program.name,
        file=files[0],
        slang=files[1],
        workgroup=program.workgroup,
        thread_for_each=f"word of {lowered.threads_of}" if lowered.threads_of else "index",
        group_limit=lowered.group_limit,
        is_single_group=lowered.is_single_group,
        features=sorted(program.features),
        compiler_options=compiler_options(dispatch),
        strategies=dict(sorted(lowered.strategies.items())),
        parameters=to.Parameters(
            constants.slot, constants.name, place[constants.name], _words(lowered)
        ),
        resources=[
            _resource(r, names[r.slot], place[names[r.slot]], lowered, types)
            for r in lowered.resources
        ],
        sites=site_entries(lowered),
    )


def _resource(
    resource: Resource, name: str, place: to.Place, lowered: Lowered, types: Types
) -> to.ResourceEntry:
    access = next(b.access for b in lowered.program.bindings if b.slot == resource.slot)
    members = zip(resource.members, resource.types, strict=False)
    return to.ResourceEntry(
        slot=resource.slot,
        name=name,
        place=place,
        access=access,
        role=resource.role,
        members=[to.Member(member, types.name(t)) for member, t in members],
        fill_word=resource.fill_word,
        is_covered_by_launch=resource.is_covered_by_launch,
    )


def _words(lowered: Lowered) -> list[to.WordEntry]:
    names = lowered.program.parameter_words
    return [_word(name, word) for name, word in zip(names, lowered.words, strict=True)]


def _word(name: str, word: Word) -> to.WordEntry:
    return to.WordEntry(name, word.kind, word.index, of=word.name, role=word.role)
