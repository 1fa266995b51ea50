"""A plan -> a text that says which dispatches compute it and what they keep in memory."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from shaderad.ir import arrays, sizes
from shaderad.ir.arrays import Value
from shaderad.ir.sizes import Shape, Size
from shaderad.ir.types import Access, byte_count
from shaderad.plan.clusters import kernel_name
from shaderad.plan.kernels import Work
from shaderad.plan.steps import (
    CallKernel,
    Plan,
    Repeat,
    RepeatWhile,
    RunKernel,
    RunPass,
    RunScans,
    Step,
)


@dataclass(frozen=True)
class Memory:
    """Bytes that a run needs besides its inputs, at known sizes."""

    live: int
    """The most that is needed at one time."""
    results: int
    between: int
    """What is computed on the way and serves again afterwards."""

    @property
    def allocated(self) -> int:
        return self.results + self.between


def explain(
    plan: Plan,
    node_count: int,
    known: Mapping[str, int] | None = None,
    memory: Memory | None = None,
) -> str:
    """One line a step; sizes as numbers where they are `known`."""
    return "\n".join(_Text(plan, node_count, known, memory).lines())


class _Text:
    def __init__(
        self,
        plan: Plan,
        node_count: int,
        known: Mapping[str, int] | None,
        memory: Memory | None,
    ) -> None:
        self._plan = plan
        self._node_count = node_count
        self._known = known
        self._memory = memory
        self._names = {v: f"in{k}" for k, v in enumerate(plan.inputs)}

    def lines(self) -> Iterator[str]:
        plan = self._plan
        yield (
            f"{_counted(self._node_count, 'node')}, {_counted(len(plan.inputs), 'input')}, "
            f"{_counted(len(plan.steps), 'step')}"
        )
        for v in plan.inputs:
            yield f"  {self._stored(v)}"
        yield from self._steps(plan.steps, "  ")
        results = ", ".join(self._name(v) for v, _ in plan.outputs)
        yield f"results: {results}"
        if self._memory is not None:
            yield from self._bytes(self._memory)

    def _bytes(self, memory: Memory) -> Iterator[str]:
        yield f"most live at one time: {memory.live:,} bytes besides the inputs"
        yield (
            f"allocated: {memory.allocated:,} bytes, of which {memory.between:,} serve again "
            "after the run"
        )

    def _steps(self, steps: tuple[Step, ...], indent: str) -> Iterator[str]:
        for number, step in enumerate(steps, start=1):
            reads = ", ".join(self._name(v) for v in dict.fromkeys(step.reads)) or "nothing"
            writes = ", ".join(self._stored(v) for v in step.writes)
            yield f"{indent}{number}. {self._what(step)}: {reads} -> {writes}"
            if isinstance(step, Repeat | RepeatWhile):
                yield from self._steps(step.body.steps, indent + "   ")

    def _what(self, step: Step) -> str:
        if isinstance(step, RunKernel):
            return f"{step.work.kernel.name} over {self._shape(step.work.dim)}{_strategy(step)}"
        if isinstance(step, RunPass):
            return self._pass(step)
        if isinstance(step, RunScans):
            return f"{' and '.join(map(self._pass, step.scans))}, chunks of both together"
        if isinstance(step, CallKernel):
            return f"kernel {step.call.kernel.name}{_MODES[type(step.node)]} over " + self._shape(
                step.call.dim
            )
        if isinstance(step, Repeat):
            return f"loop of {self._size(step.node.count)} iterations"
        return f"while loop of at most {step.node.limit} iterations"

    def _pass(self, step: RunPass) -> str:
        kind = "reduce" if isinstance(step.node, arrays.Reduce) else "scan"
        fused = "" if _is_read(step.producer) else f" of {step.producer.kernel.name}"
        end = "" if step.epilogue is None else ", then " + kernel_name([step.epilogue.value])
        over = self._shape(step.node.operands[0].shape)
        return f"{kind} by {step.node.op.name}{fused}{end} over {over}"

    # -- values ----------------------------------------------------------------------------

    def _name(self, v: Value) -> str:
        return self._names.setdefault(v, f"t{len(self._names) - len(self._plan.inputs)}")

    def _stored(self, v: Value) -> str:
        size = sizes.multiply(sizes.product(v.shape), byte_count(v.element))
        return f"{self._name(v)} {v.element}{self._shape(v.shape)} ({self._size(size)} bytes)"

    def _shape(self, shape: Shape) -> str:
        return f"[{', '.join(map(self._size, shape))}]"

    def _size(self, size: Size) -> str:
        if self._known is not None and sizes.symbols(size) <= self._known.keys():
            return f"{sizes.evaluate(size, self._known):,}"
        return str(size)


_MODES = {
    arrays.KernelCall: "",
    arrays.KernelPull: " backward",
    arrays.KernelPush: " forward",
}


def _strategy(step: RunKernel) -> str:
    """How results that threads share come about."""
    found = {step.work.kernel.buffer(name).access for name, _ in step.work.writes}
    return ", summed atomically" if Access.ADD in found else ""


def _is_read(work: Work) -> bool:
    """Whether a producer only reads what is stored."""
    return work.kernel.name in ("input", "map_elements") and len(work.reads) == 1


def _counted(count: int, noun: str) -> str:
    return f"{count} {noun}{'' if count == 1 else 's'}"
