"""Devices as users hold them: a runtime, its lowered kernels, and its one report buffer.

Invariant: whatever lives longer than a call belongs to a `Device`. The only state of this module
is the default device, opened when it is first needed, and which devices a context has entered.
"""

from __future__ import annotations

import itertools
import threading
from collections.abc import Mapping
from contextlib import nullcontext
from contextvars import ContextVar
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeVar

from shaderad.device.foreseen import Foreseen, lowered_now
from shaderad.device.kernel_facts import KernelFacts
from shaderad.device.lines import AtUserLine
from shaderad.device.prebuilt import PrebuiltKernel
from shaderad.device.prints import HEADER_BYTES as PRINT_HEADER_BYTES
from shaderad.device.prints import PRINT_BYTES, has_prints, printed
from shaderad.device.reports import (
    HEADER_BYTES,
    REPORT_BYTES,
    Report,
    combined,
    decoded,
    error_of,
    lowest,
    unknown_report,
)
from shaderad.device.weak_keys import WeakKeys
from shaderad.diagnostics import CompileError, Error, error
from shaderad.diagnostics.progress import Work
from shaderad.diagnostics.tracebacks import api_boundary
from shaderad.lower.bindings import Lowered, Mode, Site, Variant
from shaderad.runtime import open_runtime
from shaderad.runtime.process import call_in_children, turn

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from shaderad.ir import nodes
    from shaderad.ir.sizes import Size
    from shaderad.runtime import Capabilities, DeviceBuffer, Pipeline, Runtime

__all__ = ["Device", "open_device"]

T = TypeVar("T")

# Recorded dispatches wait for company, because a submission costs more than a dispatch; the
# device should not stay idle for long either.
DISPATCHES_A_SUBMISSION = 64


@dataclass(frozen=True)
class Stage:
    """One dispatch of a mode, ready but for its buffers and words."""

    lowered: Lowered
    pipeline: Pipeline
    site_base: int
    """Where its report sites start in the device's table."""


