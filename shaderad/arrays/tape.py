"""The tape of a transformed function: its operations on arrays, in order.

A trace follows array objects, not wrappers: an array made from a traced one carries the trace, and
each step says how cotangents of its results become cotangents of its operands, and tangents of
operands tangents of results. Invariant: steps stand in the order in which they ran, so one walk
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
    """When the results of a function are computed that is differentiated."""

    NOW = "now"
    BEFORE_PULLBACK = "before pullback"
    """Like `NOW`; gradients will be asked for next."""
    WITH_GRADIENTS = "with gradients"
    """By the same dispatches where that can be; the caller settles what is left."""
    IF_NEEDED = "if needed"
    """Only what gradients are made of, or what somebody looks at."""
    NEVER = "never"
    """Not even what prints or checks values: shapes are asked for."""


class Step(Protocol):
    """One recorded step."""

    @property
    def operands(self) -> list[Array]: ...
    @property
    def results(self) -> list[Array]: ...
    @property
    def kernels(self) -> Sequence[Kernel]:
        """The kernels that ran in it."""
        ...

    def pull(self, cotangents: Values, wanted: set[int]) -> None:
        """Adds what the cotangents of `results` say to those of the operands in `wanted`."""
        ...

    def push(self, tangents: Values) -> None:
        """Sets the tangents of `results` from those of `operands`."""
        ...


class Values:
    """A cotangent or tangent for each array that has one; those of one array are summed."""

    def __init__(
        self, in_form_of: Callable[[Array, Array], Array], summed: Callable[[Array, Array], Array]
    ) -> None:
        # in_form_of: a value in the form of an array; summed: the sum of two of one form.
        self._in_form_of = in_form_of
        self._summed = summed
        self._by_array: dict[int, Array] = {}

    def of(self, array: Array) -> Array | None:
        return self._by_array.get(id(array))

    def add(self, array: Array, value: Array) -> None:
        """Adds `value`, in the form of `array`, to what `array` has."""
        value = self._in_form_of(value, array)
        known = self._by_array.get(id(array))
        self._by_array[id(array)] = value if known is None else self._summed(known, value)


@dataclass(eq=False)
class Trace:
    """The steps of one transformed function."""

    when: When = When.NOW
    """When launches run; all do where someone looks at their results."""
    is_open: bool = True
    steps: list[Step] = field(default_factory=list[Step])
    _members: list[Any] = field(default_factory=list[Any])
    """The traced arrays."""

    def follow(self, array: Array) -> None:
        """Makes `array` a traced one."""
        array.trace = self
        self._members.append(array)

    def record(self, step: Step) -> None:
        """Appends a step and follows those of its results that carry a derivative."""
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
        """Walks backward from the cotangents given; `wanted` are the arrays asked for."""
        needed = self._depending_on(wanted)
        for step in reversed(self.steps):
            if any(cotangents.of(result) is not None for result in step.results):
                step.pull(cotangents, needed)

    def push(self, tangents: Values) -> None:
        """Walks forward from the tangents given."""
        for step in self.steps:
            if any(tangents.of(operand) is not None for operand in step.operands):
                step.push(tangents)

    def _depending_on(self, wanted: Iterable[Array]) -> set[int]:
        """Identities of `wanted` and of everything computed from them."""
        found = {id(array) for array in wanted}
        for step in self.steps:
            if any(id(operand) in found for operand in step.operands):
                found |= {id(result) for result in step.results}
        return found


_open: ContextVar[bool] = ContextVar("shaderad_open_tape", default=False)


def is_taped() -> bool:
    """True if a function runs whose trace is being recorded."""
    return _open.get()


def taped(function: Callable[P, R], *args: P.args, **keywords: P.kwargs) -> R:
    """Calls `function`, in which `is_taped` holds."""
    # A context of its own ends with the call, so that no interrupt can leave it entered.
    context = copy_context()
    context.run(_open.set, True)
    return context.run(fitting_call, function, *args, **keywords)


def trace_of(arrays: Iterable[Array]) -> Trace | None:
    """The open trace that any of `arrays` belongs to.

    Raises:
        DerivativeError: SR0451, where two transforms meet.
    """
    found: Trace | None = None
    for array in arrays:
        trace = array.trace
        if trace is None or trace is found or not trace.is_open:
            continue
        if found is not None:
            raise error("SR0451")
        found = trace
    return found


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
    """`view`, an array made from the bytes of `source`, which a trace of `source` follows.

    Args:
        source: The array.
        view: What was made from it.
        pull_back: Cotangent of `view` -> cotangent of `source`.
        push_forward: Tangent of `source` -> tangent of `view`.
    """
    trace = trace_of([source])
    if trace is not None and view is not source:
        trace.record(ViewStep(source, view, pull_back, push_forward))
    return view
