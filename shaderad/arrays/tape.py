"""The tape of a transformed function: its operations on arrays, in order.

A trace follows array objects, not wrappers: an array made from a traced one carries the trace. Each
step maps cotangents of its results to cotangents of its operands, and tangents of its operands to
tangents of its results. Invariant: steps are stored in the order in which they ran, so one walk
backward is the vjp and one walk forward the jvp.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from contextvars import ContextVar, copy_context
from dataclasses import dataclass, field
from enum import Enum
from typing import TYPE_CHECKING, Any, ParamSpec, Protocol, TypeVar

from shaderad.diagnostics import error
from shaderad.diagnostics.call_errors import fitting_call
from shaderad.ir import types

if TYPE_CHECKING:
    from shaderad.arrays.arrays import Array
    from shaderad.ir.nodes import Kernel

P = ParamSpec("P")
R = TypeVar("R")


class When(Enum):
    """The time at which the results of a differentiated function are computed."""

    NOW = "now"
    BEFORE_PULLBACK = "before pullback"
    """Like `NOW`, but gradients will be requested next."""
    WITH_GRADIENTS = "with gradients"
    """In the backward dispatches where possible; the caller computes the rest."""
    IF_NEEDED = "if needed"
    """Only values that gradients need or that are read."""
    NEVER = "never"
    """Never, not even to print or check values: only shapes are needed."""


class Step(Protocol):
    """One recorded step."""

    @property
    def operands(self) -> list[Array]: ...
    @property
    def results(self) -> list[Array]: ...
    @property
    def kernels(self) -> Sequence[Kernel]:
        """The kernels that the step ran."""
        ...

    def pull(self, cotangents: Values, wanted: set[int]) -> None:
        """Pulls back the cotangents of `results`; adds to those of the operands in `wanted`."""
        ...

    def push(self, tangents: Values) -> None:
        """Sets the tangents of `results` from those of `operands`."""
        ...


class Values:
    """The cotangents or tangents of arrays; several for one array are summed."""

    def __init__(
        self, in_form_of: Callable[[Array, Array], Array], summed: Callable[[Array, Array], Array]
    ) -> None:
        # in_form_of: converts a value to the form of an array; summed: adds two values of one form.
        self._in_form_of = in_form_of
        self._summed = summed
        self._by_array: dict[int, Array] = {}

    def of(self, array: Array) -> Array | None:
        return self._by_array.get(id(array))

    def add(self, array: Array, value: Array) -> None:
        """Adds `value`, in the form of `array`, to the value of `array`."""
        value = self._in_form_of(value, array)
        previous = self._by_array.get(id(array))
        self._by_array[id(array)] = value if previous is None else self._summed(previous, value)


@dataclass(eq=False)
class Trace:
    """The steps of one transformed function."""

    when: When = When.NOW
    """When launches run; any launch runs if its results are read."""
    is_open: bool = True
    steps: list[Step] = field(default_factory=list[Step])
    _members: list[Any] = field(default_factory=list[Any])
    """The traced arrays."""

    def follow(self, array: Array) -> None:
        """Makes this trace follow `array`."""
        array.trace = self
        self._members.append(array)

    def record(self, step: Step) -> None:
        """Appends a step and follows its results that carry a derivative."""
        self.steps.append(step)
        for result in step.results:
            if types.is_differentiable(result.element):
                self.follow(result)

    def close(self) -> None:
        """Ends tracing: the arrays become ordinary ones."""
        self.is_open = False
        for member in self._members:
            member.trace = None
        self._members.clear()

    def pull(self, cotangents: Values, wanted: Iterable[Array]) -> None:
        """Walks backward from `cotangents` to the arrays in `wanted`."""
        needed = self._depending_on(wanted)
        for step in reversed(self.steps):
            if any(cotangents.of(result) is not None for result in step.results):
                step.pull(cotangents, needed)

    def push(self, tangents: Values) -> None:
        """Walks forward from `tangents`."""
        for step in self.steps:
            if any(tangents.of(operand) is not None for operand in step.operands):
                step.push(tangents)

    def _depending_on(self, wanted: Iterable[Array]) -> set[int]:
        """Identities of `wanted` and of everything computed from them."""
        dependent_ids = {id(array) for array in wanted}
        for step in self.steps:
            if any(id(operand) in dependent_ids for operand in step.operands):
                dependent_ids |= {id(result) for result in step.results}
        return dependent_ids


_open: ContextVar[bool] = ContextVar("shaderad_open_tape", default=False)


def is_taped() -> bool:
    """True while a function runs whose steps are recorded."""
    return _open.get()


def taped(function: Callable[P, R], *args: P.args, **keywords: P.kwargs) -> R:
    """Calls `function`, during which `is_taped` is true."""
    # The context ends with the call, so that an interrupt cannot leave it active.
    context = copy_context()
    context.run(_open.set, True)
    return context.run(fitting_call, function, *args, **keywords)


def trace_of(arrays: Iterable[Array]) -> Trace | None:
    """The open trace that any of `arrays` belongs to.

    Raises:
        DerivativeError: SR0451 if the arrays belong to two transforms.
    """
    innermost: Trace | None = None
    for array in arrays:
        trace = array.trace
        if trace is None or trace is innermost or not trace.is_open:
            continue
        if innermost is not None:
            raise error("SR0451")
        innermost = trace
    return innermost


@dataclass(eq=False)
class ViewStep:
    """A slice or reshape that shares the bytes of its operand."""

    operand: Array
    result: Array
    pull_back: Callable[[Array], Array]
    """Cotangent of the result -> cotangent of the operand."""
    push_forward: Callable[[Array], Array]
    """Tangent of the operand -> tangent of the result."""

    @property
    def operands(self) -> list[Array]:
        return [self.operand]

    @property
    def results(self) -> list[Array]:
        return [self.result]

    @property
    def kernels(self) -> Sequence[Kernel]:
        return ()

    def pull(self, cotangents: Values, wanted: set[int]) -> None:
        cotangent = cotangents.of(self.result)
        if cotangent is not None and id(self.operand) in wanted:
            cotangents.add(self.operand, self.pull_back(cotangent))

    def push(self, tangents: Values) -> None:
        tangent = tangents.of(self.operand)
        if tangent is not None:
            tangents.add(self.result, self.push_forward(tangent))


def recorded_view(
    source: Array,
    view: Array,
    pull_back: Callable[[Array], Array],
    push_forward: Callable[[Array], Array],
) -> Array:
    """`view`, an array over the bytes of `source`, recorded in the trace of `source`.

    Args:
        source: The array.
        view: The array made from it.
        pull_back: Cotangent of `view` -> cotangent of `source`.
        push_forward: Tangent of `source` -> tangent of `view`.
    """
    trace = trace_of([source])
    if trace is not None and view is not source:
        trace.record(ViewStep(source, view, pull_back, push_forward))
    return view
