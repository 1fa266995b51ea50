"""The public `Device`: a runtime with its stages and its report and print buffers.

Invariant: state that outlives a call belongs to a `Device`. This module keeps only the default
device, which opens when it is first needed, and the devices that a context has entered.
"""

from __future__ import annotations

import itertools
import threading
from collections.abc import Mapping
from contextvars import ContextVar
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeVar

from shaderad.device.reports import (
    HEADER_BYTES,
    PRINT_BYTES,
    PRINT_HEADER_BYTES,
    REPORT_BYTES,
    Report,
    combined,
    decoded,
    error_of,
    has_prints,
    lowest,
    printed,
    unknown_report,
)
from shaderad.device.stages import Stages
from shaderad.diagnostics import Error, error
from shaderad.diagnostics.tracebacks import api_boundary
from shaderad.runtime import open_runtime
from shaderad.runtime.process import call_in_children, turn

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from shaderad.runtime import Capabilities, DeviceBuffer, Runtime

__all__ = ["Device", "open_device"]

T = TypeVar("T")


class Device:
    """An opened device. It serialises its own submissions and may be shared by threads.

    The first one that a program opens becomes its default device. ``with device:`` makes another
    the default of this context; leaving restores the former default and closes nothing.
    """

    def __init__(self, runtime: Runtime) -> None:
        self.runtime = runtime
        self.is_closed = False
        self._renew_lock()
        call_in_children(self._renew_lock)
        self.stages = Stages(runtime)
        self._report: DeviceBuffer | None = None
        self._prints: DeviceBuffer | None = None
        self._may_have_reports = False
        self._may_have_prints = False
        self._launches = itertools.count()
        self._noted: list[Error] = []
        self._kept: dict[Callable[[Device], Any], Any] = {}

    def _renew_lock(self) -> None:
        """Replaces the lock in a forked process, where the thread that held it does not exist."""
        self._lock = threading.RLock()

    @property
    def capabilities(self) -> Capabilities:
        """The features and limits of the device, as plain data."""
        return self.runtime.capabilities

    @property
    def native(self) -> Any:
        """The `wgpu.GPUDevice` or `slangpy.Device` underneath; recorded work is submitted first."""
        self.runtime.submit()
        return self.runtime.native

    @api_boundary
    def synchronize(self) -> None:
        """Waits until all work is done; shows prints of kernels, and raises their reports.

        Raises:
            BoundsError: SR0660 an index, SR0662 a failed assertion, SR0663 a division by zero;
                of `checks` SR0666 a value that is not finite, SR0669 an element written twice.
            LimitError: SR0661, where a loop ran past its limit.
            GradientError: SR0667 a tangent, SR0668 a cotangent that is not finite.
            DeviceError: Where the device is lost or closed.
        """
        self.read([])
        self.runtime.wait()

    @api_boundary
    def close(self) -> None:
        """Ends the device; using it or its arrays afterwards is a `DeviceError`."""
        self.is_closed = True
        self.stages.clear()
        self._kept.clear()
        self.runtime.close()

    def __enter__(self) -> Device:
        _entered.set((*_entered.get(), self))
        return self

    def __exit__(self, *_: object) -> None:
        _entered.set(_entered.get()[:-1])

    def use(self) -> None:
        """Makes this device the default of the program, outside of ``with``."""
        with _default.lock:
            _default.device, _default.is_opened = self, True

    def __repr__(self) -> str:
        state = ", closed" if self.is_closed else ", lost" if self.runtime.is_lost else ""
        return f"Device({self.capabilities.runtime!r}, {self.capabilities.adapter!r}{state})"

    def read(self, requests: Sequence[tuple[DeviceBuffer, int, int]]) -> list[memoryview]:
        """Reads buffers and, in the same round trip, the reports of kernels, which it raises.

        Prints of kernels are written first. A request is a buffer, first byte and byte count.
        """
        with turn(self._lock):
            self._write_prints()
            report = self._report if self._may_have_reports else None
            if report is None and not self._noted:
                return self.runtime.read(requests) if requests else []
            # Cleared before the read, because a dispatch that another thread records in the
            # meantime sets it again.
            self._may_have_reports = False
            try:
                reported, contents = self._read_with(report, requests)
            except BaseException:
                self._may_have_reports = True
                raise
            noted, self._noted = self._noted, []
            if noted or reported:
                raise combined([*noted, *reported])
            return contents

    def _write_prints(self) -> None:
        """Writes the lines that kernels printed since the last call to `sys.stdout`."""
        if not self._may_have_prints or self._prints is None:
            return
        # Cleared before the read, because a dispatch that another thread records in the meantime
        # sets it again.
        self._may_have_prints = False
        try:
            text = self._taken_prints(self._prints)
        except BaseException:
            self._may_have_prints = True
            raise
        print(text, end="")  # noqa: T201

    def _taken_prints(self, buffer: DeviceBuffer) -> str:
        """Reads the lines in `buffer`, and clears it."""
        (header,) = self.runtime.read([(buffer, 0, PRINT_HEADER_BYTES)])
        if not has_prints(header):
            return ""
        (raw,) = self.runtime.read([(buffer, 0, PRINT_BYTES)])
        text = printed(raw, self.stages.sites.__getitem__)
        self.runtime.zero(buffer)
        return text

    def _read_with(
        self, buffer: DeviceBuffer | None, requests: Sequence[tuple[DeviceBuffer, int, int]]
    ) -> tuple[list[Error], list[memoryview]]:
        """Reads the reports in `buffer`, which it clears, and the content of `requests`."""
        if buffer is None:
            return [], self.runtime.read(requests)
        *contents, raw = self.runtime.read([*requests, (buffer, 0, HEADER_BYTES)])
        report = decoded(raw)
        if report is None:
            return [], contents
        if report.slot_count:
            (raw,) = self.runtime.read([(buffer, 0, REPORT_BYTES)])
            report = lowest(raw, report)
        self.runtime.zero(buffer)
        return [self._error_of(report)], contents

    def _error_of(self, report: Report) -> Error:
        if not 0 <= report.site < len(self.stages.sites):
            return unknown_report(report)
        kernel, site = self.stages.sites[report.site]
        return error_of(kernel, site, report)

    def report_buffer(self) -> DeviceBuffer:
        """The report buffer; call `expect` for dispatches that write to it."""
        with turn(self._lock):
            if self._report is None:
                self._report = self.runtime.allocate(REPORT_BYTES)
            return self._report

    def print_buffer(self) -> DeviceBuffer:
        """The print buffer; call `expect` for dispatches that write to it."""
        with self._lock:
            if self._prints is None:
                self._prints = self.runtime.allocate(PRINT_BYTES)
            return self._prints

    def expect(self, *, reports: bool, prints: bool) -> None:
        """Makes the next synchronisation read the report and print buffers.

        Called inside `Runtime.together`, before and after dispatches that write to them.
        """
        if reports:
            self._may_have_reports = True
        if prints:
            self._may_have_prints = True

    def next_launch(self) -> int:
        """The number of a dispatch, by which reports are ordered."""
        return next(self._launches)

    def note(self, failure: Error) -> None:
        """Keeps an error found on the host; the next synchronisation raises it."""
        self._noted.append(failure)

    def kept(self, make: Callable[[Device], T]) -> T:
        """The cached result of ``make(device)``, which is called only once."""
        result: T | None = self._kept.get(make)
        if result is not None:
            return result
        with self._lock:
            if make not in self._kept:
                self._kept[make] = make(self)
            return self._kept[make]


