"""Which of several adapters to open: by position, by part of a name, else the best there is."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from shaderad.diagnostics import error
from shaderad.runtime.protocol import Kind

PREFERENCE: tuple[Kind, ...] = ("discrete", "integrated", "virtual", "unknown", "software")


@dataclass(frozen=True, slots=True, kw_only=True)
class DeviceInfo:
    """An adapter that could be opened: `open_device(info.runtime, adapter=info.index)`."""

    runtime: str
    index: int
    """Position among this runtime's adapters."""
    adapter: str
    kind: Kind
    api: str
    driver: str

    @property
    def summary(self) -> str:
        """One line for lists and messages; what `adapter=` is looked for in."""
        return f"{self.index}: {self.adapter} ({self.kind}, {self.api}) {self.driver}".rstrip()


def choose(runtime: str, found: Sequence[DeviceInfo], wanted: str | int | None) -> DeviceInfo:
    """Picks one of `found`; `wanted` is a position, part of a summary in any case, or `None`.

    Raises:
        DeviceError: SR0602, where none fits.
    """
    if wanted is not None and type(wanted) not in (int, str):
        raise error("SR0620", found=repr(wanted))
    if wanted is None or wanted == "":
        matching = list(found)
    elif isinstance(wanted, int) or wanted.isdigit():
        matching = [info for info in found if info.index == int(wanted)]
    else:
        matching = [info for info in found if wanted.lower() in info.summary.lower()]
    if not matching:
        raise error(
            "SR0602",
            runtime=runtime,
            wanted="of any kind" if wanted is None else wanted,
            found="; ".join(info.summary for info in found) or "no adapter at all",
        )
    return min(matching, key=lambda info: PREFERENCE.index(info.kind))
