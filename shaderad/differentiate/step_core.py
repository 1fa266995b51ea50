"""One graph at its operands, differentiated: a kernel call, or a function that was traced."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from shaderad.arrays.arrays import Array
from shaderad.arrays.tape import trace_of
from shaderad.differentiate.forms import check_sum
from shaderad.differentiate.leaves import Core, Derivatives
from shaderad.execute.derivative_graphs import only_call
from shaderad.ir import types

if TYPE_CHECKING:
    from shaderad.calls.run_graph import GraphStep
    from shaderad.ir.nodes import Kernel
    from shaderad.lower.bindings import Mode


@dataclass(eq=False, slots=True)
class StepCore(Core):
    """A graph at its operands."""

    run: GraphStep
    operands: Sequence[int | None]
    """The operand that each input is; `None` for one that the graph does not take."""
    results: Sequence[int | None]
    """The output of the graph that each leaf of the result is."""

    @property
    def kernels(self) -> Sequence[Kernel]:
        return self.run.kernels

    def pull(self, bars: Derivatives, wanted: Sequence[bool]) -> Derivatives:
        if not any(wanted):
            return [None] * len(self.operands)
        flags = self._flags(wanted)
        computed = self.run.gradients(flags, _placed(self.results, bars, len(self.run.results)))
        order = [k for k, flag in enumerate(flags) if flag]
        gradient_by_operand = dict(zip(order, computed, strict=True))
        return [None if k is None else gradient_by_operand.get(k) for k in self.operands]

    def push(self, dots: Derivatives) -> Derivatives:
        if all(dot is None for dot in dots):
            return [None] * len(self.results)
        moved = self.run.tangents(_placed(self.operands, dots, len(self.run.operands)))
        return [None if k is None else moved[k] for k in self.results]

    def add(self, bars: Derivatives, wanted: Sequence[bool], totals: Sequence[Any]) -> bool:
        run = self.run
        call = only_call(run.graph)
        if call is None or call.kernel.is_built or not any(wanted):
            return False
        given = [bar for bar in bars if bar is not None]
        if trace_of([*run.operands, *given]) is not None:
            return False
        sums = [self._sum(k, total, given) if flag else None
                for k, flag, total in zip(self.operands, wanted, totals, strict=True)]  # fmt: skip
        own = [x for x in sums if x is not None]
        is_whole = all((x is not None) == flag for x, flag in zip(sums, wanted, strict=True))
        if not is_whole or len({id(x.buffer) for x in own}) < len(own):
            return False
        placed = _placed(self.operands, sums, len(run.operands))
        ordered = [x for x in placed if x is not None]
        run.gradients(self._flags(wanted), _placed(self.results, bars, len(run.results)), ordered)
        return True

    def compile(self, mode: Mode, wanted: Sequence[bool]) -> None:
        self.run.compile(mode, self._flags(wanted))

    def _flags(self, wanted: Sequence[bool]) -> tuple[bool, ...]:
        """A flag per operand from one per input."""
        flags = [False] * len(self.run.operands)
        for k, flag in zip(self.operands, wanted, strict=True):
            if k is not None:
                flags[k] = flag
        return tuple(flags)

    def _sum(self, operand: int | None, total: Any, bars: Sequence[Array]) -> Array | None:
        """The array of 32-bit floats to which the dispatch itself can add a gradient."""
        assert operand is not None
        x = self.run.operands[operand]
        is_float = {s.kind for s in types.scalars(x.element)} == {types.Kind.FLOAT}
        if not isinstance(total, Array) or not is_float or trace_of([total]) is not None:
            return None
        check_sum(total, x.element, x.shape, self.run.device)
        known = [y for y in (*self.run.operands, *self.run.results) if not y.is_pending]
        is_apart = all(y.buffer is not total.buffer for y in (*known, *bars))
        return total.viewed(x.element, x.shape) if is_apart and total.offset == 0 else None


def _placed(
    places: Sequence[int | None], derivatives: Sequence[Array | None], count: int
) -> Derivatives:
    """`count` derivatives, those that were given at their places."""
    placed: Derivatives = [None] * count
    for place, derivative in zip(places, derivatives, strict=True):
        if place is not None:
            placed[place] = derivative
    return placed
