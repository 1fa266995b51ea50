"""A function at its arguments inside of a function that is traced: derivatives are nodes.

What a derivative reads and makes are values of the trace around it, so that derivatives nest.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, cast

from shaderad.arrays import trees
from shaderad.arrays.arrays import Array, vector_of
from shaderad.diagnostics import error
from shaderad.differentiate.forms import check_keywords, holds_floats, is_data
from shaderad.differentiate.leaves import Core, Derivatives, Input, Linearised
from shaderad.execute.derivative_graphs import kernels_of, pulled, pushed
from shaderad.functions.custom import conformed
from shaderad.ir import building as b
from shaderad.ir import types
from shaderad.ir.arrays import Graph, Value
from shaderad.ir.nodes import Kernel
from shaderad.rules.arrays.subgraphs import instantiate, kept
from shaderad.trace.bodies import TracedBody, outer_values
from shaderad.trace.elements import as_array
from shaderad.trace.primitives import made
from shaderad.trace.traced import TracedArray, tracing


@dataclass(eq=False)
class TraceCore(Core):
    """A traced function at its arguments."""

    graph: Graph
    """Its first inputs are the arrays of `inputs`, in order."""
    operands: Sequence[TracedArray]
    inputs: Sequence[Input]
    results: Sequence[Any]
    """The leaves of the result."""
    effects: Sequence[TracedArray]
    """The outputs of the graph behind the arrays among the results."""
    zero_wins: bool = False
    """True if zero cotangents suppress NaN."""

    @property
    def kernels(self) -> Sequence[Kernel]:
        return kernels_of(self.graph)

    @property
    def _outputs(self) -> list[TracedArray]:
        return [*(x for x in self.results if isinstance(x, TracedArray)), *self.effects]

    def pull(self, bars: Derivatives, wanted: Sequence[bool]) -> Derivatives:
        given = [*self._values(bars, self.results), *([None] * len(self.effects))]
        outputs = [x for x in self._outputs if x.owner is tracing()]
        graph = pulled(
            self.graph,
            self._of_operands(wanted),
            tuple([bar is not None for bar in given]),
            with_outputs=bool(outputs),
            zero_wins=self.zero_wins,
        )
        computed = self._instantiated(graph, given)
        for output, value in zip(outputs, computed, strict=False):
            output.value = value  # The loop that keeps checkpoints computes the results, too.
        gradients = iter(computed[len(outputs) :])
        return [made(next(gradients)) if flag else None for flag in wanted]

    def push(self, dots: Derivatives) -> Derivatives:
        given = self._values(dots, [x.array for x in self.inputs])
        flags = self._of_operands([dot is not None for dot in dots])
        moved = iter(self._instantiated(pushed(self.graph, flags), given))
        return [made(next(moved)) if holds_floats(x) else None for x in self.results]

    def added(self, gradient: Any, total: Any) -> Any:
        """`total`, to which `gradient` is added: from here on the array has another value.

        Raises:
            DerivativeError: SR0451 for an array from outside of the trace, or an argument of a
                graph, which keep their content.
            ShapeError: SR0330, SR0334 where it has another form than the gradient.
        """
        if total is None or not isinstance(gradient, Array):
            return gradient
        is_own = isinstance(total, TracedArray) and total.owner is tracing()
        if not is_own or (total.value.producer is None and tracing().parent is None):
            raise error("SR0451")
        total.value = b.add(total.value, conformed(gradient, total, "accumulate"))
        return total

    def derivative(self, like: Array, given: Any, name: str, *, is_tangent: bool) -> Array | None:
        if not holds_floats(like):
            return None
        like = cast("TracedArray", like)
        return made(conformed(given, like, name, is_tangent=is_tangent))

    def in_form_given(self, gradient: Array, x: Input) -> Any:
        return gradient.noted_as(vector_of(x.array))

    def tangent(self, result: Array, dot: Array | None) -> Array:
        assert dot is not None
        return dot

    def _of_operands(self, flags: Sequence[bool]) -> tuple[bool, ...]:
        """A flag per operand from one per input."""
        pairs = zip(self.inputs, flags, strict=True)
        own = [flag for x, flag in pairs if x.array is not None]
        return (*own, *([False] * (len(self.operands) - len(own))))

    def _values(self, derivatives: Derivatives, leaves: Sequence[Any]) -> list[Value | None]:
        """The derivative of each array among the leaves."""
        return [
            None if x is None else cast("TracedArray", x).value
            for x, leaf in zip(derivatives, leaves, strict=True)
            if isinstance(leaf, Array)
        ]

    def _instantiated(self, graph: Graph, derivatives: Sequence[Value | None]) -> tuple[Value, ...]:
        """The outputs of a derivative of the graph, in the trace that asks for it."""
        return instantiate(graph, (*outer_values(self.operands), *kept(derivatives)))


def traced_at(
    function: Callable[..., Any], args: Sequence[Any], keywords: Mapping[str, Any]
) -> Linearised:
    """Traces `function` as a graph of its own, and puts that into the trace around it."""
    check_keywords(keywords)
    flat = [trees.flatten(argument) for argument in args]
    inputs = [Input(leaf, _lifted(leaf)) for leaves, _ in flat for leaf in leaves]
    structures = [structure for _, structure in flat]
    given = [cast("TracedArray", x.array) for x in inputs if x.array is not None]
    body = TracedBody()
    inside = iter(body.arguments_like(given))
    leaves = iter([x.given if x.array is None else next(inside).noted_as(x.array.given_vector)
                   for x in inputs])  # fmt: skip
    out = body.call(function, *[s.unflatten(leaves) for s in structures], **keywords)
    results, structure = trees.flatten(out)
    lifted = [body.trace.lifted(x) for x in results if isinstance(x, Array)]
    constants = body.constants
    graph = body.graph(constants, [*(x.value for x in lifted), *body.effects])
    operands = [*given, *constants]
    made_values = [made(v) for v in instantiate(graph, outer_values(operands))]
    effects = made_values[len(lifted) :]
    tracing().effects.extend(effects)
    values = iter(made_values)
    shown = [next(values) if isinstance(x, Array) else x for x in results]
    core = TraceCore(graph, operands, inputs, shown, effects)
    return Linearised(core, inputs, structures, structure.unflatten(shown))


def _lifted(leaf: Any) -> TracedArray | None:
    """The array of the trace for whatever holds floats."""
    if not isinstance(leaf, Array) and not is_data(leaf):
        return None
    x = as_array(leaf)
    if not types.is_differentiable(x.element):
        return None
    return made(x.value).noted_as(vector_of(leaf))
