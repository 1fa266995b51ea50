"""A built folder -> lines that tell a person what is in it: `shaderad inspect`.

All is read from the manifest; of the files only their sizes and hashes. Invariant: nothing is
changed, and no compiler or device is needed.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Literal

from shaderad.bundle import description as to
from shaderad.bundle import graph_description as graphs
from shaderad.bundle.document import Manifest
from shaderad.bundle.loading import read_manifest
from shaderad.bundle.plain_files import UnreadableError, read_plain

Kind = Literal["area", "ok", "none", "failed", "fact"]
Line = tuple[str, Kind]


def inspect(folder: Path) -> Iterator[Line]:
    """The lines, each with what it is about; ``failed`` ones speak of files that differ.

    Raises:
        CompileError: SR0720 no manifest, or none of ours; SR0721 of another version.
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
    for name, wanted in manifest.files.items():
        try:
            content = read_plain(folder, name)
        except UnreadableError as failure:
            yield f"  {name}: {failure}", "failed"
            continue
        total += len(content)
        if hashlib.sha256(content).hexdigest() != wanted:
            yield f"  {name}: was changed since it was built", "failed"
    count = f"{len(manifest.files)} files, {total} bytes"
    yield f"  manifest of version {manifest.schema_version}, {count}", "fact"


def _target(one: to.TargetEntry) -> str:
    features = ", ".join(one.features) or "no optional feature"
    return (
        f"{one.atomics} atomics, {features}, {one.workgroup} threads a workgroup, "
        f"space {one.space} from slot {one.first_binding} on"
    )


# -- kernels --------------------------------------------------------------------------------


def _kernel(folder: Path, one: to.KernelEntry) -> Iterator[Line]:
    indices = ", ".join(one.index_names)
    yield f"kernel {one.name}[{indices}] ({one.file}:{one.line}), bounds {one.bounds}", "area"
    for parameter in one.parameters:
        yield f"  {parameter.name}: {parameter.kind} {parameter.type}{_value(parameter)}", "fact"
    for target, programs in one.targets.items():
        for dispatch in (*programs.primal, *programs.backward, *programs.forward):
            yield from _dispatch(folder, target, dispatch)
        yield from _refusals(target, programs.no_backward, programs.no_forward)


def _value(parameter: to.Parameter) -> str:
    """Of a constant; JSON tells whole numbers from others by nothing but their type."""
    value = parameter.value
    if isinstance(value, float) and parameter.type != "float" and value.is_integer():
        value = int(value)
    return "" if value is None else f" = {value}"


def _dispatch(folder: Path, target: str, one: to.DispatchEntry) -> Iterator[Line]:
    yield _entry_point(folder, target, one.entry_point, one.file, one.features), "ok"
    words = len(one.parameters.words)
    yield f"    {_place(one.parameters.place)}  {words} parameter words", "fact"
    for resource in one.resources:
        members = ", ".join(member.name for member in resource.members)
        what = f"{resource.role.value} of {members}" if members else resource.role.value
        fill = "" if resource.fill_word is None else f", filled with {resource.fill_word:#x}"
        how = f"{resource.access.value}, {what}{fill}"
        yield f"    {_place(resource.place)}  {how}", "fact"
    for name, strategy in one.strategies.items():
        yield f"    gradient of {name}: {strategy}", "fact"


def _entry_point(
    folder: Path, target: str, entry_point: str, file: str, features: Iterable[str]
) -> str:
    try:
        size = f"{len(read_plain(folder, file))} bytes"
    except UnreadableError:
        size = "missing"
    needs = f", needs {', '.join(features)}" if features else ""
    return f"  {target}: {entry_point} in {file}, {size}{needs}"


def _place(place: to.Place) -> str:
    if not place:
        return "not used"
    return " ".join(f"{name} {number}" for name, number in place.items())


def _refusals(
    target: str, backward: to.NoDerivative | None, forward: to.NoDerivative | None
) -> Iterator[Line]:
    for mode, one in (("backward", backward), ("forward", forward)):
        if one is not None:
            code = f"{one.code}: " if one.code else ""
            line = f" (line {one.line})" if one.line else ""
            yield f"  {target}: no {mode}: {code}{one.reason}{line}", "none"


# -- graphs ---------------------------------------------------------------------------------


def _graph(folder: Path, one: graphs.GraphEntry) -> Iterator[Line]:
    sizes = ", ".join(one.sizes)
    yield f"graph {one.name}[{sizes}] ({one.file}:{one.line}), bounds {one.bounds}", "area"
    for what, arrays in (("takes", one.inputs), ("gives", one.outputs)):
        for array in arrays:
            shape = ", ".join(map(str, array.shape))
            yield f"  {what} {array.name}: {array.type}[{shape}]", "fact"
    for target, plans in one.targets.items():
        for program in plans.programs:
            point = program.entry_point
            yield _entry_point(folder, target, point, program.file, program.features), "ok"
        modes = {"primal": plans.primal, "backward": plans.backward, "forward": plans.forward}
        for mode, plan in modes.items():
            if plan is not None:
                yield f"  {target}: {mode} plan: {_plan(plan)}", "ok"
        yield from _refusals(target, plans.no_backward, plans.no_forward)


_SHOWN: dict[type, str] = {
    graphs.RunCommand: "dispatches",
    graphs.CopyCommand: "copies",
    graphs.FillCommand: "fills",
    graphs.RepeatCommand: "loops",
    graphs.WhileCommand: "while loops",
}


def _plan(plan: graphs.PlanEntry) -> str:
    counts = Counter(_SHOWN[type(one)] for one in _commands(plan.commands) if type(one) in _SHOWN)
    parts = [f"{counts[what]} {what}" for what in _SHOWN.values() if counts[what]]
    return f"{', '.join(parts) or 'nothing to run'} over {len(plan.buffers)} buffers"


def _commands(block: Iterable[graphs.Command]) -> Iterator[graphs.Command]:
    for one in block:
        yield one
        if isinstance(one, graphs.RepeatCommand):
            yield from one.start
        if isinstance(one, graphs.RepeatCommand | graphs.WhileCommand):
            yield from _commands(one.body)
