"""A function at its arguments, ready to pull cotangents back and to push tangents forward.

Arguments are flattened once, into leaves. Below, derivatives are lists with an entry per leaf.
Invariant: gradients come in the form of the arguments, tangents in that of the result.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from shaderad.arrays import trees
from shaderad.arrays.arrays import Array, zeros
from shaderad.arrays.tape import trace_of
from shaderad.differentiate.forms import added, check_has_derivative, derivative_of, in_form_given
from shaderad.execute.convert import in_form
from shaderad.ir import types
from shaderad.trace.traced import current_trace

if TYPE_CHECKING:
    from shaderad.arrays.trees import Structure
    from shaderad.ir.nodes import Kernel
    from shaderad.lower.bindings import Mode

Derivatives = list[Array | None]
"""A derivative per leaf; `None` is zero, or none."""


@dataclass(eq=False, slots=True)
class Input:
    """A leaf of the positional arguments."""

    given: Any
    """The leaf as the caller passed it."""
    array: Array | None
    """The array in its place, if it holds floats."""
    name: str = "tangent"
    """The name of its tangent in messages."""


class Core(ABC):
    """A function from arrays to arrays at its arguments, with an entry per leaf of both."""

    @property
    @abstractmethod
    def kernels(self) -> Sequence[Kernel]:
        """The kernels that ran."""

    @abstractmethod
    def pull(self, bars: Derivatives, wanted: Sequence[bool]) -> Derivatives:
        """The gradients of the wanted inputs, for cotangents of the results."""

    @abstractmethod
    def push(self, dots: Derivatives) -> Derivatives:
        """The tangents of the results, for those of the inputs."""

    def add(self, bars: Derivatives, wanted: Sequence[bool], totals: Sequence[Any]) -> bool:
        """Adds the gradients to `totals` in place, and tells if it could."""
        return False

    def added(self, gradient: Any, total: Any) -> Any:
        """An array, to which a gradient in its form is added."""
        return added(gradient, total)

    def derivative(self, like: Array, given: Any, name: str, *, is_tangent: bool) -> Array | None:
        """A derivative that the caller gave, in the form of `like`."""
        return derivative_of(like, given, name, is_tangent=is_tangent)

    def in_form_given(self, gradient: Array, x: Input) -> Any:
        """A gradient in the form of its argument."""
        assert x.array is not None
        return in_form_given(gradient, x.given, x.array.element)

    def tangent(self, result: Array, dot: Array | None) -> Array:
        """A tangent in the form of the result."""
        if dot is None:
            return zeros(result.device, result.element, result.shape)
        return in_form(dot, result.element, result.shape)

    def compile(self, mode: Mode, wanted: Sequence[bool]) -> None:
        """Compiles a mode before it is dispatched, by the wanted inputs; only for kernels."""
        raise NotImplementedError  # Traces are compiled with what is around them.


@dataclass(eq=False, slots=True)
class Linearised:
    """A function at its arguments, as the transforms see it."""

    core: Core
    inputs: Sequence[Input]
    structures: Sequence[Structure]
    """The form of the gradient of each positional argument."""
    out: Any
    """The result, with pending arrays where the linearisation is lazy."""
    again: Callable[[], Linearised] | None = None
    """The same as a part of a transform or graph that is around a pullback."""
    _firsts: list[int] = field(init=False)
    """The number of leaves before each argument, and that of all."""

    def __post_init__(self) -> None:
        self._firsts = [0]
        for structure in self.structures:
            self._firsts.append(self._firsts[-1] + structure.leaf_count)

    @property
    def kernels(self) -> Sequence[Kernel]:
        """The kernels that ran."""
        return self.core.kernels

    def is_differentiable(self, position: int) -> bool:
        """True if the argument at `position` holds floats."""
        return any(self.inputs[k].array is not None for k in self._range(position))

    def pull(self, out_bar: Any, positions: Sequence[int], into: Sequence[Any] | None) -> list[Any]:
        """The gradients of the arguments at `positions`, in their form."""
        results, structure = trees.flatten(self.out)
        given = structure.matched(out_bar, "out_bar")
        if self.again is not None and _is_traced(given):
            return self.again().pull(out_bar, positions, into)
        bars = [self._derivative(x, x, bar, "out_bar", is_tangent=False)
                for x, bar in zip(results, given, strict=True)]  # fmt: skip
        wanted = self._wanted(positions)
        if into is not None and self.core.add(bars, wanted, self._totals(positions, into)):
            return list(into)
        gradients = self.core.pull(bars, wanted)
        formed = [self._gradient(k, gradients) for k in positions]
        if into is None:
            return formed
        pairs = zip(formed, into, strict=True)
        return [trees.mapped(self.core.added, *pair, name="accumulate") for pair in pairs]

    def push(self, tangents: Sequence[Any]) -> Any:
        """The tangent of the result, in its structure."""
        given: list[Any] = []
        for k, (structure, tangent) in enumerate(zip(self.structures, tangents, strict=True)):
            own = self.inputs[self._firsts[k] :][:1]
            name = own[0].name.partition(".")[0] if own else "tangent"
            given += structure.matched(tangent, name)
        if self.again is not None and _is_traced(given):
            return self.again().push(tangents)
        dots = [self._derivative(x.given, x.array, dot, x.name, is_tangent=True)
                for x, dot in zip(self.inputs, given, strict=True)]  # fmt: skip
        results, structure = trees.flatten(self.out)
        moved = self.core.push(dots)
        return structure.tangent(
            self.core.tangent(x, dot)
            if isinstance(x, Array) and types.is_differentiable(x.element)
            else None
            for x, dot in zip(results, moved, strict=True)
        )

    def compile(self, mode: Mode, positions: Sequence[int]) -> None:
        """Compiles a mode, by the arguments at `positions`, before it is dispatched."""
        self.core.compile(mode, self._wanted(positions))

    def _range(self, position: int) -> range:
        """The leaves of the argument at `position`."""
        return range(self._firsts[position], self._firsts[position + 1])

    def _wanted(self, positions: Sequence[int]) -> list[bool]:
        """For each input, true if it holds floats and belongs to the arguments at `positions`."""
        wanted = [False] * len(self.inputs)
        for position in positions:
            for k in self._range(position):
                wanted[k] = self.inputs[k].array is not None
        return wanted

    def _derivative(
        self, leaf: Any, like: Any, given: Any, name: str, *, is_tangent: bool
    ) -> Array | None:
        if given is None:
            return None
        if not isinstance(like, Array):
            check_has_derivative(leaf, given, name)
            return None
        return self.core.derivative(like, given, name, is_tangent=is_tangent)

    def _gradient(self, position: int, gradients: Derivatives) -> Any:
        """The gradient of the argument at `position`; `None` if it holds no floats."""
        if not self.is_differentiable(position):
            return None
        leaves: list[Any] = []
        for k in self._range(position):
            gradient = gradients[k]
            formed = None if gradient is None else self.core.in_form_given(gradient, self.inputs[k])
            leaves.append(formed)
        return self.structures[position].derivative(leaves)

    def _totals(self, positions: Sequence[int], into: Sequence[Any]) -> list[Any]:
        """The array to which the gradient of each input is added, if the caller gave one."""
        totals: list[Any] = [None] * len(self.inputs)
        for position, total in zip(positions, into, strict=True):
            own = self.structures[position].matched(total, "accumulate")
            for k, x in zip(self._range(position), own, strict=True):
                totals[k] = x
        return totals


def _is_traced(derivatives: Sequence[Any]) -> bool:
    """True if a transform or graph is around the use of these derivatives."""
    if current_trace() is not None:
        return True
    return trace_of([x for x in derivatives if isinstance(x, Array)]) is not None
