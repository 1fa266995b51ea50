"""Built graphs -> their entries in the manifest.

Invariant: only names, numbers and expressions; the same build gives the same bytes.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from itertools import compress
from typing import Any, cast

from shaderad.arrays import trees
from shaderad.arrays.traced_sizes import TracedSize
from shaderad.bundle.format import graph_description as graphs
from shaderad.bundle.format.size_text import spelled
from shaderad.bundle.format.type_names import TypeTable
from shaderad.bundle.write.entry_point_fields import (
    FileNames,
    bound,
    entry_point_fields,
    refusal_fields,
)
from shaderad.bundle.write.programs import EntryPoint, GraphBuild, TargetPrograms
from shaderad.compiler.artifact import BindingAccess
from shaderad.diagnostics import error
from shaderad.execute import schedule
from shaderad.execute.schedule import Instruction, Schedule
from shaderad.ir.arrays import ArrayType
from shaderad.ir.sizes import Size
from shaderad.ir.types import is_differentiable
from shaderad.lower.bindings import Mode, Role
from shaderad.trace.calls import Placeholder
from shaderad.trace.signatures import GraphSignature

_ADDRESS = re.compile(r" at 0x[0-9a-fA-F]+")
"""The part of a function's text that differs from process to process."""


def graph_entry(build: GraphBuild, file_of: FileNames, types: TypeTable) -> graphs.GraphEntry:
    """Everything that a host needs in order to run one graph."""
    graph = build.source
    signature, variant = graph.signature, graph.variant
    values = variant.graph.outputs
    outputs = [f"result_{k}" for k in range(len(values))]
    floats = [is_differentiable(v.element) for v in values]
    names = _plan_names(signature.names, outputs, graph.wanted, floats)
    return graphs.GraphEntry(
        name=graph.name,
        file=graph.span.file_name,
        line=graph.span.line,
        bounds=build.bounds,
        sizes=[*signature.size_names],
        assumes=graphs.Assumptions(
            equal=[(spelled(a), spelled(b)) for a, b in variant.equal_sizes],
            positive=[spelled(size) for size in variant.positive_sizes],
        ),
        parameters=[
            _parameter(name, tree, signature, graph.name)
            for name, tree in signature.skeleton.items()
        ],
        inputs=[
            _array(*row, types)
            for row in zip(signature.names, signature.types, graph.wanted, strict=True)
        ],
        outputs=[
            _array(name, v.type, has_derivative, types)
            for name, v, has_derivative in zip(outputs, values, floats, strict=True)
        ],
        result=_tree(variant.out, graph.name),
        targets={
            target: _plans(
                programs,
                [file_of[target, graph.name, point.stem] for point in programs.entry_points],
                types,
                names,
            )
            for target, programs in build.by_target.items()
        },
    )


def _parameter(
    name: str, tree: Any, signature: GraphSignature, graph: str
) -> graphs.GraphParameter:
    parameter = graphs.GraphParameter(name, _tree(tree, graph, is_fixed=name in signature.fixed))
    if name in signature.defaults:
        parameter.default = _tree(signature.defaults[name], graph)
    return parameter


def _array(name: str, t: ArrayType, has_derivative: bool, types: TypeTable) -> graphs.GraphArray:
    shape = [spelled(extent) for extent in t.shape]
    return graphs.GraphArray(name, types.name(t.element), shape, has_derivative)


def _tree(tree: Any, graph: str, *, is_fixed: bool = False) -> graphs.TreeEntry:
    """A tree of arrays; a fixed parameter is written as the text of its value."""
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


def _plan_names(
    inputs: Sequence[str], outputs: Sequence[str], wanted: Sequence[bool], floats: Sequence[bool]
) -> dict[Mode, tuple[list[str], list[str]]]:
    """For each mode, the names of the inputs and outputs of its plan.

    Args:
        inputs: Names of the inputs of the graph.
        outputs: Names of its outputs.
        wanted: For each input, true if the graph is differentiated by it.
        floats: For each output, true if it holds floats.
    """
    variables, results = [*compress(inputs, wanted)], [*compress(outputs, floats)]
    return {
        Mode.PRIMAL: ([*inputs], [*outputs]),
        Mode.BACKWARD: (
            [*inputs, *(f"{name} cotangent" for name in results)],
            [*outputs, *(f"{name} gradient" for name in variables)],
        ),
        Mode.FORWARD: (
            [*inputs, *(f"{name} tangent" for name in variables)],
            [*outputs, *(f"{name} tangent" for name in results)],
        ),
    }


