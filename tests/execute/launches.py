"""Kernel calls whose arguments and shapes are given one by one."""

from __future__ import annotations

from collections.abc import Mapping

from shaderad.arrays.arrays import Array, zeros
from shaderad.arrays.numbers import HostNumber
from shaderad.arrays.tape import When
from shaderad.calls.run_graph import GraphStep
from shaderad.device.devices import Device
from shaderad.device.stages import KernelFacts
from shaderad.execute.kernel_forms import CallForms
from shaderad.ir import nodes, types

Shape = tuple[int, ...]


class Launch:
    """A kernel call whose results wait. Inputs that are left out are empty, numbers 0."""

    def __init__(
        self,
        kernel: nodes.Kernel,
        device: Device,
        dim: Shape,
        inputs: Mapping[str, Array],
        shapes: Mapping[str, Shape],
        numbers: Mapping[str, bytes] | None = None,
    ) -> None:
        facts = KernelFacts(kernel)
        arrays = {b.name: inputs.get(b.name) for b in facts.read}
        operands = [
            zeros(device, facts.element_types[name], (0,)) if x is None else x
            for name, x in arrays.items()
        ]
        all_shapes = {**dict(zip(arrays, (x.shape for x in operands), strict=True)), **shapes}
        form = CallForms().form(kernel, facts, dim, all_shapes, "raise", "")
        for u in facts.uniforms:
            words = (numbers or {}).get(u.name, bytes(types.byte_count(u.type)))
            operands.append(HostNumber(device, u.type, words))
        self.names = form.node.names
        self.run_of_graph = GraphStep(
            form.graph, operands, form.size_by_name, device, When.IF_NEEDED
        )
        self.run_of_graph.start()
        results = self.run_of_graph.results
        self.outputs = dict(zip((b.name for b in facts.written), results, strict=True))

    def run(self) -> None:
        self.run_of_graph.run()

    def backward(
        self,
        wanted: frozenset[str],
        cotangents: Mapping[str, Array],
        into: Mapping[str, Array] | None = None,
    ) -> dict[str, Array]:
        """The gradients by name; they are added to the arrays of `into`."""
        flags = tuple(name in wanted for name in self.names)
        order = [name for name in self.names if name in wanted]
        totals = [into[name] for name in order] if into else []
        bars = [cotangents.get(name) for name in self.outputs]
        return dict(zip(order, self.run_of_graph.gradients(flags, bars, totals), strict=True))
