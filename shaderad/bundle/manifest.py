"""What was built -> `manifest.json`: all that a host needs in order to bind and dispatch it.

Invariant: only names, numbers and hashes; no path of this machine, no time. The same build gives
the same bytes.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from importlib import metadata
from typing import Any

import msgspec

from shaderad.bundle.places import places
from shaderad.bundle.programs import Dispatch, Programs, launch_shaped_names, wanted_names
from shaderad.frontend.captures import known_number
from shaderad.ir.nodes import NO_SPAN, Kernel, KernelParameter
from shaderad.ir.pointers import POINTED, comes_apart, pointers_in
from shaderad.ir.types import BufferType, Type, byte_count, leaves, word_bytes
from shaderad.lower.bindings import Lowered, Resource, Word
from shaderad.lower.compile import compiler_version
from shaderad.lower.options import FORMATS

SCHEMA = "shaderad-manifest"
SCHEMA_VERSION = 1
FILE = "manifest.json"

Json = dict[str, Any]


@dataclass(frozen=True, slots=True)
class BuiltKernel:
    """One kernel for every target."""

    kernel: Kernel
    constants: Mapping[str, object]
    by_target: Mapping[str, Programs]


class _Listing(msgspec.Struct):
    """What a later build reads of a manifest, whatever its version."""

    schema: str
    files: dict[str, str]


class Types:
    """The element types that a manifest mentions, each once, by a name of its own."""

    def __init__(self) -> None:
        self._names: dict[Type, str] = {}

    def name(self, t: Type) -> str:
        """The type's name; a second struct of one name is numbered."""
        if t not in self._names:
            name, number = str(t), 1
            while name in self._names.values():
                number += 1
                name = f"{t}_{number}"
            self._names[t] = name
        return self._names[t]

    def table(self) -> Json:
        """Layouts; see Note [Words] in ir/types.py."""
        return {name: _layout(t) for t, name in self._names.items()}


def manifest_bytes(
    kernels: Iterable[BuiltKernel],
    file_of: Mapping[tuple[str, str], tuple[str, str]],
    hashes: Mapping[str, str],
    library: str,
) -> bytes:
    """The manifest's text.

    Args:
        kernels: In the order of the file.
        file_of: By target and stem: the files of the code and of its Slang text.
        hashes: Of every file of the folder but this one, by path.
        library: The folder of the Slang library.
    """
    types = Types()
    described = [_kernel(built, file_of, types) for built in kernels]
    content = {
        "schema": SCHEMA,
        "schema_version": SCHEMA_VERSION,
        "shaderad": metadata.version("shaderad"),
        "compiler": f"slangpy {compiler_version()}",
        "slang_library": library,
        "kernels": described,
        "types": types.table(),
        "files": {path: hashes[path] for path in sorted(hashes)},
    }
    return msgspec.json.format(msgspec.json.encode(content), indent=1) + b"\n"


def listed_files(text: bytes) -> frozenset[str]:
    """The files that a manifest of ours lists; none where it is not one."""
    try:
        listing = msgspec.json.decode(text, type=_Listing)
    except msgspec.MsgspecError:
        return frozenset()
    return frozenset(listing.files) if listing.schema == SCHEMA else frozenset()


def _layout(t: Type) -> Json:
    """The words of a type; a pointer's are its first element in the array `target`, and a count."""
    pointers = [(at, p.target) for at, p in pointers_in(t, ()) if POINTED not in at]
    leading = [{"path": list(at), "target": target} for at, target in pointers]
    return {
        **({"pointers": leading} if leading else {}),
        "byte_count": byte_count(t),
        "word_bytes": word_bytes(t),
        "scalars": [
            {"path": list(leaf.path), "type": str(leaf.scalar), "byte_offset": leaf.offset}
            for leaf in leaves(t)
        ],
    }


def _kernel(
    built: BuiltKernel, file_of: Mapping[tuple[str, str], tuple[str, str]], types: Types
) -> Json:
    kernel = built.kernel
    wanted, launch_shaped = wanted_names(kernel), launch_shaped_names(kernel)
    return {
        "name": kernel.name,
        "line": kernel.span.line,
        "index_names": list(kernel.index_names),
        "parameters": [_parameter(p, built.constants) for p in kernel.parameters],
        "arrays": [
            {
                "name": b.name,
                "path": list(b.path),
                "access": b.access.value,
                "type": types.name(b.type.element),
                "rank": b.type.rank,
                "is_differentiable": b.name in wanted,
                "has_launch_shape": b.name in launch_shaped,
            }
            for b in kernel.buffers
        ],
        "uniforms": [
            {
                "name": u.name,
                "path": list(u.path),
                "type": types.name(u.type),
                "is_differentiable": u.name in wanted,
            }
            for u in kernel.uniforms
        ],
        "targets": {
            target: _programs(programs, target, file_of, types)
            for target, programs in built.by_target.items()
        },
    }


