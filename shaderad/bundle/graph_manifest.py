"""Built graphs -> what the manifest says of them.

Invariant: only names, numbers and expressions; the same build gives the same bytes.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, cast

from shaderad.bundle import graph_description as graphs
from shaderad.bundle.dispatches import (
    FileNames,
    compiler_options,
    no_derivative,
    site_entries,
)
from shaderad.bundle.graph_entries import BuiltGraph
from shaderad.bundle.graph_programs import GraphProgram, GraphPrograms
from shaderad.bundle.places import places
from shaderad.bundle.size_text import spelled
from shaderad.bundle.type_names import Types
from shaderad.diagnostics import error
from shaderad.ir.arrays import ArrayType
from shaderad.ir.types import is_differentiable
from shaderad.lower.artifact import Access
from shaderad.lower.bindings import Mode, Role
from shaderad.session import schedule, trees
from shaderad.session.graph_signatures import GraphSignature
from shaderad.session.schedule import Instruction, Schedule
from shaderad.session.traced_calls import Placeholder
from shaderad.session.traced_sizes import TracedSize

_ADDRESS = re.compile(r" at 0x[0-9a-fA-F]+")
"""What differs from process to process in the text of a function."""


def graph_entry(built: BuiltGraph, file_of: FileNames, types: Types) -> graphs.GraphEntry:
    """Everything that a host needs in order to run one graph."""
    signature, variant = built.graph.signature, built.graph.variant
    names = _Names(signature.names, [f"result_{k}" for k in range(len(variant.graph.outputs))])
    return graphs.GraphEntry(
        name=built.name,
        file=built.graph.span.file_name,
        line=built.graph.span.line,
        bounds=built.bounds,
        sizes=[*signature.size_names],
        assumes=graphs.Assumptions(
            equal=[(spelled(a), spelled(b)) for a, b in variant.equal_sizes],
            positive=[spelled(one) for one in variant.positive_sizes],
        ),
        parameters=[
            _parameter(name, tree, signature, built.name)
            for name, tree in signature.skeleton.items()
        ],
        inputs=[_array(*one, types) for one in
                zip(names.inputs, signature.types, built.graph.wanted, strict=True)],
        outputs=[_array(name, v.type, is_differentiable(v.element), types)
                 for name, v in zip(names.outputs, variant.graph.outputs, strict=True)],
        result=_tree(variant.out, built.name),
        targets={
            target: _plans(
                programs, _files(programs, (target, built.name), file_of), types, names,
                built.graph.wanted,
            )
            for target, programs in built.by_target.items()
        },
    )  # fmt: skip


def _parameter(
    name: str, tree: Any, signature: GraphSignature, graph: str
) -> graphs.GraphParameter:
    found = graphs.GraphParameter(name, _tree(tree, graph, is_fixed=name in signature.fixed))
    if name in signature.defaults:
        found.default = _tree(signature.defaults[name], graph)
    return found


def _array(name: str, t: ArrayType, has_derivative: bool, types: Types) -> graphs.GraphArray:
    shape = [spelled(extent) for extent in t.shape]
    return graphs.GraphArray(name, types.name(t.element), shape, has_derivative)


def _tree(tree: Any, graph: str, *, is_fixed: bool = False) -> graphs.TreeEntry:
    """A tree of arrays; of a fixed parameter the text of its value is enough."""
    if is_fixed:
        return graphs.TreeEntry("value", value=_ADDRESS.sub("", repr(tree)))
    parts = trees.children(tree)
    if parts is None:
        return _leaf(tree, graph)
    inner = [_tree(part, graph) for part in parts.values()]
    kind = cast("type[Any]", type(tree))
    if hasattr(kind, "_fields"):
        names = [*kind._fields]
        return graphs.TreeEntry("named tuple", name=kind.__name__, names=names, parts=inner)
    if isinstance(tree, tuple | list):
        return graphs.TreeEntry("list" if isinstance(tree, list) else "tuple", parts=inner)
    return graphs.TreeEntry("dict", names=[*map(str, parts)], parts=inner)


def _leaf(leaf: Any, graph: str) -> graphs.TreeEntry:
    if isinstance(leaf, Placeholder):
        return graphs.TreeEntry("array", index=leaf.position)
    if isinstance(leaf, TracedSize):
        return graphs.TreeEntry("size", size=spelled(leaf.size))
    if leaf is None or isinstance(leaf, bool | str):
        return graphs.TreeEntry("value", value=leaf)
    if isinstance(leaf, int | float):
        # JSON has no infinities, and its readers make floats of whole numbers.
        plain = int(leaf) if isinstance(leaf, int) else float(leaf)
        return graphs.TreeEntry("number", value=repr(plain))
    raise error("SR0735", graph=graph, found=trees.described(leaf))


@dataclass(frozen=True, slots=True)
class _Names:
    """What plans call the arrays of a graph."""

    inputs: Sequence[str]
    outputs: Sequence[str]

    def of_mode(self, mode: Mode, moving: _Moving) -> tuple[list[str], list[str]]:
        """The inputs and outputs of a mode's plan."""
        if mode is Mode.PRIMAL:
            return [*self.inputs], [*self.outputs]
        given = _picked(self.inputs, moving.inputs)
        made = _picked(self.outputs, moving.outputs)
        if mode is Mode.FORWARD:
            given, made = [f"{n} tangent" for n in given], [f"{n} tangent" for n in made]
            return [*self.inputs, *given], [*self.outputs, *made]
        cotangents = [f"{name} cotangent" for name in made]
        gradients = [f"{name} gradient" for name in given]
        return [*self.inputs, *cotangents], [*self.outputs, *gradients]


