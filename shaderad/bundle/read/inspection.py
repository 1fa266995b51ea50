"""A built folder -> the lines of `shaderad inspect`.

Reads the manifest, and sizes and hashes of the files. Invariant: changes nothing, and needs no
compiler and no device.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Literal

from shaderad.bundle.format import description as to
from shaderad.bundle.format import graph_description as graphs
from shaderad.bundle.format.document import Manifest
from shaderad.bundle.read.loaded_files import UnreadableError, read_plain
from shaderad.bundle.read.loading import read_manifest

Kind = Literal["area", "ok", "none", "failed", "fact"]
Line = tuple[str, Kind]


def inspect(folder: Path) -> Iterator[Line]:
    """The lines, each with its kind; ``failed`` marks files that are missing or were changed.

    Raises:
        CompileError: SR0720, if the folder has no valid manifest; SR0721, if another version
            wrote it; SR0722, if the manifest was changed.
    """
    manifest = read_manifest(folder)
    yield f"{folder}: made by shaderad {manifest.shaderad} with {manifest.compiler}", "area"
    yield from _files(folder, manifest)
    for name, target in manifest.targets.items():
        yield f"  {name}: {_target(target)}", "fact"
    for kernel in manifest.kernels:
        yield from _kernel(folder, kernel)
    for graph in manifest.graphs:
        yield from _graph(folder, graph)


def _files(folder: Path, manifest: Manifest) -> Iterator[Line]:
    total = 0
    for name, digest in manifest.files.items():
        try:
            content = read_plain(folder, name)
        except UnreadableError as failure:
            yield f"  {name}: {failure}", "failed"
            continue
        total += len(content)
        if hashlib.sha256(content).hexdigest() != digest:
            yield f"  {name}: was changed since it was built", "failed"
    count = f"{len(manifest.files)} files, {total} bytes"
    yield f"  manifest of version {manifest.schema_version}, {count}", "fact"


def _target(entry: to.TargetEntry) -> str:
    features = ", ".join(entry.features) or "no optional feature"
    return (
        f"{entry.atomics} atomics, {features}, {entry.workgroup} threads a workgroup, "
        f"space {entry.space} from slot {entry.first_binding} on"
    )


# -- kernels --------------------------------------------------------------------------------


def _kernel(folder: Path, entry: to.KernelEntry) -> Iterator[Line]:
    yield _heading("kernel", entry, entry.index_names)
    for parameter in entry.parameters:
        yield f"  {parameter.name}: {parameter.kind} {parameter.type}{_value(parameter)}", "fact"
    for target, programs in entry.targets.items():
        for dispatch in (*programs.primal, *programs.backward, *programs.forward):
            yield from _dispatch(folder, target, dispatch)
        yield from _refusals(target, programs)


def _value(parameter: to.KernelArgument) -> str:
    """The value of a constant; JSON does not distinguish integers from whole floats."""
    value = parameter.value
    if isinstance(value, float) and parameter.type != "float" and value.is_integer():
        value = int(value)
    return "" if value is None else f" = {value}"


def _dispatch(folder: Path, target: str, entry: to.DispatchEntry) -> Iterator[Line]:
    yield _entry_point(folder, target, entry)
    words = len(entry.parameters.words)
    yield f"    {_place(entry.parameters.place)}  {words} parameter words", "fact"
    for resource in entry.resources:
        members = ", ".join(member.name for member in resource.members)
        content = f"{resource.role.value} of {members}" if members else resource.role.value
        fill = "" if resource.fill_word is None else f", filled with {resource.fill_word:#x}"
        place = _place(resource.place)
        yield f"    {place}  {resource.access.value}, {content}{fill}", "fact"
    for name, strategy in entry.strategies.items():
        yield f"    gradient of {name}: {strategy}", "fact"


def _heading(kind: str, entry: to.KernelEntry | graphs.GraphEntry, names: Iterable[str]) -> Line:
    source = f"{entry.file}:{entry.line}"
    return f"{kind} {entry.name}[{', '.join(names)}] ({source}), bounds {entry.bounds}", "area"


def _entry_point(folder: Path, target: str, entry: to.DispatchEntry | graphs.ProgramEntry) -> Line:
    try:
        size = f"{len(read_plain(folder, entry.file))} bytes"
    except UnreadableError:
        size = "missing"
    needs = f", needs {', '.join(entry.features)}" if entry.features else ""
    return f"  {target}: {entry.entry_point} in {entry.file}, {size}{needs}", "ok"


def _place(place: to.BindingPlace) -> str:
    if not place:
        return "not used"
    return " ".join(f"{name} {number}" for name, number in place.items())


def _refusals(target: str, entry: to.ProgramsEntry | graphs.PlansEntry) -> Iterator[Line]:
    for mode, refusal in (("backward", entry.no_backward), ("forward", entry.no_forward)):
        if refusal is not None:
            code = f"{refusal.code}: " if refusal.code else ""
            line = f" (line {refusal.line})" if refusal.line else ""
            yield f"  {target}: no {mode}: {code}{refusal.reason}{line}", "none"


# -- graphs ---------------------------------------------------------------------------------


def _graph(folder: Path, entry: graphs.GraphEntry) -> Iterator[Line]:
    yield _heading("graph", entry, entry.sizes)
    for verb, arrays in (("takes", entry.inputs), ("gives", entry.outputs)):
        for array in arrays:
            shape = ", ".join(map(str, array.shape))
            yield f"  {verb} {array.name}: {array.type}[{shape}]", "fact"
    for target, plans in entry.targets.items():
        for program in plans.programs:
            yield _entry_point(folder, target, program)
        modes = {"primal": plans.primal, "backward": plans.backward, "forward": plans.forward}
        for mode, plan in modes.items():
            if plan is not None:
                yield f"  {target}: {mode} plan: {_plan(plan)}", "ok"
        yield from _refusals(target, plans)


_NOUNS: dict[type, str] = {
    graphs.RunCommand: "dispatches",
    graphs.CopyCommand: "copies",
    graphs.FillCommand: "fills",
    graphs.RepeatCommand: "loops",
    graphs.WhileCommand: "while loops",
}


def _plan(plan: graphs.PlanEntry) -> str:
    counts = Counter(_NOUNS.get(type(command)) for command in _commands(plan.commands))
    parts = [f"{counts[noun]} {noun}" for noun in _NOUNS.values() if counts[noun]]
    return f"{', '.join(parts) or 'nothing to run'} over {len(plan.buffers)} buffers"


def _commands(block: Iterable[graphs.Command]) -> Iterator[graphs.Command]:
    for command in block:
        yield command
        if isinstance(command, graphs.RepeatCommand):
            yield from command.start
        if isinstance(command, graphs.RepeatCommand | graphs.WhileCommand):
            yield from _commands(command.body)
