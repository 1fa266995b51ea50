"""One kernel call as data, and its three modes: primal, backward, forward.

A `Launch` holds everything that all modes share: inputs, uniforms, dim, results. Invariant: a
mode reads what the launch holds and makes new arrays; only accumulating gradients are written
in place, because the caller asked for it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import prod
from typing import TYPE_CHECKING

from shaderad.arrays.arrays import Array, Shape
from shaderad.device.devices import Choice, Device
from shaderad.device.prebuilt import used
from shaderad.diagnostics import CompileError
from shaderad.execute.dispatch import Placement, copied, run
from shaderad.ir.types import Access
from shaderad.lower.bindings import Mode, Role
from shaderad.runtime.interrupts import held_back

if TYPE_CHECKING:
    from shaderad.device.kernel_facts import KernelFacts
    from shaderad.execute.pools import LaunchPools
    from shaderad.ir import nodes
    from shaderad.ir.sizes import Size


_TOO_MANY_BUFFERS = "SR0417"


@dataclass(eq=False, slots=True)
class Launch:
    """A kernel with its arguments. `run` makes the results, once."""

    device: Device
    kernel: nodes.Kernel
    facts: KernelFacts
    dim: Shape
    bounds: str
    checks: str
    inputs: dict[str, Array]
    """By buffer name, already of the element type the kernel reads."""
    uniforms: dict[str, bytes | Array]
    """By uniform name: constant-buffer words, or a 0-d device array."""
    outputs: dict[str, Array]
    """By buffer name, in parameter order; pending until `run`."""
    sources: dict[str, Array]
    """The arrays as the caller passed them, by name of buffer or uniform; for traces."""
    shapes: dict[str, Shape]
    """Of every array, as the kernel sees it."""
    launch_shaped: frozenset[str]
    device_uniforms: frozenset[str]
    pools: LaunchPools | None = None
    """Where its pointers lead."""
    is_joined: bool = False
    """Whether its gradients may compute its results on the way."""
    expected: frozenset[str] = frozenset()
    """By what `backward` will probably be asked for gradients."""
    has_run: bool = False

    @property
    def is_needed(self) -> bool:
        """Whether the primal runs even if nothing reads its results."""
        return bool(self.checks) or self.facts.has_prints or not self.outputs

    def run(self) -> None:
        """Dispatches the primal and fills in the results."""
        if self.has_run:
            return
        self.has_run = True
        if self.expected and not self.device.has_stages(self.kernel, Mode.BACKWARD):
            self.device.foresee(self.kernel, self._choice(Mode.BACKWARD, self.expected))
        placed = Placement(self.device, self.shapes, self.facts.element_types, self.dim)
        self._give_arguments(placed)
        self._dispatch(Mode.PRIMAL, placed, frozenset())
        self._fill_in(placed)

    def backward(
        self,
        wanted: frozenset[str],
        cotangents: Mapping[str, Array | None],
        into: Mapping[str, Array] | None = None,
    ) -> dict[str, Array]:
        """Gradients of the inputs and uniforms named in `wanted`.

        Args:
            wanted: Names of differentiable buffers and uniforms.
            cotangents: By result name; a missing one or `None` is zero.
            into: Arrays to which the gradients are added in place, by name; all of `wanted`.

        Returns:
            One array a name, in the element type the dispatch sums in (half in float).
        """
        placed = Placement(self.device, self.shapes, self.facts.element_types, self.dim)
        self._give_arguments(placed)
        for name, cotangent in cotangents.items():
            if cotangent is not None:
                placed.give(Role.COTANGENT, name, cotangent)
        for name, gradient in (into or {}).items():
            placed.accumulate_in(name, gradient)
        if not self._ran_with_gradients(placed, wanted, accumulate=into is not None):
            self._dispatch(Mode.BACKWARD, placed, wanted, accumulate=into is not None)
        gradients = {name: placed.found(Role.GRADIENT, name) for name in sorted(wanted)}
        for name, target in (into or {}).items():
            copied(gradients[name], target)
        return gradients

    def _ran_with_gradients(
        self, placed: Placement, wanted: frozenset[str], *, accumulate: bool
    ) -> bool:
        """Whether one dispatch computed the results and the gradients."""
        if not self.is_joined or self.has_run:
            return False
        if not self.facts.are_results_local(self.kernel, self.launch_shaped):
            return False
        try:
            self._dispatch(Mode.BACKWARD, placed, wanted, accumulate=accumulate, with_results=True)
        except CompileError as failure:
            if failure.code != _TOO_MANY_BUFFERS:
                raise
            return False
        self.has_run = True
        self._fill_in(placed)
        return True

    def forward(self, tangents: Mapping[str, Array]) -> dict[str, Array]:
        """Tangents of the float results, by name, for tangents of inputs and uniforms."""
        placed = Placement(self.device, self.shapes, self.facts.element_types, self.dim)
        self._give_arguments(placed)
        for name, tangent in tangents.items():
            placed.give(Role.TANGENT, name, tangent)
        self._dispatch(Mode.FORWARD, placed, frozenset(tangents))
        return {
            name: placed.found(Role.OUTPUT_TANGENT, name)
            for name in self.outputs
            if name in self.facts.differentiable_results
        }

    def shape_of(self, name: str) -> Shape:
        """Shape of an input; ``()`` for a uniform."""
        return self.inputs[name].shape if name in self.inputs else ()

    def _natural(self) -> frozenset[Size]:
        """What its extents and uniforms say of the indices that are in range."""
        if self.bounds == "unchecked":
            return frozenset()
        return self.facts.ranges(self.kernel).natural(self.dim, self.shapes, self.uniforms)

    def _give_arguments(self, placed: Placement) -> None:
        for name, given in self.inputs.items():
            placed.give(Role.INPUT, name, given)
        for name in self.device_uniforms:
            given = self.uniforms[name]
            if isinstance(given, Array):
                placed.give(Role.UNIFORM, name, given)
        placed.give_results(self.outputs)

    def _fill_in(self, placed: Placement) -> None:
        for name, result in self.outputs.items():
            found = placed.found(Role.OUTPUT, name)
            result.fill_in(found.buffer, found.offset)

    def _dispatch(
        self,
        mode: Mode,
        placed: Placement,
        wanted: frozenset[str],
        *,
        accumulate: bool = False,
        with_results: bool = False,
    ) -> None:
        choice = self._choice(mode, wanted, accumulate=accumulate, with_results=with_results)
        with used(self.kernel):
            stages = self.device.stages(self.kernel, choice)
            with held_back():
                for stage in stages:
                    run(stage, placed, self.uniforms)

    def _choice(
        self,
        mode: Mode,
        wanted: frozenset[str],
        *,
        accumulate: bool = False,
        with_results: bool = False,
    ) -> Choice:
        return Choice(
            mode=mode,
            bounds=self.bounds,
            checks=self.checks,
            launch_shaped=self.launch_shaped,
            device_uniforms=self.device_uniforms,
            wanted=wanted,
            accumulate=accumulate,
            natural=self._natural(),
            with_results=with_results,
            is_one_thread=mode is not Mode.PRIMAL and prod(self.dim) <= 1,
        )


def new_launch(
    kernel: nodes.Kernel,
    device: Device,
    dim: Shape,
    inputs: dict[str, Array],
    uniforms: dict[str, bytes | Array],
    shapes: Mapping[str, Shape],
    *,
    sources: dict[str, Array],
    bounds: str = "raise",
    pools: LaunchPools | None = None,
    checks: str = "",
    shown: Shape | None = None,
) -> Launch:
    """A launch with pending results.

    Args:
        kernel: What to run.
        device: Where.
        dim: Extents of the launch, one an Index.
        inputs: By buffer name.
        uniforms: By uniform name.
        shapes: Of the results, as the kernel sees them.
        sources: The arrays as the caller has them, by name of buffer or uniform.
        bounds: What an index out of range does.
        pools: Where its pointers lead.
        checks: What else is looked for: ``nan``, ``writes`` or nothing.
        shown: The shape that results show, where it is not the kernel's.
    """
    facts = device.facts(kernel)
    results = facts.written
    launch = Launch(
        device=device,
        kernel=kernel,
        facts=facts,
        dim=dim,
        bounds=bounds,
        checks=checks,
        inputs=inputs,
        uniforms=uniforms,
        outputs={},
        sources=sources,
        shapes={name: a.shape for name, a in inputs.items()} | dict(shapes),
        launch_shaped=frozenset(
            b.name for b in results if b.access is Access.OUT and shapes[b.name] == dim
        ),
        device_uniforms=frozenset(n for n, u in uniforms.items() if isinstance(u, Array)),
        pools=pools,
    )
    for buffer in results:
        shape = shapes[buffer.name] if shown is None else shown
        result = Array(device, buffer.type.element, shape, None, pending=launch)
        launch.outputs[buffer.name] = result
    return launch
