"""`sad.profile` and `sad.profiled`: where the time of a program goes."""

from __future__ import annotations

import functools
import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, ParamSpec, TypeVar

from shaderad.device.devices import Device, asked_device, current_device
from shaderad.device.stages import Stage
from shaderad.diagnostics import error
from shaderad.diagnostics.tracebacks import api_boundary
from shaderad.lower.bindings import Mode
from shaderad.profiling.recorder import DispatchRecorder, Mark, Timed
from shaderad.profiling.roof import Roof, roof_of
from shaderad.profiling.table import table
from shaderad.profiling.work import DispatchWork
from shaderad.runtime.clocks.observing import Spending

__all__ = ["profile", "profiled"]

P = ParamSpec("P")
R = TypeVar("R")

_KINDS = {
    Mode.PRIMAL: "kernel",
    Mode.DECODE: "kernel",
    Mode.BACKWARD: "pullback",
    Mode.WINNER: "pullback",
    Mode.FORWARD: "pushforward",
}
_GENERATED, _OTHER = "array function", "library"


@dataclass(frozen=True, slots=True)
class ProfileRow:
    """All dispatches of one kernel.

    Attributes:
        name: The kernel's name.
        kind: ``"kernel"``, its ``"pullback"`` or ``"pushforward"``; ``"array function"`` for
            kernels that array functions and graphs run; ``"library"`` for fills and the like, and
            for kernels of loaded builds.
        count: The dispatches.
        device_ms: Milliseconds on the device; `None` if it has no timestamp queries.
        bytes: The bytes of the arrays that the dispatches bind, each once per dispatch: what memory
            has to move if all of their elements are used.
        operations: Floating-point operations, a fused product and sum being two; `None` where they
            depend on data, as in ``while`` loops.
        percent_of_copy: `bytes` per time, as a part of what the fastest copy of `float4` moves.
        percent_of_fma: `operations` per time, as a part of what a kernel of nothing else reaches.
    """

    name: str
    kind: str
    count: int
    device_ms: float | None
    bytes: int
    operations: float | None
    percent_of_copy: float | None
    percent_of_fma: float | None


class DeviceProfile:
    """The work of a device while ``with sad.profile() as profile:`` was open.

    Printing it shows a table.

    Attributes:
        rows: A row for each kernel, that with the most device time first.
        compile_ms: Milliseconds for which calls waited for compilers.
        upload_ms: Milliseconds for which the host copied data for the device.
        wait_ms: Milliseconds for which the host waited for the device.
    """

    rows: Sequence[ProfileRow]
    compile_ms: float
    upload_ms: float
    wait_ms: float

    def __init__(self, device: Device | None = None) -> None:
        self._asked = asked_device(device)
        self._device: Device | None = None
        self._begin = Mark(0, 0)
        self._timed: list[Timed] = []
        self._names: list[tuple[str, str]] = []
        self.rows = ()
        self.compile_ms = self.upload_ms = self.wait_ms = 0.0

    @api_boundary
    def __enter__(self) -> DeviceProfile:
        if self._device is not None:
            raise error("SR0652")
        self._device = device = self._asked or current_device()
        device.kept(roof_of)
        self._begin = device.kept(DispatchRecorder).open()
        return self

    def __exit__(self, *_: object) -> None:
        device = self._device
        assert device is not None
        recorder = device.kept(DispatchRecorder)
        try:
            device.runtime.wait()
            end = recorder.mark()
            self._timed = recorder.dispatches(self._begin, end)
        finally:
            recorder.close()
        self.compile_ms, self.upload_ms, self.wait_ms = (
            recorder.milliseconds(spending, self._begin, end)
            for spending in (Spending.COMPILE, Spending.UPLOAD, Spending.WAIT)
        )
        self._names = [_name_of(timed, device) for timed in self._timed]
        works = [
            _row_of(name, timed, device)
            for name, timed in zip(self._names, self._timed, strict=True)
        ]
        self.rows = _joined(works, device.kept(roof_of))

    def __str__(self) -> str:
        return table(self.rows, self.compile_ms, self.upload_ms, self.wait_ms)

    @api_boundary
    def chrome_trace(self, path: str | Path) -> None:
        """Writes a timeline of the device, which ``chrome://tracing`` and Perfetto show.

        Args:
            path: The JSON file.

        Raises:
            DeviceError: SR0653, where the device has no timestamp queries.
        """
        if any(timed.begin_ms is None for timed in self._timed):
            raise error("SR0653")
        start = min((timed.begin_ms or 0.0 for timed in self._timed), default=0.0)
        events = [
            _event(*name, timed, start)
            for name, timed in zip(self._names, self._timed, strict=True)
        ]
        Path(path).write_text(json.dumps({"traceEvents": events}), "utf-8")


