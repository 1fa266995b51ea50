"""A function at its arguments inside of a function that is traced: derivatives are nodes.

What a derivative reads and makes are values of the trace around it, so that derivatives nest.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from shaderad.arrays import trees
from shaderad.arrays.arrays import Array, vector_of
from shaderad.arrays.textures import ByLevels
from shaderad.diagnostics import error
from shaderad.differentiate.forms import by_levels, check_keywords, is_data, texels_from_form
from shaderad.execute.derivative_graphs import kernels_of, pulled, pushed
from shaderad.functions.bodies import TracedBody, outer_values
from shaderad.functions.custom import conformed
from shaderad.functions.elements import as_array
from shaderad.ir import types
from shaderad.ir.arrays import ArrayType, Graph, Value
from shaderad.ir.nodes import Kernel
from shaderad.rules.arrays import building as b
from shaderad.rules.arrays.subgraphs import instantiate, kept
from shaderad.trace.primitives import made
from shaderad.trace.traced import TracedArray, tracing


@dataclass(eq=False)
class TracedAt:
    """A traced function at its arguments."""

    graph: Graph
    operands: Sequence[TracedArray]
    args: Sequence[Any]
    lifted: list[Any]
    """For each argument its tree, with an array for every leaf that holds floats."""
    given: list[TracedArray]
    """The lifted arrays, in order: the first inputs of the graph."""
    out: Any
    results: list[TracedArray]
    """The outputs of the graph that hold floats."""
    outputs: list[TracedArray]
    zero_wins: bool = False
    """True if zero cotangents suppress NaN."""

    @property
    def kernels(self) -> Sequence[Kernel]:
        return kernels_of(self.graph)

    def is_differentiable(self, position: int) -> bool:
        return any(_is_lifted(leaf) for leaf in trees.leaves(self.lifted[position]))

    def pull(self, out_bar: Any, positions: Sequence[int], into: Sequence[Any] | None) -> list[Any]:
        """Raises SR0451 where gradients are to be added to arrays that exist."""
        if into is not None:
            raise error("SR0451")
        wanted = self._wanted(positions)
        active = (*wanted, *(False for _ in self.operands[len(wanted) :]))
        bars = self._of_outputs(out_bar)
        given = tuple(bar is not None for bar in bars)
        outputs = [x for x in self.outputs if x.owner is tracing()]
        graph = pulled(
            self.graph, active, given, with_outputs=bool(outputs), zero_wins=self.zero_wins
        )
        found = self._instantiated(graph, bars)
        for output, value in zip(outputs, found, strict=False):
            output.value = value  # The loop that keeps checkpoints computes the results, too.
        return self._in_form(wanted, found[len(outputs) :], positions)

    def _instantiated(self, graph: Graph, derivatives: Sequence[Value | None]) -> tuple[Value, ...]:
        """The outputs of a derivative of the graph, in the trace that asks for it."""
        return instantiate(graph, (*outer_values(self.operands), *kept(derivatives)))

    def _wanted(self, positions: Sequence[int]) -> list[bool]:
        """A flag for each given array: true if it comes from the arguments at `positions`."""
        leaves = [leaf for k in positions for leaf in trees.leaves(self.lifted[k])]
        return [any(x is leaf for leaf in leaves) for x in self.given]

    def _in_form(
        self, wanted: Sequence[bool], found: Sequence[Value], positions: Sequence[int]
    ) -> list[Any]:
        values = iter(found)
        pairs = zip(self.given, wanted, strict=True)
        by_id = {id(x): made(next(values)).noted_as(x.given_vector) for x, one in pairs if one}
        return [self._gradients(k, by_id) for k in positions]

    def _of_outputs(self, given: Any) -> list[Value | None]:
        """The derivative given for each output of the graph."""
        floats = iter(_matching(self.out, given, self.results, "out_bar"))
        return [
            next(floats) if types.is_differentiable(v.element) else None for v in self.graph.outputs
        ]

    def _dots(self, tangents: Sequence[Any]) -> list[Value | None]:
        """The tangent given for each of the arrays given."""
        dots: list[Value | None] = []
        for lifted, tangent in zip(self.lifted, tangents, strict=True):
            leaves = [leaf for leaf in trees.leaves(lifted) if _is_lifted(leaf)]
            dots += _matching(lifted, tangent, leaves, "tangent")
        return dots

    def push(self, tangents: Sequence[Any]) -> Any:
        dots = self._dots(tangents)
        flags = tuple(dot is not None for dot in dots)
        constants = (False,) * (len(self.operands) - len(dots))
        graph = pushed(self.graph, (*flags, *constants))
        found = iter(self._instantiated(graph, dots))

        def moved(leaf: Any) -> Any:
            return made(next(found)) if _is_lifted(leaf) else None

        return trees.mapped(moved, self.out)

    def _gradients(self, position: int, by_id: Mapping[int, TracedArray]) -> Any:
        if not self.is_differentiable(position):
            return None
        lifted = self.lifted[position]

        def gradient(leaf: Any) -> TracedArray | None:
            return by_id.get(id(leaf))

        return by_levels(trees.zeros_for_none(lifted, trees.mapped(gradient, lifted)))


def _is_lifted(leaf: Any) -> bool:
    return isinstance(leaf, TracedArray) and types.is_differentiable(leaf.element)


def _matching(
    tree: Any, given: Any, leaves: Sequence[TracedArray], name: str
) -> list[Value | None]:
    """The derivative given for each of `leaves`, the arrays of floats in `tree`."""
    remaining = iter(leaves)
    found: list[Value | None] = []

    def collect(leaf: Any, one: Any) -> None:
        if _is_lifted(leaf):
            like = next(remaining)
            found.append(None if one is None else _conformed(one, like, name))

    trees.mapped(collect, tree, given, name=name)
    return found


def _conformed(given: Any, like: TracedArray, name: str) -> Value:
    """A derivative in the form of `like`."""
    if isinstance(given, ByLevels):
        given = texels_from_form(given.content, given.texture, name, _level_like)
    return conformed(given, like, name)


def _level_like(given: Any, element: types.Type, shape: tuple[int, ...], name: str) -> Array:
    """A derivative by a level of a texture."""
    level = made(b.zeros(ArrayType(element, shape)))
    return made(conformed(given, level, name))


def traced_at(
    function: Callable[..., Any], args: Sequence[Any], keywords: Mapping[str, Any]
) -> TracedAt:
    """Traces `function` as a graph of its own, and puts that into the trace around it."""
    check_keywords(keywords)

    def lift(leaf: Any) -> Any:
        if not isinstance(leaf, Array) and not is_data(leaf):
            return leaf
        found = as_array(leaf)
        if not types.is_differentiable(found.element):
            return leaf
        return made(found.value).noted_as(vector_of(leaf))

    lifted = [trees.mapped(lift, one) for one in args]
    given = [leaf for one in lifted for leaf in trees.leaves(one) if _is_lifted(leaf)]
    body = TracedBody()
    inside = iter(body.arguments_like(given))

    def argument(leaf: Any) -> Any:
        return next(inside).noted_as(leaf.given_vector) if _is_lifted(leaf) else leaf

    found = body.call(function, *(trees.mapped(argument, one) for one in lifted), **keywords)
    leaves = [leaf for leaf in trees.leaves(found) if isinstance(leaf, Array)]
    arrays = [body.trace.lifted(leaf) for leaf in leaves]
    constants = body.constants
    graph = body.graph(constants, [x.value for x in arrays])
    operands = [*given, *constants]
    values = instantiate(graph, outer_values(operands))
    results = [made(v) for v in values]
    remaining = iter(results)

    def shown(leaf: Any) -> Any:
        return next(remaining) if isinstance(leaf, Array) else leaf

    out = trees.mapped(shown, found)
    floats = [x for x in results if types.is_differentiable(x.element)]
    return TracedAt(graph, operands, args, lifted, given, out, floats, results)
