"""A plan -> the same plan without chains, or without kernels whose threads share rows."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace

from shaderad.plan.steps import Plan, Repeat, RepeatWhile, RunChain, RunRows, Step


def by_passes(plan: Plan) -> Plan:
    """`plan` with passes of the library in place of kernels whose threads share rows."""
    return _with(plan, lambda step: [step.instead] if isinstance(step, RunRows) else [step])


def without_chains(plan: Plan) -> Plan:
    """`plan` with the links of chains in their place."""
    return _with(plan, lambda step: step.links if isinstance(step, RunChain) else [step])


def _with(plan: Plan, instead: Callable[[Step], Iterable[Step]]) -> Plan:
    def inner(step: Step) -> Step:
        is_loop = isinstance(step, Repeat | RepeatWhile)
        return replace(step, body=_with(step.body, instead)) if is_loop else step

    steps = (inner(new) for step in plan.steps for new in instead(step))
    return replace(plan, steps=tuple(steps))