@api_boundary
def profile(device: Device | None = None) -> DeviceProfile:
    """Records every dispatch of a device until the end of ``with``, and its time on the device.

    Dispatches run one by one meanwhile. The first profile of a device takes longer, because it
    measures how fast a copy and products with sums are there.

    Args:
        device: The device; that of the context without it.

    Returns:
        A context, whose rows are there after it.

    Raises:
        DeviceError: SR0651 for anything but a device.

    Example::

        with sad.profile() as profile:
            step(x)
        print(profile)
    """
    return DeviceProfile(device)


def profiled(function: Callable[P, R]) -> Callable[P, R]:
    """A function that prints a `profile` of each call, on the device of the context.

    Args:
        function: Any function that runs kernels.

    Returns:
        The same function with the prints.

    Example::

        @sad.profiled
        def step(x):
            return sad.sum(x * x)
    """

    @functools.wraps(function)
    def run(*args: P.args, **kwargs: P.kwargs) -> R:
        with DeviceProfile() as of_call:
            result = function(*args, **kwargs)
        print(of_call)  # noqa: T201
        return result

    return run


def _stage(timed: Timed, device: Device) -> Stage | None:
    return device.stages.by_program.get(timed.dispatch.program)


def _name_of(timed: Timed, device: Device) -> tuple[str, str]:
    """The name and kind of a dispatch."""
    stage, name = _stage(timed, device), timed.dispatch.program.name
    if stage is None:
        return name, _OTHER
    mode = stage.lowered.mode
    kind = _GENERATED if stage.is_generated else _KINDS[mode]
    return name.removesuffix(f"_{mode.value}"), kind


def _row_of(name: tuple[str, str], timed: Timed, device: Device) -> ProfileRow:
    """The row of one dispatch, without percents."""
    stage = _stage(timed, device)
    work = DispatchWork(timed.dispatch, None if stage is None else stage.lowered)
    return ProfileRow(*name, 1, timed.device_ms, work.bytes, work.operations, None, None)


def _joined(rows: Sequence[ProfileRow], roof: Roof) -> tuple[ProfileRow, ...]:
    """The sums of rows with one name and kind, the slowest first."""
    parts: dict[tuple[str, str], list[ProfileRow]] = {}
    for row in rows:
        parts.setdefault((row.name, row.kind), []).append(row)
    joined = (_with_percents(_sum_of(same), roof) for same in parts.values())
    return tuple(sorted(joined, key=lambda row: -(row.device_ms or 0.0)))


def _sum_of(rows: Sequence[ProfileRow]) -> ProfileRow:
    return replace(
        rows[0],
        count=len(rows),
        device_ms=_total([row.device_ms for row in rows]),
        bytes=sum(row.bytes for row in rows),
        operations=_total([row.operations for row in rows]),
    )


def _total(numbers: Sequence[float | None]) -> float | None:
    known = [number for number in numbers if number is not None]
    return sum(known) if len(known) == len(numbers) else None


def _with_percents(row: ProfileRow, roof: Roof) -> ProfileRow:
    return replace(
        row,
        percent_of_copy=_percent(row.bytes, row.device_ms, roof.copy_bytes_per_ms),
        percent_of_fma=_percent(row.operations, row.device_ms, roof.operations_per_ms),
    )


def _percent(amount: float | None, time_ms: float | None, rate: float | None) -> float | None:
    if amount is None or not time_ms or rate is None:
        return None
    return 100 * amount / time_ms / rate


def _event(name: str, kind: str, timed: Timed, start: float) -> dict[str, Any]:
    dispatch = timed.dispatch
    arguments = {"groups": dispatch.groups, "workgroup": dispatch.program.workgroup}
    return {
        "name": name, "cat": kind, "ph": "X", "pid": 0, "tid": "device", "args": arguments,
        "ts": 1e3 * ((timed.begin_ms or 0.0) - start), "dur": 1e3 * (timed.device_ms or 0.0),
    }  # fmt: skip
