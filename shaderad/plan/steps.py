"""A plan as data: steps over stored values, with sizes left open.

Invariant: nothing here depends on a device or on sizes; running a plan again with others
compiles nothing. A stored value is written by one step, and before any step reads it.
"""

from __future__ import annotations

from dataclasses import dataclass

from shaderad.ir import arrays
from shaderad.ir.arrays import Value
from shaderad.ir.sizes import Shape
from shaderad.plan.kernels import Work


@dataclass(frozen=True, eq=False)
class RunKernel:
    """One kernel over the elements of a shape: a cluster of fused nodes, or a scatter."""

    work: Work
    base: Value | None = None
    """What the array that it adds to holds at first; `None`: zeros, or it adds to none."""

    @property
    def reads(self) -> tuple[Value, ...]:
        values = tuple(v for _, v in self.work.reads)
        return values if self.base is None else (self.base, *values)

    @property
    def writes(self) -> tuple[Value, ...]:
        return tuple(v for _, v in self.work.writes)


@dataclass(frozen=True, eq=False)
class CallKernel:
    """A kernel of the user's, in one of its modes."""

    node: arrays.KernelCall | arrays.KernelPull | arrays.KernelPush
    reads: tuple[Value, ...]
    """What is stored for each operand, then for each of `results`."""
    results: tuple[str, ...] = ()
    """Names of Min and Max arrays that the derivative reads as the primal left them."""

    @property
    def writes(self) -> tuple[Value, ...]:
        return self.node.results

    @property
    def call(self) -> arrays.KernelCall:
        return self.node if isinstance(self.node, arrays.KernelCall) else self.node.call


@dataclass(frozen=True, eq=False)
class Epilogue:
    """What a scan of one row makes of all that it finds."""

    ending: arrays.RowEpilogue
    work: Work
    """A kernel without outputs: what `ending` reads besides the kernel of the elements."""
    value: Value

    @property
    def reads(self) -> tuple[Value, ...]:
        return tuple(v for _, v in self.work.reads)


@dataclass(frozen=True, eq=False)
class RunPass:
    """A reduction or scan of the rows that a producer computes."""

    node: arrays.Reduce | arrays.Scan
    producer: Work
    """The kernel whose first Out is the element; a reduction stores the others. It never runs by
    itself."""
    init: Value | None = None
    """What comes before each row."""
    finish: arrays.Elementwise | None = None
    """What is made of each result before it is stored."""
    epilogue: Epilogue | None = None
    """What is computed from that, and stored in its place."""
    shared: arrays.SharedTotals | None = None
    """Of a scan among `RunScans`."""

    @property
    def reads(self) -> tuple[Value, ...]:
        values = tuple(v for _, v in self.producer.reads)
        if self.epilogue is not None:
            values += self.epilogue.reads
        return values if self.init is None else (self.init, *values)

    @property
    def shape(self) -> Shape:
        """Of the elements."""
        return self.node.operands[0].shape

    @property
    def scanned(self) -> Value:
        """What the epilogue reads."""
        return self.node.result if self.finish is None else self.finish.result

    @property
    def result(self) -> Value:
        return self.scanned if self.epilogue is None else self.epilogue.value

    @property
    def writes(self) -> tuple[Value, ...]:
        return (self.result, *(v for _, v in self.producer.writes[1:]))


@dataclass(frozen=True, eq=False)
class RunScans:
    """Two scans of one row each: what the chunks of both come to is found together."""

    scans: tuple[RunPass, RunPass]
    producer: Work
    """The kernel whose Out is an element of both, as ``first`` and ``second``."""

    @property
    def is_mirrored(self) -> bool:
        """Whether the second scan goes from the end of what the first goes through."""
        shared = self.scans[1].shared
        return shared is not None and shared.is_mirrored

    @property
    def shape(self) -> Shape:
        return self.scans[0].shape

    @property
    def reads(self) -> tuple[Value, ...]:
        first, second = self.scans
        values = [v for _, v in self.producer.reads]
        after = (v for v in second.reads if v is not first.result)
        return tuple(dict.fromkeys((*values, *first.reads, *after)))

    @property
    def writes(self) -> tuple[Value, ...]:
        return tuple(v for scan in self.scans for v in scan.writes)


@dataclass(frozen=True, eq=False)
class StoreRow:
    """A row of a result of a loop, brought there from where one iteration left it."""

    work: Work
    row: Value
    target: Value


@dataclass(frozen=True, eq=False)
class Repeat:
    """A loop whose body is a plan of its own, run once an iteration."""

    node: arrays.Loop
    body: Plan
    """Inputs: the carries, the constants, the xs as a whole. Outputs: the new carries, which it
    computes and never passes on, then the ys of one iteration."""
    symbol: str
    """The size that is the number of the iteration."""
    rows: tuple[StoreRow, ...]
    reads: tuple[Value, ...]

    @property
    def writes(self) -> tuple[Value, ...]:
        return self.node.results


@dataclass(frozen=True, eq=False)
class RepeatWhile:
    """A loop of which the device says when it ends: iterations that change nothing once it has."""

    node: arrays.WhileLoop
    body: Plan
    """Inputs: the carries, whether it goes on, the count, then the constants. Outputs: the first
    three anew, and whether it would go on but for the limit."""
    reads: tuple[Value, ...]

    @property
    def writes(self) -> tuple[Value, ...]:
        return self.node.results


PassStep = RunPass | RunScans
"""What passes of the library run."""

Step = RunKernel | RunPass | RunScans | CallKernel | Repeat | RepeatWhile


@dataclass(frozen=True, eq=False)
class Plan:
    """The steps that compute a graph, in order."""

    inputs: tuple[Value, ...]
    outputs: tuple[tuple[Value, Shape], ...]
    """What is stored, and the shape under which it is returned."""
    steps: tuple[Step, ...]
