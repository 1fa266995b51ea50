"""The schedule of a kernel in one mode, as a folder keeps it.

Its inputs are the arrays that the programs of the mode read, its outputs what the mode computes.
Sizes are symbols: ``dim.0`` an extent of the launch, ``x.0`` one of array ``x``.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from shaderad.execute.kernel_steps import KernelStep, schedule_of
from shaderad.execute.schedule import LaunchPlan, launch_shapes
from shaderad.ir.arrays import ArrayType, Value
from shaderad.lower.bindings import ROLES, Mode, Role

if TYPE_CHECKING:
    from shaderad.device.stages import Choice, KernelFacts
    from shaderad.execute.kernel_steps import Programs
    from shaderad.execute.schedule import Key
    from shaderad.ir.nodes import Kernel

_COMPUTED = {
    Mode.PRIMAL: Role.OUTPUT,
    Mode.BACKWARD: Role.GRADIENT,
    Mode.FORWARD: Role.OUTPUT_TANGENT,
}


@dataclass(frozen=True, slots=True)
class LaunchForm:
    """All that a schedule of a kernel depends on."""

    choice: Choice
    derivatives: frozenset[str]
    """Cotangents or tangents that are given; the others are zero."""


def launch_plan(
    kernel: Kernel,
    facts: KernelFacts,
    form: LaunchForm,
    programs: Programs,
    required: Sequence[Key] = (),
) -> LaunchPlan:
    """The schedule of `kernel` in one mode.

    Args:
        kernel: What to run.
        facts: Of `kernel`.
        form: The mode, and what is given.
        programs: Lowers and numbers the programs.
        required: Arrays that come first among the inputs, whether a program reads them or not.
    """
    numbers = programs.of_kernel(kernel, form.choice)
    dim, shapes = launch_shapes(kernel, form.choice.launch_shaped)

    def value(key: Key) -> Value:
        role, name = key
        is_bound_itself = role is Role.INPUT and name in facts.resources
        shape = (0,) if is_bound_itself else shapes.get(name, ())
        return Value(ArrayType(facts.element_types[name], shape))

    read = [
        (resource.role, name)
        for number in numbers
        for resource in programs.lowered[number].resources
        for name in resource.members
        if ROLES[resource.role].is_read
        and (name in form.derivatives or not ROLES[resource.role].is_derivative_given)
    ]
    inputs = {key: value(key) for key in (*required, *read)}
    outputs = {key: value(key) for key in _computed(facts, form.choice) if key not in inputs}
    step = KernelStep(kernel, form.choice, dim, inputs | outputs, shapes)
    schedule = schedule_of(step, programs, [*inputs.values()], [*outputs.values()])
    return LaunchPlan(schedule, tuple(inputs), tuple(outputs))


def _computed(facts: KernelFacts, choice: Choice) -> list[Key]:
    """The arrays that a mode computes."""
    role = _COMPUTED[choice.mode]
    names = {
        Role.OUTPUT: [b.name for b in facts.written],
        Role.GRADIENT: [name for name in facts.element_types if name in choice.wanted],
        Role.OUTPUT_TANGENT: [b.name for b in facts.written
                              if b.name in facts.differentiable_results],
    }  # fmt: skip
    return [(role, name) for name in names[role]]
