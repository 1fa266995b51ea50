"""Steps of a plan that compute the same rows, one after the other -> one step that reads them once.

A chain has reductions of rows of one number and length, and elementwise kernels over these rows or
their elements, such as the steps of a softmax. Invariant: the steps around it keep their order, and
every step still runs after what it reads.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import replace
from itertools import chain
from typing import TypeGuard

from shaderad.ir import arrays, sizes
from shaderad.ir.arrays import Value
from shaderad.ir.sizes import Size
from shaderad.plan.nest.row_elements import NotRowwiseError, with_registers
from shaderad.plan.nest.row_work import RowWork, is_large
from shaderad.plan.reductions import Reduction
from shaderad.plan.steps import (
    CopyValues,
    Plan,
    Repeat,
    RepeatWhile,
    RunChain,
    RunKernel,
    RunPass,
    RunTiles,
    Step,
)

Link = RunPass | RunKernel
"""A step of a chain."""
_MOVABLE = (RunPass, RunKernel, RunTiles, CopyValues)
"""Steps whose order matters for nothing but what they read."""


def with_chains(steps: Sequence[Step], outputs: Collection[Value], limit: int) -> tuple[Step, ...]:
    """`steps` with chains in place of their links.

    Args:
        steps: A whole plan, in order.
        outputs: The stored values that it returns.
        limit: Values that a step may read and write.
    """
    result = [*steps]
    start = 0
    while start < len(result):
        search = _ChainSearch(result, start, outputs, limit)
        found = search.run()
        if found is not None:
            result = [*result[:start], *search.before, found, *search.after]
            start += len(search.before)
        start += 1
    return tuple(result)


def without_chains(plan: Plan) -> Plan:
    """`plan` with the links of chains in their place."""
    links = chain.from_iterable(s.links if isinstance(s, RunChain) else (s,) for s in plan.steps)
    return replace(plan, steps=tuple(map(_inside, links)))


def _inside(step: Step) -> Step:
    is_loop = isinstance(step, Repeat | RepeatWhile)
    return replace(step, body=without_chains(step.body)) if is_loop else step


class _ChainSearch:
    """Looks for the chain that begins with step `start` of `steps`."""

    def __init__(
        self, steps: Sequence[Step], start: int, outputs: Collection[Value], limit: int
    ) -> None:
        self._steps, self._start = steps, start
        self._outputs, self._limit = outputs, limit
        self._links: list[Link] = []
        self.before: list[Step] = []
        """Steps after the first link that run before the chain."""
        self.after: list[Step] = []
        """Steps that run after the chain."""

    def run(self) -> RunChain | None:
        """The chain, if there is one."""
        first = self._steps[self._start]
        if not isinstance(first, RunPass | RunKernel):
            return None
        rows = self._rows_of(first)
        if rows is None:
            return None
        self._links = [first]
        last = self._grown(rows)
        while len(self._links) > 1:
            work = self._work(self._links)
            if work is not None and len(work.reads) + len(work.writes) <= self._limit:
                self._order(last)
                return RunChain((*self._links,), work)
            last = self._steps.index(self._links.pop())
        return None

    def _rows_of(self, first: Step) -> tuple[Size, Size] | None:
        """The number and length of the rows of a chain that begins with `first`."""
        if _is_fold(first):
            return _rows(first)
        if not _is_elementwise(first):
            return None
        folds = (s for s in self._steps[self._start + 1 :] if _is_fold(s) and _needs(s, first))
        return next((_rows(fold) for fold in folds if _fits(first, _rows(fold))), None)

    def _grown(self, rows: tuple[Size, Size]) -> int:
        """Adds the links behind the first; returns the place behind the last one."""
        last = self._start + 1
        later: list[Step] = []
        """Steps that need links, or that must stay behind steps that do."""
        for place, step in enumerate(self._steps[last:], start=last + 1):
            is_behind = any(_needs(step, other) for other in later)
            if not is_behind and self._joins(step, rows):
                last = place
            elif self._stays_behind(step, later):
                later.append(step)
        return last

    def _stays_behind(self, step: Step, later: Sequence[Step]) -> bool:
        """True if `step` runs after the chain, because it needs it or one of `later`, which do.

        Calls that print or check keep their order.
        """
        is_needed = any(_needs(step, other) for other in (*self._links, *later))
        return is_needed or (len(later) > 0 and not isinstance(step, _MOVABLE))

    def _joins(self, step: Step, rows: tuple[Size, Size]) -> bool:
        """Adds `step` to the links if it can be one."""
        is_fold = _is_fold(step) and _rows(step) == rows
        if not (is_fold or (_is_elementwise(step) and _fits(step, rows))):
            return False
        assert isinstance(step, RunPass | RunKernel)
        if not self._is_related(step):
            return False
        links = [*self._links, step]
        if self._work(links) is None:
            return False
        self._links = links
        return True

    def _is_related(self, step: Link) -> bool:
        """True if `step` reads what links write, or elements that they read."""
        if any(_needs(step, link) for link in self._links):
            return True
        count = sizes.product(step.shape) if isinstance(step, RunPass) else -1
        seen = {v for link in self._links for v in link.reads if sizes.product(v.shape) == count}
        return not seen.isdisjoint(step.reads)

    def _work(self, links: Sequence[Link]) -> RowWork | None:
        """The work of `links`; `None` if a row needs others, or nothing folds them."""
        if not any(isinstance(link, RunPass) for link in links):
            return None
        needed = {*self._outputs}
        needed.update(v for step in self._steps if step not in links for v in step.reads)
        try:
            return with_registers(_work_of(links, needed))
        except NotRowwiseError:
            return None

    def _order(self, last: int) -> None:
        """Sorts the steps that are no links."""
        behind: list[Step] = []
        for step in self._steps[self._start : last]:
            if step in self._links:
                continue
            place = behind if self._stays_behind(step, behind) else self.before
            place.append(step)
        self.after = [*behind, *self._steps[last:]]


def _work_of(links: Sequence[Link], needed: Collection[Value]) -> RowWork:
    folds: list[Reduction] = []
    results: list[Value] = []
    elements: list[list[Value]] = [[]]
    count = next(sizes.product(s.shape) for s in links if isinstance(s, RunPass))
    for link in links:
        inner = link.writes
        if isinstance(link, RunPass):
            inner = inner[len(link.results) :]
            results += link.results
        elif sizes.product(inner[0].shape) != count:
            results, inner = [*results, *inner], ()
        elements[-1] += inner
        if isinstance(link, RunPass) and not isinstance(link.node, arrays.Scan):
            folds.append(link.node)
            elements.append([])
    written = {v for link in links for v in link.writes}
    return RowWork(
        name=next(s.producer.kernel.name for s in links if isinstance(s, RunPass)),
        folds=tuple(folds),
        results=tuple(v for v in results if v in needed),
        elements=tuple(map(tuple, elements)),
        stored=frozenset(v for v in written if v in needed),
        reads=frozenset(v for link in links for v in link.reads) - written,
    )


def _rows(step: RunPass) -> tuple[Size, Size]:
    return sizes.product(step.shape[:-1]), step.shape[-1]


def _is_fold(step: Step) -> TypeGuard[RunPass]:
    """True for reductions whose rows threads can share."""
    if not isinstance(step, RunPass) or isinstance(step.node, arrays.Scan):
        return False
    is_quiet = step.producer.bounds == "unchecked"
    return is_quiet and not is_large(step.node.results[0].element) and step.shape[-1] != 1


def _is_elementwise(step: Step) -> TypeGuard[RunKernel]:
    if not isinstance(step, RunKernel) or step.by_four is None:
        return False
    return step.work.bounds == "unchecked"


def _fits(step: Step, rows: tuple[Size, Size]) -> bool:
    """True if a kernel computes an element for each row, or for each of their elements."""
    count = sizes.product(step.writes[0].shape)
    return count in (rows[0], sizes.product(rows))


def _needs(step: Step, other: Step) -> bool:
    """True if `step` reads what `other` writes."""
    return not set(step.reads).isdisjoint(other.writes)
