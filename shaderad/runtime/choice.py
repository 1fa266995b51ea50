"""Chooses an adapter: by position, by a part of its name, or the best one."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from shaderad.diagnostics import error
from shaderad.runtime.protocol import Kind

__all__ = ["DeviceInfo"]

PREFERENCE: tuple[Kind, ...] = ("discrete", "integrated", "virtual", "unknown", "software")


@dataclass(frozen=True, slots=True, kw_only=True)
class DeviceInfo:
    """An adapter; `open_device(info.runtime, adapter=info.index)` opens it."""

    runtime: str
    index: int
    """The position among the adapters of the runtime."""
    adapter: str
    kind: Kind
    api: str
    driver: str

    @property
    def summary(self) -> str:
        """One line for lists and messages; `adapter=` matches a part of it."""
        return f"{self.index}: {self.adapter} ({self.kind}, {self.api}) {self.driver}".rstrip()


def choose(runtime: str, adapters: Sequence[DeviceInfo], wanted: str | int | None) -> DeviceInfo:
    """The best of the adapters that match `wanted`.

    Args:
        runtime: The name of the runtime, for messages.
        adapters: All adapters of the runtime.
        wanted: A position, a part of a summary in any case, or `None` for any adapter.

    Raises:
        DeviceError: SR0602, if no adapter matches; SR0620, if `wanted` is of another type.
    """
    if wanted is not None and type(wanted) not in (int, str):
        raise error("SR0620", found=repr(wanted))
    if wanted is None or wanted == "":
        matching = list(adapters)
    elif isinstance(wanted, int) or wanted.isdigit():
        matching = [info for info in adapters if info.index == int(wanted)]
    else:
        matching = [info for info in adapters if wanted.lower() in info.summary.lower()]
    if not matching:
        raise error(
            "SR0602",
            runtime=runtime,
            wanted="of any kind" if wanted is None else wanted,
            found="; ".join(info.summary for info in adapters) or "no adapter at all",
        )
    return min(matching, key=lambda info: PREFERENCE.index(info.kind))
