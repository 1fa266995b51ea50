"""A build -> `manifest.json`: all that a host needs in order to bind and dispatch it.

Invariant: only names, numbers and hashes; no path of this machine, no time. The same build gives
the same bytes.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from importlib import metadata

import msgspec

from shaderad.bodies.outputs import axes_of_launch
from shaderad.bundle.format import description as to
from shaderad.bundle.format.description import SCHEMA
from shaderad.bundle.format.document import BLANK, Manifest, with_digest
from shaderad.bundle.format.graph_description import GraphEntry
from shaderad.bundle.format.type_names import TypeTable
from shaderad.bundle.write.entry_point_fields import (
    FileNames,
    bound,
    entry_point_fields,
    refusal_fields,
)
from shaderad.bundle.write.profiles import Profile
from shaderad.bundle.write.programs import (
    EntryPoint,
    GraphBuild,
    KernelBuild,
    TargetPrograms,
    launch_shaped_names,
)
from shaderad.compiler.library import compiler_version
from shaderad.diagnostics import error
from shaderad.ir.nodes import NO_SPAN, KernelParameter
from shaderad.ir.pointers import comes_apart
from shaderad.ir.types import BufferType
from shaderad.language.values import known_number
from shaderad.lower.bindings import Lowered, Mode, Resource


class _Listing(msgspec.Struct):
    """The part of a manifest that a later build reads, whatever its version."""

    schema: str
    files: dict[str, str]


def manifest_of(
    kernels: Iterable[KernelBuild],
    graphs: Sequence[GraphBuild],
    profiles: Iterable[Profile],
    file_of: FileNames,
    library: str,
    header: str,
) -> Manifest:
    """The manifest, with the hashes of files left open.

    Args:
        kernels: In the order of the file.
        graphs: In the order of the file.
        profiles: One for each target.
        file_of: By target, entry and stem: the files of the code and of its Slang text. A module
            of functions goes by its name, and has no code.
        library: The folder of the Slang library.
        header: The file for C and C++.
    """
    types = TypeTable()
    return Manifest(
        shaderad=metadata.version("shaderad"),
        digest=BLANK,
        compiler=f"slangpy {compiler_version()}",
        slang_library=library,
        kernels=[_kernel(kernel, file_of, types) for kernel in kernels],
        graphs=_graphs(graphs, file_of, types),
        targets={profile.name: _target(profile) for profile in profiles},
        types=types.layouts,
        header=header,
        files={},
    )


def _graphs(graphs: Sequence[GraphBuild], file_of: FileNames, types: TypeTable) -> list[GraphEntry]:
    if not graphs:
        return []
    from shaderad.bundle.write.graph_manifest import graph_entry

    return [graph_entry(graph, file_of, types) for graph in graphs]


def manifest_bytes(manifest: Manifest, hashes: Mapping[str, str]) -> bytes:
    """The text of `manifest` with the hash of every other file of the folder, by path.

    Raises:
        CompileError: SR0715, if `sad.load` would not take the manifest.
    """
    files = {path: hashes[path] for path in sorted(hashes)}
    content = msgspec.json.encode(msgspec.structs.replace(manifest, files=files))
    try:
        msgspec.json.decode(content, type=Manifest)
    except msgspec.ValidationError as failure:
        raise error("SR0715", reason=failure) from None
    return with_digest(msgspec.json.format(content, indent=1) + b"\n")


def listed_files(text: bytes) -> frozenset[str]:
    """The files that a manifest of ours lists; empty for other texts."""
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


def _kernel(build: KernelBuild, file_of: FileNames, types: TypeTable) -> to.KernelEntry:
    kernel = build.source.kernel
    wanted, launch_shaped = build.source.wanted, launch_shaped_names(kernel)
    return to.KernelEntry(
        name=kernel.name,
        file=kernel.span.file_name,
        line=kernel.span.line,
        bounds=build.bounds,
        index_names=list(kernel.index_names),
        axes_of_launch=[
            [to.AxisEntry(array, axis) for array, axis in axes] for axes in axes_of_launch(kernel)
        ],
        parameters=[_parameter(p, build.source.constants) for p in kernel.parameters],
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
            target: _programs(programs, (target, build.name), file_of, types)
            for target, programs in build.by_target.items()
        },
    )


def _parameter(parameter: KernelParameter, constants: Mapping[str, object]) -> to.KernelArgument:
    name, t = parameter.name, parameter.type
    if parameter.is_const:
        return to.KernelArgument(name, str(t), "constant", _constant(constants[name]))
    if isinstance(t, BufferType):
        return to.KernelArgument(name, str(t.element), "array")
    return to.KernelArgument(name, str(t), "struct of arrays" if comes_apart(t) else "uniform")


def _constant(constant: object) -> float | str:
    """The number; as text for infinities and NaN, which JSON does not have."""
    number = known_number(constant, NO_SPAN)
    assert number is not None, "the front end takes nothing else"
    return number.value if math.isfinite(number.value) else str(number.value)


def _programs(
    programs: TargetPrograms[tuple[EntryPoint, ...]],
    at: tuple[str, str],
    file_of: FileNames,
    types: TypeTable,
) -> to.ProgramsEntry:
    def dispatches(mode: Mode) -> list[to.DispatchEntry]:
        points = programs.by_mode.get(mode, ())
        return [_dispatch(point, file_of[*at, point.stem], types) for point in points]

    return to.ProgramsEntry(
        primal=dispatches(Mode.PRIMAL),
        backward=dispatches(Mode.BACKWARD),
        forward=dispatches(Mode.FORWARD),
        functions=file_of[*at, programs.functions.name][1] if programs.functions else "",
        **refusal_fields(programs.refusals),
    )


def _dispatch(point: EntryPoint, files: tuple[str, str], types: TypeTable) -> to.DispatchEntry:
    lowered, binding_by_slot = point.lowered, bound(point)
    slot = lowered.program.bindings[0].slot
    words = [
        to.WordEntry(name, word.kind, word.index, of=word.name, role=word.role)
        for name, word in zip(lowered.program.parameter_words, lowered.words, strict=True)
    ]
    return to.DispatchEntry(
        mode=lowered.mode,
        thread_for_each=f"word of {lowered.threads_of}" if lowered.threads_of else "index",
        group_limit=lowered.group_limit,
        is_single_group=lowered.is_single_group,
        strategies=dict(sorted(lowered.strategies.items())),
        parameters=to.Parameters(slot, *binding_by_slot[slot], words),
        resources=[
            _resource(resource, binding_by_slot[resource.slot], lowered, types)
            for resource in lowered.resources
        ],
        **entry_point_fields(point, files),
    )


def _resource(
    resource: Resource, binding: tuple[str, to.BindingPlace], lowered: Lowered, types: TypeTable
) -> to.ResourceEntry:
    name, place = binding
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
