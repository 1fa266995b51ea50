"""A kernel call as a graph of one node, shared by all calls that are alike."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeVar

from shaderad.device.stages import WeakKeys
from shaderad.execute.kept_schedules import PREPARED_LIMIT
from shaderad.execute.schedule import launch_shapes, launch_sizes
from shaderad.ir.arrays import ArrayType, Graph, KernelCall, Value
from shaderad.ir.types import Access

if TYPE_CHECKING:
    from shaderad.arrays.arrays import Shape
    from shaderad.device.devices import Device
    from shaderad.device.stages import KernelFacts
    from shaderad.ir import nodes
    from shaderad.language.signatures import Launchable


T = TypeVar("T")


@dataclass(frozen=True, slots=True, eq=False)
class CallForm:
    """All of a call but its arrays and numbers."""

    facts: KernelFacts
    graph: Graph
    """Its inputs are the arrays that the kernel reads, then its uniforms."""
    node: KernelCall
    """The only node of the graph."""
    size_by_name: Mapping[str, int]


class CallForms:
    """The forms of the calls of one function on one device."""

    def __init__(self) -> None:
        self._forms: dict[Hashable, CallForm] = {}
        self._graphs: dict[Hashable, Graph] = {}

    def of(self, key: Hashable, new: Callable[[CallForms], CallForm]) -> CallForm:
        """The form of the calls that have `key` in common, at first that of `new`."""
        form = self._forms.get(key)
        if form is None:
            form = kept(self._forms, key, new(self))
        return form

    def form(
        self,
        kernel: nodes.Kernel,
        facts: KernelFacts,
        dim: Shape,
        shapes: Mapping[str, Shape],
        bounds: str,
        checks: str,
    ) -> CallForm:
        """The form of a call.

        Args:
            kernel: What runs.
            facts: Of `kernel`.
            dim: Extents of the launch, one for each Index.
            shapes: Of all arrays, as the kernel sees them.
            bounds: What an index out of range does.
            checks: What else is looked for: ``nan``, ``writes`` or nothing.
        """
        launch_shaped = frozenset(
            b.name for b in facts.written if b.access is Access.OUT and shapes[b.name] == dim
        )
        key = (kernel, launch_shaped, bounds, checks)
        graph = self._graphs.get(key)
        if graph is None:
            graph = kept(
                self._graphs, key, call_graph(kernel, facts, launch_shaped, bounds, checks)
            )
        (node,) = graph.nodes
        assert isinstance(node, KernelCall)
        return CallForm(facts, graph, node, launch_sizes(dim, shapes))


def kept(known: dict[Hashable, T], key: Hashable, value: T) -> T:
    """Keeps `value`, and forgets what was kept first if there is too much."""
    if len(known) >= PREPARED_LIMIT:
        known.pop(next(iter(known)), None)
    known[key] = value
    return value


class FormsOfFunctions:
    """The forms of calls on one device, for as long as their functions live."""

    def __init__(self, device: Device) -> None:
        del device
        self._by_function: WeakKeys[Launchable, CallForms] = WeakKeys()

    def of(self, function: Launchable) -> CallForms:
        forms = self._by_function.get(function)
        return forms or self._by_function.setdefault(function, CallForms())


def call_graph(
    kernel: nodes.Kernel,
    facts: KernelFacts,
    launch_shaped: frozenset[str],
    bounds: str,
    checks: str,
) -> Graph:
    """The graph of one call, for all sizes; the arrays `launch_shaped` have those of the launch."""
    dim, shapes = launch_shapes(kernel, launch_shaped)
    names = (*(b.name for b in facts.read), *(u.name for u in facts.uniforms))
    operands = tuple(
        Value(ArrayType(facts.element_types[name], shapes.get(name, ()))) for name in names
    )
    node = KernelCall(
        operands=operands,
        kernel=kernel,
        dim=dim,
        names=names,
        written=tuple((b.name, ArrayType(b.type.element, shapes[b.name])) for b in facts.written),
        bounds=bounds,
        checks=checks,
        span=kernel.span,
    )
    return Graph(operands, node.results)
