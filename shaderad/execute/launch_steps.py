"""Launches on a tape: run now, with their gradients, or when somebody looks at a result."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from shaderad.arrays.tape import When, trace_of

if TYPE_CHECKING:
    from shaderad.arrays.arrays import Array
    from shaderad.arrays.tape import Values
    from shaderad.execute.launch import Launch
    from shaderad.ir.nodes import Kernel


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
    if when is not When.NOW and not launch.setting.is_foreseen:
        launch.expected = launch.facts.differentiable.intersection(names)
    runs = when is When.NOW or when is When.BEFORE_PULLBACK
    if runs or (launch.is_needed and when is not When.NEVER):
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

    @property
    def kernels(self) -> Sequence[Kernel]:
        return (self.launch.kernel,)

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
