"""Graphs that were planned and compiled before: their inputs, outputs and schedules.

Where a graph is run or differentiated, one of these stands for it as it would for its nodes.
Invariant: what a build did not make is refused, never replaced by something close to it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from shaderad.diagnostics import CompileError, Error, error
from shaderad.ir import sizes
from shaderad.ir.arrays import Graph, Value
from shaderad.ir.types import is_differentiable
from shaderad.lower.bindings import Lowered, Mode
from shaderad.session.arrays import Array, zeros
from shaderad.session.devices import Device, Stage
from shaderad.session.prebuilt import TARGETS_BY_RUNTIME, fits, lacking
from shaderad.session.schedule import Schedule

if TYPE_CHECKING:
    from shaderad.runtime import Capabilities

Flags = tuple[bool, ...]


@dataclass(frozen=True, slots=True)
class BuiltProgram:
    """One program of a graph, and the kernel that its reports name."""

    lowered: Lowered
    kernel: str


@dataclass(frozen=True, slots=True)
class BuiltPlans:
    """The plans of one graph for one target."""

    programs: tuple[BuiltProgram, ...]
    by_mode: Mapping[Mode, Schedule]
    why_not: Mapping[Mode, str]
    """Why a mode has none."""


@dataclass(frozen=True, slots=True)
class BuiltGraph:
    """A graph of a folder that `shaderad build` wrote."""

    name: str
    folder: str
    by_target: Mapping[str, BuiltPlans]

    def scheduled(self, mode: Mode, device: Device) -> tuple[Schedule, list[Stage]]:
        """What runs on a device: the first target that does.

        Raises:
            DeviceError: SR0724, where no target of the build runs on the device.
            DerivativeError: SR0725, where the mode was not built.
        """
        known = device.capabilities
        wanted = TARGETS_BY_RUNTIME[known.runtime]
        refusal: Error | None = None
        for target in (name for name in wanted if name in self.by_target):
            plans = self.by_target[target]
            schedule = plans.by_mode.get(mode)
            if schedule is None:
                raise self.without(mode, plans.why_not.get(mode, ""))
            if not all(fits(one.lowered, known) for one in plans.programs):
                continue
            try:
                return schedule, [device.stage(p.lowered, p.kernel) for p in plans.programs]
            except CompileError as failure:
                refusal = refusal or failure  # naga may take the code of another target.
        raise refusal or error(
            "SR0724", kernel=self.name, folder=self.folder, adapter=known.adapter,
            found=", ".join(self.by_target), wanted=", ".join(wanted),
            missing=", ".join(sorted(self._missing(known))) or "none",
        )  # fmt: skip

    def without(self, mode: Mode, reason: str) -> Error:
        """What is raised where a mode was not built."""
        return error("SR0725", kernel=self.name, mode=mode.value, reason=reason)

    def _missing(self, known: Capabilities) -> frozenset[str]:
        programs = (one for plans in self.by_target.values() for one in plans.programs)
        return frozenset(what for one in programs for what in lacking(one.lowered, known))


@dataclass(frozen=True, eq=False)
class PrebuiltGraph(Graph):
    """A mode of a built graph in place of its nodes.

    The backward mode takes the inputs, then a cotangent of each output that holds floats; it gives
    the outputs, then the gradients of all inputs that do. The forward mode takes and gives tangents
    likewise.
    """

    built: BuiltGraph
    mode: Mode = Mode.PRIMAL

    def pulled(self, wanted: Flags, given: Flags, *, with_outputs: bool) -> PrebuiltPart:
        """The gradients of the inputs `wanted`, for cotangents of the outputs `given`."""
        return self._derivative(Mode.BACKWARD, self.outputs, given, self.inputs, wanted,
                                with_outputs)  # fmt: skip

    def pushed(self, given: Flags, *, with_outputs: bool) -> PrebuiltPart:
        """The tangents of the outputs, for tangents of the inputs `given`."""
        wanted = tuple(is_differentiable(v.element) for v in self.outputs)
        return self._derivative(Mode.FORWARD, self.inputs, given, self.outputs, wanted,
                                with_outputs)  # fmt: skip

    def _derivative(
        self,
        mode: Mode,
        sources: Sequence[Value],
        given: Flags,
        targets: Sequence[Value],
        wanted: Flags,
        with_outputs: bool,
    ) -> PrebuiltPart:
        moving = [(v, one) for v, one in zip(sources, given, strict=True)
                  if is_differentiable(v.element)]  # fmt: skip
        made = [(v, one) for v, one in zip(targets, wanted, strict=True)
                if is_differentiable(v.element)]  # fmt: skip
        derivatives = [Value(v.type) for v, _ in moving]
        results = [Value(v.type) for v in (*self.outputs, *(v for v, _ in made))]
        whole = PrebuiltGraph((*self.inputs, *derivatives), tuple(results), self.built, mode)
        is_given = (*(True for _ in self.inputs), *(one for _, one in moving))
        is_wanted = (*(with_outputs for _ in self.outputs), *(one for _, one in made))
        chosen = tuple(k for k, one in enumerate(is_wanted) if one)
        inputs = tuple(v for v, one in zip(whole.inputs, is_given, strict=True) if one)
        return PrebuiltPart(inputs, tuple(results[k] for k in chosen), whole, is_given, chosen)


@dataclass(frozen=True, eq=False)
class PrebuiltPart(Graph):
    """Some results of a built graph, with zeros for some of its inputs."""

    whole: PrebuiltGraph
    is_given: Flags
    """By input of the whole; the others are zero."""
    chosen: tuple[int, ...]
    """Outputs of the whole."""

    def filled(
        self, given: Sequence[Array], known: Mapping[str, int], device: Device
    ) -> list[Array]:
        """The inputs of the whole."""
        remaining = iter(given)

        def zero(value: Value) -> Array:
            shape = tuple(sizes.evaluate(extent, known) for extent in value.shape)
            return zeros(device, value.element, shape)

        pairs = zip(self.whole.inputs, self.is_given, strict=True)
        return [next(remaining) if one else zero(v) for v, one in pairs]
