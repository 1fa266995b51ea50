"""Functions that operators call while tracing: loop bodies, checkpointed and custom functions.

Each has a trace of its own. Values from outside become inputs that follow its arguments.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

from shaderad.arrays import trees
from shaderad.arrays.textures import Texture, kind_but_textures
from shaderad.device.lines import user_span
from shaderad.diagnostics import error, text_of
from shaderad.ir.arrays import ArrayType, Graph, KernelCall, Value
from shaderad.runtime.textures import SamplerSettings
from shaderad.trace.elements import as_array
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
        """`tree` with an array of this body for each leaf that can be one."""

        def lift(leaf: Any) -> Any:
            return leaf if is_constant(leaf) else as_array(leaf)

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


def is_constant(leaf: Any) -> bool:
    """True for leaves that are no arrays, such as samplers: functions get and give them as is."""
    return leaf is None or isinstance(leaf, str | SamplerSettings)


def array_leaves(tree: Any) -> list[Any]:
    """The leaves of a tree that are arrays, or stand for one."""
    return [leaf for leaf in trees.leaves(tree) if not is_constant(leaf)]


def arrays_in(tree: Any) -> list[TracedArray]:
    """The leaves of a tree as arrays of the trace, without constants."""
    return list(map(as_array, array_leaves(tree)))


def refuse_textures(tree: Any, what: str) -> None:
    """Raises SR0402 if `tree` holds a texture: no array operation can read or make its texels."""
    if any(isinstance(leaf, Texture) for leaf in trees.flatten(tree, kind_but_textures)[0]):
        raise error("SR0402", user_span(), what=what)


def rebuilt(tree: Any, arrays: Iterable[Any]) -> Any:
    """`tree` with other arrays, in order, and the same constants."""
    remaining = iter(arrays)
    leaves, structure = trees.flatten(tree)
    return structure.unflatten([leaf if is_constant(leaf) else next(remaining) for leaf in leaves])


def matched(tree: Any, other: Any, what: str) -> list[Any]:
    """The array leaves of `other`, which must be built like `tree` and hold the same constants.

    Raises:
        LanguageError: SR0333 if it is not.
    """
    own, structure = trees.flatten(tree)
    leaves = trees.matched(structure, other, what)
    for constant, leaf in zip(own, leaves, strict=True):
        if not is_constant(constant):
            if is_constant(leaf) or isinstance(leaf, tuple | dict):
                raise trees.unmatched(structure, leaf, what)
        elif not is_constant(leaf) or leaf != constant:
            raise error("SR0333", user_span(), what=what, found=_shown(leaf),
                        wanted=_shown(constant))  # fmt: skip
    return [leaf for leaf in leaves if not is_constant(leaf)]


def _shown(leaf: Any) -> str:
    return text_of(leaf) if is_constant(leaf) else trees.described(leaf)
