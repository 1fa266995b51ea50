"""Compiled entry points -> the answers of validators, and naga's verdicts for ``--vet``.

Validators run while other entry points are still compiled. Invariants: judgements come in the order
of the entry points, even if validators answer in another order; answers are cached on disk by code
and version of the validator.

naga reads SPIR-V and WGSL for wgpu. It refuses some correct code, and crashes the process on some.
With its verdicts in the manifest, a host with the same wgpu-native need not vet the code itself.
`sad.load` ignores them and trusts only the cache of its own machine, which vetting fills here.
Invariant: the verdicts are complete or the build fails, so the bytes of a build depend only on its
options and on the version of wgpu-native.
"""

from __future__ import annotations

import functools
import importlib.metadata
import re
import threading
from collections.abc import Callable, Iterable
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import replace

import msgspec

from shaderad.bundle.format.document import Verdicts
from shaderad.bundle.write.programs import EntryPoint
from shaderad.compiler.artifact import BindingAccess, Code, Program
from shaderad.compiler.cache import Cache, default_cache, key_of
from shaderad.compiler.child import Child
from shaderad.compiler.compile import code_with_lines
from shaderad.compiler.formats import FORMATS, NAGA
from shaderad.compiler.own_sources import VETTING, digest_of
from shaderad.compiler.validate import (
    Judgement,
    Status,
    VettingDevice,
    ask_naga,
    tool_identity,
    validate,
    validator_names,
    vet,
)
from shaderad.diagnostics import Error, Span, error

_QUESTION = "judgement 2"
"""The version of the checks; a new one invalidates cached judgements."""


class Validators:
    """All validators of a build; its owner calls `close`."""

    def __init__(self, formats: Iterable[str] = (), *, cache: Cache | None = None) -> None:
        """`formats` are the formats of the code to check."""
        self._cache = cache or default_cache()
        self._naga = Naga()
        # naga runs in a child process, and each tool in one process per question. Both run in
        # parallel with the compiler.
        self._naga_thread = ThreadPoolExecutor(1, "naga")
        self._tool_thread = ThreadPoolExecutor(1, "validators")
        self._asked: list[tuple[EntryPoint, str, Span, Future[Judgement | None]]] = []
        self._wakes_naga = any(NAGA in FORMATS[each].validators for each in formats)
        self._waking = threading.Lock()

    def compilation_starts(self) -> None:
        """Opens naga's device while the compiler runs. Called before the first compilation."""
        with self._waking:  # Programs are compiled in parallel.
            if self._wakes_naga:
                self._wakes_naga = False
                self._naga_thread.submit(self._naga.open)

    def ask(self, points: Iterable[EntryPoint], target: str, span: Span) -> None:
        """Submits `points` of a target; `span` is the definition of their kernel or graph."""
        for point in points:
            names = validator_names(point.code.format)
            self._asked += [(point, target, span, self._answer(point, name)) for name in names]

    def answers(self) -> tuple[Judgement, ...]:
        """All judgements, in the order of the entry points.

        Raises:
            CompileError: SR0712, if a validator refuses an entry point.
        """
        judgements: list[Judgement] = []
        for point, target, span, future in self._asked:
            judgement = future.result()
            if judgement is None:
                continue
            if judgement.status is Status.REFUSED:
                raise error(
                    "SR0712",
                    _line_refused(point, judgement) or span,
                    validator=judgement.validator,
                    entry=point.lowered.program.name,
                    target=target,
                    reason=judgement.reason,
                )
            judgements.append(judgement)
        return tuple(judgements)

    def close(self) -> None:
        """Cancels open questions and ends naga's process."""
        self._tool_thread.shutdown(cancel_futures=True)
        self._naga_thread.shutdown(cancel_futures=True)
        self._naga.close()

    def _answer(self, point: EntryPoint, name: str) -> Future[Judgement | None]:
        key = self._key(point, name)
        cached = self._cached(key)
        if cached is None:
            thread = self._naga_thread if name == NAGA else self._tool_thread
            return thread.submit(self._judgement, point, name, key)
        answer: Future[Judgement | None] = Future()
        answer.set_result(cached)
        return answer

    def _judgement(self, point: EntryPoint, name: str, key: str) -> Judgement | None:
        code, entry = point.code, point.lowered.program.name
        judgement = self._naga(code, entry) if name == NAGA else validate(code, entry, name)
        if judgement is not None and judgement.status is not Status.UNAVAILABLE:
            self._cache.put(key, msgspec.msgpack.encode(judgement))
        return judgement

    def _cached(self, key: str) -> Judgement | None:
        """The cached judgement of this validator version about the same code."""
        stored = self._cache.get(key) if key else None
        try:
            return msgspec.msgpack.decode(stored, type=Judgement) if stored else None
        except msgspec.MsgspecError:
            return None

    @staticmethod
    def _key(point: EntryPoint, name: str) -> str:
        """The key in the cache; empty if the validator is missing."""
        code, entry = point.code, point.lowered.program.name
        version = naga_version() if name == NAGA else tool_identity(name)
        return key_of(_QUESTION, version, code.format, entry, code.content) if version else ""


