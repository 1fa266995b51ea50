"""Gradients against central differences of the primal."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from shaderad.check.report import ArgumentReport
from shaderad.check.results import result_floats
from shaderad.check.slots import Slot, with_leaves
from shaderad.check.vectors import Vector
from shaderad.diagnostics import error
from shaderad.session.linearised import linearised
from shaderad.session.tape import When

# Relative to the argument. Large steps keep rounding small, small ones stay clear of kinks; a
# right gradient agrees at one of them.
STEPS = (1e-2, 2e-3, 5e-4)
# A few units in the last place of a result, summed as independent errors.
FLOAT32_NOISE = 4e-7
HALF_NOISE = 1e-3
ELEMENT_LIMIT = 32
"""Arguments up to this size are checked element by element."""
SAMPLE_COUNT = 8
"""Elements of larger arguments that are checked one by one."""
SEARCH_LIMIT = 256
"""Elements that are tried to find the one that a failing direction points at."""


@dataclass
class Problem:
    """A function at a point, with a random cotangent."""

    function: Callable[..., Any]
    args: Sequence[Any]
    call: dict[str, Any]
    slots: list[Slot]
    cotangent: Vector
    gradients: list[Vector]
    rtol: float
    atol: float
    steps: Sequence[float]
    noise: float
    """What rounding may do to a result, relative to it."""

    def results(self, slot: int, values: Vector) -> Vector:
        changed = self.slots[slot].leaf(values)
        leaves = [changed if k == slot else one.like for k, one in enumerate(self.slots)]
        args = with_leaves(self.args, leaves)
        return result_floats(linearised(self.function, args, self.call, when=When.NOW).out)


def check_slot(problem: Problem, k: int, random: np.random.Generator) -> ArgumentReport:
    slot = problem.slots[k]
    size = slot.values.size
    report = ArgumentReport(slot.name, size)
    if size > ELEMENT_LIMIT:
        for _ in range(2):
            signs = random.choice([-1.0, 1.0], size)
            if not _agrees(problem, k, signs, report):
                _search(problem, k, signs, report)
        chosen = random.choice(size, SAMPLE_COUNT, replace=False)
    else:
        chosen = np.arange(size)
    for element in chosen:
        _check_element(problem, k, int(element), report)
    return report


def _search(problem: Problem, k: int, signs: Vector, report: ArgumentReport) -> None:
    """Finds the element that makes a direction disagree; kinks may add up without one."""
    size = signs.size
    for element in range(min(size, SEARCH_LIMIT)):
        _check_element(problem, k, element, report)
    if size > SEARCH_LIMIT:
        found, expected, _ = _compare(problem, k, signs, problem.steps[-1])
        raise error("SR0462", name=report.name, element="a random direction", found=found,
                    expected=expected)  # fmt: skip


def _check_element(problem: Problem, k: int, element: int, report: ArgumentReport) -> None:
    unit = np.zeros(problem.slots[k].values.size)
    unit[element] = 1.0
    if not _agrees(problem, k, unit, report):
        found, expected, _ = _compare(problem, k, unit, problem.steps[-1])
        raise error("SR0462", name=report.name, element=f"float {element}", found=found,
                    expected=expected)  # fmt: skip


def _agrees(problem: Problem, k: int, direction: Vector, report: ArgumentReport) -> bool:
    report.comparisons += 1
    for step in problem.steps:
        if not _moves(problem, k, direction, step):
            continue
        found, expected, noise = _compare(problem, k, direction, step)
        largest = max(abs(found), abs(expected))
        allowed = problem.rtol * largest + problem.atol + noise
        if abs(found - expected) <= allowed:
            report.worst = max(report.worst, abs(found - expected) / allowed)
            return True
    if not any(_moves(problem, k, direction, step) for step in problem.steps):
        raise error("SR0464", name=report.name, step=max(problem.steps))
    return False


def _ends(problem: Problem, k: int, direction: Vector, step: float) -> tuple[Vector, Vector]:
    """The argument moved forward and back along `direction`, as the device will hold it."""
    slot = problem.slots[k]
    scale = step * np.maximum(1.0, np.abs(slot.values))
    return (
        slot.rounded(slot.values + scale * direction),
        slot.rounded(slot.values - scale * direction),
    )


def _moves(problem: Problem, k: int, direction: Vector, step: float) -> bool:
    """Whether every element that `direction` moves stays moved after rounding."""
    high, low = _ends(problem, k, direction, step)
    return bool(np.all((high != low) == (direction != 0)))


def _compare(
    problem: Problem, k: int, direction: Vector, step: float
) -> tuple[float, float, float]:
    """The gradient's answer, the difference quotient, and what rounding may do to the latter."""
    high, low = _ends(problem, k, direction, step)
    upper, lower = problem.results(k, high), problem.results(k, low)
    # One number to divide both sides by keeps directions with different steps comparable.
    width = float(np.max(np.abs(high - low), initial=step))
    # Elements that keep an infinity, such as those of Min and Max that nobody writes, stay put.
    changed = upper != lower
    cotangent, upper, lower = problem.cotangent[changed], upper[changed], lower[changed]
    noise = problem.noise * float(np.linalg.norm(cotangent * np.maximum(abs(upper), abs(lower))))
    expected = float(np.dot(cotangent, upper - lower)) / width
    found = float(np.dot(problem.gradients[k], high - low)) / width
    return found, expected, noise / width
