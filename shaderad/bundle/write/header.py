"""A manifest -> `NAME.h`: its slots, sizes and layouts as constants and structs of C11 and C++17.

Identifiers begin with NAME; those of an entry point continue with its target and the name of its
file, so a further target renames nothing.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from itertools import repeat
from pathlib import PurePosixPath

from shaderad.bundle.format.description import BindingPlace, Layout
from shaderad.bundle.format.document import Manifest
from shaderad.bundle.format.entries import GraphEntry, KernelEntry
from shaderad.bundle.format.plans import (
    BindingEntry,
    Command,
    CopyCommand,
    FillCommand,
    PlanEntry,
    PlansEntry,
    ProgramEntry,
    RunCommand,
)
from shaderad.bundle.format.type_names import TypeReader
from shaderad.ir.types import (
    LINEAR,
    MIXES_LEVELS,
    RESOURCES,
    SAMPLER,
    WRAPS,
    Kind,
    LocalArray,
    Matrix,
    Pointer,
    Scalar,
    Struct,
    TextureType,
    Type,
    Vector,
    byte_count,
)
from shaderad.lower.bindings import Lowered, Resource, Word, WordKind

_UNIFORM_WORDS = 4
"""The size of the constant buffer is rounded up to a multiple of this many words."""

_IN_WORDS = {Kind.DOUBLE: ("uint32_t", "uint32_t"), Kind.HALF: ("float",)}
"""The C types of scalars that differ between constant buffers and storage buffers."""
_NUMBERED = {WordKind.DIM, WordKind.SHAPE}
"""Kinds of words that exist once per axis."""
_WORD_REMARKS = {
    WordKind.THREAD_COUNT: "threads of the launch",
    WordKind.TILE: "threads that each workgroup covers, one workgroup size after the other",
    WordKind.GROUP_COUNT_X: "workgroups along x",
    WordKind.SITE_BASE: "where the sites of this program start in your table, such as 0",
}
_OF_HOST = re.compile(r"\$(?:start_|site_base)")
"""Words that are 0 unless the host binds parts of buffers, or reads reports of several programs."""
_SIZE_REMARKS = (
    "texels along x",
    "texels along y",
    "texels along z, layers, or faces",
    "mip levels",
)
"""Remarks on the words of a texture's size; `ir.types.TextureType` defines them."""

Field = tuple[str, str, str]
"""Name, C type, and remark."""


def header_text(manifest: Manifest, lowered_by_file: Mapping[str, Lowered], name: str) -> str:
    """The header of a build of ``name.py``, from its manifest and lowered programs."""
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
        *_sampler_lines(manifest, names, prefix),
        *_point_lines(manifest, lowered_by_file, names, prefix),
    ]
    lines.append(f"#endif // {guard}")
    return "\n".join(lines) + "\n"


_UniformWords = Mapping[str, Sequence[tuple[str, str]]]
"""C type and remark of each word of a uniform, by uniform."""


def _sampler_lines(manifest: Manifest, names: Identifiers, prefix: str) -> Iterator[str]:
    if all(array.resource != SAMPLER.name for entry in manifest.entries for array in entry.inputs):
        return
    yield "// Settings of a sampler: two bits an axis, x first, for its wrap, then two for filters."
    bits = {wrap: number for number, wrap in enumerate(WRAPS)}
    bits |= {"linear": LINEAR, "mixes_levels": MIXES_LEVELS}
    for name, value in bits.items():
        yield f"#define {names.claim(f'{prefix}_sampler_{name}'.upper())} {value:#x}u"
    yield ""


def _point_lines(
    manifest: Manifest, lowered_by_file: Mapping[str, Lowered], names: Identifiers, prefix: str
) -> Iterator[str]:
    for entry in manifest.entries:
        uniforms = _uniform_words(entry, manifest.types)
        for target, plans in entry.targets.items():
            remarks = _remarks(entry.name, plans)
            if isinstance(entry, KernelEntry):
                yield from _plan_lines(entry.name, target, plans)
            for program in plans.programs:
                lowered = lowered_by_file[program.file]
                yield f"// {target}, {remarks[program.name]}"
                stem = (prefix, target, PurePosixPath(program.file).stem)
                yield from _entry_lines(program, lowered, uniforms, names, stem)


def _plan_lines(entry: str, target: str, plans: PlansEntry) -> Iterator[str]:
    """The commands of each mode of a kernel, as comments."""
    words_by_program = {program.name: program.parameters.words for program in plans.programs}
    for mode, plan in _plans(plans):
        yield f"// {target}, {entry}, {mode}:"
        for number, command in enumerate(plan.commands, 1):
            for line in _command_lines(command, plan, words_by_program):
                yield f"//   {number}. {line}" if line[0] != " " else f"//   {line}"
    yield ""


def _command_lines(
    command: Command, plan: PlanEntry, words_by_program: Mapping[str, Sequence[str]]
) -> Iterator[str]:
    """The text of a command; lines after the first are indented."""

    def buffer(number: int) -> str:
        return plan.buffers[number].name or f"buffer {number}"

    match command:
        case FillCommand():
            target = buffer(command.target)
            yield f"fill {command.byte_count} bytes of {target} with {command.word:#x}"
        case CopyCommand():
            source = f"byte {command.source_offset} of {buffer(command.source)}"
            target = f"byte {command.target_offset} of {buffer(command.target)}"
            yield f"copy {command.byte_count} bytes from {source} to {target}"
        case RunCommand():
            condition = "" if command.if_positive == 1 else f", if {command.if_positive} > 0"
            groups = f"{command.groups} workgroups, at most $group_limit along x"
            yield f"dispatch {groups}, of {command.program}{condition}"
            for name, value in zip(words_by_program[command.program], command.words, strict=True):
                if isinstance(value, str) and not _OF_HOST.search(value):
                    yield f"     {name} = {value}"
        case _:
            raise AssertionError(f"a kernel's plan has {command}")


