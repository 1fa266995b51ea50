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


# What says that shaderad, or a compiler, was given what it does not take.
_CONTRADICTIONS = frozenset({"SR0501", "SR0609", "SR0614", "SR0615", "SR0617", "SR0618", "SR0639"})

NOT_BUILT = "the folder holds primal and backward"


@contextmanager
def used_of_build(name: str, folder: str) -> Generator[None]:
    """Blames the folder for what its entry `name` does wrong while it is used.

    Raises:
        CompileError: SR0758, where its files and its manifest do not fit each other.
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
    """By target; a text says why the target has none."""

    def serving(self, known: Capabilities) -> list[T]:
        """The forms that run on a device, best first; not empty.

        Raises:
            DeviceError: SR0724, where no target of the build runs on the device.
            DerivativeError: SR0725, where the mode was not built.
        """
        wanted = targets_in(known.formats)
        here = {target: self.offers[target] for target in wanted if target in self.offers}
        offers = {target: offer for target, offer in here.items() if isinstance(offer, Offer)}
        lacks = {
            target: sorted({need for program in offer.programs for need in lacking(program, known)})
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
        raise error("SR0724", kernel=self.name, folder=self.folder, adapter=known.adapter,
                    built=_listed(self.offers), runtime=known.runtime, wanted=_listed(wanted),
                    missing=missing or "the folder has none of these")  # fmt: skip


def without(name: str, mode: Mode, reason: str) -> Error:
    """SR0725: a mode that was not built."""
    return error("SR0725", kernel=name, mode=mode.name.lower(), reason=reason)


def _listed(targets: Iterable[str]) -> str:
    return ", ".join(f"`{target}`" for target in targets)


def lacking(lowered: Lowered, known: Capabilities) -> list[str]:
    """The needs of a program that a device lacks."""
    program = lowered.program
    missing = [f"`{feature}`" for feature in program.features - known.features]
    if not known.survives_exchange and _ADDS_BY_EXCHANGE in program.slang:
        missing.append("adds by exchange")
    buffers = (BindingAccess.READ, BindingAccess.WRITE)
    count = sum(b.access in buffers for b in program.bindings)
    if count > known.storage_buffer_limit:
        limit = known.storage_buffer_limit
        missing.append(f"{count} storage buffers (`{program.name}` binds them, it has {limit})")
    threads = math.prod(program.workgroup)
    if threads > known.workgroup_threads_limit:
        missing.append(f"workgroups of {threads} threads")
    return missing
