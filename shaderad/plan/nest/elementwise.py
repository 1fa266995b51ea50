"""Values of one shape -> a kernel whose threads compute four adjacent elements each.

One float per thread leaves most of a GPU's memory idle.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache, cached_property

from shaderad.ir import sizes
from shaderad.ir.arrays import Value
from shaderad.ir.sizes import Size
from shaderad.plan.kernels import WIDTH, PlanKernel
from shaderad.plan.nest.nest import AxisKind, nest_of, split
from shaderad.plan.nest.vectors import COST_LIMIT, ThreadElements, comes_by_four
from shaderad.plan.nest.write import NestWriter


class FourElements:
    """The kernels with loads of four that can take the place of `work`.

    Args:
        work: The kernel that computes one element of each of `values` per thread.
        values: What it stores.
    """

    def __init__(self, work: PlanKernel, values: Sequence[Value]) -> None:
        self._work, self._values = work, tuple(values)
        self._reads = frozenset(value for _, value in work.reads)
        is_flat = len(work.dim) == 1
        self._shape = (sizes.product(values[0].shape),) if is_flat else values[0].shape
        self.write = cache(self._write)

    @property
    def extent(self) -> Size:
        """Must be a multiple of 4."""
        return self._shape[-1]

    @cached_property
    def loads(self) -> Sequence[tuple[Size, ...]] | None:
        """For each load of four, the sizes that must be multiples of 4; `None` without a kernel."""
        are_numbers = all(comes_by_four(v.element) for v in self._values)
        if not are_numbers or self._work.bounds != "unchecked":
            return None
        trial = self._trial
        # Where most loads are single ones, adjacent threads load adjacent elements.
        is_apart = 2 * trial.reads_apart > len(trial.reads)
        return None if is_apart or trial.cost > COST_LIMIT else trial.loads

    def binding_count(self, chosen: Sequence[bool]) -> int:
        """The number of buffers of the kernel with those of `loads` that are chosen."""
        once = len(self._work.reads) + len(self._work.writes)
        by_four, by_element = self._trial.bound(chosen)
        return once + len(by_four & by_element)

    @cached_property
    def _trial(self) -> ThreadElements:
        return self._writer().elements

    def _write(self, *chosen: bool) -> PlanKernel:
        """The kernel with those of `loads` that are chosen."""
        return self._writer().kernel(self._work.kernel.name, chosen)

    def _writer(self) -> NestWriter:
        nest, last = nest_of(self._shape), len(self._shape) - 1
        nest = split(nest, last, WIDTH, AxisKind.VECTOR, divides_extent=True)
        return NestWriter(nest, self._values, self._reads.__contains__)