def _line_refused(point: EntryPoint, judgement: Judgement) -> Span | None:
    """The Python line that a validator refuses, if the validator's text names a line."""
    program = point.lowered.program
    code = code_with_lines(program, point.code.format)
    again = code and validate(code, program.name, judgement.validator)
    for line in again.reason.splitlines() if again else ():
        place = _SLANG_LINE.search(line) if "error" in line.lower() else None
        if place is not None and 0 < int(place[1]) <= len(program.spans):
            return program.spans[int(place[1]) - 1]
    return None


_SLANG_LINE = re.compile(r"kernel_[0-9a-f]+\.slang[:(](\d+)")
"""Matches a line of the generated text, but not of the library."""


@functools.cache
def naga_version() -> str:
    """Versions of wgpu, which contains naga, and of our code; empty if wgpu is not installed."""
    try:
        return f"wgpu {importlib.metadata.version('wgpu')} {digest_of(VETTING)}"
    except importlib.metadata.PackageNotFoundError:
        return ""


class Naga:
    """Checks WGSL by wgpu in a child process, which opens a device at the first question."""

    def __init__(self) -> None:
        self._child = Child()

    def __call__(self, code: Code, entry: str) -> Judgement:
        try:
            verdict = ask_naga(code, entry, self._child)
        except Error as failure:
            return Judgement(NAGA, Status.UNAVAILABLE, failure.message)
        if not verdict.is_final:
            return Judgement(NAGA, Status.UNAVAILABLE, verdict.reason)
        status = Status.ACCEPTED if verdict.is_accepted else Status.REFUSED
        return Judgement(NAGA, status, verdict.reason)

    def open(self) -> None:
        """Starts the process and opens its device before the first question."""
        self(_NOTHING, "nothing")

    def close(self) -> None:
        """Ends the process if it was started."""
        self._child.close()


_NOTHING = Code("wgsl", b"@compute @workgroup_size(1) fn nothing() {}")


def verdicts_of(points: Iterable[tuple[str, EntryPoint]], tell: Callable[[str], None]) -> Verdicts:
    """The verdicts on the SPIR-V and WGSL files.

    Args:
        points: Every entry point, with the file of its code.
        tell: Called with a line about each file before naga reads it.

    Raises:
        DeviceError: SR0602, SR0603, if wgpu has no device.
        CompileError: SR0750, if the device lacks what a program needs; SR0757, if naga gives no
            verdict; SR0506, if the child process does not start.
    """
    from shaderad.runtime.devices import vetting_device
    from shaderad.runtime.naga import READABLE_BY_NAGA, layout_of

    device = vetting_device()
    accepts: dict[str, bool] = {}
    for file, point in points:
        program, code = point.lowered.program, point.code
        if code.format not in READABLE_BY_NAGA:
            continue
        missing = _missing(program, device)
        if missing:
            raise error("SR0750", file=file, adapter=device.adapter, missing=", ".join(missing))
        tell(f"naga on {file}")
        built = replace(program, code=code)
        verdict = vet(code, program.name, device, layout_of(built, code.format, device))
        if not verdict.is_final:
            raise error("SR0757", file=file, reason=verdict.reason)
        accepts[file] = verdict.is_accepted
    return Verdicts(device.version, dict(sorted(accepts.items())))


def _missing(program: Program, device: VettingDevice) -> list[str]:
    """The features and storage buffers that the program needs but the device lacks."""
    missing = [f"`{feature}`" for feature in sorted(program.features - device.offers)]
    count = sum(b.access is not BindingAccess.UNIFORM for b in program.bindings)
    is_crowded = count > device.limits["max-storage-buffers-per-shader-stage"]
    return [*missing, f"{count} storage buffers"] if is_crowded else missing
