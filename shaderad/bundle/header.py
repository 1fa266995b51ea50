"""A manifest -> `NAME.h`, the same facts as constants and structs of C11 and C++17.

Identifiers begin with NAME; those of an entry point go on with its target and its file's name, so
that building for one target more renames nothing.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import PurePosixPath

from shaderad.bundle import description as to
from shaderad.bundle.c_names import Identifiers, identifier
from shaderad.bundle.c_types import SCALARS, CTypes
from shaderad.bundle.document import Manifest
from shaderad.bundle.graph_description import ProgramEntry
from shaderad.ir.types import Kind
from shaderad.lower.bindings import WordKind

_UNIFORM_WORDS = 4
"""Targets may round the size of the constant buffer up to a multiple of so many words."""

_IN_WORDS = {Kind.DOUBLE: ("uint32_t", "uint32_t"), Kind.HALF: ("float",)}
"""How the constant buffer holds scalars that do not lie there as in storage buffers."""
_NUMBERED = {WordKind.DIM, WordKind.SHAPE}
"""Words of which there is one for each axis."""

Word = tuple[str, str, str]
"""Its name, its type in C, and what it is."""


@dataclass(frozen=True, slots=True)
class _Resource:
    name: str
    place: to.Place
    remark: str
    fill_word: int | None = None


@dataclass(frozen=True, slots=True)
class _EntryPoint:
    """What kernels' dispatches and graphs' programs have in common."""

    target: str
    remark: str
    name: str
    file: str
    workgroup: tuple[int, int, int]
    group_limit: int
    words: Sequence[Word]
    parameters: _Resource
    resources: Sequence[_Resource]


def header_text(manifest: Manifest, name: str) -> str:
    """The header of a build of ``name.py``."""
    prefix, names = identifier(name), Identifiers()
    guard = names.claim("SHADERAD", prefix.upper(), "H")
    types = CTypes(manifest.types, names, prefix)
    lines = [
        f"// The build of {name}.py as constants and structs; manifest.json says what they mean.",
        f"// Written by shaderad {manifest.shaderad}.",
        f"#ifndef {guard}",
        f"#define {guard}",
        "",
        "#include <assert.h>",
        "#include <stddef.h>",
        "#include <stdint.h>",
        "",
        f"#define {names.claim(prefix.upper(), 'REPORT_BYTES')} {manifest.report_bytes}",
        "",
        *types.lines(),
    ]
    for entry_point in _entry_points(manifest):
        lines += _entry_lines(entry_point, names, prefix)
    lines.append(f"#endif // {guard}")
    return "\n".join(lines) + "\n"


def _entry_points(manifest: Manifest) -> Iterator[_EntryPoint]:
    for kernel in manifest.kernels:
        types = _uniform_words(kernel, manifest.types)
        for target, programs in kernel.targets.items():
            for dispatches in (programs.primal, programs.backward, programs.forward):
                for number, one in enumerate(dispatches, 1):
                    remark = f"{kernel.name}, {one.mode.value}: {number} of {len(dispatches)}"
                    yield _of_kernel(one, target, remark, types)
    for graph in manifest.graphs:
        for target, plans in graph.targets.items():
            for program in plans.programs:
                yield _of_graph(program, target, f"{graph.name}: its plans say when and how")


def _uniform_words(
    kernel: to.KernelEntry, layouts: Mapping[str, to.Layout]
) -> dict[str, list[str]]:
    """The type in C of each word that the uniforms of `kernel` take, by uniform."""
    return {
        uniform.name: [
            c_type
            for leaf in layouts[uniform.type].scalars
            for c_type in _IN_WORDS.get(leaf.type) or (SCALARS[leaf.type],)
        ]
        for uniform in kernel.uniforms
    }


def _of_kernel(
    dispatch: to.DispatchEntry, target: str, remark: str, types: Mapping[str, Sequence[str]]
) -> _EntryPoint:
    return _EntryPoint(
        target=target,
        remark=remark,
        name=dispatch.entry_point,
        file=dispatch.file,
        workgroup=dispatch.workgroup,
        group_limit=1 if dispatch.is_single_group else dispatch.group_limit,
        words=[_word(word, types) for word in dispatch.parameters.words],
        parameters=_Resource(dispatch.parameters.name, dispatch.parameters.place, "uniform"),
        resources=[
            _Resource(r.name, r.place, _resource_remark(r), r.fill_word) for r in dispatch.resources
        ],
    )


def _of_graph(program: ProgramEntry, target: str, remark: str) -> _EntryPoint:
    given = program.parameters
    return _EntryPoint(
        target=target,
        remark=remark,
        name=program.entry_point,
        file=program.file,
        workgroup=program.workgroup,
        group_limit=0,
        words=[(word, "uint32_t", "") for word in given.words],
        parameters=_Resource(given.name, given.place, "uniform"),
        resources=[
            _Resource(r.name, r.place, r.access.value + ", report" * r.is_report)
            for r in program.resources
        ],
    )


def _word(word: to.WordEntry, types: Mapping[str, Sequence[str]]) -> Word:
    if word.kind is WordKind.UNIFORM:
        return word.name, types[word.of][word.index], ""
    if word.kind is WordKind.BITS:
        return word.name, "uint32_t", f"always {word.index:#010x}"
    if word.kind.value == word.name.replace("_", " "):
        return word.name, "uint32_t", ""
    number = f" {word.index}" if word.kind in _NUMBERED else ""
    of = f" of {word.of}" if word.of else ""
    role = f", {word.role.value}" if word.role else ""
    return word.name, "uint32_t", f"{word.kind.value}{number}{of}{role}"


def _resource_remark(resource: to.ResourceEntry) -> str:
    members = [f"{member.type} {member.name}" for member in resource.members]
    return ", ".join((resource.access.value, resource.role.value, *members))


def _entry_lines(point: _EntryPoint, names: Identifiers, prefix: str) -> Iterator[str]:
    stem = (prefix, point.target, PurePosixPath(point.file).stem)

    def define(value: str | int, *parts: str) -> str:
        return f"#define {names.claim('_'.join((*stem, *parts)).upper())} {value}"

    yield f"// {point.target}, {point.remark}"
    yield define(f'"{point.name}"', "entry_point")
    yield define(f'"{point.file}"', "file")
    for axis, count in zip("xyz", point.workgroup, strict=True):
        yield define(count, "workgroup", axis)
    if point.group_limit:
        yield define(point.group_limit, "group_limit")
    for resource in (point.parameters, *point.resources):
        yield f"// {resource.name}: {resource.remark}"
        yield from (define(v, resource.name, k) for k, v in _place(resource.place))
        if resource.fill_word is not None:
            yield define(f"{resource.fill_word:#x}u", resource.name, "fill_word")
    if point.words:
        yield from _parameter_lines(point.words, names.claim(*stem, "parameters"))
    yield ""


def _place(place: to.Place) -> Iterator[tuple[str, str]]:
    """What to call each number of a place, and the number; an HLSL register is a class with one."""
    for key, value in place.items():
        if key == "register":
            yield "register_class", f"'{str(value)[0]}'"
            yield "register", str(value)[1:]
        else:
            yield key, str(value)


def _parameter_lines(words: Sequence[Word], c_name: str) -> Iterator[str]:
    fields = Identifiers()
    yield f"typedef struct {c_name} {{"
    for name, c_type, remark in words:
        yield f"    {c_type} {fields.claim(name)};{f' // {remark}' if remark else ''}"
    rest = -len(words) % _UNIFORM_WORDS
    if rest:
        yield f"    uint32_t {fields.claim('padding')}[{rest}];"
    yield f"}} {c_name};"
    byte_count = 4 * (len(words) + rest)
    yield f'static_assert(sizeof({c_name}) == {byte_count}, "size of {c_name}");'
