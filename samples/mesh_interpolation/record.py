"""Runs a fit and keeps its pictures, losses and times.

The device is read only between groups of steps, and the times are those of the groups.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np

from fit import Fit, PositionFit
from pictures import Bytes, Pixels, displayed, smaller

LOOKS = 48
"""The number of looks at a fit; each is a frame of the animation."""
FRAME_EDGE = 512


@dataclass
class Record:
    """The pictures and numbers of a fit so far."""

    start: Pixels
    target: Pixels
    losses: list[tuple[int, float]] = field(default_factory=list[tuple[int, float]])
    """The number of steps before each loss, and the loss."""
    vertex_errors: list[tuple[int, float]] = field(default_factory=list[tuple[int, float]])
    """The number of steps, and the vertex error after them; only if positions are fitted."""
    frames: list[Bytes] = field(default_factory=list[Bytes])
    gradients: dict[int, Pixels] = field(default_factory=dict[int, Pixels])
    """The heat maps by the number of steps."""
    step_ms: list[float] = field(default_factory=list[float])
    """Milliseconds per step of each group; the first one includes the compilation."""

    @property
    def loss(self) -> float:
        return self.losses[-1][1] if self.losses else float("nan")

    @property
    def milliseconds_a_step(self) -> float:
        return statistics.median(self.step_ms[1:] or self.step_ms or [float("nan")])


def looks(steps: int, most: int = LOOKS) -> list[int]:
    """The steps after which to look: the first and the last, and more often early on."""
    shares = np.linspace(0, 1, most) ** 2
    return sorted({max(1, round(steps * share)) for share in shares.tolist()})


def begun(fit: Fit) -> Record:
    """The record of a fit before its first step."""
    record = Record(pixels(fit, "start"), pixels(fit, "target"))
    look(fit, record)
    return record


def followed(fit: Fit, steps: int, record: Record, seen: Callable[[int, float], None]) -> None:
    """Runs the steps of `fit`, and passes the number of steps and the loss to `seen`."""
    places = looks(steps)
    telling = {places[0], places[len(places) // 3]}
    for last in places:
        count, start = last - fit.steps_done, time.perf_counter()
        for _ in range(count):
            fit.step()
        loss = fit.loss()
        record.step_ms.append(1e3 * (time.perf_counter() - start) / count)
        record.losses.append((last - 1, loss))
        look(fit, record)
        if last in telling:
            record.gradients[last] = pixels(fit, "gradient")
        seen(last, loss)


def look(fit: Fit, record: Record) -> None:
    """Keeps a picture and the loss between two steps."""
    record.frames.append(displayed(smaller(pixels(fit, "fit"), FRAME_EDGE)))
    if isinstance(fit, PositionFit):
        record.vertex_errors.append((fit.steps_done, fit.vertex_error().now))


def pixels(fit: Fit, show: str, view: int = 0) -> Pixels:
    """A picture of `fit`, read from the device."""
    return fit.picture(show, view=view).numpy()
