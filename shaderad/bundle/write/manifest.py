"""A build -> `manifest.json`, with everything that a host needs to bind and dispatch it.

Invariant: it holds only names, numbers and hashes, but no path of this machine and no time. The
same build gives the same bytes.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from importlib import metadata
from typing import Any, cast

import msgspec

from shaderad.arguments.kinds import resource_kind
from shaderad.bodies.outputs import axes_of_launch
from shaderad.bundle.format import entries as to
from shaderad.bundle.format.description import SCHEMA, TargetEntry
from shaderad.bundle.format.document import BLANK, Manifest, with_digest
from shaderad.bundle.format.size_text import spelled
from shaderad.bundle.format.type_names import TypeTable
from shaderad.bundle.write.plans import FileNames, plans_entries
from shaderad.bundle.write.programs import GraphBuild, KernelBuild, launch_shaped_names
from shaderad.compiler.library import compiler_version
from shaderad.diagnostics import error
from shaderad.execute.schedule import launch_shapes
from shaderad.ir.nodes import NO_SPAN, KernelParameter
from shaderad.ir.pointers import comes_apart
from shaderad.ir.types import (
    Access,
    BufferType,
    ResourceType,
    is_differentiable,
)
from shaderad.language.values import known_number
from shaderad.lower.targets import Profile


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
    """The manifest without the hashes of files.

    Args:
        kernels: In the order of the file.
        graphs: In the order of the file.
        profiles: One for each target.
        file_of: By target, entry and stem: the files of the code and of its Slang text. A module
            of functions is listed by its name, and has no code.
        library: The folder of the Slang library.
        header: The file for C and C++.
    """
    types = TypeTable()
    return Manifest(
        shaderad=metadata.version("shaderad"),
        digest=BLANK,
        compiler=f"slangpy {compiler_version()}",
        slang_library=library,
        entries=[
            *(_kernel(kernel, file_of, types) for kernel in kernels),
            *_graphs(graphs, file_of, types),
        ],
        targets={profile.name: _target(profile) for profile in profiles},
        types=types.layouts,
        header=header,
        files={},
    )


def _graphs(
    graphs: Sequence[GraphBuild], file_of: FileNames, types: TypeTable
) -> list[to.GraphEntry]:
    if not graphs:
        return []
    from shaderad.bundle.write.graph_manifest import graph_entry

    return [graph_entry(graph, file_of, types) for graph in graphs]


def manifest_bytes(manifest: Manifest, hashes: Mapping[str, str]) -> bytes:
    """The text of `manifest` with the hash of every other file of the folder, by path.

    Raises:
        CompileError: SR0715, if `sad.load` would not accept the manifest.
    """
    files = {path: hashes[path] for path in sorted(hashes)}
    content = msgspec.json.encode(msgspec.structs.replace(manifest, files=files))
    try:
        msgspec.json.decode(content, type=Manifest)
    except msgspec.ValidationError as failure:
        raise error("SR0715", reason=failure) from None
    return with_digest(msgspec.json.format(content, indent=1) + b"\n")


def listed_files(text: bytes) -> frozenset[str]:
    """The files that a manifest lists; empty for a text that is no manifest of ours."""
    try:
        listing = msgspec.json.decode(text, type=_Listing)
    except msgspec.MsgspecError:
        return frozenset()
    return frozenset(listing.files) if listing.schema == SCHEMA else frozenset()


def _target(profile: Profile) -> TargetEntry:
    return TargetEntry(
        atomics=profile.atomics,
        features=[*profile.features],
        storage_buffer_limit=profile.limits.storage_buffers,
        workgroup=profile.workgroup,
        space=profile.space,
        first_binding=profile.first_binding,
    )


def _kernel(build: KernelBuild, file_of: FileNames, types: TypeTable) -> to.KernelEntry:
    kernel, wanted = build.source.kernel, build.source.wanted
    dim, shapes = launch_shapes(kernel, launch_shaped_names(kernel))
    arrays = [
        to.ArrayEntry(
            name=b.name,
            type=types.name(b.type.element),
            shape=[*map(spelled, shapes[b.name])],
            is_differentiable=b.name in wanted
            if b.access is Access.IN
            else is_differentiable(b.type),
            path=[*b.path],
            access=b.access,
            resource=to.resource_name(b.type),
        )
        for b in kernel.buffers
    ]
    return to.KernelEntry(
        name=kernel.name,
        file=kernel.span.file_name,
        line=kernel.span.line,
        bounds=build.bounds,
        sizes=[*dict.fromkeys(str(n) for shape in (dim, *shapes.values()) for n in shape)],
        index_names=[*kernel.index_names],
        axes_of_launch=[
            [to.AxisEntry(array, axis) for array, axis in axes] for axes in axes_of_launch(kernel)
        ],
        parameters=[_parameter(p, build.source.constants) for p in kernel.parameters],
        inputs=[array for array in arrays if array.access is Access.IN],
        outputs=[array for array in arrays if array.access is not Access.IN],
        uniforms=[
            to.UniformEntry(u.name, [*u.path], types.name(u.type), u.name in wanted)
            for u in kernel.uniforms
        ],
        targets=plans_entries(build, file_of, types),
    )


def _parameter(parameter: KernelParameter, constants: Mapping[str, object]) -> to.KernelArgument:
    name, t = parameter.name, parameter.type
    if parameter.is_const:
        return to.KernelArgument(name, str(t), "constant", _constant(constants[name]))
    if isinstance(t, BufferType):
        noun = resource_kind(t).noun if isinstance(t, ResourceType) else "array"
        return to.KernelArgument(name, str(t.element), cast("Any", noun))
    return to.KernelArgument(name, str(t), "struct of arrays" if comes_apart(t) else "uniform")


def _constant(constant: object) -> float | str:
    """The number, or a text for infinities and NaN, which JSON does not have."""
    number = known_number(constant, NO_SPAN)
    assert number is not None, "the front end takes nothing else"
    return number.value if math.isfinite(number.value) else str(number.value)
