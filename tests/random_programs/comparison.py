"""One program on one device against the float64 oracle: primal, vjp, jvp, moved gradients.

Where float32 itself is the difference, a program says nothing: the oracle in float32, and again
at inputs and in arithmetic that are a unit in the last place away, tell how far rounding may lead;
in arithmetic further away where the sines of a driver are.
Nor where the sign of a zero is.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from enum import Enum
from typing import Any

import numpy as np

import shaderad as sad
from shaderad.arrays.tape import When
from shaderad.differentiate.linearised import linearised
from tests.agreement import moved_gradients
from tests.driver_accuracy import sine_error
from tests.oracle import Oracle, oracle
from tests.random_programs.inputs import directions
from tests.random_programs.leaves import Leaves, cotangent_of, floats_in, leaves_of
from tests.random_programs.programs import Program
from tests.random_programs.roundings import rounded_otherwise
from tests.random_programs.zeros import without_zeros

# float32 and some hundred operations; sums of 130 threads in any order.
RTOL, ATOL = 2e-4, 2e-5
# A result to which float32 gives fewer digits than this is not compared.
CONDITION_LIMIT = 1e-2
# How much further than the float32 oracle, or than a moved input, another float32 may be off.
ROUNDING_FACTOR = 50.0
# Every so many programs are differentiated twice.
SECOND_STRIDE = 2
REFUSALS = {
    "vjp": frozenset({"SR0412", "SR0415", "SR0417", "SR0507"}),
    "jvp": frozenset({"SR0412", "SR0417", "SR0507"}),
    "hvp": frozenset({"SR0412", "SR0415", "SR0417", "SR0507"}),
}
"""Codes by which a random program may be refused: no forward derivative, too many states of loops,
too many buffers for gradients, or for the device."""
LAST_PLACES = 2.4e-7
"""Two units in the last place of float32."""


class Outcome(Enum):
    """What came of one program."""

    AGREES = "agrees"
    REFUSED = "refused"
    ILL_CONDITIONED = "ill-conditioned"
    MISMATCH = "mismatch"
    FAILED = "failed"
    """The kernel did not compile or run."""


@dataclass(frozen=True)
class Verdict:
    """The outcome, and where and why."""

    outcome: Outcome
    detail: str = ""

    @property
    def is_fault(self) -> bool:
        return self.outcome in (Outcome.MISMATCH, Outcome.FAILED)


@dataclass(frozen=True)
class _Question:
    """One mode: what the device says, and how to ask an oracle the same."""

    mode: str
    ask: Callable[[], Leaves]
    expect: Callable[[Oracle], Leaves]


def compare(program: Program, device: sad.Device) -> Verdict:
    """Runs `program` on `device`, the current one, in every mode that it has."""
    try:
        return _Comparison(program, device).run()
    except sad.Error as failure:
        return Verdict(Outcome.FAILED, f"{failure.code}: {failure}")


class _Comparison:
    def __init__(self, program: Program, device: sad.Device) -> None:
        self._program = program
        self._device = device
        self._call = {**program.call, "device": device}
        self._kernel = program.kernel()
        self._args = program.values()
        self._exact = self._oracle(self._args)
        self._rough = self._oracle(self._args, np.float32)
        self._others: list[tuple[float, Oracle]] = []
        """Asked when something is off, with how their arithmetic rounds."""

    def _oracle(
        self, args: tuple[Any, ...], precision: Any = np.float64, kernel: Any = None
    ) -> Oracle:
        with np.errstate(all="ignore"):
            return oracle(kernel or self._kernel, *args, **self._program.call, precision=precision)

    def run(self) -> Verdict:
        if not self._reports_as_the_oracle():
            found = self._exact.reports[0]
            return Verdict(Outcome.MISMATCH, f"reports: none, the oracle has {found}")
        refused, is_rough = "", False
        for question in self._questions():
            try:
                found = question.ask()
            except sad.Error as failure:
                if failure.code not in REFUSALS.get(question.mode, ()):
                    return Verdict(Outcome.FAILED, f"{question.mode} {failure.code}: {failure}")
                refused = f"{question.mode} {failure.code}"
                continue
            try:
                verdict = self._judged(question, found)
            except sad.DerivativeError as failure:
                # The oracle asks for derivatives also where none is used.
                if failure.code not in REFUSALS.get(question.mode, ()):
                    raise
                refused = f"{question.mode} {failure.code}, says the oracle"
                continue
            if verdict.is_fault:
                return verdict
            is_rough = is_rough or verdict.outcome is Outcome.ILL_CONDITIONED
        if is_rough:
            return Verdict(Outcome.ILL_CONDITIONED)
        return Verdict(Outcome.REFUSED, refused) if refused else Verdict(Outcome.AGREES)

    def _reports_as_the_oracle(self) -> bool:
        """Half of the programs run with ``bounds="raise"``, which raises where it should only."""
        is_reported = [bool(o.reports) for o in (self._exact, self._rough)]
        if self._program.seed % 2 == 0 or len(set(is_reported)) > 1:
            return True
        watched = {**self._call, "bounds": "raise"}
        if not self._exact.reports:
            self._call = watched  # In every mode: what is raised then is a fault.
            return True
        try:
            self._kernel(*self._args, **watched)
            self._device.synchronize()
        except (sad.BoundsError, sad.LimitError):
            return True
        return False

    def _questions(self) -> Iterator[_Question]:
        kernel, args, call = self._kernel, self._args, self._call
        random = np.random.default_rng(self._program.seed)
        # The first argument holds floats; now and then one of the others has no tangent.
        is_moved = [True, *(random.random(len(args) - 1) < 0.85)]
        dots = tuple(
            directions(a, random) if m else None for a, m in zip(args, is_moved, strict=True)
        )
        found = kernel(*args, **call)
        outs = _tuple(found)
        yield _Question("primal", lambda: leaves_of(outs), lambda o: leaves_of(_tuple(o.out)))
        bars = tuple(cotangent_of(o, random) for o in outs)
        bar = bars if len(bars) > 1 else bars[0]
        # Half of the programs compute results and gradients by one dispatch, where they can.
        when = When.WITH_GRADIENTS if self._program.seed % 4 in (1, 2) else When.NOW

        def pulled() -> Leaves:
            at = linearised(kernel, args, call, when=when)
            gradients = at.pull(bar, range(len(args)), None)
            return floats_in(leaves_of((at.out, tuple(gradients))))

        def pushed() -> Leaves:
            _, out_dot = sad.jvp(kernel, args, dots, **call)
            return floats_in(leaves_of(_tuple(out_dot)))

        def pulled_exactly(o: Oracle) -> Leaves:
            return floats_in(leaves_of((o.out, o.vjp(bar))))

        yield _Question("vjp", pulled, pulled_exactly)
        yield _Question("jvp", pushed, lambda o: floats_in(leaves_of(_tuple(o.jvp(dots)))))
        if self._program.seed % SECOND_STRIDE == 0:
            yield self._moved(bar, dots)

    def _moved(self, bars: Any, dots: tuple[Any, ...]) -> _Question:
        """How gradients move."""

        def moved() -> Leaves:
            found = moved_gradients(self._kernel, self._args, self._call, bars, dots)
            return floats_in(leaves_of(found))

        return _Question("hvp", moved, lambda o: floats_in(leaves_of(o.moved(bars, dots))))

    def _judged(self, question: _Question, found: Leaves) -> Verdict:
        exact = _asked(question, self._exact)
        rough = _asked(question, self._rough)
        if set(found) != set(exact):
            return Verdict(Outcome.MISMATCH, f"{question.mode}: {set(found) ^ set(exact)}")
        if _worst(found, exact, [rough]) is None:
            is_rough = any(_is_rough(exact[p], rough[p]) for p in exact)
            return Verdict(Outcome.ILL_CONDITIONED if is_rough else Outcome.AGREES)
        worst = _worst(found, exact, [rough, *self._nearby(question)])
        if worst is None:
            return Verdict(Outcome.ILL_CONDITIONED)
        return Verdict(Outcome.MISMATCH, f"{question.mode}{worst}")

    def _nearby(self, question: _Question) -> Iterator[Leaves]:
        """What oracles a little away say: in inputs, in arithmetic, in the signs of zeros."""
        if not self._others:
            self._others = list(self._ask_others())
        for relative, other in self._others:
            with rounded_otherwise(relative):
                yield _asked(question, other)

    def _ask_others(self) -> Iterator[tuple[float, Oracle]]:
        for sign in (1, -1):
            yield 0.0, self._oracle(self._program.values(sign * LAST_PLACES))
            nudge = sign * max(LAST_PLACES, 4 * sine_error(self._device))
            with rounded_otherwise(nudge):
                rounded = self._oracle(self._args)
            yield nudge, rounded
        for other in without_zeros(self._program):
            yield 0.0, self._oracle(self._args, kernel=other.kernel())


def _asked(question: _Question, one: Oracle) -> Leaves:
    with np.errstate(all="ignore"):
        return question.expect(one)


def _tuple(value: Any) -> tuple[Any, ...]:
    return value if isinstance(value, tuple) else (value,)


def _worst(found: Leaves, exact: Leaves, rough: list[Leaves]) -> str | None:
    """The element furthest beyond what rounding explains; `None` where there is none."""
    with np.errstate(all="ignore"):
        return _worst_of(found, exact, rough)


def _worst_of(found: Leaves, exact: Leaves, rough: list[Leaves]) -> str | None:
    scale = max((_size(wanted) for wanted in exact.values()), default=0.0)
    for path, wanted in exact.items():
        given = found[path]
        if wanted.shape != given.shape:
            return f"{path}: shape {given.shape}, the oracle's is {wanted.shape}"
        off = np.abs(given.astype(np.float64) - wanted.astype(np.float64))
        allowed = _allowed(wanted, [r[path] for r in rough], scale)
        # What is not finite carries no promise beyond being so.
        excess = np.where(np.isfinite(wanted), off - allowed, -1.0)
        excess = np.where(
            np.isnan(off) & np.isfinite(wanted) & np.isfinite(allowed), np.inf, excess
        )
        if excess.size and float(np.max(excess)) > 0:
            at = np.unravel_index(int(np.argmax(excess)), excess.shape)
            return f"{path}{[int(k) for k in at]}: {given[at]}, the oracle says {wanted[at]}"
    return None


def _allowed(wanted: np.ndarray, rough: list[np.ndarray], scale: float) -> np.ndarray:
    spread = np.zeros(wanted.shape)
    for other in rough:
        spread = np.fmax(spread, np.abs(other.astype(np.float64) - wanted.astype(np.float64)))
        spread = np.where(np.isfinite(other) | ~np.isfinite(wanted), spread, np.inf)
    if wanted.dtype.kind != "f":
        return np.where(spread > 0, np.inf, 0.0)
    # What cancels has been as large as its neighbours, and perhaps as other results.
    size = max(_size(wanted), 0.2 * scale, 1e-2)
    return ROUNDING_FACTOR * spread + RTOL * np.abs(wanted) + ATOL * size


def _size(numbers: np.ndarray) -> float:
    """The largest finite magnitude."""
    return float(np.abs(numbers[np.isfinite(numbers)]).max(initial=0.0))


def _is_rough(exact: np.ndarray, other: np.ndarray) -> bool:
    """Whether float32 loses most digits of something."""
    if exact.dtype.kind != "f":
        return bool(np.any(exact != other))
    both = np.isfinite(exact) & np.isfinite(other)
    scale = max(_size(exact), 1e-2)
    return bool(np.any(np.abs(exact[both] - other[both]) > CONDITION_LIMIT * scale))
