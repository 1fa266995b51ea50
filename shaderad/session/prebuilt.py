"""Kernels that were lowered and compiled before: known from outside, without a body.

A device asks them for their dispatches instead of lowering them. Invariant: what a build did not
make is refused, never replaced by something close to it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from shaderad.diagnostics import error
from shaderad.ir import nodes
from shaderad.lower.artifact import Access
from shaderad.lower.bindings import Lowered, Mode

if TYPE_CHECKING:
    from shaderad.runtime import Capabilities
    from shaderad.session.devices import Choice

_ADDS_BY_EXCHANGE = "addByExchange<"

Dispatches = tuple[Lowered, ...]

# wgpu takes finished code; slangpy compiles the Slang text of whichever target fits the device.
TARGETS_BY_RUNTIME = {
    "wgpu": ("spirv", "spirv-core", "wgsl"),
    "slangpy": ("spirv", "spirv-core", "hlsl", "metal", "wgsl"),
}
"""In the order in which they are tried."""


@dataclass(frozen=True)
class BuiltModes:
    """The dispatches of one kernel for one target."""

    by_mode: Mapping[Mode, Dispatches]
    why_not: Mapping[Mode, str]
    """Why a mode has none."""


@dataclass(frozen=True, kw_only=True, eq=False)
class PrebuiltKernel(nodes.Kernel):
    """A kernel of a folder that `shaderad build` wrote."""

    folder: str
    bounds: str
    """What an index out of range does; it was decided when the kernel was built."""
    launch_shaped: frozenset[str]
    """Out arrays that its code takes to have the launch's shape."""
    by_target: Mapping[str, BuiltModes]

    def dispatches(self, choice: Choice, known: Capabilities) -> Iterator[Dispatches]:
        """What can stand for `choice` on a device, the best first; not empty.

        Raises:
            DeviceError: SR0724, where no target of the build runs on the device.
            DerivativeError: SR0725, where the mode was not built.
            ShapeError: SR0726 to SR0728, where the code was compiled for something else.
        """
        self._check(choice)
        wanted = TARGETS_BY_RUNTIME[known.runtime]
        found = False
        for target in wanted:
            modes = self.by_target.get(target)
            if modes is None:
                continue
            dispatches = modes.by_mode.get(choice.mode, ())
            if not dispatches:
                reason = modes.why_not.get(choice.mode, "the folder holds primal and backward")
                raise error("SR0725", kernel=self.name, mode=choice.mode.value, reason=reason)
            if all(fits(one, known) for one in dispatches):
                found = True
                yield dispatches
        if not found:
            raise error("SR0724", kernel=self.name, folder=self.folder, adapter=known.adapter,
                        found=", ".join(self.by_target), wanted=", ".join(wanted),
                        missing=self._missing(choice.mode, known))  # fmt: skip

    def _check(self, choice: Choice) -> None:
        if choice.bounds != self.bounds:
            raise error("SR0726", kernel=self.name, name="bounds", found=repr(choice.bounds),
                        wanted=repr(self.bounds))  # fmt: skip
        if choice.checks:
            raise error("SR0726", kernel=self.name, name="checks", found=repr(choice.checks),
                        wanted="None")  # fmt: skip
        for name in sorted(choice.launch_shaped ^ self.launch_shaped):
            raise error("SR0727", kernel=self.name, name=name)
        for name in sorted(choice.device_uniforms):
            raise error("SR0728", kernel=self.name, name=name)

    def _missing(self, mode: Mode, known: Capabilities) -> str:
        """What the device lacks for the targets that its runtime takes."""
        lacks = {
            feature
            for modes in self.by_target.values()
            for one in modes.by_mode.get(mode, ())
            for feature in lacking(one, known)
        }
        return ", ".join(sorted(lacks)) or "none that this runtime takes"


def fits(lowered: Lowered, known: Capabilities) -> bool:
    """Whether a device has what a program needs."""
    buffers = [b for b in lowered.program.bindings if b.access is not Access.UNIFORM]
    return not lacking(lowered, known) and len(buffers) <= known.storage_buffer_limit


def lacking(lowered: Lowered, known: Capabilities) -> frozenset[str]:
    """What a program needs that a device does not have."""
    missing = lowered.program.features - known.features
    # Mesa's lavapipe, and with it the process, dies of what slangpy makes of the exchange loop.
    is_deadly = known.runtime == "slangpy" and known.kind == "software"
    if is_deadly and _ADDS_BY_EXCHANGE in lowered.program.slang:
        missing |= {"adds by exchange"}
    return missing
