"""One kernel call as data, and its three modes: primal, backward, forward.

A `Launch` holds everything that all modes share: inputs, uniforms, dim, results. Invariant: a
mode reads what the launch holds and makes new arrays; only accumulating gradients are written
in place, because the caller asked for it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import prod
from types import MappingProxyType
from typing import TYPE_CHECKING, cast

from shaderad.arrays.arrays import Array, Shape, zeros
from shaderad.device.devices import Device
from shaderad.device.stages import Choice
from shaderad.diagnostics import CompileError
from shaderad.execute.kept_schedules import LaunchForm, LaunchSchedules
from shaderad.execute.planned_kernels import used
from shaderad.execute.schedule import launch_sizes
from shaderad.ir.types import Access
from shaderad.lower.bindings import Mode, Role

if TYPE_CHECKING:
    from shaderad.device.stages import KernelFacts
    from shaderad.execute.pools import LaunchPools
    from shaderad.execute.schedule import Key
    from shaderad.ir import nodes
    from shaderad.ir.sizes import Size


_TOO_MANY_BUFFERS = "SR0417"
_NO_SUMS: Mapping[Key, Array] = MappingProxyType({})


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
    """Shapes of all arrays, as the kernel sees them."""
    launch_shaped: frozenset[str]
    device_uniforms: frozenset[str]
    pools: LaunchPools | None = None
    """The targets of its pointers."""
    is_joined: bool = False
    """True if its gradients may compute its results on the way."""
    expected: frozenset[str] = frozenset()
    """Inputs and uniforms of the gradients that `backward` is probably asked for."""
    has_run: bool = False

    @property
    def is_needed(self) -> bool:
        """True if the primal runs even if nothing reads its results."""
        return bool(self.checks) or self.facts.has_prints or not self.outputs

    def run(self) -> None:
        """Dispatches the primal and fills in the results."""
        if self.has_run:
            return
        self.has_run = True
        stages = self.device.stages
        can_foresee = self.expected and not self.facts.is_prebuilt
        if can_foresee and not stages.has(self.kernel, Mode.BACKWARD):
            stages.foresee(self.kernel, self._choice(Mode.BACKWARD, self.expected))
        self._fill_in(self._dispatch(Mode.PRIMAL, {}))

    def backward(
        self,
        wanted: frozenset[str],
        cotangents: Mapping[str, Array],
        into: Mapping[str, Array] | None = None,
    ) -> dict[str, Array]:
        """Gradients of the inputs and uniforms named in `wanted`.

        Args:
            wanted: Names of differentiable buffers and uniforms.
            cotangents: By result name; a missing one is zero.
            into: Arrays to which the gradients are added in place, by name; all of `wanted`.

        Returns:
            One array a name.
        """
        given = {(Role.COTANGENT, name): one for name, one in cotangents.items()}
        sums = {(Role.GRADIENT, name): one for name, one in (into or {}).items()}
        computed = self._with_results(given, wanted, sums)
        if computed is None:
            computed = self._dispatch(Mode.BACKWARD, given, wanted, sums)
        return {name: (computed | sums)[Role.GRADIENT, name] for name in sorted(wanted)}

    def _with_results(
        self, given: Mapping[Key, Array], wanted: frozenset[str], sums: Mapping[Key, Array]
    ) -> dict[Key, Array] | None:
        """The results and the gradients by one dispatch; `None` where that cannot be."""
        if not self.is_joined or self.has_run:
            return None
        if not self.facts.are_results_local(self.kernel, self.launch_shaped):
            return None
        try:
            computed = self._dispatch(Mode.BACKWARD, given, wanted, sums, with_results=True)
        except CompileError as failure:
            if failure.code != _TOO_MANY_BUFFERS:
                raise
            return None
        self.has_run = True
        self._fill_in(computed)
        return computed

    def forward(self, tangents: Mapping[str, Array]) -> dict[str, Array]:
        """Tangents of the float results, by name, for tangents of inputs and uniforms."""
        given = {(Role.TANGENT, name): one for name, one in tangents.items()}
        computed = self._dispatch(Mode.FORWARD, given, frozenset(tangents))
        return {name: one for (_, name), one in computed.items()}

    def is_apart(self, array: Array) -> bool:
        """True if no input or result lies in the buffer of `array`."""
        arrays = (*self.inputs.values(), *self.uniforms.values(), *self.outputs.values())
        known = (one for one in arrays if isinstance(one, Array) and not one.is_pending)
        return all(one.buffer is not array.buffer for one in known)

    def shape_of(self, name: str) -> Shape:
        """Shape of an input; ``()`` for a uniform."""
        return self.inputs[name].shape if name in self.inputs else ()

    def _natural(self) -> frozenset[Size]:
        """The conditions on indices that its extents and uniforms prove."""
        if self.bounds == "unchecked":
            return frozenset()
        return self.facts.ranges(self.kernel).natural(self.dim, self.shapes, self.uniforms)

    def _fill_in(self, computed: Mapping[Key, Array]) -> None:
        for name, result in self.outputs.items():
            content = computed[Role.OUTPUT, name]
            result.fill_in(content.buffer, content.offset)

    def _dispatch(
        self,
        mode: Mode,
        given: Mapping[Key, Array],
        wanted: frozenset[str] = frozenset(),
        sums: Mapping[Key, Array] = _NO_SUMS,
        *,
        with_results: bool = False,
    ) -> dict[Key, Array]:
        """Runs one mode; what it computes, by role and name."""
        choice = self._choice(mode, wanted, accumulate=bool(sums), with_results=with_results)
        form = LaunchForm(choice, frozenset(name for _, name in given),
                          frozenset(name for _, name in sums))  # fmt: skip
        with used(self.kernel):
            launch = self.device.kept(LaunchSchedules).of(self.kernel, self.facts, form)
            derivatives = {**given, **sums} if sums else given
            inputs = [self._array(key, derivatives).aligned() for key in launch.plan.inputs]
            key = (self.dim, *self.shapes.values())
            prepared = launch.scheduled.prepared(inputs, key, self._sizes)
            # Arrays among the uniforms are inputs; no word asks for them.
            results = prepared.run(inputs, cast("Mapping[str, bytes]", self.uniforms))
        return dict(zip(launch.plan.outputs, results, strict=True))

    def _sizes(self) -> dict[str, int]:
        return launch_sizes(self.dim, self.shapes)

    def _array(self, key: Key, derivatives: Mapping[Key, Array]) -> Array:
        """The array that serves a role."""
        role, name = key
        if role is Role.INPUT:
            return self.inputs[name]
        if role is Role.RESULT:
            return self.outputs[name]
        if role is not Role.UNIFORM:
            given = derivatives.get(key)
            return self._zeros(name) if given is None else given
        array = self.uniforms[name]
        assert isinstance(array, Array)
        return array

    def _zeros(self, name: str) -> Array:
        """The derivative that was not given to the plan of a build, which takes all of them."""
        return zeros(self.device, self.facts.element_types[name], self.shapes.get(name, ()))

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
        pools: The targets of its pointers.
        checks: What else is looked for: ``nan``, ``writes`` or nothing.
        shown: The shape that results show, where it is not the kernel's.
    """
    facts = device.stages.facts(kernel)
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
        result = Array(device, buffer.type.element, shape, None, pending=launch.run)
        launch.outputs[buffer.name] = result
    return launch