def _plans(plans: PlansEntry) -> Iterator[tuple[str, PlanEntry]]:
    for mode in ("primal", "backward", "forward"):
        plan: PlanEntry | None = getattr(plans, mode)
        if plan is not None:
            yield mode, plan


def _remarks(entry: str, plans: PlansEntry) -> dict[str, str]:
    """When each program runs, by name."""
    remarks: dict[str, str] = {}
    for mode, plan in _plans(plans):
        runs = [command for command in plan.commands if isinstance(command, RunCommand)]
        for number, run in enumerate(runs, 1):
            remarks.setdefault(run.program, f"{entry}, {mode}: {number} of {len(runs)}")
    return {p.name: remarks.get(p.name, f"{entry}, in a loop") for p in plans.programs}


def _uniform_words(entry: KernelEntry | GraphEntry, layouts: Mapping[str, Layout]) -> _UniformWords:
    if not isinstance(entry, KernelEntry):
        return {}
    types = [(array.path, RESOURCES.get(array.resource)) for array in entry.inputs]
    sizes = [(*path, t.number_name) for path, t in types if isinstance(t, TextureType)]
    words: dict[str, Sequence[tuple[str, str]]] = {}
    for uniform in entry.uniforms:
        c_types = [
            c_type
            for leaf in layouts[uniform.type].scalars
            for c_type in _IN_WORDS.get(leaf.type) or (SCALARS[leaf.type],)
        ]
        remarks = _SIZE_REMARKS if tuple(uniform.path) in sizes else repeat("")
        words[uniform.name] = [*zip(c_types, remarks, strict=False)]
    return words


def _word(name: str, word: Word, uniforms: _UniformWords) -> Field:
    if word.kind is WordKind.UNIFORM:
        of_kernel = uniforms.get(word.name)
        # A uniform of a graph holds a size.
        return (name, *of_kernel[word.index]) if of_kernel else (name, "uint32_t", "")
    if word.kind is WordKind.BITS:
        return name, "uint32_t", f"always {word.index:#010x}"
    if word.kind in _WORD_REMARKS:
        return name, "uint32_t", _WORD_REMARKS[word.kind]
    if word.kind is WordKind.OFFSET:
        role = f" {word.role.value}" if word.role else ""
        return name, "uint32_t", f"32-bit words before the{role} {word.name} in its buffer"
    if word.kind.value == name.replace("_", " "):
        return name, "uint32_t", ""
    number = f" {word.index}" if word.kind in _NUMBERED else ""
    of = f" of {word.name}" if word.name else ""
    role = f", {word.role.value}" if word.role else ""
    return name, "uint32_t", f"{word.kind.value}{number}{of}{role}"


def _entry_lines(
    entry: ProgramEntry,
    lowered: Lowered,
    uniforms: _UniformWords,
    names: Identifiers,
    stem: tuple[str, str, str],
) -> Iterator[str]:
    def define(value: str | int, *parts: str) -> str:
        return f"#define {names.claim('_'.join((*stem, *parts)).upper())} {value}"

    yield define(f'"{entry.entry_point}"', "entry_point")
    yield define(f'"{entry.file}"', "file")
    for axis, count in zip("xyz", entry.workgroup, strict=True):
        yield define(count, "workgroup", axis)
    group_limit = 1 if lowered.is_single_group else lowered.group_limit
    if group_limit:
        yield define(group_limit, "group_limit")
    parameters = entry.parameters
    yield f"// {parameters.name}: uniform"
    yield from (define(v, parameters.name, k) for k, v in _place(parameters.place))
    resource_by_slot = {r.slot: r for r in lowered.resources}
    for binding in entry.resources:
        resource = resource_by_slot[binding.slot]
        yield f"// {binding.name}: {_resource_remark(binding, resource)}"
        yield from (define(v, binding.name, k) for k, v in _place(binding.place))
        if binding.view is not None:
            yield define(f'"{binding.view.value}"', binding.name, "view")
            yield define(int(binding.is_filtered), binding.name, "is_filtered")
        if resource.fill_word is not None:
            yield define(f"{resource.fill_word:#x}u", binding.name, "fill_word")
    if parameters.words:
        rows = zip(parameters.words, lowered.words, strict=True)
        words = [_word(name, word, uniforms) for name, word in rows]
        yield from _parameter_lines(words, names.claim(*stem, "parameters"))
    yield ""


def _resource_remark(binding: BindingEntry, resource: Resource) -> str:
    types = [*map(str, resource.types), *("" for _ in resource.members)]
    pairs = zip(types, resource.members, strict=False)
    members = (f"{t} {name}".strip() for t, name in pairs)
    return ", ".join((binding.access.value, binding.role.value, *members))


def _place(place: BindingPlace) -> Iterator[tuple[str, str]]:
    """Name and value of each number of a place; splits an HLSL register into class and number."""
    for key, value in place.items():
        if key == "register":
            yield "register_class", f"'{str(value)[0]}'"
            yield "register", str(value)[1:]
        else:
            yield key, str(value)


def _parameter_lines(words: Sequence[Field], c_name: str) -> Iterator[str]:
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
"""Includes underscores, as C++ reserves names that begin with one or have two in a row."""


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
