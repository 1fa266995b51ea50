"""`sad.profile` and `sad.profiled`: where the time of a program goes."""

from __future__ import annotations

import functools
import inspect
import json
from collections.abc import Callable, Sequence
from contextlib import nullcontext, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, ParamSpec, TypeVar

from shaderad.device.devices import Device, asked_device, current_device
from shaderad.device.stages import Stage
from shaderad.diagnostics import Error, error
from shaderad.diagnostics.tracebacks import api_boundary
from shaderad.lower.bindings import Mode
from shaderad.profiling.recorder import DispatchRecorder, Mark, Timed
from shaderad.profiling.roof import Roof, roof_of
from shaderad.profiling.table import table
from shaderad.profiling.work import DispatchWork, without_number
from shaderad.runtime.clocks.observing import RecordedDispatch, Spending

__all__ = ["profile", "profiled"]

P = ParamSpec("P")
R = TypeVar("R")

_KINDS = {
    Mode.PRIMAL: "kernel",
    Mode.BACKWARD: "pullback",
    Mode.WINNER: "pullback",
    Mode.FORWARD: "pushforward",
}
_GENERATED, _OTHER = "array function", "library"

_LATER = {
    inspect.isgeneratorfunction: "a generator function",
    inspect.iscoroutinefunction: "a coroutine function",
    inspect.isasyncgenfunction: "an asynchronous generator function",
}
"""Functions whose body runs after the call."""


@dataclass(frozen=True, slots=True)
class ProfileRow:
    """All dispatches of the kernels with one name and kind.

    Attributes:
        name: The kernel's name.
        kind: ``"kernel"``, its ``"pullback"`` or ``"pushforward"``; ``"array function"`` for
            kernels that array functions and graphs run; ``"library"`` for fills and the like. A
            loaded build has kernels only; the names of pullbacks end in ``_bwd``.
        count: The dispatches.
        device_ms: Milliseconds on the device; `None` if it has no timestamp queries.
        bytes: The bytes of the arrays that the dispatches bind, each once per dispatch: what memory
            has to move if all of their elements are used. Textures do not count.
        operations: An estimate of the floating-point operations. A fused product and sum are two,
            and a function such as `sad.sin` is one. The middle thread of the launch stands for all
            threads, and the middle iteration of a loop for all iterations. If a branch depends on
            data, the longer side counts. `None` if a loop depends on data, as in ``while`` loops,
            and for kernels in Slang, of builds, and of the library.
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

    Printing it shows a table. It is complete after the end of its ``with``.

    Attributes:
        rows: A row for each kernel, that with the most device time first; empty before the end.
        compile_ms: Milliseconds for which calls waited for compilers.
        upload_ms: Milliseconds for which the host copied data for the device.
        wait_ms: Milliseconds for which the host waited for the device.
    """

    rows: Sequence[ProfileRow]
    compile_ms: float
    upload_ms: float
    wait_ms: float

    def __init__(self, device: Device | None = None) -> None:
        self._device = asked_device(device)
        self._is_entered = False
        self._begin = Mark(0, 0)
        self._events: list[dict[str, Any]] | None = None
        """Events of the timeline; `None` before the end."""
        self.rows = ()
        self.compile_ms = self.upload_ms = self.wait_ms = 0.0

    @api_boundary
    def __enter__(self) -> DeviceProfile:
        if self._is_entered:
            raise error("SR0652")
        self._device = device = self._device or current_device()
        device.kept(roof_of)
        self._begin = device.kept(DispatchRecorder).open()
        self._is_entered = True
        return self

    @api_boundary
    def __exit__(self, failure: type[BaseException] | None, *_: object) -> None:
        assert self._device is not None
        with nullcontext() if failure is None else suppress(Error):  # of a device that is lost
            self._end(self._device)

    def _end(self, device: Device) -> None:
        recorder = device.kept(DispatchRecorder)
        try:
            end = recorder.finish()
            dispatches = recorder.dispatches(self._begin, end)
            self.compile_ms, self.upload_ms, self.wait_ms = (
                recorder.milliseconds(spending, self._begin, end)
                for spending in (Spending.COMPILE, Spending.UPLOAD, Spending.WAIT)
            )
        finally:
            recorder.close()
            self._device = None
        rows = _rows_of(dispatches, device)
        self.rows = _joined(rows, device.kept(roof_of))
        self._events = _events_of(rows, dispatches)

    def __str__(self) -> str:
        if self._events is None:
            return "a profile that has not ended: print it after its `with`"
        return table(self.rows, self.compile_ms, self.upload_ms, self.wait_ms)

    @api_boundary
    def chrome_trace(self, path: str | Path) -> None:
        """Writes a timeline of the device, which ``chrome://tracing`` and Perfetto show.

        Args:
            path: The JSON file.

        Raises:
            DeviceError: SR0653, where the device has no timestamp queries; SR0654 before the end of
                the profile.
        """
        if self._events is None:
            raise error("SR0654")
        if any(row.device_ms is None for row in self.rows):
            raise error("SR0653")
        Path(path).write_text(json.dumps({"traceEvents": self._events}), "utf-8")


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


