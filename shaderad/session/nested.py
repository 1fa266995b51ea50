"""Transforms inside of transforms, of kernels that no graph runs: what the inner one does is a step
of the outer one's trace.

The inner function runs on arrays that the outer trace does not see; its result, its pullback and
its tangents come back as results of steps, whose derivatives are the second ones that
`Linearised.pull_moved` gives. Invariant: no third derivative is taken.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from shaderad.diagnostics import error
from shaderad.ir import types
from shaderad.session import trees
from shaderad.session.arrays import Array
from shaderad.session.bindable_graphs import BindableGraph
from shaderad.session.linearised import Linearised, linearised
from shaderad.session.tape import Moving, Trace, Values, When, is_taped, trace_of
from shaderad.session.traced import current_trace

if TYPE_CHECKING:
    from shaderad.ir.nodes import Kernel

_ORDER = 3
"""Of what is refused."""


def linearised_within(
    function: Callable[..., Any], args: Sequence[Any], keywords: Mapping[str, Any], *, when: When
) -> Linearised:
    """`linearised`, also where arrays belong to a transform around this one.

    There the function is traced to a graph, which has derivatives of any order. Where it calls
    kernels that no graph runs, with pointers or `checks`, what it does is noted instead.
    """
    is_graph = isinstance(function, BindableGraph) and not function.is_variadic
    if current_trace() is not None or is_graph:
        return linearised(function, args, keywords, when=when)
    if is_taped():
        from shaderad.session.linearised_graphs import graph_within

        graph = graph_within(function, args, keywords, when=when)
        if graph is not None:
            return graph
    trace = _trace_around(args)
    unseen = args if trace is None else [trees.mapped(_unseen, given) for given in args]
    at = linearised(function, unseen, keywords, when=when)
    return Nested(_Inner(at, getattr(function, "__name__", repr(function)), args), trace)


@dataclass(eq=False)
class _Inner:
    """The inner function, and its arguments as the outer trace knows them."""

    at: Linearised
    name: str
    args: Sequence[Any]

    @property
    def positions(self) -> range:
        return range(len(self.args))

    def tangents(self, values: Values) -> list[Any]:
        return [_found(given, values) for given in self.args]

    def add(self, values: Values, gradients: Sequence[Any]) -> None:
        for given, gradient in zip(self.args, gradients, strict=True):
            _add(values, given, gradient)

    def third(self) -> Exception:
        return error("SR0419", function=self.name, order=_ORDER)


class Nested:
    """An inner function at its arguments: records what is asked of it."""

    def __init__(self, inner: _Inner, trace: Trace | None) -> None:
        self._inner = inner
        self._at = inner.at
        self._trace = trace
        if trace is not None:
            trace.record(_ResultStep(inner))

    @property
    def out(self) -> Any:
        return self._at.out

    @property
    def kernels(self) -> Sequence[Kernel]:
        return self._at.kernels

    def is_differentiable(self, position: int) -> bool:
        return self._at.is_differentiable(position)

    def pull(self, out_bar: Any, positions: Sequence[int], into: Sequence[Any] | None) -> list[Any]:
        """Raises SR0451 where a traced gradient is to be added to arrays that exist."""
        trace = self._around(out_bar)
        if trace is None:
            return self._at.pull(out_bar, positions, into)
        if into is not None:
            raise error("SR0451")
        found = self._at.pull(trees.mapped(_unseen, out_bar), positions, None)
        trace.record(_PullStep(self._inner, out_bar, positions, found))
        return found

    def push(self, tangents: Sequence[Any]) -> Any:
        trace = self._around(tangents)
        if trace is None:
            return self._at.push(tangents)
        found = self._at.push([trees.mapped(_unseen, one) for one in tangents])
        trace.record(_PushStep(self._inner, tangents, found))
        return found

    def pull_moved(
        self, out_bar: Any, out_bar_dot: Any, tangents: Sequence[Any], positions: Sequence[int]
    ) -> list[Any]:
        """Raises SR0419 within another transform: that one's derivative would be the third."""
        if self._around([out_bar, out_bar_dot, tangents]) is not None:
            raise self._inner.third()
        return self._at.pull_moved(out_bar, out_bar_dot, tangents, positions)

    def _around(self, given: Any) -> Trace | None:
        """The open trace of the transform around this call: of the arguments, or of `given`."""
        own = self._trace if self._trace is not None and self._trace.is_open else None
        found = _trace_around(given)
        if own is not None and found is not None and own is not found:
            raise error("SR0451")
        return own or found


