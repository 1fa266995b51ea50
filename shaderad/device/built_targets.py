"""Which targets of a build serve a device: by its runtime, the mode, and what the device has.

Invariant: a target that lacks something is passed over, and the next one tried, before anything
is refused; the refusal says what each of them lacks.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Generic, TypeVar

from shaderad.compiler.artifact import BindingAccess
from shaderad.diagnostics import Error, error
from shaderad.lower.bindings import Lowered, Mode

if TYPE_CHECKING:
    from shaderad.runtime import Capabilities

T = TypeVar("T")

# wgpu takes finished code; slangpy compiles the Slang text of whichever target fits the device.
TARGETS_BY_RUNTIME = {
    "wgpu": ("spirv", "spirv-core", "wgsl"),
    "slangpy": ("spirv", "spirv-core", "hlsl", "metal", "wgsl"),
}
"""In the order in which they are tried."""

_ADDS_BY_EXCHANGE = "addByExchange<"


@dataclass(frozen=True, slots=True)
class Offer(Generic[T]):
    """What one target of a build has for a mode."""

    form: T
    programs: Sequence[Lowered]


@dataclass(frozen=True, slots=True)
class Entry(Generic[T]):
    """A kernel or graph of a folder, in one mode."""

    name: str
    folder: str
    mode: Mode
    offers: Mapping[str, Offer[T] | str]
    """By target; a text says why the target has none."""

    def serving(self, known: Capabilities) -> list[T]:
        """What runs on a device, the best first; not empty.

        Raises:
            DeviceError: SR0724, where no target of the build runs on the device.
            DerivativeError: SR0725, where the mode was not built.
        """
        wanted = TARGETS_BY_RUNTIME[known.runtime]
        here = {target: self.offers[target] for target in wanted if target in self.offers}
        made = {target: one for target, one in here.items() if isinstance(one, Offer)}
        lacks = {target: _lacks(one.programs, known) for target, one in made.items()}
        found = [one.form for target, one in made.items() if not lacks[target]]
        if found:
            return found
        reasons = [one for one in here.values() if isinstance(one, str)]
        if reasons and not made:
            raise without(self.name, self.mode, reasons[0])
        missing = "; ".join(f"for `{target}` the device lacks {', '.join(what)}"
                            for target, what in lacks.items())  # fmt: skip
        raise error("SR0724", kernel=self.name, folder=self.folder, adapter=known.adapter,
                    built=_listed(self.offers), runtime=known.runtime, wanted=_listed(wanted),
                    missing=missing or "the folder has none of these")  # fmt: skip


def without(name: str, mode: Mode, reason: str) -> Error:
    """What is raised where a mode was not built."""
    return error("SR0725", kernel=name, mode=mode.name.lower(), reason=reason)


def _listed(targets: Iterable[str]) -> str:
    return ", ".join(f"`{target}`" for target in targets)


def _lacks(programs: Iterable[Lowered], known: Capabilities) -> list[str]:
    return sorted({what for one in programs for what in lacking(one, known)})


def lacking(lowered: Lowered, known: Capabilities) -> list[str]:
    """What a program needs that a device does not have."""
    program = lowered.program
    missing = [f"`{feature}`" for feature in program.features - known.features]
    # Mesa's lavapipe, and with it the process, dies of what slangpy makes of the exchange loop.
    is_deadly = known.runtime == "slangpy" and known.kind == "software"
    if is_deadly and _ADDS_BY_EXCHANGE in program.slang:
        missing.append("adds by exchange")
    count = sum(b.access is not BindingAccess.UNIFORM for b in program.bindings)
    if count > known.storage_buffer_limit:
        limit = known.storage_buffer_limit
        missing.append(f"{count} storage buffers (`{program.name}` binds them, it has {limit})")
    threads = math.prod(program.workgroup)
    if threads > known.workgroup_threads_limit:
        missing.append(f"workgroups of {threads} threads")
    return missing
