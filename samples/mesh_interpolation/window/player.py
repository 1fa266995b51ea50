"""A fit that runs, pauses and starts over while somebody watches: the state behind the window.

Knows neither window nor wgpu. Reads nothing back but the loss, every `FRAMES_A_LOSS` frames.
"""

from __future__ import annotations

from collections import deque

import shaderad as sad
from fit import Fit
from window.orbit import Orbit

SHOWN = ("fit", "start", "target", "difference", "gradient")
SECONDS_A_FRAME = 1 / 30
"""A frame has fewer steps where frames take longer than this, and more again where they do not."""
MOST_STEPS_A_FRAME = 32
FRAMES_A_LOSS = 4
LOSSES_KEPT = 512


class Player:
    """One fit, how fast it runs, and from where it is seen."""

    def __init__(self, fit: Fit) -> None:
        self.fit = fit
        self.show = "fit"
        self.is_running = True
        self.steps_wanted = 4
        """A frame: as many are done as there is time for."""
        self.first_lr = fit.lr
        self.orbit = Orbit.of(fit.views[0])
        self.losses: deque[float] = deque(maxlen=LOSSES_KEPT)
        """Those read back, the newest last."""
        self._paced_steps = 1
        self._frames_since_loss = 0

    def look_from(self, view: int) -> None:
        """Stands where the target of that number was seen from."""
        self.orbit = Orbit.of(self.fit.views[view])

    def toggle(self) -> None:
        """Pauses, or goes on."""
        self.is_running = not self.is_running

    def step(self) -> None:
        """One step, and a pause after it."""
        self.is_running = False
        self.fit.step()
        self._read_loss()

    def reset(self) -> None:
        """Back to the start, at the first learning rate."""
        self.fit.reset()
        self.fit.lr = self.first_lr
        self.losses.clear()

    def advance(self, frame_seconds: float, least: int = 1) -> None:
        """The steps of a frame, when the last one took so long; `least` however long that was."""
        if not self.is_running:
            return
        if frame_seconds > SECONDS_A_FRAME:
            self._paced_steps = max(least, self._paced_steps // 2)
        else:
            self._paced_steps = min(MOST_STEPS_A_FRAME, self._paced_steps + 1)
        for _ in range(min(self.steps_wanted, self._paced_steps)):
            self.fit.step()
        self._frames_since_loss += 1
        if self._frames_since_loss >= FRAMES_A_LOSS:
            self._read_loss()

    def _read_loss(self) -> None:
        self._frames_since_loss = 0
        self.losses.append(self.fit.loss())

    def picture(self) -> sad.Array:
        """What is looked at, in device memory."""
        return self.fit.picture(self.show, camera=self.orbit.camera)