@api_boundary
def profiled(function: Callable[P, R]) -> Callable[P, R]:
    """A function that prints a `profile` of each call, on the device of the context.

    Args:
        function: Any function that runs kernels, but no generator or coroutine function.

    Returns:
        The same function with the prints.

    Raises:
        CallError: SR0295 for anything that is no function; SR0296 for generator and coroutine
            functions.

    Example::

        @sad.profiled
        def step(x):
            return sad.sum(x * x)
    """
    if not callable(function):
        raise error("SR0295", found=repr(function))
    for is_kind, kind in _LATER.items():
        if is_kind(function):
            raise error("SR0296", name=function.__name__, kind=kind)

    @functools.wraps(function)
    def run(*args: P.args, **kwargs: P.kwargs) -> R:
        with DeviceProfile() as of_call:
            result = function(*args, **kwargs)
        print(of_call)  # noqa: T201
        return result

    return run


def _rows_of(dispatches: Sequence[Timed], device: Device) -> list[ProfileRow]:
    """A row for each dispatch, without percents; the work of equal ones is counted once."""
    row_by_dispatch: dict[RecordedDispatch, ProfileRow] = {}
    rows: list[ProfileRow] = []
    for timed in dispatches:
        stage, dispatch = device.stages.by_program.get(timed.dispatch.program), timed.dispatch
        if stage is not None:
            dispatch = without_number(dispatch, stage.lowered)
        row = row_by_dispatch.get(dispatch)
        if row is None:
            row = row_by_dispatch[dispatch] = _row_of(dispatch, stage)
        rows.append(replace(row, device_ms=timed.device_ms))
    return rows


def _row_of(dispatch: RecordedDispatch, stage: Stage | None) -> ProfileRow:
    """The row of one dispatch, without times."""
    work = DispatchWork(dispatch, None if stage is None else stage.lowered)
    name, kind = _name_of(dispatch.program.name, stage)
    return ProfileRow(name, kind, 1, None, work.bytes, work.operations, None, None)


def _name_of(name: str, stage: Stage | None) -> tuple[str, str]:
    """The name and kind of a dispatch of a program."""
    mode = None if stage is None else stage.lowered.mode
    if stage is None or mode not in _KINDS:
        return name, _OTHER
    kind = _GENERATED if stage.is_generated else _KINDS[mode]
    return name.removesuffix(f"_{mode.value}"), kind


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


def _events_of(rows: Sequence[ProfileRow], dispatches: Sequence[Timed]) -> list[dict[str, Any]]:
    """The events of a timeline, one for each dispatch, in microseconds since the first."""
    start = min((timed.begin_ms or 0.0 for timed in dispatches), default=0.0)
    return [
        {
            "name": row.name, "cat": row.kind, "ph": "X", "pid": 0, "tid": "device",
            "ts": 1e3 * ((timed.begin_ms or 0.0) - start), "dur": 1e3 * (timed.device_ms or 0.0),
            "args": {
                "groups": timed.dispatch.groups, "workgroup": timed.dispatch.program.workgroup,
            },
        }
        for row, timed in zip(rows, dispatches, strict=True)
    ]  # fmt: skip