def _plans(
    programs: TargetPrograms[Schedule],
    files: Sequence[tuple[str, str]],
    types: TypeTable,
    names: Mapping[Mode, tuple[list[str], list[str]]],
) -> graphs.PlansEntry:
    points = programs.entry_points
    plans = {
        mode: _plan(mode_schedule, points, names[mode], types)
        for mode, mode_schedule in programs.by_mode.items()
    }
    return graphs.PlansEntry(
        programs=[_program(*pair) for pair in zip(points, files, strict=True)],
        primal=plans[Mode.PRIMAL],
        backward=plans.get(Mode.BACKWARD),
        forward=plans.get(Mode.FORWARD),
        **refusal_fields(programs.refusals),
    )


def _program(point: EntryPoint, files: tuple[str, str]) -> graphs.ProgramEntry:
    lowered, binding_by_slot = point.lowered, bound(point)
    reports = {r.slot for r in lowered.resources if r.role is Role.REPORT}
    parameters, *rest = lowered.program.bindings
    return graphs.ProgramEntry(
        name=point.stem,
        kernel=point.kernel,
        parameters=graphs.WordsEntry(
            parameters.slot,
            *binding_by_slot[parameters.slot],
            [*lowered.program.parameter_words],
        ),
        resources=[
            graphs.BindingEntry(b.slot, *binding_by_slot[b.slot], b.access, b.slot in reports)
            for b in rest
        ],
        **entry_point_fields(point, files),
    )


def _plan(
    plan: Schedule,
    points: Sequence[EntryPoint],
    names: tuple[list[str], list[str]],
    types: TypeTable,
) -> graphs.PlanEntry:
    inputs, outputs = names
    name_by_buffer = dict(enumerate(inputs))
    for name, output in zip(outputs, plan.outputs, strict=True):
        name_by_buffer.setdefault(output.buffer, name)
    return graphs.PlanEntry(
        inputs=inputs,
        outputs=[
            graphs.PlanOutput(name, types.name(o.element), [*map(spelled, o.shape)], o.buffer)
            for name, o in zip(outputs, plan.outputs, strict=True)
        ],
        aligned_inputs=sorted(plan.aligned_inputs),
        buffers=[
            graphs.BufferEntry(name_by_buffer.get(k, ""), spelled(size))
            for k, size in enumerate(plan.byte_counts)
        ],
        commands=_commands(plan.instructions, points),
    )


def _commands(block: Sequence[Instruction], points: Sequence[EntryPoint]) -> list[graphs.Command]:
    return [_command(instruction, points) for instruction in block]


def _command(step: Instruction, points: Sequence[EntryPoint]) -> graphs.Command:
    match step:
        case schedule.Let():
            return graphs.LetCommand(step.name, spelled(step.size))
        case schedule.Run():
            return _run(step, points[step.program])
        case schedule.Move():
            return _copy(step)
        case schedule.Set():
            return graphs.FillCommand(step.target, step.word, spelled(step.byte_count))
        case schedule.RepeatBlock():
            return graphs.RepeatCommand(
                symbol=step.symbol,
                count=spelled(step.count),
                is_reversed=step.is_reversed,
                carries=[*step.carries],
                rows=[*step.rows],
                start=[*map(_copy, step.start)],
                body=_commands(step.body, points),
            )
        case schedule.RepeatBlockWhile():
            return graphs.WhileCommand(
                carries=[*step.carries],
                body=_commands(step.body, points),
                goes_on=step.goes_on,
                wants=step.wants,
                limit=step.limit,
                line=step.span.line,
            )


def _run(run: schedule.Run, point: EntryPoint) -> graphs.RunCommand:
    bindings = point.lowered.program.bindings
    name_by_slot = {b.slot: b.name for b in bindings if b.access is not BindingAccess.UNIFORM}
    return graphs.RunCommand(
        program=point.stem,
        bind={name_by_slot[slot]: buffer for slot, buffer in run.bindings},
        words=[*map(_word, run.words)],
        groups=spelled(run.group_count),
        if_positive=spelled(run.is_needed),
    )


def _word(word: Size | schedule.UniformWord) -> graphs.SizeText:
    assert not isinstance(word, schedule.UniformWord), "graphs take numbers as arrays"
    return spelled(word)


def _copy(move: schedule.Move) -> graphs.CopyCommand:
    return graphs.CopyCommand(
        source=move.source,
        target=move.target,
        byte_count=spelled(move.byte_count),
        source_offset=spelled(move.source_offset),
        target_offset=spelled(move.target_offset),
    )
