"""Compiled plans -> their entries in the manifest: programs, bindings, commands.

Invariant: entries hold only names, numbers and expressions; the same build gives the same bytes.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import cast

from shaderad.bundle.format import plans as to
from shaderad.bundle.format.description import BindingPlace, NoDerivative, SiteEntry, SizeText
from shaderad.bundle.format.size_text import spelled
from shaderad.bundle.format.type_names import TypeTable
from shaderad.bundle.write.programs import (
    AnyBuild,
    EntryPoint,
    ModePlan,
    Refusal,
    TargetPrograms,
)
from shaderad.compiler.artifact import BindingAccess
from shaderad.compiler.formats import FORMATS
from shaderad.execute import schedule
from shaderad.execute.schedule import Instruction
from shaderad.ir.sizes import Size
from shaderad.lower.bindings import Mode

FileNames = dict[tuple[str, str, str], tuple[str, str]]
"""By target, entry and stem: the files of the code and of its Slang text."""


def plans_entries(
    build: AnyBuild, file_of: FileNames, types: TypeTable
) -> dict[str, to.PlansEntry]:
    """The programs and plans of one entry for each target."""
    return {
        target: _plans(programs, (target, build.name), file_of, types)
        for target, programs in build.by_target.items()
    }


def _plans(
    programs: TargetPrograms, owner: tuple[str, str], file_of: FileNames, types: TypeTable
) -> to.PlansEntry:
    points, functions = programs.entry_points, programs.functions
    plans = {mode: _plan(plan, points, types) for mode, plan in programs.by_mode.items()}
    return to.PlansEntry(
        programs=[_program(point, file_of[*owner, point.stem]) for point in points],
        primal=plans[Mode.PRIMAL],
        backward=plans.get(Mode.BACKWARD),
        forward=plans.get(Mode.FORWARD),
        functions=file_of[*owner, functions.name][1] if functions else "",
        **_refusal_fields(programs.refusals),
    )


def _program(point: EntryPoint, files: tuple[str, str]) -> to.ProgramEntry:
    lowered, program = point.lowered, point.lowered.program
    code_format = FORMATS[point.code.format]
    assert code_format.places is not None, "every format of a target has a reader"
    place = cast("Mapping[str, BindingPlace]", code_format.places(program, point.code.content))
    resource_by_slot = {r.slot: r for r in lowered.resources}
    parameters, *storage = program.bindings
    return to.ProgramEntry(
        name=point.stem,
        kernel=point.kernel,
        entry_point=program.name,
        file=files[0],
        slang=files[1],
        workgroup=program.workgroup,
        features=sorted(program.features),
        compiler_options=code_format.host_options(point.code.content),
        parameters=to.ParameterWords(
            parameters.slot, parameters.name, place[parameters.name], [*program.parameter_words]
        ),
        resources=[
            to.BindingEntry(
                slot=binding.slot,
                name=binding.name,
                place=place[binding.name],
                access=binding.access,
                role=resource_by_slot[binding.slot].role,
                members=[*resource_by_slot[binding.slot].members],
                view=binding.view,
                is_filtered=binding.is_filtered,
            )
            for binding in storage
        ],
        sites=[
            SiteEntry(site.kind, site.span.file_name, site.span.line, site.name)
            for site in lowered.sites
        ],
        strategies=dict(sorted(lowered.strategies.items())),
    )


def _refusal_fields(refusals: Mapping[Mode, Refusal]) -> dict[str, NoDerivative]:
    """The fields `no_backward` and `no_forward`."""
    fields = {"no_backward": Mode.BACKWARD, "no_forward": Mode.FORWARD}
    return {
        field: NoDerivative(refusal.code or None, refusal.reason, refusal.line or None)
        for field, mode in fields.items()
        if (refusal := refusals.get(mode)) is not None
    }


def _plan(plan: ModePlan, points: Sequence[EntryPoint], types: TypeTable) -> to.PlanEntry:
    schedule = plan.schedule
    name_by_buffer = dict(enumerate(plan.inputs))
    for name, output in zip(plan.outputs, schedule.outputs, strict=True):
        name_by_buffer.setdefault(output.buffer, name)
    return to.PlanEntry(
        inputs=[*plan.inputs],
        outputs=[
            to.PlanOutput(name, types.name(o.element), [*map(spelled, o.shape)], o.buffer)
            for name, o in zip(plan.outputs, schedule.outputs, strict=True)
        ],
        aligned_inputs=sorted(schedule.aligned_inputs),
        buffers=[
            to.BufferEntry(name_by_buffer.get(k, ""), spelled(size))
            for k, size in enumerate(schedule.byte_counts)
        ],
        commands=_commands(schedule.instructions, points),
    )


def _commands(block: Sequence[Instruction], points: Sequence[EntryPoint]) -> list[to.Command]:
    return [_command(instruction, points) for instruction in block]


def _command(step: Instruction, points: Sequence[EntryPoint]) -> to.Command:
    match step:
        case schedule.Run():
            return _run(step, points[step.program])
        case schedule.Move():
            return _copy(step)
        case schedule.Set():
            return to.FillCommand(step.target, step.word, spelled(step.byte_count))
        case schedule.RepeatBlock():
            return to.RepeatCommand(
                symbol=step.symbol,
                count=spelled(step.count),
                is_reversed=step.is_reversed,
                carries=[*step.carries],
                rows=[*step.rows],
                start=[*map(_copy, step.start)],
                body=_commands(step.body, points),
            )
        case schedule.RepeatBlockWhile():
            return to.WhileCommand(
                carries=[*step.carries],
                body=_commands(step.body, points),
                goes_on=step.goes_on,
                wants=step.wants,
                limit=step.limit,
                line=step.span.line,
            )


def _run(run: schedule.Run, point: EntryPoint) -> to.RunCommand:
    bindings = point.lowered.program.bindings
    name_by_slot = {b.slot: b.name for b in bindings if b.access is not BindingAccess.UNIFORM}
    return to.RunCommand(
        program=point.stem,
        bind={name_by_slot[slot]: buffer for slot, buffer in run.bindings},
        words=[*map(_word, run.words)],
        groups=spelled(run.group_count),
        if_positive=spelled(run.is_needed),
    )


def _word(word: Size | schedule.UniformWord) -> SizeText | to.UniformWordEntry:
    if isinstance(word, schedule.UniformWord):
        return to.UniformWordEntry(word.name, word.index)
    return spelled(word)


def _copy(move: schedule.Move) -> to.CopyCommand:
    return to.CopyCommand(
        source=move.source,
        target=move.target,
        byte_count=spelled(move.byte_count),
        source_offset=spelled(move.source_offset),
        target_offset=spelled(move.target_offset),
    )
