"""Functions that operators call while tracing: loop bodies, checkpointed and custom functions.

Each has a trace of its own. Values from outside become inputs that follow its arguments.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from shaderad.arrays import trees
from shaderad.diagnostics import error
from shaderad.functions.elements import as_array
from shaderad.ir.arrays import ArrayType, Graph, KernelCall, Value
from shaderad.trace.primitives import made
from shaderad.trace.traced import GraphTrace, TracedArray, tracing


class TracedBody:
    """A function that is traced inside of another."""

    def __init__(self, belongs_to: object = None) -> None:
        """`belongs_to` is the caller, if it needs to recognise its own trace."""
        parent = tracing()
        self.trace = GraphTrace(parent.size_by_name, parent, belongs_to)
        self._arguments: list[Value] = []

    def argument(self, t: ArrayType, like: TracedArray | None = None) -> TracedArray:
        """An argument of this type, given as `like`."""
        argument = self.trace.argument(t, like)
        self._arguments.append(argument.value)
        if like is not None and t.shape == like.value.shape:
            argument.noted_as(like.given_vector)
        return argument

    def arguments_like(self, arrays: Sequence[TracedArray]) -> list[TracedArray]:
        return [self.argument(x.value.type, x) for x in arrays]

    def call(self, function: Callable[..., Any], *args: Any, **keywords: Any) -> Any:
        return self.trace.run(function, *args, **keywords)

    def lifted(self, tree: Any) -> Any:
        """`tree` with an array of this body for each leaf that is not `None`."""

        def lift(leaf: Any) -> TracedArray | None:
            return None if leaf is None else as_array(leaf)

        return self.trace.run(trees.mapped, lift, tree)

    def value(self, x: TracedArray) -> Value:
        return self.trace.value_of(x)

    @property
    def effects(self) -> list[Value]:
        """Outputs beside those of the function, for calls that print or only check."""
        return [x.value for x in self.trace.effects]

    @property
    def constants(self) -> list[TracedArray]:
        """The captured inputs, as values of the enclosing trace."""
        first = len(self._arguments)
        return self.trace.given[first:]

    def constant_inputs(self, constants: Sequence[TracedArray]) -> list[Value]:
        """The inputs for these constants, whether the body reads them or not."""
        return [self.trace.value_of(x) for x in constants]

    def graph(self, constants: Sequence[TracedArray], outputs: Sequence[Value]) -> Graph:
        """The graph from the arguments, then the constants, to `outputs`."""
        return Graph((*self._arguments, *self.constant_inputs(constants)), tuple(outputs))


def keep_effects(results: Sequence[Value]) -> None:
    """Keeps the effects of a body, among the results of its node, in the enclosing trace."""
    tracing().effects.extend(made(value) for value in results)


def refuse_effects(body: TracedBody, caller: str) -> None:
    """Raises SR0266 if `body` calls a kernel that writes no array, as `caller` would drop it."""
    for node in Graph((), tuple(body.effects)).nodes:
        if isinstance(node, KernelCall) and not node.written:
            raise error("SR0266", node.span, kernel=node.kernel.name, caller=caller)


def merged(*bodies: TracedBody) -> list[TracedArray]:
    """The captured inputs of all these functions, without duplicates."""
    constant_by_value = {id(x.value): x for body in bodies for x in body.constants}
    return list(constant_by_value.values())


def outer_values(arrays: Sequence[TracedArray]) -> tuple[Value, ...]:
    return tuple(tracing().value_of(x) for x in arrays)


def arrays_in(tree: Any) -> list[TracedArray]:
    """The leaves of a tree as arrays of the trace."""
    return [as_array(leaf) for leaf in trees.leaves(tree)]


def rebuilt(tree: Any, leaves: Sequence[Any]) -> Any:
    """`tree` with other leaves, in order."""
    return trees.flatten(tree)[1].unflatten(leaves)


def matched(tree: Any, other: Any, what: str) -> list[Any]:
    """The leaves of `other`, which must be built like `tree`.

    Raises:
        LanguageError: SR0333 if it is not.
    """
    structure = trees.flatten(tree)[1]
    leaves = trees.matched(structure, other, what)
    for leaf in leaves:
        if leaf is None or isinstance(leaf, tuple | dict):
            raise trees.unmatched(structure, leaf, what)
    return leaves
