"""A plan as data: steps over stored values, with sizes left open.

Invariant: nothing here depends on a device or on sizes; running a plan again with others
compiles nothing. A stored value is written by one step, and before any step reads it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cache, cached_property, partial

from shaderad.bodies.scattered import GroupCopy
from shaderad.compiler.launch_shapes import LaunchShape
from shaderad.ir import arrays
from shaderad.ir.arrays import Value
from shaderad.ir.sizes import Shape, Size
from shaderad.plan.call_kernels import CallKernel
from shaderad.plan.kernels import PlanKernel
from shaderad.plan.nest.elementwise import FourElements
from shaderad.plan.nest.row_work import RowSharing, RowWork
from shaderad.plan.nest.rows import Rows
from shaderad.plan.nest.scan_sharing import ScanSharing
from shaderad.plan.nest.scans import Scans
from shaderad.plan.nest.sums.kernels import SumKernels, Sums
from shaderad.plan.nest.transposed import TransposedElements
from shaderad.plan.reductions import Reduction
from shaderad.plan.sorts.digits import DigitSharing


@dataclass(frozen=True, eq=False)
class RunKernel:
    """One kernel over the elements of a shape: a cluster of fused nodes, scatters, or both."""

    work: PlanKernel
    bases: Mapping[str, Value] = field(default_factory=dict[str, Value])
    """Initial content of arrays that scatters add to, by buffer name; the others begin with
    zeros."""
    by_four: FourElements | None = None
    """In place of `work`, where sizes allow it: see `choices.py`."""
    transposed: TransposedElements | None = None
    """The same for kernels that read along another axis."""
    copies: tuple[GroupCopy, ...] = ()
    """Arrays to which threads may add in group memory first."""
    tile: tuple[int, ...] = ()
    """Extents of the part of the places that each workgroup takes, if it has group memory."""

    @property
    def reads(self) -> tuple[Value, ...]:
        return (*self.bases.values(), *(v for _, v in self.work.reads))

    @property
    def writes(self) -> tuple[Value, ...]:
        return tuple(v for _, v in self.work.writes)


@dataclass(frozen=True, eq=False)
class Epilogue:
    """Elementwise work fused onto a reduction or scan."""

    values: tuple[Value, ...]
    """The values that are stored in place of the results; a scan has one."""
    reads: tuple[Value, ...] = ()
    """The values that they are computed from besides the results."""
    name: str = ""
    """The name of the kernel whose place it takes; empty for an operation of the result alone."""
    is_mirrored: bool = False
    """True if the value for index ``i`` of ``n`` is stored at ``n - 1 - i``."""


@dataclass(frozen=True, eq=False)
class RunPass:
    """A reduction or scan of the rows that a producer computes."""

    node: Reduction | arrays.Scan
    producer: PlanKernel
    """The kernel whose first Out is the element; a reduction stores the others. It is never
    dispatched by itself."""
    init: Value | None = None
    """The initial value of each row."""
    epilogue: Epilogue | None = None

    @property
    def reads(self) -> tuple[Value, ...]:
        values = tuple(v for _, v in self.producer.reads)
        if self.epilogue is not None:
            values += self.epilogue.reads
        return tuple(dict.fromkeys(values if self.init is None else (self.init, *values)))

    @property
    def shape(self) -> Shape:
        """The shape of the elements."""
        return self.node.operands[0].shape

    @cached_property
    def rows(self) -> Callable[[LaunchShape], Rows]:
        """Gives the kernels of a reduction."""
        assert not isinstance(self.node, arrays.Scan)
        return cache(partial(Rows, self.row_work(self.node)))

    @cached_property
    def scans(self) -> Callable[[LaunchShape], Scans]:
        """Gives the kernels of a scan."""
        node = self.node
        assert isinstance(node, arrays.Scan)
        is_mirrored = self.epilogue is not None and self.epilogue.is_mirrored
        name = self.producer.kernel.name
        return cache(partial(Scans, node, name, self.reads, self.results, is_mirrored))

    def row_work(self, node: Reduction) -> RowWork:
        """The work of threads that share rows, for its node."""
        beside = tuple(v for _, v in self.producer.writes[1:])
        reads = frozenset(self.reads) - {node.results[0], *self.results, *beside}
        return RowWork(
            self.producer.kernel.name, (node,), self.results, (beside, ()), frozenset(beside), reads
        )

    @property
    def results(self) -> tuple[Value, ...]:
        """The values that the pass makes of rows, or of their elements."""
        return self.node.results if self.epilogue is None else self.epilogue.values

    @property
    def writes(self) -> tuple[Value, ...]:
        return (*self.results, *(v for _, v in self.producer.writes[1:]))


@dataclass(frozen=True, eq=False)
class RunChain:
    """Steps that compute the same rows, one after the other or in one kernel: see `choices.py`."""

    links: tuple[RunPass | RunKernel, ...]
    work: RowWork
    """The same as one kernel, which does not store what is read in it alone."""

    @property
    def reads(self) -> tuple[Value, ...]:
        every = dict.fromkeys(v for link in self.links for v in link.reads)
        return tuple(v for v in every if v in self.work.reads)

    @property
    def writes(self) -> tuple[Value, ...]:
        return self.work.writes

    @cached_property
    def rows(self) -> Callable[[LaunchShape], Rows]:
        """Gives the kernel whose threads share rows."""
        return cache(partial(Rows, self.work))


@dataclass(frozen=True, eq=False)
class RunRows:
    """Reductions, or a scan, by kernels whose threads share rows."""

    instead: RunPass | RunChain | RunTiles
    """The step whose place it takes."""
    sharing: RowSharing | ScanSharing | None
    """How threads share rows, or parts of them; `None` for all sizes."""
    works: tuple[PlanKernel, ...]
    """The kernels, in order; one if no row is cut into parts."""
    between: tuple[Value, ...] = ()
    """The values that kernels leave to each other, with an element for each part of a row."""

    @property
    def reads(self) -> tuple[Value, ...]:
        return self.instead.reads

    @property
    def writes(self) -> tuple[Value, ...]:
        return self.instead.writes


@dataclass(frozen=True, eq=False)
class RunTiles:
    """A sum whose elements share reads, over tiles of its results."""

    sums: Sums
    rows: Callable[[LaunchShape], Rows] | None = None
    """For sums of columns, gives kernels whose adjacent threads have adjacent columns."""
    chosen: SumKernels | None = None
    """The kernels at known sizes."""

    @property
    def kernels(self) -> SumKernels:
        """The kernels; where sizes are open, those for all sizes."""
        return self.chosen or self.sums.open_kernels

    @property
    def works(self) -> tuple[PlanKernel, ...]:
        """The kernels, in order."""
        kernels = self.kernels
        return (kernels.tiles,) if kernels.added is None else (kernels.tiles, kernels.added)

    @property
    def between(self) -> tuple[Value, ...]:
        """The sums of parts, if there are any."""
        parts = self.kernels.parts
        return () if parts is None else (parts,)

    @property
    def reads(self) -> tuple[Value, ...]:
        return self.sums.work.inputs

    @property
    def writes(self) -> tuple[Value, ...]:
        return self.sums.work.outputs


@dataclass(frozen=True, slots=True)
class Effort:
    """The work of all steps of a kernel, as sizes."""

    cost: Size
    """In additions."""
    step_count: Size
    element_count: Size
    extents: frozenset[str]
    """Symbols of sizes in the kernel and of its arrays, but for those that count iterations."""


@dataclass(frozen=True, eq=False)
class RunGroup:
    """A loop in one kernel, which a single workgroup runs."""

    work: PlanKernel

    @property
    def reads(self) -> tuple[Value, ...]:
        return tuple(v for _, v in self.work.reads)

    @property
    def writes(self) -> tuple[Value, ...]:
        return tuple(v for _, v in self.work.writes)


@dataclass(frozen=True, eq=False)
class CopyValues:
    """Values that are equal to others, such as results of loops without iterations, or zeros."""

    pairs: tuple[tuple[Value, Value], ...]
    """Others, and the values that are equal to them."""
    writes: tuple[Value, ...]

    @property
    def reads(self) -> tuple[Value, ...]:
        return tuple(v for v, _ in self.pairs)


@dataclass(eq=False)
class GroupLoop:
    """The kernels that one workgroup may run in place of a loop, made when they are asked for."""

    measure: Callable[[], Effort | None]
    write: Callable[[Mapping[str, int], int], RunGroup]
    """Takes numbers in place of symbols, and the bytes of group memory."""

    @cached_property
    def effort(self) -> Effort | None:
        """The work, the same for each; `None` where one workgroup cannot run the loop."""
        return self.measure()


@dataclass(frozen=True, eq=False)
class RunSort:
    """The stable order of rows, by a plan of its own."""

    node: arrays.ArgSort
    reads: tuple[Value, ...]
    plan_of: Callable[[DigitSharing | None], Plan]
    """Gives the plan that sorts by digits, or by merges. It has one input and one output."""
    sharing: DigitSharing | None = None
    """How threads sort by digits; `None` for merges."""
    body: Plan | None = None
    """The plan that sizes chose."""

    @property
    def writes(self) -> tuple[Value, ...]:
        return self.node.results

    @property
    def chosen(self) -> Plan:
        """The plan that runs."""
        assert self.body is not None, "sizes decide about sorts"
        return self.body


@dataclass(frozen=True, eq=False)
class StoreRow:
    """Copies a row from the result of one iteration into the result of the loop."""

    work: PlanKernel
    row: Value
    target: Value


@dataclass(frozen=True, eq=False)
class Repeat:
    """A loop whose body is a plan of its own, run once for each iteration."""

    node: arrays.Loop
    body: Plan
    """Inputs: the carries, the constants, the xs as a whole. Outputs: the new carries, which it
    computes and never aliases to inputs, then the ys of one iteration."""
    symbol: str
    """The name of the size that holds the number of the iteration."""
    rows: tuple[StoreRow, ...]
    reads: tuple[Value, ...]
    group: GroupLoop | None = None
    """For sizes at which one workgroup runs the loop."""

    @property
    def writes(self) -> tuple[Value, ...]:
        return self.node.results


@dataclass(frozen=True, eq=False)
class RepeatWhile:
    """A loop that ends by a flag on the device; iterations after its end change nothing."""

    node: arrays.WhileLoop
    body: Plan
    """Inputs: the carries, the flag that the loop goes on, the count, then the constants. Outputs:
    the first three anew, then the condition without the limit."""
    reads: tuple[Value, ...]

    @property
    def writes(self) -> tuple[Value, ...]:
        return self.node.results


Step = (
    RunKernel
    | RunPass
    | RunChain
    | RunRows
    | RunTiles
    | RunGroup
    | CopyValues
    | CallKernel
    | RunSort
    | Repeat
    | RepeatWhile
)


@dataclass(frozen=True, eq=False)
class Plan:
    """The steps that compute a graph, in order."""

    inputs: tuple[Value, ...]
    outputs: tuple[tuple[Value, Shape], ...]
    """Each stored value, and the shape under which it is returned."""
    steps: tuple[Step, ...]