@dataclass(eq=False)
class _ResultStep:
    """The inner function's own result."""

    inner: _Inner

    @property
    def operands(self) -> list[Array]:
        return _arrays(self.inner.args)

    @property
    def results(self) -> list[Array]:
        return _arrays(self.inner.at.out)

    def pull(self, cotangents: Values, wanted: set[int]) -> None:
        inner = self.inner
        out_bar = _found(inner.at.out, cotangents)
        inner.add(cotangents, inner.at.pull(out_bar, inner.positions, None))

    def push(self, tangents: Values) -> None:
        inner = self.inner
        _add(tangents, inner.at.out, inner.at.push(inner.tangents(tangents)))

    def pull_moved(self, moving: Moving, wanted: set[int], inputs: set[int]) -> None:
        inner = self.inner
        bar = _found(inner.at.out, moving.cotangents)
        bar_dot = _found(inner.at.out, moving.cotangents_dot)
        dots = inner.tangents(moving.tangents)
        moved = inner.at.pull_moved(bar, bar_dot, dots, inner.positions)
        self.pull(moving.cotangents, wanted - inputs)
        inner.add(moving.cotangents_dot, moved)


# x_bar = J^T y_bar     for its cotangent z: y_bar_bar = J z, and of x it is d/dx <y_bar, J z>


@dataclass(eq=False)
class _PullStep:
    """A call of the inner pullback."""

    inner: _Inner
    out_bar: Any
    wanted: Sequence[int]
    gradients: list[Any]

    @property
    def operands(self) -> list[Array]:
        return _arrays([self.inner.args, self.out_bar])

    @property
    def results(self) -> list[Array]:
        return _arrays(self.gradients)

    def push(self, tangents: Values) -> None:
        inner = self.inner
        bar, bar_dot = trees.mapped(_unseen, self.out_bar), _found(self.out_bar, tangents)
        moved = inner.at.pull_moved(bar, bar_dot, inner.tangents(tangents), self.wanted)
        _add(tangents, self.gradients, moved)

    def pull(self, cotangents: Values, wanted: set[int]) -> None:
        inner = self.inner
        along: list[Any] = [None] * len(inner.args)
        for position, gradient in zip(self.wanted, self.gradients, strict=True):
            along[position] = _found(gradient, cotangents)
        bar = trees.mapped(_unseen, self.out_bar)
        moved = inner.at.pull_moved(bar, None, along, inner.positions)
        _add(cotangents, self.out_bar, inner.at.push(along))
        inner.add(cotangents, moved)

    def pull_moved(self, moving: Moving, wanted: set[int], inputs: set[int]) -> None:
        raise self.inner.third()


# y_dot = J x_dot       for its cotangent u: x_dot_bar = J^T u, and of x it is d/dx <u, J x_dot>


@dataclass(eq=False)
class _PushStep:
    """The tangent of the inner function's result."""

    inner: _Inner
    tangents: Sequence[Any]
    found: Any

    @property
    def operands(self) -> list[Array]:
        return _arrays([self.inner.args, self.tangents])

    @property
    def results(self) -> list[Array]:
        return _arrays(self.found)

    def push(self, tangents: Values) -> None:
        """Raises SR0431: forward mode over forward mode."""
        raise error("SR0431", function=self.inner.name)

    def pull(self, cotangents: Values, wanted: set[int]) -> None:
        inner = self.inner
        bar = _found(self.found, cotangents)
        along = [trees.mapped(_unseen, one) for one in self.tangents]
        moved = inner.at.pull_moved(bar, None, along, inner.positions)
        for tangent, gradient in zip(
            self.tangents, inner.at.pull(bar, inner.positions, None), strict=True
        ):
            _add(cotangents, tangent, gradient)
        inner.add(cotangents, moved)

    def pull_moved(self, moving: Moving, wanted: set[int], inputs: set[int]) -> None:
        raise self.inner.third()


# -- trees ------------------------------------------------------------------------------------


def _trace_around(tree: Any) -> Trace | None:
    return trace_of(leaf for leaf in trees.leaves(tree) if isinstance(leaf, Array))


def _unseen(leaf: Any) -> Any:
    """The same bytes as an array that no trace follows."""
    is_traced = isinstance(leaf, Array) and leaf.trace is not None
    return leaf.viewed(leaf.element, leaf.shape) if is_traced else leaf


def _arrays(tree: Any) -> list[Array]:
    return [
        leaf
        for leaf in trees.leaves(tree)
        if isinstance(leaf, Array) and types.is_differentiable(leaf.element)
    ]


def _found(tree: Any, values: Values) -> Any:
    """What `values` has for the arrays of `tree`, in its structure."""

    def of(leaf: Any) -> Array | None:
        return values.of(leaf) if isinstance(leaf, Array) else None

    return trees.mapped(of, tree)


def _add(values: Values, tree: Any, found: Any) -> None:
    """Adds the arrays of `found` to what `values` has for those of `tree`."""

    def add(leaf: Any, value: Any) -> None:
        if isinstance(leaf, Array) and isinstance(value, Array):
            values.add(leaf, value)

    trees.mapped(add, tree, found)