@dataclass(frozen=True, slots=True)
class _Moving:
    """Which arrays of a graph have derivatives."""

    inputs: Sequence[bool]
    outputs: Sequence[bool]


def _picked(names: Sequence[str], flags: Sequence[bool]) -> list[str]:
    return [name for name, one in zip(names, flags, strict=True) if one]


def _files(
    programs: GraphPrograms, at: tuple[str, str], file_of: FileNames
) -> list[tuple[str, str]]:
    return [file_of[*at, one.stem] for one in programs.dispatches]


def _plans(
    built: GraphPrograms,
    files: Sequence[tuple[str, str]],
    types: Types,
    names: _Names,
    wanted: Sequence[bool],
) -> graphs.PlansEntry:
    primal = built.by_mode[Mode.PRIMAL]
    moving = _Moving(wanted, [is_differentiable(one.element) for one in primal.outputs])
    plans = {
        mode: _plan(one, built.programs, names.of_mode(mode, moving), types)
        for mode, one in built.by_mode.items()
    }
    return graphs.PlansEntry(
        programs=[_program(*pair) for pair in zip(built.programs, files, strict=True)],
        primal=plans[Mode.PRIMAL],
        backward=plans.get(Mode.BACKWARD),
        forward=plans.get(Mode.FORWARD),
        no_backward=no_derivative(built.refusals.get(Mode.BACKWARD)),
        no_forward=no_derivative(built.refusals.get(Mode.FORWARD)),
    )


def _program(built: GraphProgram, files: tuple[str, str]) -> graphs.ProgramEntry:
    dispatch = built.dispatch
    lowered, program = dispatch.lowered, dispatch.lowered.program
    place = places(program, dispatch.code)
    reports = {r.slot for r in lowered.resources if r.role is Role.REPORT}
    parameters, *rest = program.bindings
    return graphs.ProgramEntry(
        name=dispatch.stem,
        kernel=built.kernel,
        entry_point=program.name,
        file=files[0],
        slang=files[1],
        workgroup=program.workgroup,
        features=sorted(program.features),
        compiler_options=compiler_options(dispatch),
        parameters=graphs.WordsEntry(
            parameters.slot, parameters.name, place[parameters.name], [*program.parameter_words]
        ),
        resources=[
            graphs.BindingEntry(b.slot, b.name, place[b.name], b.access, b.slot in reports)
            for b in rest
        ],
        sites=site_entries(lowered),
    )


def _plan(
    one: Schedule,
    programs: Sequence[GraphProgram],
    names: tuple[list[str], list[str]],
    types: Types,
) -> graphs.PlanEntry:
    inputs, outputs = names
    name_by_buffer = dict(enumerate(inputs))
    for name, output in zip(outputs, one.outputs, strict=True):
        name_by_buffer.setdefault(output.buffer, name)
    return graphs.PlanEntry(
        inputs=inputs,
        outputs=[
            graphs.PlanOutput(name, types.name(o.element), [*map(spelled, o.shape)], o.buffer)
            for name, o in zip(outputs, one.outputs, strict=True)
        ],
        aligned_inputs=sorted(one.aligned_inputs),
        buffers=[
            graphs.BufferEntry(name_by_buffer.get(k, ""), spelled(size))
            for k, size in enumerate(one.byte_counts)
        ],
        commands=_commands(one.instructions, programs),
    )


def _commands(
    block: Sequence[Instruction], programs: Sequence[GraphProgram]
) -> list[graphs.Command]:
    return [_command(one, programs) for one in block]


def _command(one: Instruction, programs: Sequence[GraphProgram]) -> graphs.Command:
    match one:
        case schedule.Let():
            return graphs.LetCommand(one.name, spelled(one.size))
        case schedule.Run():
            return _run(one, programs[one.program])
        case schedule.Move():
            return _copy(one)
        case schedule.Set():
            return graphs.FillCommand(one.target, one.word, spelled(one.byte_count))
        case schedule.Repeat():
            return graphs.RepeatCommand(
                symbol=one.symbol,
                count=spelled(one.count),
                is_reversed=one.is_reversed,
                carries=[*one.carries],
                rows=[*one.rows],
                start=[_copy(each) for each in one.start],
                body=_commands(one.body, programs),
            )
        case schedule.RepeatWhile():
            return graphs.WhileCommand(
                carries=[*one.carries],
                body=_commands(one.body, programs),
                goes_on=one.goes_on,
                wants=one.wants,
                limit=one.limit,
                line=one.span.line,
            )


def _run(one: schedule.Run, program: GraphProgram) -> graphs.RunCommand:
    bindings = program.dispatch.lowered.program.bindings
    name_by_slot = {b.slot: b.name for b in bindings if b.access is not Access.UNIFORM}
    return graphs.RunCommand(
        program=program.dispatch.stem,
        bind={name_by_slot[slot]: buffer for slot, buffer in one.bindings},
        words=[*map(spelled, one.words)],
        groups=spelled(one.group_count),
        if_positive=spelled(one.is_needed),
    )


def _copy(one: schedule.Move) -> graphs.CopyCommand:
    return graphs.CopyCommand(
        source=one.source,
        target=one.target,
        byte_count=spelled(one.byte_count),
        source_offset=spelled(one.source_offset),
        target_offset=spelled(one.target_offset),
    )
