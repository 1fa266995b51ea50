"""The state behind the window: a fit that runs, pauses and starts over.

This depends neither on the window nor on wgpu. It reads back only the loss, every `FRAMES_PER_LOSS`
frames.
"""

from __future__ import annotations

from collections import deque

import shaderad as sad
from fit import Fit
from window.orbit import Orbit

SHOWN = ("fit", "start", "target", "difference", "gradient")
SECONDS_PER_FRAME = 1 / 30
"""If frames take longer than this, a frame gets fewer steps, and otherwise more again."""
MOST_STEPS_PER_FRAME = 32
FRAMES_PER_LOSS = 4
LOSSES_KEPT = 512


class Player:
    """One fit, its speed, and its camera."""

    def __init__(self, fit: Fit) -> None:
        self.fit = fit
        self.show = "fit"
        self.is_running = True
        self.steps_wanted = 4
        """The steps per frame, if there is time for them."""
        self.first_lr = fit.lr
        self.orbit = Orbit.of(fit.views[0])
        self.losses: deque[float] = deque(maxlen=LOSSES_KEPT)
        """The losses that were read back, the newest last."""
        self._paced_steps = 1
        self._frames_since_loss = 0

    def look_from(self, view: int) -> None:
        """Moves the camera to that of target number `view`."""
        self.orbit = Orbit.of(self.fit.views[view])

    def toggle(self) -> None:
        """Pauses or resumes."""
        self.is_running = not self.is_running

    def step(self) -> None:
        """Makes one step and pauses."""
        self.is_running = False
        self.fit.step()
        self._read_loss()

    def reset(self) -> None:
        """Returns to the start, with the first learning rate."""
        self.fit.reset()
        self.fit.lr = self.first_lr
        self.losses.clear()

    def advance(self, frame_seconds: float, least: int = 1) -> None:
        """Makes the steps of a frame, at least `least`; the last frame took `frame_seconds`."""
        if not self.is_running:
            return
        if frame_seconds > SECONDS_PER_FRAME:
            self._paced_steps = max(least, self._paced_steps // 2)
        else:
            self._paced_steps = min(MOST_STEPS_PER_FRAME, self._paced_steps + 1)
        for _ in range(min(self.steps_wanted, self._paced_steps)):
            self.fit.step()
        self._frames_since_loss += 1
        if self._frames_since_loss >= FRAMES_PER_LOSS:
            self._read_loss()

    def _read_loss(self) -> None:
        self._frames_since_loss = 0
        self.losses.append(self.fit.loss())

    def picture(self) -> sad.Array:
        """The current picture, in device memory."""
        return self.fit.picture(self.show, camera=self.orbit.camera)
