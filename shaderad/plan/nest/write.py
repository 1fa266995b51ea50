"""A nest -> a kernel of the kernel IR.

A thread computes the elements at all places of the parts that are vectors. It loads four adjacent
elements at once where it reads several of them, and stores its results by four.
"""

from __future__ import annotations

from collections.abc import Sequence

from shaderad.ir.arrays import Value
from shaderad.ir.nodes import Stmt
from shaderad.ir.types import Access
from shaderad.plan.kernels import IsStored, PlanKernel, number_writer
from shaderad.plan.nest.nest import AxisKind, Nest
from shaderad.plan.nest.places import places
from shaderad.plan.nest.vectors import ThreadElements, quarter_of
from shaderad.plan.positions import Indices, number


class NestWriter:
    """Writes one kernel.

    Args:
        nest: The innermost part of its last axis is a vector of four.
        values: Their elements are stored at its places, which have their shape, or one axis that
            counts them.
        is_stored: True for values that the kernel reads from memory.
    """

    def __init__(self, nest: Nest, values: Sequence[Value], is_stored: IsStored) -> None:
        self._nest, self._values = nest, values
        self._writer = number_writer(tuple(nest.extents(AxisKind.THREAD)), is_stored)
        self._places = [*places(nest, self._writer.own)]
        requests = ((v, self._in(v, at)) for v in values for at in self._places)
        self.elements = ThreadElements(self._writer, is_stored, requests)

    def kernel(self, name: str, chosen: Sequence[bool]) -> PlanKernel:
        """The kernel with those loads of its elements that are chosen."""
        writer, count = self._writer, len(self._places)
        written = self.elements.written(chosen)
        names = [f"y{k}" for k in range(len(self._values))]
        body: list[Stmt] = [*written.body]
        for k, (output, value) in enumerate(zip(names, self._values, strict=True)):
            first = quarter_of(number(self._in(value, self._places[0]), value.shape))
            assert first is not None
            four = written.values[k * count : (k + 1) * count]
            body.append(writer.store_vector(output, first.at, four))
        outputs = [(n, v, Access.OUT) for n, v in zip(names, self._values, strict=True)]
        return writer.finish(name, body, outputs)

    def _in(self, value: Value, at: Indices) -> Indices:
        """The indices in `value` of its element at a place."""
        return self._writer.positions.reshaped(at, self._nest.shape, value.shape)
