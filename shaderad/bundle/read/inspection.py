"""A built folder -> the lines of `shaderad inspect`.

It reads the manifest, and the sizes and hashes of the files. Invariant: it changes nothing, and
needs no compiler and no device.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Literal

from shaderad.bundle.format import plans
from shaderad.bundle.format.description import BindingPlace, TargetEntry
from shaderad.bundle.format.document import Manifest
from shaderad.bundle.format.entries import ARRAY, GraphEntry, KernelArgument, KernelEntry
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
    for entry in manifest.entries:
        yield from _entry(folder, entry)


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


def _target(entry: TargetEntry) -> str:
    features = ", ".join(entry.features) or "no optional feature"
    return (
        f"{entry.atomics} atomics, {features}, {entry.workgroup} threads a workgroup, "
        f"space {entry.space} from slot {entry.first_binding} on"
    )


# -- entries --------------------------------------------------------------------------------


def _entry(folder: Path, entry: KernelEntry | GraphEntry) -> Iterator[Line]:
    if isinstance(entry, KernelEntry):
        kind, names = "kernel", entry.index_names
    else:
        kind, names = "graph", entry.sizes
    source = f"{entry.file}:{entry.line}"
    yield f"{kind} {entry.name}[{', '.join(names)}] ({source}), bounds {entry.bounds}", "area"
    if isinstance(entry, KernelEntry):
        for parameter in entry.parameters:
            text = f"{parameter.kind} {parameter.type}{_value(parameter)}"
            yield f"  {parameter.name}: {text}", "fact"
    for verb, arrays in (("takes", entry.inputs), ("gives", entry.outputs)):
        for array in arrays:
            shape = ", ".join(map(str, array.shape))
            kind = "" if array.resource == ARRAY else f"{array.resource} of "
            yield f"  {verb} {array.name}: {kind}{array.type}[{shape}]", "fact"
    for target, each in entry.targets.items():
        for program in each.programs:
            yield from _program(folder, target, program)
        modes = {"primal": each.primal, "backward": each.backward, "forward": each.forward}
        for mode, plan in modes.items():
            if plan is not None:
                yield f"  {target}: {mode} plan: {_plan(plan)}", "ok"
        yield from _refusals(target, each)


def _value(parameter: KernelArgument) -> str:
    """The value of a constant; JSON does not distinguish integers from whole floats."""
    value = parameter.value
    if isinstance(value, float) and parameter.type != "float" and value.is_integer():
        value = int(value)
    return "" if value is None else f" = {value}"


def _program(folder: Path, target: str, entry: plans.ProgramEntry) -> Iterator[Line]:
    try:
        size = f"{len(read_plain(folder, entry.file))} bytes"
    except UnreadableError:
        size = "missing"
    needs = f", needs {', '.join(entry.features)}" if entry.features else ""
    yield f"  {target}: {entry.entry_point} in {entry.file}, {size}{needs}", "ok"
    words = len(entry.parameters.words)
    yield f"    {_place(entry.parameters.place)}  {words} parameter words", "fact"
    for resource in entry.resources:
        members = ", ".join(resource.members)
        content = f"{resource.role.value} of {members}" if members else resource.role.value
        yield f"    {_place(resource.place)}  {resource.access.value}, {content}", "fact"
    for name, strategy in entry.strategies.items():
        yield f"    gradient of {name}: {strategy}", "fact"


def _place(place: BindingPlace) -> str:
    if not place:
        return "not used"
    return " ".join(f"{name} {number}" for name, number in place.items())


def _refusals(target: str, entry: plans.PlansEntry) -> Iterator[Line]:
    for mode, refusal in (("backward", entry.no_backward), ("forward", entry.no_forward)):
        if refusal is not None:
            code = f"{refusal.code}: " if refusal.code else ""
            line = f" (line {refusal.line})" if refusal.line else ""
            yield f"  {target}: no {mode}: {code}{refusal.reason}{line}", "none"


_NOUNS: dict[type, str] = {
    plans.RunCommand: "dispatches",
    plans.CopyCommand: "copies",
    plans.FillCommand: "fills",
    plans.RepeatCommand: "loops",
    plans.WhileCommand: "while loops",
}


def _plan(plan: plans.PlanEntry) -> str:
    counts = Counter(_NOUNS.get(type(command)) for command in _commands(plan.commands))
    parts = [f"{counts[noun]} {noun}" for noun in _NOUNS.values() if counts[noun]]
    return f"{', '.join(parts) or 'nothing to run'} over {len(plan.buffers)} buffers"


def _commands(block: Iterable[plans.Command]) -> Iterator[plans.Command]:
    for command in block:
        yield command
        if isinstance(command, plans.RepeatCommand):
            yield from command.start
        if isinstance(command, plans.RepeatCommand | plans.WhileCommand):
            yield from _commands(command.body)
