"""Events of a canvas -> a player; its picture and the controls -> the canvas."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import shaderad as sad
from fit import fit_of
from kernels import BACKGROUND
from window.controls import WIDTH, Controls
from window.player import Player
from window.presenter import Box, Presenter

PIXELS_PER_NOTCH = 100
"""The units of rendercanvas for one notch of a wheel."""
FRAMES_AFTER_AN_EVENT = 3
"""Frames in which the controls settle; without changes, nothing is drawn."""
INPUT = ("pointer_down", "pointer_move", "pointer_up", "pointer_leave", "wheel", "key_down",
         "key_up", "resize")  # fmt: skip


class Viewer:
    """Shows the fit of one attribute on a canvas that shares its device."""

    def __init__(self, device: sad.Device, canvas: Any, attribute: str, size: int | None) -> None:
        self.device = device
        self.canvas = canvas
        self.attribute = attribute
        self.size = size
        self.player: Player | None = None
        """The fit; `None` after an attribute is chosen until its fit is compiled."""
        self.failure: Exception | None = None
        """The exception that ended the viewer."""
        self._players: dict[str, Player] = {}
        self._is_announced = False
        self._drag: tuple[float, float] | None = None
        self._frames_wanted = 0
        self._frame_began = time.perf_counter()
        self._presenter = Presenter(device.native, canvas)
        self._controls = Controls(self)
        # Before the handlers of the controls, which consume events if the pointer was over a
        # control in the last frame.
        self._listen(self._on_input, *INPUT)
        self._listen(self._on_pointer, "pointer_down", "pointer_move", "pointer_up")
        self._listen(self._on_wheel, "wheel")
        self._listen(self._on_key, "key_down")
        canvas.request_draw(self.draw)

    def choose(self, attribute: str) -> None:
        """Switches to the fit of another attribute, which continues if it was shown before."""
        self.attribute = attribute
        self.player = self._players.get(attribute)
        self._frames_wanted = FRAMES_AFTER_AN_EVENT

    @property
    def steps_done(self) -> int:
        return 0 if self.player is None else self.player.fit.steps_done

    def close(self) -> None:
        """Closes the canvas and the device, and raises the exception that ended the frames."""
        self.canvas.close()
        self.device.close()
        if self.failure is not None:
            raise self.failure

    @contextmanager
    def _on_device(self) -> Iterator[None]:
        """Surrounds callbacks of rendercanvas: a failure closes the window; `close` raises it."""
        try:
            with self.device:
                yield
        except Exception as failure:
            self.failure = failure
            self.canvas.close()

    def draw(self) -> None:
        """Draws one frame."""
        with self._on_device():
            self._prepare()
            self._frame()

    def _prepare(self) -> None:
        """Compiles the chosen fit after a frame has announced it."""
        if self.player is None and self._is_announced:
            fit = fit_of(self.attribute, self.size)
            fit.step()  # compiles, too
            fit.reset()
            self.player = self._players[self.attribute] = Player(fit)
            self._frames_wanted = FRAMES_AFTER_AN_EVENT
        self._is_announced = self.player is None

    def _frame(self) -> None:
        began, self._frame_began = self._frame_began, time.perf_counter()
        player = self.player
        if player is None:
            self._presenter.show(None, self._box(), BACKGROUND)
        else:
            # A step may take longer than a picture, so a drag first moves the mesh.
            player.advance(self._frame_began - began, least=1 if self._drag is None else 0)
            background = 0.0 if player.show == "difference" else BACKGROUND
            self._presenter.show(player.picture(), self._box(), background)
        self._controls.draw()
        self._frames_wanted -= 1
        if self._frames_wanted > 0 or self.player is None or self.player.is_running:
            self.canvas.request_draw()

    def _box(self) -> Box:
        """The largest square beside the panel, centred."""
        ratio = self.canvas.get_pixel_ratio()
        width, height = self.canvas.get_physical_size()
        width -= WIDTH * ratio
        edge = max(0.0, min(width, height))
        return (width - edge) / 2, (height - edge) / 2, edge

    # -- events ----------------------------------------------------------------------------

    def _listen(self, handler: Callable[[dict[str, Any]], None], *kinds: str) -> None:
        def heard(event: dict[str, Any]) -> None:
            with self._on_device():
                handler(event)

        self.canvas.add_event_handler(heard, *kinds, order=-100)

    def _is_beside_panel(self, event: dict[str, Any]) -> bool:
        return event["x"] < self.canvas.get_logical_size()[0] - WIDTH

    def _on_input(self, _: dict[str, Any]) -> None:
        self._frames_wanted = FRAMES_AFTER_AN_EVENT
        self.canvas.request_draw()

    def _on_pointer(self, event: dict[str, Any]) -> None:
        """Turns the mesh while the left button is down."""
        place = event["x"], event["y"]
        if event["event_type"] == "pointer_down" and event["button"] == 1:
            self._drag = place if self._is_beside_panel(event) else None
        elif 1 not in event["buttons"]:
            self._drag = None
        elif self._drag is not None and self.player is not None:
            (x, y), self._drag = self._drag, place
            self.player.orbit = self.player.orbit.dragged(place[0] - x, place[1] - y)

    def _on_wheel(self, event: dict[str, Any]) -> None:
        if self.player is not None and self._is_beside_panel(event):
            self.player.orbit = self.player.orbit.zoomed(-event["dy"] / PIXELS_PER_NOTCH)

    def _on_key(self, event: dict[str, Any]) -> None:
        if self.player is None:
            return
        match event["key"]:
            case " ":
                self.player.toggle()
            case "s":
                self.player.step()
            case "r":
                self.player.reset()
            case "c":
                self.player.look_from(0)
            case "Escape":
                self.canvas.close()
            case _:
                pass
