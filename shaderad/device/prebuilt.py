"""A folder that `shaderad build` wrote and a device -> the targets that the device runs."""

from __future__ import annotations

import math
from collections.abc import Generator, Iterable, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Generic, TypeVar

from shaderad.compiler.artifact import BindingAccess
from shaderad.diagnostics import Error, error
from shaderad.lower.bindings import Lowered, Mode
from shaderad.lower.targets import targets_in

if TYPE_CHECKING:
    from shaderad.runtime import Capabilities


# Errors that mean that shaderad, or a compiler, got input that it does not accept.
_CONTRADICTIONS = frozenset({"SR0501", "SR0609", "SR0614", "SR0615", "SR0617", "SR0618", "SR0639"})

NOT_BUILT = "the folder holds primal and backward"


@contextmanager
def used_of_build(name: str, folder: str) -> Generator[None]:
    """Turns errors in the use of entry `name` into an error about its folder.

    Raises:
        CompileError: SR0758, if the files of the folder do not match its manifest.
    """
    try:
        yield
    except Error as failure:
        if failure.code not in _CONTRADICTIONS:
            raise
        reason = "\n".join(filter(None, (failure.message, failure.note)))
        raise error("SR0758", kernel=name, folder=folder, reason=reason) from failure
    except Exception as failure:
        reason = f"{type(failure).__name__}: {failure}"
        raise error("SR0758", kernel=name, folder=folder, reason=reason) from failure


T = TypeVar("T")

_ADDS_BY_EXCHANGE = "addByExchange<"


@dataclass(frozen=True, slots=True)
class Offer(Generic[T]):
    """A mode for one target of a build."""

    form: T
    programs: Sequence[Lowered]


@dataclass(frozen=True, slots=True)
class OfferedMode(Generic[T]):
    """A kernel or graph of a folder, in one mode."""

    name: str
    folder: str
    mode: Mode
    offers: Mapping[str, Offer[T] | str]
    """By target; the reason as text for a target without an offer."""

    def serving(self, capabilities: Capabilities) -> list[T]:
        """The forms that run on a device, best first; not empty.

        Raises:
            DeviceError: SR0724, if no target of the build runs on the device.
            DerivativeError: SR0725, if the mode was not built.
        """
        wanted = targets_in(capabilities.formats)
        here = {target: self.offers[target] for target in wanted if target in self.offers}
        offers = {target: offer for target, offer in here.items() if isinstance(offer, Offer)}
        lacks = {
            target: sorted(
                {need for program in offer.programs for need in lacking(program, capabilities)}
            )
            for target, offer in offers.items()
        }
        forms = [offer.form for target, offer in offers.items() if not lacks[target]]
        if forms:
            return forms
        reasons = [offer for offer in here.values() if isinstance(offer, str)]
        if reasons and not offers:
            raise without(self.name, self.mode, reasons[0])
        missing = "; ".join(f"for `{target}` the device lacks {', '.join(needs)}"
                            for target, needs in lacks.items())  # fmt: skip
        raise error("SR0724", kernel=self.name, folder=self.folder, adapter=capabilities.adapter,
                    built=_listed(self.offers), runtime=capabilities.runtime,
                    wanted=_listed(wanted),
                    missing=missing or "the folder has none of these")  # fmt: skip


def without(name: str, mode: Mode, reason: str) -> Error:
    """The error SR0725 for a mode that was not built."""
    return error("SR0725", kernel=name, mode=mode.name.lower(), reason=reason)


def _listed(targets: Iterable[str]) -> str:
    return ", ".join(f"`{target}`" for target in targets)


def lacking(lowered: Lowered, capabilities: Capabilities) -> list[str]:
    """The requirements of a program that a device does not meet."""
    program = lowered.program
    missing = [f"`{feature}`" for feature in program.features - capabilities.features]
    if not capabilities.survives_exchange and _ADDS_BY_EXCHANGE in program.slang:
        missing.append("adds by exchange")
    buffers = (BindingAccess.READ, BindingAccess.WRITE)
    count = sum(b.access in buffers for b in program.bindings)
    if count > capabilities.storage_buffer_limit:
        limit = capabilities.storage_buffer_limit
        missing.append(f"{count} storage buffers (`{program.name}` binds them, it has {limit})")
    threads = math.prod(program.workgroup)
    if threads > capabilities.workgroup_threads_limit:
        missing.append(f"workgroups of {threads} threads")
    return missing
