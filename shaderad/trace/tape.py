"""The tape of a transformed function: its operations on arrays, in order.

A trace follows array objects, not wrappers: an array made from a traced one carries the trace, and
each step says how cotangents of its results become cotangents of its operands, and tangents of
operands tangents of results. Invariant: steps stand in the order in which they ran, so one walk
backward is the vjp and one walk forward the jvp.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from contextvars import ContextVar, copy_context
from dataclasses import dataclass, field
from enum import Enum
from typing import TYPE_CHECKING, Any, ParamSpec, Protocol, TypeVar

from shaderad.diagnostics import error
from shaderad.execute.convert import in_form, in_form_of, summed
from shaderad.ir import types

if TYPE_CHECKING:
    from shaderad.arrays.arrays import Array
    from shaderad.execute.launch import Launch

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


class Step(Protocol):
    """One recorded step."""

    @property
    def operands(self) -> list[Array]: ...
    @property
    def results(self) -> list[Array]: ...
    def pull(self, cotangents: Values, wanted: set[int]) -> None:
        """Adds what the cotangents of `results` say to those of the operands in `wanted`."""
        ...

    def push(self, tangents: Values) -> None:
        """Sets the tangents of `results` from those of `operands`."""
        ...


class Values:
    """A cotangent or tangent for each array that has one; those of one array are summed."""

    def __init__(self) -> None:
        self._by_array: dict[int, Array] = {}

    def of(self, array: Array) -> Array | None:
        return self._by_array.get(id(array))

    def add(self, array: Array, value: Array) -> None:
        """Adds `value`, in the form of `array`, to what `array` has."""
        value = in_form_of(value, array)
        known = self._by_array.get(id(array))
        self._by_array[id(array)] = value if known is None else summed(known, value)


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
    return context.run(function, *args, **keywords)


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


def launched(launch: Launch) -> None:
    """Runs a launch, or lets a trace record it."""
    trace = trace_of(launch.sources.values())
    if trace is None:
        launch.run()
        return
    trace.record(LaunchStep(launch))
    traced = (name for name, array in launch.sources.items() if array.trace is trace)
    start(launch, trace.when, traced)


def start(launch: Launch, when: When, names: Iterable[str]) -> None:
    """Runs a launch, or leaves it to its gradients or to who looks at its results.

    Args:
        launch: What runs.
        when: When it does.
        names: The arrays and uniforms by which it is differentiated, as far as they hold floats.
    """
    launch.is_joined = when is When.WITH_GRADIENTS
    if when is not When.NOW:
        launch.expected = launch.facts.differentiable.intersection(names)
    if when in (When.NOW, When.BEFORE_PULLBACK) or launch.is_needed:
        launch.run()


@dataclass(eq=False)
class LaunchStep:
    """A kernel call."""

    launch: Launch

    @property
    def operands(self) -> list[Array]:
        return list(self.launch.sources.values())

    @property
    def results(self) -> list[Array]:
        return list(self.launch.outputs.values())

    def pull(self, cotangents: Values, wanted: set[int]) -> None:
        launch, names = self.launch, self._names(wanted)
        if not names or not any(cotangents.of(one) is not None for one in self.results):
            return
        for name, gradient in launch.backward(names, self._given(cotangents)).items():
            cotangents.add(launch.sources[name], gradient)

    def push(self, tangents: Values) -> None:
        launch = self.launch
        for name, tangent in launch.forward(self._tangents(tangents)).items():
            tangents.add(launch.outputs[name], tangent)

    def _names(self, wanted: set[int]) -> frozenset[str]:
        """The arguments whose gradients are asked for."""
        launch = self.launch
        return frozenset(
            name
            for name in launch.facts.differentiable
            if name in launch.sources and id(launch.sources[name]) in wanted
        )

    def _given(self, cotangents: Values) -> dict[str, Array]:
        by_name = {name: cotangents.of(x) for name, x in self.launch.outputs.items()}
        return {name: bar for name, bar in by_name.items() if bar is not None}

    def _tangents(self, tangents: Values) -> dict[str, Array]:
        """Tangents of the arguments, in the types and shapes that the kernel has for them."""
        launch = self.launch
        given: dict[str, Array] = {}
        for name in launch.facts.differentiable:
            tangent = tangents.of(launch.sources[name]) if name in launch.sources else None
            if tangent is not None:
                seen = launch.inputs.get(name)
                shape = () if seen is None else seen.shape
                given[name] = tangent.viewed(launch.facts.element_types[name], shape)
        return given


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

    def pull(self, cotangents: Values, wanted: set[int]) -> None:
        cotangent = cotangents.of(self.result)
        if cotangent is not None and id(self.operand) in wanted:
            cotangents.add(self.operand, self.pull_back(cotangent))

    def push(self, tangents: Values) -> None:
        tangent = tangents.of(self.operand)
        if tangent is not None:
            tangents.add(self.result, self.push_forward(tangent))


def recorded_form(x: Array, element: types.Type, shape: tuple[int, ...]) -> Array:
    """`x` as `shape` elements of another type, which a trace follows."""
    if (x.element, x.shape) == (element, shape):
        return x
    found = in_form(x, element, shape)
    trace = trace_of([x])
    if trace is not None:
        step = ViewStep(
            x,
            found,
            lambda bar: in_form(bar, x.element, x.shape),
            lambda dot: in_form(dot, element, shape),
        )
        trace.record(step)
    return found
