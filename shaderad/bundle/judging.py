"""Compiled entry points -> what validators say of them, asked while others are still compiled.

Invariants: judgements come in the order of the entry points, whoever answers first; what a
validator said of the same code is kept on disk, and it is not asked again.
"""

from __future__ import annotations

import functools
import importlib.metadata
import re
import threading
from collections.abc import Iterable
from concurrent.futures import Future, ThreadPoolExecutor

import msgspec

from shaderad.bundle.programs import Dispatch
from shaderad.diagnostics import Error, Span, error
from shaderad.lower.artifact import Code
from shaderad.lower.cache import Cache, default_cache, key_of
from shaderad.lower.child import Child
from shaderad.lower.compile import ask_naga, code_with_lines
from shaderad.lower.validate import Judgement, Status, tool_identity, tool_names, validate

_KEPT = "judgement 2"
"""Raised whenever more is asked of code, so that earlier judgements are forgotten."""


class Judges:
    """Every validator of a build; `close` it."""

    def __init__(self, *, expects_wgsl: bool, cache: Cache | None = None) -> None:
        self._cache = cache or default_cache()
        self._naga = Naga()
        # naga has a process of its own, the others one for each question: both kinds answer while
        # the compiler goes on.
        self._naga_thread = ThreadPoolExecutor(1, "naga")
        self._tool_thread = ThreadPoolExecutor(1, "validators")
        self._asked: list[tuple[Dispatch, Span, Future[Judgement | None]]] = []
        self._wakes_naga = expects_wgsl
        self._waking = threading.Lock()

    def compilation_starts(self) -> None:
        """Opens naga's device beside the compiler, since new code will be there to judge."""
        with self._waking:  # Programs are compiled side by side.
            if self._wakes_naga:
                self._wakes_naga = False
                self._naga_thread.submit(self._naga.open)

    def ask(self, dispatches: Iterable[Dispatch], span: Span) -> None:
        """Has `dispatches` of what is at `span` judged."""
        for one in dispatches:
            names = ("naga",) if one.code.target == "wgsl" else tool_names(one.code.target)
            self._asked += [(one, span, self._answer(one, name)) for name in names]

    def answers(self) -> tuple[Judgement, ...]:
        """What they say, in the order of the entry points.

        Raises:
            CompileError: SR0712, where one refuses.
        """
        found: list[Judgement] = []
        for dispatch, span, future in self._asked:
            judgement = future.result()
            if judgement is None:
                continue
            if judgement.status is Status.REFUSED:
                raise error(
                    "SR0712",
                    _line_refused(dispatch, judgement) or span,
                    validator=judgement.validator,
                    entry=dispatch.lowered.program.name,
                    target=dispatch.code.target,
                    reason=judgement.reason,
                )
            found.append(judgement)
        return tuple(found)

    def close(self) -> None:
        """Asks no more, and ends naga's process."""
        self._tool_thread.shutdown(cancel_futures=True)
        self._naga_thread.shutdown(cancel_futures=True)
        self._naga.close()

    def _answer(self, dispatch: Dispatch, name: str) -> Future[Judgement | None]:
        key = self._key(dispatch, name)
        kept = self._kept(key)
        if kept is None:
            thread = self._naga_thread if name == "naga" else self._tool_thread
            return thread.submit(self._judgement, dispatch, name, key)
        known: Future[Judgement | None] = Future()
        known.set_result(kept)
        return known

    def _judgement(self, dispatch: Dispatch, name: str, key: str) -> Judgement | None:
        code, entry = dispatch.code, dispatch.lowered.program.name
        said = self._naga(code, entry) if name == "naga" else validate(code, entry, name)
        if said is not None and said.status is not Status.UNAVAILABLE:
            self._cache.put(key, msgspec.msgpack.encode(said))
        return said

    def _kept(self, key: str) -> Judgement | None:
        """What was said of this code before, by the same version of the validator."""
        stored = self._cache.get(key) if key else None
        try:
            return msgspec.msgpack.decode(stored, type=Judgement) if stored else None
        except msgspec.MsgspecError:
            return None

    @staticmethod
    def _key(dispatch: Dispatch, name: str) -> str:
        """Empty where the validator is missing."""
        code, entry = dispatch.code, dispatch.lowered.program.name
        judge = naga_version() if name == "naga" else tool_identity(code.target, name)
        return key_of(_KEPT, judge, code.target, entry, code.content) if judge else ""


def _line_refused(dispatch: Dispatch, judgement: Judgement) -> Span | None:
    """The Python line that a validator refuses, where its text can say which it is from."""
    target, program = dispatch.code.target, dispatch.lowered.program
    code = code_with_lines(program, target) if target == "hlsl" else None
    again = code and validate(code, program.name, judgement.validator)
    for line in again.reason.splitlines() if again else ():
        place = _SLANG_LINE.search(line) if "error" in line.lower() else None
        if place is not None and 0 < int(place[1]) <= len(program.spans):
            return program.spans[int(place[1]) - 1]
    return None


_SLANG_LINE = re.compile(r"kernel_[0-9a-f]+\.slang[:(](\d+)")
"""A line of the text that is written, not of the library."""


@functools.cache
def naga_version() -> str:
    """The version of wgpu, which carries naga; empty where it is missing."""
    try:
        return f"wgpu {importlib.metadata.version('wgpu')}"
    except importlib.metadata.PackageNotFoundError:
        return ""


class Naga:
    """Asks wgpu about WGSL, in a process of its own, which finds a device when first asked."""

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
        """Does ahead what the first question would wait for."""
        self(_NOTHING, "nothing")

    def close(self) -> None:
        """Ends the process, where one was started."""
        self._child.close()


_NOTHING = Code("wgsl", b"@compute @workgroup_size(1) fn nothing() {}")
