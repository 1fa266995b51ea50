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
from shaderad.diagnostics import Error, error
from shaderad.differentiate.linearised import linearised
from shaderad.trace.tape import When

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
"""Elements of a failing direction that are tried one by one."""


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
    """Rounding error of a result, relative to it."""

    def results(self, k: int, values: Vector) -> Vector:
        """The floats of the results with slot `k` set to `values`."""
        leaves = [slot.like for slot in self.slots]
        leaves[k] = self.slots[k].leaf(values)
        args = with_leaves(self.args, leaves)
        return result_floats(linearised(self.function, args, self.call, when=When.NOW).out)


def check_slot(problem: Problem, k: int, random: np.random.Generator) -> ArgumentReport:
    """Compares the gradient of slot `k` along random signs and single elements.

    Raises:
        GradientError: SR0462 where they disagree, SR0464 where no step moves the argument.
    """
    slot = problem.slots[k]
    size = slot.values.size
    report = ArgumentReport(slot.name, size)
    if size <= ELEMENT_LIMIT:
        elements = np.arange(size)
    else:
        for _ in range(2):
            signs = random.choice([-1.0, 1.0], size)
            if not _agrees(problem, k, signs, report):
                _search(problem, k, signs, report)
        elements = random.choice(size, SAMPLE_COUNT, replace=False)
    for element in elements:
        _check_element(problem, k, int(element), report)
    return report


def _search(problem: Problem, k: int, signs: Vector, report: ArgumentReport) -> None:
    """Raises for the element that makes a direction disagree.

    Kinks of several elements may add up to a difference that no single element shows.
    """
    for element in range(min(signs.size, SEARCH_LIMIT)):
        _check_element(problem, k, element, report)
    if signs.size > SEARCH_LIMIT:
        raise _disagreement(problem, k, signs, "a random direction")


def _check_element(problem: Problem, k: int, element: int, report: ArgumentReport) -> None:
    unit = np.zeros(problem.slots[k].values.size)
    unit[element] = 1.0
    if not _agrees(problem, k, unit, report):
        raise _disagreement(problem, k, unit, f"float {element}")


def _disagreement(problem: Problem, k: int, direction: Vector, element: str) -> Error:
    slope, quotient, _ = _compare(problem, k, direction, problem.steps[-1])
    name = problem.slots[k].name
    return error("SR0462", name=name, element=element, found=slope, expected=quotient)


def _agrees(problem: Problem, k: int, direction: Vector, report: ArgumentReport) -> bool:
    """True if gradient and difference quotient agree along `direction` for one of the steps."""
    report.comparisons += 1
    steps = [step for step in problem.steps if _is_resolved(problem, k, direction, step)]
    if not steps:
        raise error("SR0464", name=report.name, step=max(problem.steps))
    for step in steps:
        slope, quotient, noise = _compare(problem, k, direction, step)
        allowed = problem.rtol * max(abs(slope), abs(quotient)) + problem.atol + noise
        if abs(slope - quotient) <= allowed:
            report.worst = max(report.worst, abs(slope - quotient) / allowed)
            return True
    return False


def _ends(problem: Problem, k: int, direction: Vector, step: float) -> tuple[Vector, Vector]:
    """The argument plus and minus a step along `direction`, rounded as on the device."""
    slot = problem.slots[k]
    scale = step * np.maximum(1.0, np.abs(slot.values))
    return (
        slot.rounded(slot.values + scale * direction),
        slot.rounded(slot.values - scale * direction),
    )


def _is_resolved(problem: Problem, k: int, direction: Vector, step: float) -> bool:
    """True if every element that `direction` changes still differs after rounding."""
    high, low = _ends(problem, k, direction, step)
    return bool(np.all((high != low) == (direction != 0)))


def _compare(
    problem: Problem, k: int, direction: Vector, step: float
) -> tuple[float, float, float]:
    """Slope by the gradient, difference quotient, and rounding noise of the quotient."""
    high, low = _ends(problem, k, direction, step)
    upper, lower = problem.results(k, high), problem.results(k, low)
    # Both sides are divided by one width: directions with different steps stay comparable.
    width = float(np.max(np.abs(high - low), initial=step))
    # Elements of Min and Max arrays that no thread writes are infinite on both sides.
    changed = upper != lower
    cotangent, upper, lower = problem.cotangent[changed], upper[changed], lower[changed]
    noise = problem.noise * float(np.linalg.norm(cotangent * np.maximum(abs(upper), abs(lower))))
    quotient = float(np.dot(cotangent, upper - lower)) / width
    slope = float(np.dot(problem.gradients[k], high - low)) / width
    return slope, quotient, noise / width
