"""A traced graph and a target -> its plans and their compiled programs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import compress

from shaderad.bundle.format.plan_names import plan_name, result_names
from shaderad.bundle.write.graph_entries import TracedGraph
from shaderad.bundle.write.programs import (
    BegunPrograms,
    BuiltPrograms,
    Compile,
    ModePlan,
    build_modes,
    nothing_to_differentiate,
)
from shaderad.compiler.compile import begin_compilations
from shaderad.execute.derivative_graphs import pulled, pushed
from shaderad.execute.plan_to_schedule import schedule
from shaderad.execute.schedule import Schedule
from shaderad.ir.arrays import Value
from shaderad.ir.types import is_differentiable
from shaderad.lower.bindings import Mode, Role
from shaderad.lower.targets import Profile
from shaderad.plan.choices import PlanChoices
from shaderad.plan.planning import plan


def build_graph(
    graph: TracedGraph,
    profile: Profile,
    bounds: str,
    *,
    with_forward: bool = False,
    compile_with: Compile = begin_compilations,
) -> BegunPrograms:
    """Plans and lowers the modes of `graph`, and starts to compile them.

    Raises:
        LanguageError: The primal is not valid.
        CompileError: SR0507, SR0711, the target lacks a feature that the graph uses.
    """
    programs = BuiltPrograms(graph.name, profile, bounds)
    primal = graph.variant.graph
    float_outputs = _float_flags(primal.outputs)

    names = _plan_names(graph)

    def build_mode(mode: Mode) -> ModePlan:
        if mode is Mode.BACKWARD:
            built = pulled(primal, graph.wanted, float_outputs, with_outputs=True)
        elif mode is Mode.FORWARD:
            built = pushed(primal, graph.wanted, with_outputs=True)
        else:
            built = primal
        limits = profile.limits
        shape = profile.launch_shape
        buffer_limit = limits.storage_buffers
        at_all_sizes = PlanChoices({}, limits.group_bytes, shape, buffer_limit=buffer_limit)
        planned = plan(built, buffer_limit, shape)
        scheduled = schedule(at_all_sizes.chosen(planned), programs)
        return ModePlan(_without_texels(scheduled, graph), *names[mode])

    by_mode, refusals = build_modes(
        build_mode,
        nothing_to_differentiate(
            is_wanted=any(graph.wanted),
            has_float_inputs=any(_float_flags(primal.inputs)),
            has_float_results=any(float_outputs),
            no_results="it gives no floats",
        ),
        with_forward=with_forward,
    )
    return programs.begun(by_mode, refusals, compile_with)


def _without_texels(planned: Schedule, graph: TracedGraph) -> Schedule:
    """Textures and samplers have no bytes, also those that no program reads."""
    resources = {k for k, w in enumerate(graph.signature.wanted) if w.resource is not None}
    counts = (0 if k in resources else n for k, n in enumerate(planned.byte_counts))
    return replace(planned, byte_counts=tuple(counts))


def _float_flags(values: Sequence[Value]) -> tuple[bool, ...]:
    return tuple(is_differentiable(v.element) for v in values)


def _plan_names(graph: TracedGraph) -> dict[Mode, tuple[tuple[str, ...], tuple[str, ...]]]:
    """For each mode, the names of the inputs and outputs of its plan."""
    inputs = graph.signature.names
    outputs = result_names(inputs, len(graph.variant.graph.outputs))
    variables = [*compress(inputs, graph.wanted)]
    results = [*compress(outputs, _float_flags(graph.variant.graph.outputs))]

    def named(role: Role, names: Sequence[str]) -> tuple[str, ...]:
        return tuple(plan_name((role, name)) for name in names)

    return {
        Mode.PRIMAL: ((*inputs,), (*outputs,)),
        Mode.BACKWARD: (
            (*inputs, *named(Role.COTANGENT, results)),
            (*outputs, *named(Role.GRADIENT, variables)),
        ),
        Mode.FORWARD: (
            (*inputs, *named(Role.TANGENT, variables)),
            (*outputs, *named(Role.OUTPUT_TANGENT, results)),
        ),
    }