_entered: ContextVar[tuple[Device, ...]] = ContextVar("shaderad_devices", default=())


@dataclass
class _Default:
    """The default device outside of ``with``."""

    lock: threading.Lock
    device: Device | None = None
    is_opened: bool = False
    """True if the program opened it, or chose it by `use`."""

    def renew_lock(self) -> None:
        """Replaces the lock in a forked process, where the thread that held it does not exist."""
        self.lock = threading.Lock()

    @property
    def gives_way(self) -> bool:
        """True if the next opened device replaces it."""
        device = self.device
        return device is None or not self.is_opened or device.is_closed or device.runtime.is_lost


_default = _Default(threading.Lock())
call_in_children(_default.renew_lock)


@api_boundary
def open_device(
    runtime: str | None = None,
    *,
    adapter: str | int | None = None,
    native: Any = None,
    limits: Mapping[str, Any] | None = None,
) -> Device:
    """Opens a device; the first one that a program opens is its default from then on.

    Args:
        runtime: ``"wgpu"``, ``"slangpy"``, or `None` for the best available; the environment
            variable `SHADERAD_DEVICE` chooses where `None` is given.
        adapter: Part of an adapter's name, or its position among those of `sad.devices()`. With
            ``"auto"``, processes that a launcher such as `torchrun` starts on one machine share its
            best adapters, each by its `LOCAL_RANK`.
        native: A `wgpu.GPUDevice` or `slangpy.Device` to use instead of opening one.
        limits: Fields of the capabilities to force down, such as ``{"storage_buffer_limit": 8}``.

    Returns:
        The device, open until its `close`.

    Raises:
        DeviceError: SR0601 to SR0603, where there is no such runtime or adapter; SR0622 in a
            process that was forked off while a device was open; SR0638 for a `LOCAL_RANK` that is
            no number.
        MissingPackageError: SR0625, where the package of `runtime` is not installed.
    """
    opened = Device(open_runtime(runtime, adapter=adapter, native=native, limits=limits))
    with _default.lock:
        if _default.gives_way:
            _default.device, _default.is_opened = opened, True
    return opened


def asked_device(asked: Any) -> Device | None:
    """The argument ``device=``; `None` if there is none.

    Raises:
        DeviceError: SR0651 for anything but a device.
    """
    if asked is not None and not isinstance(asked, Device):
        raise error("SR0651", found=type(asked).__name__)
    return asked


def check_same(owner: Device, device: Device, name: str) -> None:
    """Raises SR0650 if the argument `name` is on `owner`, but its call runs on another `device`."""
    if owner is device:
        return
    shown = f"another {owner}" if repr(owner) == repr(device) else str(owner)
    subject = name if " " in name else f"`{name}`"
    raise error("SR0650", subject=subject, found=shown, device=device)


def current_device() -> Device:
    """The device that this context entered last, else the default one.

    Where there is none, the best device opens and is the default until the program opens one.
    """
    entered = _entered.get()
    if entered:
        return entered[-1]
    with _default.lock:
        device = _default.device
        if (
            device is None
            or device.is_closed
            or (device.runtime.is_lost and not _default.is_opened)
        ):
            device = _default.device = Device(open_runtime())
            _default.is_opened = False
        return device
