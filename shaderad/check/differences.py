"""Gradients against central differences of the primal, along directions and by element.

A direction in which they disagree is bisected down to single elements. If differences with several
steps also disagree with each other, the function jumps there, and they say nothing about the
gradient.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any

import numpy as np

from shaderad.arrays.tape import When
from shaderad.check.slots import Slot, Vector, result_floats, with_leaves
from shaderad.diagnostics import Error, error
from shaderad.differentiate.linearised import linearised

ELEMENT_LIMIT = 32
"""Arguments up to this size are checked element by element."""
SAMPLE_COUNT = 8
"""The number of elements of larger arguments that are checked one by one."""
SEARCH_LIMIT = 256
"""Maximum parts of a failing direction that are tried."""


@dataclass
class ArgumentReport:
    """Comparisons for one argument."""

    name: str
    size: int
    comparisons: int = 0
    worst: float = 0.0
    """Largest difference, as a fraction of the tolerance."""
    skipped: int = 0
    """The number of floats at which the function seems to jump."""


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
    """The relative rounding error of a result."""
    jump_share: float
    """Largest share of the floats of an argument at which the function may jump."""

    def results(self, k: int, values: Vector) -> Vector:
        """The floats of the results with slot `k` set to `values`."""
        leaves = [slot.like for slot in self.slots]
        leaves[k] = self.slots[k].leaf(values)
        args = with_leaves(self.args, leaves)
        return result_floats(linearised(self.function, args, self.call, when=When.NOW).out)


@dataclass(frozen=True, slots=True)
class _Difference:
    """The slopes from the gradient and from one central difference."""

    step: float
    slope: float
    quotient: float
    noise: float
    """The error of the quotient due to rounding of the results."""


class Differences:
    """The gradient of slot `k` against central differences of the primal."""

    def __init__(self, problem: Problem, k: int) -> None:
        self._problem = problem
        self._k = k
        self._slot = problem.slots[k]
        self._report = ArgumentReport(self._slot.name, self._slot.values.size)
        self._skipped: set[int] = set()
        self._jump: Error | None = None
        """The error for the first jump."""

    def check(self, random: np.random.Generator) -> ArgumentReport:
        """Compares along random signs and single elements.

        Raises:
            GradientError: SR0462 if they disagree, SR0464 if no step changes the argument, SR0480
                if the function jumps at too many elements.
        """
        size = self._report.size
        elements = np.arange(size)
        if size > ELEMENT_LIMIT:
            for _ in range(2):
                signs = random.choice([-1.0, 1.0], size)
                if not self._agrees(signs):
                    self._search(signs, SEARCH_LIMIT)
            elements = random.choice(size, SAMPLE_COUNT, replace=False)
        for element in elements:
            self._check_element(int(element))
        self._report.skipped = len(self._skipped)
        if self._jump is not None and self._report.skipped > self._problem.jump_share * size:
            raise self._jump
        return self._report

    def _check_element(self, element: int) -> None:
        unit = np.zeros(self._report.size)
        unit[element] = 1.0
        if not self._agrees(unit):
            self._judge(unit)

    def _search(self, direction: Vector, budget: int) -> int:
        """Judges the elements that make a direction disagree.

        Kinks at several elements may add up to a difference that no single element shows.

        Args:
            direction: Signs, and 0 for unchanged elements.
            budget: Maximum parts to try.

        Returns:
            The rest of the budget.
        """
        moved = np.flatnonzero(direction)
        if moved.size == 1 or budget < 2:
            self._judge(direction)
            return budget
        budget -= 2
        parts: list[Vector] = []
        for half in np.array_split(moved, 2):
            part = np.zeros_like(direction)
            part[half] = direction[half]
            if not self._agrees(part):
                parts.append(part)
        if not parts and self._is_smooth(differences := self._differences(direction)):
            if moved.size > SEARCH_LIMIT:
                raise self._disagreement(direction, differences)
            for element in moved:
                self._check_element(int(element))
        for part in parts:
            budget = self._search(part, budget)
        return budget

    def _judge(self, direction: Vector) -> None:
        """Skips the elements that `direction` changes, if the function jumps or bends there.

        Raises:
            GradientError: SR0462, if the function does not jump.
        """
        differences = self._differences(direction)
        if self._is_smooth(differences):
            raise self._disagreement(direction, differences)
        if self._is_close(differences[-1]):  # A kink nearby, which only the smallest step avoids.
            return
        self._skipped.update(map(int, np.flatnonzero(direction)))
        if self._jump is None:
            self._jump = self._disagreement(direction, differences, jumps=True)

    def _disagreement(
        self, direction: Vector, differences: Sequence[_Difference], *, jumps: bool = False
    ) -> Error:
        moved = np.flatnonzero(direction)
        element = "a random direction"
        if moved.size == 1:
            element = self._slot.element_text(int(moved[0]))
        if not jumps:
            last = [d for d in differences if d.step in self._problem.steps][-1]
            return error("SR0462", name=self._slot.name, element=element, found=last.slope,
                         expected=last.quotient)  # fmt: skip
        quotients = ", ".join(f"{d.quotient:.6g} by a step of {d.step:.3g}" for d in differences)
        return error("SR0480", name=self._slot.name, element=element,
                     found=differences[-1].slope, quotients=quotients)  # fmt: skip

    def _is_smooth(self, differences: Sequence[_Difference]) -> bool:
        """True if the quotients with two steps agree, or if only one step changes the argument."""
        problem = self._problem
        pairs = [*combinations(differences, 2)]
        return not pairs or any(
            abs(a.quotient - b.quotient)
            <= problem.rtol * max(abs(a.quotient), abs(b.quotient))
            + problem.atol + a.noise + b.noise
            for a, b in pairs
        )  # fmt: skip

    def _differences(self, direction: Vector) -> list[_Difference]:
        """The differences with each step, and with half of the last step for comparison."""
        steps = [*self._problem.steps, self._problem.steps[-1] / 2]
        resolved = (step for step in steps if self._is_resolved(direction, step))
        return [self._compare(direction, step) for step in resolved]

    def _agrees(self, direction: Vector) -> bool:
        """True if gradient and difference quotient agree along `direction` with one step."""
        problem, report = self._problem, self._report
        report.comparisons += 1
        steps = [step for step in problem.steps if self._is_resolved(direction, step)]
        if not steps:
            raise error("SR0464", name=report.name, step=max(problem.steps))
        return any(self._is_close(self._compare(direction, step)) for step in steps)

    def _is_close(self, d: _Difference) -> bool:
        """True if gradient and quotient agree; notes by how much."""
        problem, report = self._problem, self._report
        allowed = problem.rtol * max(abs(d.slope), abs(d.quotient)) + problem.atol + d.noise
        miss = abs(d.slope - d.quotient)
        if miss <= allowed:
            report.worst = max(report.worst, miss / allowed)
        return miss <= allowed

    def _ends(self, direction: Vector, step: float) -> tuple[Vector, Vector]:
        """The argument plus and minus a step along `direction`, rounded as on the device."""
        values = self._slot.values
        change = step * np.maximum(1.0, np.abs(values)) * direction
        return self._slot.rounded(values + change), self._slot.rounded(values - change)

    def _is_resolved(self, direction: Vector, step: float) -> bool:
        """True if every element that `direction` changes still differs after rounding."""
        high, low = self._ends(direction, step)
        return bool(np.all((high != low) == (direction != 0)))

    def _compare(self, direction: Vector, step: float) -> _Difference:
        """The slope by the gradient, and the difference with one step."""
        problem, k = self._problem, self._k
        high, low = self._ends(direction, step)
        upper, lower = problem.results(k, high), problem.results(k, low)
        # Both sides are divided by one width, so directions with different steps are comparable.
        width = float(np.max(np.abs(high - low), initial=step))
        # Elements of Min and Max arrays that no thread writes are infinite on both sides.
        changed = upper != lower
        cotangent, upper, lower = problem.cotangent[changed], upper[changed], lower[changed]
        size = float(np.linalg.norm(cotangent * np.maximum(abs(upper), abs(lower))))
        quotient = float(np.dot(cotangent, upper - lower)) / width
        slope = float(np.dot(problem.gradients[k], high - low)) / width
        return _Difference(step, slope, quotient, problem.noise * size / width)
