"""A plan -> a text of its dispatches and their memory."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from shaderad.ir import arrays, sizes
from shaderad.ir.arrays import Value
from shaderad.ir.sizes import Shape, Size
from shaderad.ir.types import Access, byte_count
from shaderad.plan.kernels import WIDTH
from shaderad.plan.literals import literal_operands
from shaderad.plan.nest.row_work import RowSharing
from shaderad.plan.nest.scan_sharing import ScanSharing
from shaderad.plan.nest.words import places_of, tiled_places, words_per_addend, words_text
from shaderad.plan.reductions import operators_of
from shaderad.plan.steps import (
    CallKernel,
    CopyValues,
    Plan,
    Repeat,
    RepeatWhile,
    RunChain,
    RunGroup,
    RunKernel,
    RunPass,
    RunRows,
    RunSort,
    RunTiles,
    Step,
)
from shaderad.plan.straight_kernels import reason_to_stay


@dataclass(frozen=True)
class Memory:
    """Bytes that a run needs besides its inputs, at known sizes."""

    live: int
    """The maximum in use at one time."""
    results: int
    between: int
    """Memory of intermediate values, which later runs use again."""


def explain(
    plan: Plan,
    node_count: int,
    known: Mapping[str, int] | None = None,
    memory: Memory | None = None,
) -> str:
    """One line a step; sizes as numbers where they are `known`."""
    return "\n".join(_Text(plan, known).lines(node_count, memory))


class _Text:
    def __init__(self, plan: Plan, known: Mapping[str, int] | None) -> None:
        self._plan = plan
        self._known = known
        self._names = {v: f"in{k}" for k, v in enumerate(plan.inputs)}

    def lines(self, node_count: int, memory: Memory | None) -> Iterator[str]:
        plan = self._plan
        counts = {"node": node_count, "input": len(plan.inputs), "step": len(plan.steps)}
        yield ", ".join(f"{n} {noun}{'' if n == 1 else 's'}" for noun, n in counts.items())
        for v in plan.inputs:
            yield f"  {self._stored(v)}"
        yield from self._steps(plan.steps, "  ")
        results = ", ".join(self._name(v) for v, _ in plan.outputs)
        yield f"results: {results}"
        if memory is not None:
            yield f"most live at one time: {memory.live:,} bytes besides the inputs"
            yield (
                f"allocated: {memory.results + memory.between:,} bytes, "
                f"of which {memory.between:,} serve again after the run"
            )

    def _steps(self, steps: tuple[Step, ...], indent: str) -> Iterator[str]:
        for number, step in enumerate(steps, start=1):
            literals = literal_operands(step.node) if isinstance(step, CallKernel) else ()
            values = (v for v in dict.fromkeys(step.reads) if v not in literals)
            reads = ", ".join(map(self._name, values)) or "nothing"
            writes = ", ".join(self._stored(v) for v in step.writes)
            description = self._description(step) + words_text(step, self._number)
            line = f"{indent}{number}. {description}: {reads} -> {writes}"
            yield line + self._reason(step)
            if isinstance(step, Repeat | RepeatWhile):
                yield from self._steps(step.body.steps, indent + "   ")
            elif isinstance(step, RunSort):
                self._name_inside(step)
                yield from self._steps(step.chosen.steps, indent + "   ")

    def _reason(self, step: Step) -> str:
        """The reason why a kernel call is not fused with the work around it."""
        if not (isinstance(step, CallKernel) and isinstance(step.node, arrays.KernelCall)):
            return ""
        reason = reason_to_stay(step.node, _KnownSizes(self._known or {}))
        return f"; not fused: {reason}" if reason else ""

    def _description(self, step: Step) -> str:
        match step:
            case RunKernel(work=work):
                accesses = {work.kernel.buffer(name).access for name, _ in work.writes}
                end = ", summed atomically" if Access.ADD in accesses else ""
                end += ", in group memory first" if step.copies else ""
                return f"{work.kernel.name} over {self._places(step)}{end}"
            case RunPass() | RunChain() | RunRows():
                return self._rows(step)
            case RunTiles():
                return self._tiles(step)
            case CallKernel(call=call):
                mode = f"{' and' if step.stored else ''}{_MODES[type(step.node)]}"
                copied = ", ".join(copy.array for copy in step.copies)
                end = f", may add to {copied} in group memory first" if copied else ""
                return f"kernel {call.kernel.name}{mode} over {self._shape(call.dim)}{end}"
            case Repeat():
                return f"loop of {self._size(step.node.count)} iterations"
            case RunSort(sharing=sharing):
                passes = "" if sharing is None else f", {len(sharing.digits)} passes"
                how = "merges" if sharing is None else "digits"
                return f"sort by {how} over {self._shape(step.node.result.shape)}{passes}"
            case CopyValues(pairs=pairs):
                return "copies" if pairs else "zeros"
            case RunGroup(work=work):
                return f"{work.kernel.name} of one workgroup"
            case RepeatWhile():
                return f"while loop of at most {step.node.limit} iterations"

    def _places(self, step: RunKernel) -> str:
        """The threads of a kernel, and the elements of each."""
        work = step.work
        if step.tile:
            return f"{self._shape(tiled_places(step))} by tiles of {_extents(step.tile)}"
        return self._shape(work.dim) + (f" by {WIDTH}" if work.stores_by_four else "")

    def _pass(self, step: RunPass) -> str:
        node = step.node
        is_scan = isinstance(node, arrays.Scan)
        kind = "scan" if is_scan else "reduce"
        ops = [node.op] if is_scan else [op for op, _ in operators_of(node)]
        name, epilogue = step.producer.kernel.name, step.epilogue
        is_read = name in ("input", "map_elements") and len(step.producer.reads) == 1
        fused = "" if is_read else f" of {name}"
        end = f", then {epilogue.name}" if epilogue is not None and epilogue.name else ""
        by = ", ".join(dict.fromkeys(op.name for op in ops))
        return f"{kind} by {by}{fused}{end}"

    def _rows(self, step: RunPass | RunChain | RunRows | RunTiles) -> str:
        """Reductions, a scan, or a chain."""
        if isinstance(step, RunRows):
            return self._rows(step.instead) + self._threads(step)
        if isinstance(step, RunTiles):
            return f"reduce by add over {self._shape(places_of(step))}"
        links = step.links if isinstance(step, RunChain) else (step,)
        names = (s.work.kernel.name if isinstance(s, RunKernel) else self._pass(s) for s in links)
        return f"{', '.join(names)} over {self._shape(places_of(step))}"

    def _tiles(self, step: RunTiles) -> str:
        """A sum over tiles."""
        if step.chosen is None:
            return "sum over tiles"
        tile = step.chosen.tile
        parts = f", {self._size(tile.part_count)} parts" if tile.part_count != 1 else ""
        parts += f", {tile.lanes} threads per part" if tile.lanes > 1 else ""
        team = f", shared by {tile.team} threads" if tile.team > 1 else ""
        if tile.is_grouped:
            blocks = [tile.block(axis) for axis in range(len(tile.held))]
            team = f", shared in blocks of {_extents(blocks)}"
        words = f"{words_per_addend(step.sums.work, tile, self._number):.3g} words per addend"
        held, steps = _extents(tile.held), _extents(tile.steps)
        return f"sum over tiles of {held}, {steps} addends at a time{team}{parts}, {words}"

    def _threads(self, step: RunRows) -> str:
        """How threads share rows."""
        sharing = step.sharing
        if sharing is None:
            return ""
        lanes, adjacent = sharing.team.lanes, ""
        if isinstance(sharing, RowSharing):
            lanes = 1 if sharing.are_apart else lanes
            if sharing.is_across:
                adjacent = f", {sharing.team.span * sharing.rows} rows at once"
        threads = "a thread" if lanes == 1 else f"{lanes} threads"
        if not step.between:
            return f", {threads} per row{adjacent}"
        parts = self._size(step.between[0].shape[-1])
        looks_back = isinstance(sharing, ScanSharing) and len(step.works) == 1
        passes = " in one pass" if looks_back else ""
        return f", {parts} parts per row{passes}, {threads} per part{adjacent}"

    def _name_inside(self, step: RunSort) -> None:
        """Gives the input and the output of the plan of a sort their names around it."""
        outputs = [v for v, _ in step.chosen.outputs]
        inside, outside = (*step.chosen.inputs, *outputs), (*step.reads, *step.writes)
        self._names |= zip(inside, map(self._name, outside), strict=True)

    # -- values ----------------------------------------------------------------------------

    def _name(self, v: Value) -> str:
        return self._names.setdefault(v, f"t{len(self._names) - len(self._plan.inputs)}")

    def _stored(self, v: Value) -> str:
        size = sizes.multiply(sizes.product(v.shape), byte_count(v.element))
        return f"{self._name(v)} {v.element}{self._shape(v.shape)} ({self._size(size)} bytes)"

    def _shape(self, shape: Shape) -> str:
        return f"[{', '.join(map(self._size, shape))}]"

    def _size(self, size: Size) -> str:
        number = self._number(size)
        return str(size) if number is None else f"{number:,}"

    def _number(self, size: Size) -> int | None:
        """A size that is known."""
        if self._known is None or not sizes.symbols(size) <= self._known.keys():
            return None
        return sizes.evaluate(size, self._known)


@dataclass(frozen=True, slots=True)
class _KnownSizes:
    """Decisions at the sizes of a call."""

    known: Mapping[str, int]

    def are_equal(self, a: Size, b: Size) -> bool:
        return self._value(sizes.subtract(a, b)) == 0

    def is_less(self, a: Size, b: Size) -> bool:
        difference = self._value(sizes.subtract(b, a))
        return difference is not None and difference > 0

    def _value(self, size: Size) -> int | None:
        is_known = sizes.symbols(size) <= self.known.keys()
        return sizes.evaluate(size, self.known) if is_known else None


_MODES = {
    arrays.KernelCall: "",
    arrays.KernelPull: " backward",
    arrays.KernelPush: " forward",
}


def _extents(counts: Sequence[int]) -> str:
    """Extents without those of 1."""
    return "x".join(str(count) for count in counts if count > 1) or "1"
