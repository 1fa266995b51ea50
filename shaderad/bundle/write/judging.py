"""Compiled entry points -> the answers of validators, asked while others are still compiled.

Invariants: judgements come in the order of the entry points, whichever validator answers first;
answers are cached on disk by code and version of the validator.
"""

from __future__ import annotations

import functools
import importlib.metadata
import re
import threading
from collections.abc import Iterable
from concurrent.futures import Future, ThreadPoolExecutor

import msgspec

from shaderad.bundle.write.programs import EntryPoint
from shaderad.compiler.artifact import Code
from shaderad.compiler.cache import Cache, default_cache, key_of
from shaderad.compiler.child import Child
from shaderad.compiler.compile import ask_naga, code_with_lines
from shaderad.compiler.validate import Judgement, Status, tool_identity, tool_names, validate
from shaderad.diagnostics import Error, Span, error

_QUESTION = "judgement 2"
"""The version of what is asked of code; a new one invalidates cached judgements."""


class Validators:
    """All validators of a build; its owner calls `close`."""

    def __init__(self, *, expects_wgsl: bool, cache: Cache | None = None) -> None:
        self._cache = cache or default_cache()
        self._naga = Naga()
        # naga runs in a child process, the tools in one process per question: both kinds answer
        # while the compiler goes on.
        self._naga_thread = ThreadPoolExecutor(1, "naga")
        self._tool_thread = ThreadPoolExecutor(1, "validators")
        self._asked: list[tuple[EntryPoint, Span, Future[Judgement | None]]] = []
        self._wakes_naga = expects_wgsl
        self._waking = threading.Lock()

    def compilation_starts(self) -> None:
        """Opens naga's device while the compiler runs; called before the first compilation."""
        with self._waking:  # Programs are compiled side by side.
            if self._wakes_naga:
                self._wakes_naga = False
                self._naga_thread.submit(self._naga.open)

    def ask(self, points: Iterable[EntryPoint], span: Span) -> None:
        """Asks about `points`; `span` is the definition of their kernel or graph."""
        for point in points:
            names = ("naga",) if point.code.target == "wgsl" else tool_names(point.code.target)
            self._asked += [(point, span, self._answer(point, name)) for name in names]

    def answers(self) -> tuple[Judgement, ...]:
        """All judgements, in the order of the entry points.

        Raises:
            CompileError: SR0712, if a validator refuses an entry point.
        """
        judgements: list[Judgement] = []
        for point, span, future in self._asked:
            judgement = future.result()
            if judgement is None:
                continue
            if judgement.status is Status.REFUSED:
                raise error(
                    "SR0712",
                    _line_refused(point, judgement) or span,
                    validator=judgement.validator,
                    entry=point.lowered.program.name,
                    target=point.code.target,
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
            thread = self._naga_thread if name == "naga" else self._tool_thread
            return thread.submit(self._judgement, point, name, key)
        answer: Future[Judgement | None] = Future()
        answer.set_result(cached)
        return answer

    def _judgement(self, point: EntryPoint, name: str, key: str) -> Judgement | None:
        code, entry = point.code, point.lowered.program.name
        judgement = self._naga(code, entry) if name == "naga" else validate(code, entry, name)
        if judgement is not None and judgement.status is not Status.UNAVAILABLE:
            self._cache.put(key, msgspec.msgpack.encode(judgement))
        return judgement

    def _cached(self, key: str) -> Judgement | None:
        """The judgement of the same validator version about the same code."""
        stored = self._cache.get(key) if key else None
        try:
            return msgspec.msgpack.decode(stored, type=Judgement) if stored else None
        except msgspec.MsgspecError:
            return None

    @staticmethod
    def _key(point: EntryPoint, name: str) -> str:
        """The key in the cache; empty if the validator is missing."""
        code, entry = point.code, point.lowered.program.name
        version = naga_version() if name == "naga" else tool_identity(code.target, name)
        return key_of(_QUESTION, version, code.target, entry, code.content) if version else ""


def _line_refused(point: EntryPoint, judgement: Judgement) -> Span | None:
    """The Python line that a validator refuses, if the validator's text names a line."""
    target, program = point.code.target, point.lowered.program
    code = code_with_lines(program, target) if target == "hlsl" else None
    again = code and validate(code, program.name, judgement.validator)
    for line in again.reason.splitlines() if again else ():
        place = _SLANG_LINE.search(line) if "error" in line.lower() else None
        if place is not None and 0 < int(place[1]) <= len(program.spans):
            return program.spans[int(place[1]) - 1]
    return None


_SLANG_LINE = re.compile(r"kernel_[0-9a-f]+\.slang[:(](\d+)")
"""A line of the generated text, not of the library."""


@functools.cache
def naga_version() -> str:
    """The version of wgpu, which contains naga; empty if wgpu is not installed."""
    try:
        return f"wgpu {importlib.metadata.version('wgpu')}"
    except importlib.metadata.PackageNotFoundError:
        return ""


class Naga:
    """Asks wgpu about WGSL in a child process, which opens a device at the first question."""

    def __init__(self) -> None:
        self._child = Child()

    def __call__(self, code: Code, entry: str) -> Judgement:
        from shaderad.runtime.routes import readable_by_naga

        try:
            verdict = ask_naga(readable_by_naga(code), entry, self._child)
        except Error as failure:
            return Judgement("naga", Status.UNAVAILABLE, failure.message)
        if not verdict.is_final:
            return Judgement("naga", Status.UNAVAILABLE, verdict.reason)
        status = Status.ACCEPTED if verdict.is_accepted else Status.REFUSED
        return Judgement("naga", status, verdict.reason)

    def open(self) -> None:
        """Starts the process and opens its device before the first question."""
        self(_NOTHING, "nothing")

    def close(self) -> None:
        """Ends the process if it was started."""
        self._child.close()


_NOTHING = Code("wgsl", b"@compute @workgroup_size(1) fn nothing() {}")
