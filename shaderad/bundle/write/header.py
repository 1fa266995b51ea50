"""A manifest -> `NAME.h`: its slots, sizes and layouts as constants and structs of C11 and C++17.

Identifiers begin with NAME; those of an entry point continue with its target and the name of its
file, so another target renames nothing.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import PurePosixPath

from shaderad.bundle.format import description as to
from shaderad.bundle.format.document import Manifest
from shaderad.bundle.format.graph_description import ProgramEntry
from shaderad.bundle.write.c_names import Identifiers, identifier
from shaderad.bundle.write.c_types import SCALARS, CTypes
from shaderad.ir.types import Kind
from shaderad.lower.bindings import WordKind

_UNIFORM_WORDS = 4
"""The size of the constant buffer is rounded up to a multiple of this many words."""

_IN_WORDS = {Kind.DOUBLE: ("uint32_t", "uint32_t"), Kind.HALF: ("float",)}
"""The C types of scalars that constant buffers hold otherwise than storage buffers."""
_NUMBERED = {WordKind.DIM, WordKind.SHAPE}
"""Kinds of words that exist once per axis."""

Word = tuple[str, str, str]
"""Name, C type, and remark."""


@dataclass(frozen=True, slots=True)
class _Resource:
    name: str
    place: to.BindingPlace
    remark: str
    fill_word: int | None = None


@dataclass(frozen=True, slots=True)
class _Point:
    """An entry point of the manifest, with what kernels and graphs describe differently."""

    entry: to.DispatchEntry | ProgramEntry
    target: str
    remark: str
    group_limit: int
    words: Sequence[Word]
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
    for point in _points(manifest):
        lines += _entry_lines(point, names, prefix)
    lines.append(f"#endif // {guard}")
    return "\n".join(lines) + "\n"


def _points(manifest: Manifest) -> Iterator[_Point]:
    for kernel in manifest.kernels:
        types = _uniform_words(kernel, manifest.types)
        for target, programs in kernel.targets.items():
            for dispatches in (programs.primal, programs.backward, programs.forward):
                for number, dispatch in enumerate(dispatches, 1):
                    place = f"{number} of {len(dispatches)}"
                    remark = f"{kernel.name}, {dispatch.mode.value}: {place}"
                    yield _kernel_point(dispatch, target, remark, types)
    for graph in manifest.graphs:
        for target, plans in graph.targets.items():
            for program in plans.programs:
                yield _graph_point(program, target, f"{graph.name}: its plans say when and how")


def _uniform_words(
    kernel: to.KernelEntry, layouts: Mapping[str, to.Layout]
) -> dict[str, list[str]]:
    """The C types of the words of each uniform of `kernel`, by uniform."""
    return {
        uniform.name: [
            c_type
            for leaf in layouts[uniform.type].scalars
            for c_type in _IN_WORDS.get(leaf.type) or (SCALARS[leaf.type],)
        ]
        for uniform in kernel.uniforms
    }


def _kernel_point(
    dispatch: to.DispatchEntry, target: str, remark: str, types: Mapping[str, Sequence[str]]
) -> _Point:
    return _Point(
        entry=dispatch,
        target=target,
        remark=remark,
        group_limit=1 if dispatch.is_single_group else dispatch.group_limit,
        words=[_word(word, types) for word in dispatch.parameters.words],
        resources=[
            _Resource(r.name, r.place, _resource_remark(r), r.fill_word) for r in dispatch.resources
        ],
    )


def _graph_point(program: ProgramEntry, target: str, remark: str) -> _Point:
    return _Point(
        entry=program,
        target=target,
        remark=remark,
        group_limit=0,
        words=[(word, "uint32_t", "") for word in program.parameters.words],
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


def _entry_lines(point: _Point, names: Identifiers, prefix: str) -> Iterator[str]:
    entry = point.entry
    stem = (prefix, point.target, PurePosixPath(entry.file).stem)
    parameters = _Resource(entry.parameters.name, entry.parameters.place, "uniform")

    def define(value: str | int, *parts: str) -> str:
        return f"#define {names.claim('_'.join((*stem, *parts)).upper())} {value}"

    yield f"// {point.target}, {point.remark}"
    yield define(f'"{entry.entry_point}"', "entry_point")
    yield define(f'"{entry.file}"', "file")
    for axis, count in zip("xyz", entry.workgroup, strict=True):
        yield define(count, "workgroup", axis)
    if point.group_limit:
        yield define(point.group_limit, "group_limit")
    for resource in (parameters, *point.resources):
        yield f"// {resource.name}: {resource.remark}"
        yield from (define(v, resource.name, k) for k, v in _place(resource.place))
        if resource.fill_word is not None:
            yield define(f"{resource.fill_word:#x}u", resource.name, "fill_word")
    if point.words:
        yield from _parameter_lines(point.words, names.claim(*stem, "parameters"))
    yield ""


def _place(place: to.BindingPlace) -> Iterator[tuple[str, str]]:
    """Name and value of each number of a place; an HLSL register is split into class and number."""
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