@dataclass(frozen=True, slots=True)
class Choice:
    """The part of a `Variant` that a launch decides; the device decides the rest."""

    mode: Mode
    bounds: str
    checks: str
    launch_shaped: frozenset[str]
    device_uniforms: frozenset[str]
    wanted: frozenset[str] = frozenset()
    accumulate: bool = False
    natural: frozenset[Size] = frozenset()
    """What is known of indices: see `bodies/ranges.py`."""
    with_results: bool = False
    is_one_thread: bool = False
    """Of derivatives alone: code of the primal is the same for any launch."""


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
        self._stages: WeakKeys[nodes.Kernel, dict[Choice, tuple[Stage, ...]]] = WeakKeys()
        self._foreseen: WeakKeys[nodes.Kernel, dict[Choice, Foreseen]] = WeakKeys()
        self._facts: WeakKeys[nodes.Kernel, KernelFacts] = WeakKeys()
        self._sites: list[tuple[str, Site]] = []
        self._report: DeviceBuffer | None = None
        self._prints: DeviceBuffer | None = None
        self._may_have_reports = False
        self._may_have_prints = False
        self._dispatch_count = 0
        self._launches = itertools.count()
        self._noted: list[Error] = []
        self._kept: dict[Callable[[Device], Any], Any] = {}

    def _renew_lock(self) -> None:
        """In a forked process: whoever had the lock goes on in the parent alone."""
        self._lock = threading.RLock()

    @property
    def capabilities(self) -> Capabilities:
        """What the device can do, as plain data."""
        return self.runtime.capabilities

    @property
    def native(self) -> Any:
        """The `wgpu.GPUDevice` or `slangpy.Device` underneath; recorded work is submitted first."""
        self.runtime.submit()
        return self.runtime.native

    @api_boundary
    def synchronize(self) -> None:
        """Waits until all work is done; prints and raises what kernels printed and reported.

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
        self._stages.clear()
        self._foreseen.clear()
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
        """Reads buffers, and in the same round trip what kernels reported; raises the latter.

        What they printed comes before that.
        """
        with turn(self._lock):
            self._write_prints()
            report = self._report if self._may_have_reports else None
            if report is None and not self._noted:
                return self.runtime.read(requests) if requests else []
            # Before the read: a dispatch that another thread records meanwhile sets it again.
            self._may_have_reports = False
            try:
                reported, found = self._read_with(report, requests)
            except BaseException:
                self._may_have_reports = True
                raise
            noted, self._noted = self._noted, []
            if noted or reported:
                raise combined([*noted, *reported])
            return found

    def _write_prints(self) -> None:
        """Writes what kernels printed since the last time to `sys.stdout`."""
        if not self._may_have_prints or self._prints is None:
            return
        # Before the read: a dispatch that another thread records meanwhile sets it again.
        self._may_have_prints = False
        try:
            text = self._taken_prints(self._prints)
        except BaseException:
            self._may_have_prints = True
            raise
        print(text, end="")  # noqa: T201

    def _taken_prints(self, buffer: DeviceBuffer) -> str:
        """The lines in `buffer`, which is cleared."""
        (header,) = self.runtime.read([(buffer, 0, PRINT_HEADER_BYTES)])
        if not has_prints(header):
            return ""
        (raw,) = self.runtime.read([(buffer, 0, PRINT_BYTES)])
        text = printed(raw, lambda number: self._sites[number])
        self.runtime.zero(buffer)
        return text

    def _read_with(
        self, buffer: DeviceBuffer | None, requests: Sequence[tuple[DeviceBuffer, int, int]]
    ) -> tuple[list[Error], list[memoryview]]:
        """What kernels reported into `buffer`, which is cleared, and what is asked for."""
        if buffer is None:
            return [], self.runtime.read(requests)
        *found, raw = self.runtime.read([*requests, (buffer, 0, HEADER_BYTES)])
        report = decoded(raw)
        if report is None:
            return [], found
        if report.slot_count:
            (raw,) = self.runtime.read([(buffer, 0, REPORT_BYTES)])
            report = lowest(raw, report)
        self.runtime.zero(buffer)
        return [self._error_of(report)], found

    def _error_of(self, report: Report) -> Error:
        if not 0 <= report.site < len(self._sites):
            return unknown_report(report)
        kernel, site = self._sites[report.site]
        return error_of(kernel, site, report)

    def report_buffer(self) -> DeviceBuffer:
        """The buffer into which dispatches may report; `recorded` says when one does."""
        with turn(self._lock):
            if self._report is None:
                self._report = self.runtime.allocate(REPORT_BYTES)
            return self._report

    def print_buffer(self) -> DeviceBuffer:
        """The buffer into which dispatches may print; `recorded` says when one does."""
        with self._lock:
            if self._prints is None:
                self._prints = self.runtime.allocate(PRINT_BYTES)
            return self._prints

    def expect_reports(self) -> None:
        """Lets the next synchronisation look at what kernels reported."""
        self._may_have_reports = True

    def next_launch(self) -> int:
        """The number of a dispatch, so that reports say which of them was first."""
        return next(self._launches)

    def recorded(self, *, may_report: bool, may_print: bool, count: int = 1) -> None:
        """Counts recorded dispatches; submits where enough have gathered."""
        if may_print:
            self._may_have_prints = True
        if may_report:
            self.expect_reports()
        self._dispatch_count += count
        if self._dispatch_count >= DISPATCHES_A_SUBMISSION:
            self._dispatch_count = 0
            self.runtime.submit()

    def note(self, failure: Error) -> None:
        """Keeps what the host found wrong for the next synchronisation to raise."""
        self._noted.append(failure)

    def kept(self, make: Callable[[Device], T]) -> T:
        """What `make` made of this device when it was first asked for."""
        with self._lock:
            if make not in self._kept:
                self._kept[make] = make(self)
            return self._kept[make]

    def facts(self, kernel: nodes.Kernel) -> KernelFacts:
        """What launches ask of `kernel`."""
        return self._facts.get(kernel) or self._facts.setdefault(kernel, KernelFacts(kernel))

    def stages(self, kernel: nodes.Kernel, choice: Choice) -> tuple[Stage, ...]:
        """The dispatches of `kernel` for `choice`, lowered and compiled once."""
        by_choice = self._stages.get(kernel)
        if by_choice is not None and choice in by_choice:
            return by_choice[choice]
        with self._lock:
            by_choice = self._stages.setdefault(kernel, {})
            if choice not in by_choice:
                with Work(kernel.name, "lowering"):
                    by_choice[choice] = self._made(kernel, choice)
            return by_choice[choice]

    def has_stages(self, kernel: nodes.Kernel, mode: Mode) -> bool:
        """Whether `kernel` has been run in `mode`."""
        return any(choice.mode is mode for choice in self._stages.get(kernel) or ())

    def foresee(self, kernel: nodes.Kernel, choice: Choice) -> None:
        """Begins to lower and to compile, beside what goes on, what `stages` will be asked for."""
        if isinstance(kernel, PrebuiltKernel):
            return
        with self._lock:
            by_choice = self._foreseen.setdefault(kernel, {})
            if choice not in by_choice:
                variant = self.variant(choice)
                by_choice[choice] = Foreseen(kernel, choice.mode, variant, self.runtime)

    def _made(self, kernel: nodes.Kernel, choice: Choice) -> tuple[Stage, ...]:
        if not isinstance(kernel, PrebuiltKernel):
            return self._lowered(kernel, choice)
        refusal: Error | None = None
        for dispatches in kernel.dispatches(choice, self.capabilities):
            try:
                return tuple(self.stage(one, kernel.name) for one in dispatches)
            except CompileError as failure:
                refusal = refusal or failure  # naga may take the code of another target.
        assert refusal is not None
        raise refusal

    def _lowered(self, kernel: nodes.Kernel, choice: Choice) -> tuple[Stage, ...]:
        # Kernels of ours have no line: array functions run by them do.
        with nullcontext() if kernel.reported_name else AtUserLine():
            foreseen = self._foreseen.setdefault(kernel, {}).pop(choice, None)
            lowered = None if foreseen is None else foreseen.found()
            if lowered is None:
                lowered = lowered_now(kernel, choice.mode, self.variant(choice))
            return tuple(self.stage(one, kernel.reported_name) for one in lowered)

    def stage(self, lowered: Lowered, kernel: str) -> Stage:
        """A lowered program, compiled; reports name `kernel`, where it is not empty."""
        pipeline = self.runtime.pipeline(lowered.program)
        site_base = len(self._sites)
        self._sites += [(kernel, site) for site in lowered.sites]
        return Stage(lowered, pipeline, site_base)

    def variant(self, choice: Choice) -> Variant:
        """`choice` on this device."""
        known = self.capabilities
        return Variant(
            wanted=choice.wanted,
            bounds=choice.bounds,
            checks=choice.checks,
            launch_shaped=choice.launch_shaped,
            device_uniforms=choice.device_uniforms,
            accumulate=choice.accumulate,
            natural=choice.natural,
            with_results=choice.with_results,
            is_one_thread=choice.is_one_thread,
            atomics=known.atomics,
            subgroups="subgroups" in known.features,
            storage_buffer_limit=known.storage_buffer_limit,
            is_parallel=known.is_parallel,
            host=f"`{known.adapter}`",
            features=known.features,
        )


_entered: ContextVar[tuple[Device, ...]] = ContextVar("shaderad_devices", default=())


@dataclass
class _Default:
    """The default device outside of ``with``."""

    lock: threading.Lock
    device: Device | None = None
    is_opened: bool = False
    """Whether the program opened it, or chose it by `use`."""

    def renew_lock(self) -> None:
        """In a forked process: whoever had the lock goes on in the parent alone."""
        self.lock = threading.Lock()

    @property
    def gives_way(self) -> bool:
        """Whether the next device that is opened takes its place."""
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
        runtime: ``"wgpu"``, ``"slangpy"``, or `None` for the best there is; the environment
            variable `SHADERAD_DEVICE` chooses where `None` is given.
        adapter: Part of an adapter's name, or its position among those of `sad.devices()`.
        native: A `wgpu.GPUDevice` or `slangpy.Device` to use instead of opening one.
        limits: Fields of the capabilities to force down, such as ``storage_buffer_limit=8``.

    Raises:
        DeviceError: SR0601 to SR0603, where there is no such runtime or adapter; SR0622 in a
            process that was forked off while a device was open.
    """
    opened = Device(open_runtime(runtime, adapter=adapter, native=native, limits=limits))
    with _default.lock:
        if _default.gives_way:
            _default.device, _default.is_opened = opened, True
    return opened


def asked_device(asked: Any) -> Device | None:
    """What was given as ``device=``; `None` where nothing was.

    Raises:
        DeviceError: SR0651 for anything but a device.
    """
    if asked is not None and not isinstance(asked, Device):
        raise error("SR0651", found=type(asked).__name__)
    return asked


def check_same(found: Device, device: Device, name: str) -> None:
    """Raises SR0650 where `name`, on the device `found`, is given to a call on another one."""
    if found is device:
        return
    other = f"another {found}" if repr(found) == repr(device) else str(found)
    subject = name if " " in name else f"`{name}`"
    raise error("SR0650", subject=subject, found=other, device=device)


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
