"""A kernel at its arguments: differentiated by its own launch."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from shaderad.arrays.arrays import Array
from shaderad.diagnostics import error
from shaderad.differentiate.gradients import gradient_form
from shaderad.differentiate.results import accumulated, check_sum, cotangents_of, tangents_of
from shaderad.differentiate.tangents import Tangents
from shaderad.execute.call import bound_call, launch_of, results_of
from shaderad.ir import types
from shaderad.ir.pointers import reaches_floats
from shaderad.language.launchable import Launchable
from shaderad.trace.tape import When, start, trace_of

if TYPE_CHECKING:
    from shaderad.execute.launch import Launch
    from shaderad.ir.nodes import Kernel


@dataclass(eq=False)
class KernelAt:
    """A kernel at its arguments."""

    launch: Launch
    out: Any
    arguments: list[tuple[str, types.Type, Any]]
    """Name, type and given value of each positional argument."""

    @property
    def kernels(self) -> list[Kernel]:
        return [self.launch.kernel]

    def is_differentiable(self, position: int) -> bool:
        name, _, _ = self.arguments[position]
        return bool(self.launch.facts.names_under((name,)))

    def pull(self, out_bar: Any, positions: Sequence[int], into: Sequence[Any] | None) -> list[Any]:
        launch = self.launch
        cotangents = cotangents_of(self.out, out_bar)
        pairs = zip(launch.outputs, cotangents, strict=True)
        given = {name: bar for name, bar in pairs if bar is not None}
        wanted = self._names(positions)
        sums = self._in_place(positions, into) if into is not None else None
        is_in_place = sums is not None and frozenset(sums) == wanted and _are_apart(sums, given)
        gradients = launch.backward(wanted, given, sums if is_in_place else None) if wanted else {}
        found = [self._form(position, gradients) for position in positions]
        if into is None:
            return found
        return list(into) if is_in_place else accumulated(found, into)

    def push(self, tangents: Sequence[Any]) -> Any:
        launch = self.launch
        given = self._tangents(tangents)
        found = launch.forward(given) if given else {}
        return tangents_of(self.out, [found.get(name) for name in launch.outputs])

    def _names(self, positions: Sequence[int]) -> frozenset[str]:
        """The differentiable arrays and uniforms of the arguments at `positions`."""
        facts = self.launch.facts
        return frozenset(n for k in positions for n in facts.names_under((self.arguments[k][0],)))

    def _tangents(self, tangents: Sequence[Any]) -> dict[str, Array]:
        collected = Tangents(self.launch)
        for (name, t, value), tangent in zip(self.arguments, tangents, strict=True):
            collected.add(t, (name,), value, tangent)
        return collected.arrays()

    def _form(self, position: int, gradients: Mapping[str, Array]) -> Any:
        name, t, value = self.arguments[position]
        if not self.is_differentiable(position):
            return None
        return gradient_form(value, t, (name,), self.launch, gradients)

    def _in_place(self, positions: Sequence[int], into: Sequence[Any]) -> dict[str, Array]:
        """Sums that the dispatch itself can add to: arrays of 32-bit floats, by name."""
        found: dict[str, Array] = {}
        if self.launch.facts.is_prebuilt:
            return found
        paths = self.launch.facts.name_by_path
        for position, total in zip(positions, into, strict=True):
            name, t, _ = self.arguments[position]
            element = t.element if isinstance(t, types.BufferType) else t
            is_float = {s.kind for s in types.scalars(element)} == {types.Kind.FLOAT}
            if isinstance(total, Array) and is_float and (name,) in paths:
                shape = self.launch.shape_of(paths[name,])
                check_sum(total, element, shape, self.launch.device)
                if total.offset == 0 and self.launch.is_apart(total):
                    found[paths[name,]] = total.viewed(element, shape)
        return found


def _are_apart(sums: Mapping[str, Array], cotangents: Mapping[str, Array]) -> bool:
    """True if no two of them lie in one buffer."""
    buffers = [id(x.buffer) for x in sums.values()]
    bars = {id(x.buffer) for x in cotangents.values()}
    return len(set(buffers)) == len(buffers) and bars.isdisjoint(buffers)


def kernel_at(
    function: Launchable, args: Sequence[Any], keywords: Mapping[str, Any], *, when: When
) -> KernelAt:
    call = bound_call(function, args, keywords)
    type_by_name = {p.name: p.type for p in function.signature.parameters if not p.is_const}
    for name in call.given:
        t = type_by_name.get(name)
        if name not in call.positional and t is not None and reaches_floats(t):
            raise error("SR0453", name=name)
    launch = launch_of(call)
    if trace_of(launch.sources.values()) is not None:
        raise error("SR0451")
    start(launch, when, launch.facts.differentiable)
    arguments = [
        # A constant has no derivative, whatever its type.
        (name, type_by_name.get(name, types.VOID), call.given[name])
        for name in call.positional
    ]
    return KernelAt(launch, results_of(launch), arguments)
