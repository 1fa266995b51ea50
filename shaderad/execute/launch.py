"""One kernel call as data, and its three modes: primal, backward, forward.

A `Launch` holds everything that all modes share: inputs, uniforms, dim, results. Invariant: a
mode reads what the launch holds and makes new arrays; only accumulating gradients are written
in place, because the caller asked for it.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping
from dataclasses import dataclass, field, replace
from math import prod
from types import MappingProxyType
from typing import TYPE_CHECKING, cast

from shaderad.arrays.arrays import Array, Shape, zeros
from shaderad.device.devices import Device
from shaderad.device.stages import Choice, WeakKeys
from shaderad.diagnostics import CompileError
from shaderad.execute.kept_schedules import (
    PREPARED_LIMIT,
    LaunchForm,
    LaunchSchedules,
    ScheduledLaunch,
)
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

Computed = list[tuple["Key", Array]]
"""The arrays that a mode computes, by role and name."""


@dataclass(eq=False, slots=True)
class Setting:
    """All of a launch but its arrays and numbers; launches that are alike share it.

    It holds no reference to the kernel, whose settings a device forgets together with it.
    """

    device: Device
    facts: KernelFacts
    dim: Shape
    bounds: str
    checks: str
    shapes: dict[str, Shape]
    """Shapes of all arrays, as the kernel sees them."""
    launch_shaped: frozenset[str]
    device_uniforms: frozenset[str]
    natural: frozenset[Size] | None
    """The conditions on indices that extents prove; `None` where numbers decide, too."""
    sizes_key: tuple[Shape, ...]
    """Extents and shapes, by which what runs a schedule is found."""
    scheduled: dict[Hashable, ScheduledLaunch] = field(
        default_factory=dict[Hashable, ScheduledLaunch]
    )
    """The schedules of the modes, for what is given to them."""
    is_foreseen: bool = False
    """True if the compiler knows of gradients that are probably asked for."""

    def launch(
        self,
        kernel: nodes.Kernel,
        inputs: dict[str, Array],
        uniforms: dict[str, bytes | Array],
        sources: dict[str, Array],
        pools: LaunchPools | None = None,
    ) -> Launch:
        """A launch with pending results."""
        launch = Launch(self, kernel, inputs, uniforms, {}, sources, pools)
        for buffer in self.facts.written:
            name = buffer.name
            launch.outputs[name] = Array(
                self.device, buffer.type.element, self.shapes[name], None, pending=launch.run
            )
        return launch


class Settings:
    """The settings of launches on one device, for as long as their kernels live."""

    def __init__(self, device: Device) -> None:
        del device
        self._known: WeakKeys[nodes.Kernel, dict[Hashable, Setting]] = WeakKeys()

    def of(self, kernel: nodes.Kernel, key: Hashable, new: Callable[[], Setting]) -> Setting:
        """The setting of launches of `kernel` that have `key` in common, at first `new()`."""
        known = self._known.get(kernel)
        if known is None:
            known = self._known.setdefault(kernel, {})
        setting = known.get(key)
        if setting is None:
            if len(known) >= PREPARED_LIMIT:
                known.pop(next(iter(known)), None)
            setting = known[key] = new()
        return setting


@dataclass(eq=False, slots=True)
class Launch:
    """A kernel with its arguments. `run` makes the results, once."""

    setting: Setting
    kernel: nodes.Kernel
    inputs: dict[str, Array]
    """By buffer name, already of the element type the kernel reads."""
    uniforms: dict[str, bytes | Array]
    """By uniform name: constant-buffer words, or a 0-d device array."""
    outputs: dict[str, Array]
    """By buffer name, in parameter order; pending until `run`."""
    sources: dict[str, Array]
    """The arrays as the caller passed them, by name of buffer or uniform; for traces."""
    pools: LaunchPools | None = None
    """The targets of its pointers."""
    is_joined: bool = False
    """True if its gradients may compute its results on the way."""
    expected: frozenset[str] = frozenset()
    """Inputs and uniforms of the gradients that `backward` is probably asked for."""
    has_run: bool = False

    @property
    def device(self) -> Device:
        return self.setting.device

    @property
    def facts(self) -> KernelFacts:
        return self.setting.facts

    @property
    def is_needed(self) -> bool:
        """True if the primal runs even if nothing reads its results."""
        return bool(self.setting.checks) or self.facts.has_prints or not self.outputs

    def run(self) -> None:
        """Dispatches the primal and fills in the results."""
        if self.has_run:
            return
        self.has_run = True
        setting = self.setting
        if self.expected and not setting.is_foreseen:
            setting.is_foreseen = True
            stages = setting.device.stages
            if not (setting.facts.is_prebuilt or stages.has(self.kernel, Mode.BACKWARD)):
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
        sums = {(Role.GRADIENT, name): one for name, one in into.items()} if into else _NO_SUMS
        computed = None
        if self.is_joined and not self.has_run:
            computed = self._with_results(given, wanted, sums)
        if computed is None:
            computed = self._dispatch(Mode.BACKWARD, given, wanted, sums)
        gradients = {name: one for (role, name), one in computed
                     if role is Role.GRADIENT and name in wanted}  # fmt: skip
        return {**gradients, **into} if into else gradients

    def _with_results(
        self, given: Mapping[Key, Array], wanted: frozenset[str], sums: Mapping[Key, Array]
    ) -> Computed | None:
        """The results and the gradients by one dispatch; `None` where that cannot be."""
        if not self.facts.are_results_local(self.kernel, self.setting.launch_shaped):
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

    def prepare(self, mode: Mode, wanted: frozenset[str]) -> None:
        """Lowers and compiles a mode that a dispatch will ask for."""
        if not self.facts.is_prebuilt:
            for stage in self.device.stages.of(self.kernel, self._choice(mode, wanted)):
                stage.wait()

    def forward(self, tangents: Mapping[str, Array]) -> dict[str, Array]:
        """Tangents of the float results, by name, for tangents of inputs and uniforms."""
        given = {(Role.TANGENT, name): one for name, one in tangents.items()}
        computed = self._dispatch(Mode.FORWARD, given, frozenset(tangents))
        return {name: one for (_, name), one in computed}

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
        setting = self.setting
        if setting.natural is not None:
            return setting.natural
        ranges = setting.facts.ranges(self.kernel)
        return ranges.natural(setting.dim, setting.shapes, self.uniforms)

    def _fill_in(self, computed: Computed) -> None:
        for (role, name), content in computed:
            if role is Role.OUTPUT:
                self.outputs[name].fill_in(*content.aligned())

    def _dispatch(
        self,
        mode: Mode,
        given: Mapping[Key, Array],
        wanted: frozenset[str] = frozenset(),
        sums: Mapping[Key, Array] = _NO_SUMS,
        *,
        with_results: bool = False,
    ) -> Computed:
        """Runs one mode."""
        with used(self.kernel):
            launch = self._scheduled(
                mode, tuple(given), wanted, tuple(sums), with_results=with_results
            )
            derivatives = {**given, **sums} if sums else given
            places = [self._array(key, derivatives).aligned() for key in launch.plan.inputs]
            prepared = launch.scheduled.prepared(places, self.setting.sizes_key, self._sizes)
            # Arrays among the uniforms are inputs; no word asks for them.
            results = prepared.run(places, cast("Mapping[str, bytes]", self.uniforms))
        return [*zip(launch.plan.outputs, results, strict=True)]

    def _scheduled(
        self,
        mode: Mode,
        given: tuple[Key, ...],
        wanted: frozenset[str],
        sums: tuple[Key, ...],
        *,
        with_results: bool,
    ) -> ScheduledLaunch:
        """The schedule of one mode, lowered and compiled at its first use."""
        natural = self._natural()
        key = (mode, given, wanted, sums, with_results, natural)
        launch = self.setting.scheduled.get(key)
        if launch is None:
            names = frozenset(name for _, name in given)
            choice = self._choice(mode, wanted, accumulate=bool(sums), with_results=with_results)
            if mode is Mode.BACKWARD and not self.facts.is_prebuilt:
                choice = replace(choice, absent=self.facts.differentiable_results - names)
            form = LaunchForm(choice, names, frozenset(name for _, name in sums))
            launch = self.device.kept(LaunchSchedules).of(self.kernel, self.facts, form)
            self.setting.scheduled[key] = launch
        return launch

    def _sizes(self) -> dict[str, int]:
        return launch_sizes(self.setting.dim, self.setting.shapes)

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
        return zeros(self.device, self.facts.element_types[name], self.setting.shapes.get(name, ()))

    def _choice(
        self,
        mode: Mode,
        wanted: frozenset[str],
        *,
        accumulate: bool = False,
        with_results: bool = False,
    ) -> Choice:
        setting = self.setting
        return Choice(
            mode=mode,
            bounds=setting.bounds,
            checks=setting.checks,
            launch_shaped=setting.launch_shaped,
            device_uniforms=setting.device_uniforms,
            wanted=wanted,
            accumulate=accumulate,
            natural=self._natural(),
            with_results=with_results,
            is_one_thread=mode is not Mode.PRIMAL and prod(setting.dim) <= 1,
        )


def new_setting(
    kernel: nodes.Kernel,
    device: Device,
    dim: Shape,
    inputs: Mapping[str, Array],
    uniforms: Mapping[str, bytes | Array],
    shapes: Mapping[str, Shape],
    *,
    bounds: str = "raise",
    checks: str = "",
) -> Setting:
    """The setting of a launch.

    Args:
        kernel: What to run.
        device: Where.
        dim: Extents of the launch, one an Index.
        inputs: By buffer name.
        uniforms: By uniform name.
        shapes: Of the results, as the kernel sees them.
        bounds: What an index out of range does.
        checks: What else is looked for: ``nan``, ``writes`` or nothing.
    """
    facts = device.stages.facts(kernel)
    all_shapes = {name: a.shape for name, a in inputs.items()} | dict(shapes)
    return Setting(
        device=device,
        facts=facts,
        dim=dim,
        bounds=bounds,
        checks=checks,
        shapes=all_shapes,
        launch_shaped=frozenset(
            b.name for b in facts.written if b.access is Access.OUT and shapes[b.name] == dim
        ),
        device_uniforms=frozenset(n for n, u in uniforms.items() if isinstance(u, Array)),
        natural=_natural_of_extents(kernel, facts, dim, all_shapes, bounds),
        sizes_key=(dim, *all_shapes.values()),
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
    checks: str = "",
) -> Launch:
    """A launch in a setting of its own; `sources` are the arrays as the caller has them."""
    setting = new_setting(
        kernel, device, dim, inputs, uniforms, shapes, bounds=bounds, checks=checks
    )
    return setting.launch(kernel, inputs, uniforms, sources)


def _natural_of_extents(
    kernel: nodes.Kernel, facts: KernelFacts, dim: Shape, shapes: Mapping[str, Shape], bounds: str
) -> frozenset[Size] | None:
    if bounds == "unchecked":
        return frozenset()
    ranges = facts.ranges(kernel)
    return None if ranges.reads_uniforms else ranges.natural(dim, shapes, {})