def _parameter(parameter: KernelParameter, constants: Mapping[str, object]) -> Json:
    described: Json = {"name": parameter.name, "type": str(parameter.type)}
    if parameter.is_const:
        return {**described, "kind": "constant", "value": _constant(constants[parameter.name])}
    if isinstance(parameter.type, BufferType):
        return {**described, "kind": "array", "type": str(parameter.type.element)}
    kind = "struct of arrays" if comes_apart(parameter.type) else "uniform"
    return {**described, "kind": kind}


def _constant(given: object) -> float | str:
    """The number; JSON has none for infinities and NaN, which are text as Python writes it."""
    known = known_number(given, NO_SPAN)
    assert known is not None, "the front end takes nothing else"
    return known.value if math.isfinite(known.value) else str(known.value)


def _programs(
    programs: Programs,
    target: str,
    file_of: Mapping[tuple[str, str], tuple[str, str]],
    types: Types,
) -> Json:
    def described(dispatches: tuple[Dispatch, ...]) -> list[Json]:
        return [_dispatch(d, file_of[target, d.stem], types) for d in dispatches]

    found: Json = {"primal": described(programs.primal), "backward": described(programs.backward)}
    refusal = programs.refusal
    if refusal is not None:
        found["no_backward"] = {
            "code": refusal.code or None,
            "reason": refusal.reason,
            "line": refusal.line or None,
        }
    return found


def _dispatch(dispatch: Dispatch, files: tuple[str, str], types: Types) -> Json:
    lowered = dispatch.lowered
    program = lowered.program
    place = places(program, dispatch.code)
    names = {b.slot: b.name for b in program.bindings}
    return {
        "mode": lowered.mode.value,
        "entry_point": program.name,
        "file": files[0],
        "slang": files[1],
        "workgroup": list(program.workgroup),
        "thread_for_each": f"word of {lowered.threads_of}" if lowered.threads_of else "index",
        "is_reduction": lowered.is_reduction,
        "is_single_group": lowered.is_single_group,
        "features": sorted(program.features),
        "compiler_options": _compiler_options(dispatch),
        "strategies": dict(sorted(lowered.strategies.items())),
        "parameters": {
            "slot": 0,
            "name": names[0],
            "place": place[names[0]],
            "words": _words(lowered),
        },
        "resources": [
            _resource(r, names[r.slot], place[names[r.slot]], lowered, types)
            for r in lowered.resources
        ],
        "sites": [
            {"kind": site.kind.value, "line": site.span.line, "name": site.name}
            for site in lowered.sites
        ],
    }


def _compiler_options(dispatch: Dispatch) -> list[str]:
    """What a host must tell dxc; targets that are final need nothing."""
    if dispatch.code.target != "hlsl":
        return []
    # Without it `half` is a float, and buffers of half have another stride.
    has_half = re.search(rb"\bhalf\b", dispatch.code.content) is not None
    profile = ["-T", FORMATS["hlsl"].profile.replace("sm", "cs")]
    return [*profile, "-enable-16bit-types"] if has_half else profile


def _resource(
    resource: Resource, name: str, place: Mapping[str, int | str], lowered: Lowered, types: Types
) -> Json:
    access = next(b.access for b in lowered.program.bindings if b.slot == resource.slot)
    members = [
        {"name": member, "type": types.name(t)}
        for member, t in zip(resource.members, resource.types, strict=False)
    ]
    return {
        "slot": resource.slot,
        "name": name,
        "place": place,
        "access": access.value,
        "role": resource.role.value,
        "members": members,
        "fill_word": resource.fill_word,
        "is_covered_by_launch": resource.is_covered_by_launch,
    }


def _words(lowered: Lowered) -> list[Json]:
    names = lowered.program.parameter_words
    return [_word(name, word) for name, word in zip(names, lowered.words, strict=True)]


def _word(name: str, word: Word) -> Json:
    described: Json = {"name": name, "kind": word.kind.value, "index": word.index}
    if word.name:
        described["of"] = word.name
    if word.role is not None:
        described["role"] = word.role.value
    return described
