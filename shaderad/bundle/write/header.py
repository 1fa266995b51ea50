"""A manifest -> `NAME.h`: its slots, sizes and layouts as constants and structs of C11 and C++17.

Identifiers begin with NAME; those of an entry point continue with its target and the name of its
file, so another target renames nothing.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import PurePosixPath

from shaderad.bundle.format import description as to
from shaderad.bundle.format.description import Layout
from shaderad.bundle.format.document import Manifest
from shaderad.bundle.format.graph_description import ProgramEntry
from shaderad.bundle.format.type_names import TypeReader
from shaderad.ir.types import (
    Kind,
    LocalArray,
    Matrix,
    Pointer,
    Scalar,
    Struct,
    Type,
    Vector,
    byte_count,
)
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


SCALARS: dict[Kind, str] = {
    Kind.FLOAT: "float",
    Kind.DOUBLE: "double",
    Kind.HALF: "uint16_t",
    Kind.INT: "int32_t",
    Kind.UINT: "uint32_t",
    Kind.BOOL: "uint32_t",
}
"""The C type of each scalar of a buffer."""
_REMARKS = {Kind.HALF: "half: the bits of a 16-bit float", Kind.BOOL: "bool: 0 or 1"}


class CTypes:
    """The structs of one manifest, each under a unique name."""

    def __init__(self, layouts: Mapping[str, Layout], names: Identifiers, prefix: str) -> None:
        self._layouts = layouts
        self._types = TypeReader(layouts)
        has_pointer = any(isinstance(self._types.type(name), Pointer) for name in layouts)
        self._structs = [name for name, layout in layouts.items() if layout.fields]
        self._pointer = names.claim(prefix, "pointer") if has_pointer else ""
        self._name_by_struct = {name: names.claim(prefix, name) for name in self._structs}

    def lines(self) -> Iterator[str]:
        """The definitions of all structs, inner ones first."""
        # A double may start at any 32-bit word.
        is_packed = any(
            s.type is Kind.DOUBLE for n in self._structs for s in self._layouts[n].scalars
        )
        if is_packed:
            yield from ("#pragma pack(push, 4)", "")
        if self._pointer:
            yield from self._pointer_lines()
        for name in self._structs:
            yield from self._struct_lines(name)
        if is_packed:
            yield from ("#pragma pack(pop)", "")

    def _pointer_lines(self) -> Iterator[str]:
        yield "// Elements of the array that the manifest names as the pointer's target."
        yield f"typedef struct {self._pointer} {{"
        yield "    uint32_t base; // the first element"
        yield "    uint32_t count;"
        yield f"}} {self._pointer};"
        yield ""

    def _struct_lines(self, name: str) -> Iterator[str]:
        layout, c_name = self._layouts[name], self._name_by_struct[name]
        fields = Identifiers()
        asserts = [f'static_assert(sizeof({c_name}) == {layout.byte_count}, "size of {c_name}");']
        end = 0
        yield f"typedef struct {c_name} {{"
        for field in layout.fields:
            start = next(s.byte_offset for s in layout.scalars if s.path[0] == field.name)
            yield from _padding(start - end, fields)
            t = self._types.type(field.type)
            c_field = fields.claim(field.name)
            yield f"    {self._declared(t, c_field)};{_remark(t)}"
            asserts.append(
                f"static_assert(offsetof({c_name}, {c_field}) == {start}, "
                f'"offset of {c_name}.{c_field}");'
            )
            end = start + byte_count(t)
        yield from _padding(layout.byte_count - end, fields)
        yield f"}} {c_name};"
        yield from asserts
        yield ""

    def _declared(self, t: Type, name: str) -> str:
        """The declaration of field `name` of type `t`, such as ``float name[3]``."""
        if isinstance(t, Vector):
            return self._declared(t.element, f"{name}[{t.count}]")
        if isinstance(t, Matrix):
            return self._declared(t.element, f"{name}[{t.row_count}][{t.column_count}]")
        if isinstance(t, LocalArray):
            return self._declared(t.element, f"{name}[{t.count}]")
        if isinstance(t, Struct):
            return f"{self._name_by_struct[t.name]} {name}"
        return f"{SCALARS[t.kind] if isinstance(t, Scalar) else self._pointer} {name}"


def _padding(byte_count: int, fields: Identifiers) -> Iterator[str]:
    if byte_count:
        yield f"    uint8_t {fields.claim('padding')}[{byte_count}];"


def _remark(t: Type) -> str:
    while isinstance(t, Vector | Matrix | LocalArray):
        t = t.element
    remark = _REMARKS.get(t.kind) if isinstance(t, Scalar) else None
    return f" // {remark}" if remark else ""


_KEYWORDS = frozenset(
    # Keywords of C11 and C++20, and the alternative operators of C++.
    "alignas alignof and and_eq asm auto bitand bitor bool break case catch char char8_t char16_t "
    "char32_t class co_await co_return co_yield compl concept const const_cast consteval constexpr "
    "constinit continue decltype default delete do double dynamic_cast else enum explicit export "
    "extern false float for friend goto if inline int long mutable namespace new noexcept not "
    "not_eq nullptr operator or or_eq private protected public register reinterpret_cast requires "
    "restrict return short signed sizeof static static_assert static_cast struct switch template "
    "this thread_local throw true try typedef typeid typename typeof typeof_unqual union unsigned "
    "using virtual void volatile wchar_t while xor xor_eq "
    # The namespace std, and macros of old compilers, of <stddef.h>, <assert.h> and of <windows.h>.
    "NULL assert offsetof std linux unix i386 near far small interface".split()
)
_OF_STDINT = re.compile(
    r"U?INT[A-Z0-9_]*_(?:C|MAX|MIN)|[A-Z]+_(?:MAX|MIN)"
    r"|u?int(?:_least|_fast)?\d+_t|u?int(?:ptr|max)_t|(?:r?size|ptrdiff|max_align|nullptr)_t"
)
"""Macros of <stdint.h>, and types of it and <stddef.h>."""
_FOREIGN = re.compile(r"[^A-Za-z0-9]+")
"""Includes underscores: C++ reserves names with two in a row, and names that begin with one."""


class Identifiers:
    """The names of one scope."""

    def __init__(self) -> None:
        self._taken: set[str] = set()

    def claim(self, *parts: str) -> str:
        """Joins `parts` by underscores; appends `_` to a reserved name, a number to a taken one."""
        start = identifier(*parts)
        if start in _KEYWORDS or _OF_STDINT.fullmatch(start):
            start += "_"
        name, number = start, 2
        while name in self._taken:
            name, number = f"{start}_{number}", number + 1
        self._taken.add(name)
        return name


def identifier(*parts: str) -> str:
    """Joins `parts` to one word that begins with a letter."""
    name = _FOREIGN.sub("_", "_".join(parts)).strip("_")
    return name if name[:1].isalpha() else f"n{name}"
