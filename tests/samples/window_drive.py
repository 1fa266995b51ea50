"""Drives the mesh sample's window on a display of its own, and keeps what was seen."""

from __future__ import annotations

import gc
import os
import subprocess
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pytest
from PIL import ImageGrab

from shaderad.runtime.wgpu_waits import StagedRead

Pixels = np.ndarray[Any, np.dtype[np.uint8]]

ATTRIBUTE = "colors"
SIZE = 192
PICTURE_BYTES = SIZE * SIZE * 12
STEPS_WATCHED = 30
POLL_SECONDS = 0.02
PANEL = (1000.0, 700.0)
"""A place on it without a control."""
CALM_SECONDS = 0.15
"""Without a frame: what events asked for was drawn."""
GIVE_UP_SECONDS = 200
"""Compiling on a machine that is busy otherwise takes a minute."""


@contextmanager
def display() -> Iterator[None]:
    """An X server with one screen, as the display of this process."""
    import glfw

    reading, writing = os.pipe()
    command = ["Xvfb", "-displayfd", str(writing), "-screen", "0", "1280x900x24"]
    with (
        subprocess.Popen(command, pass_fds=[writing], stderr=subprocess.DEVNULL) as server,
        pytest.MonkeyPatch.context() as patch,
    ):
        os.close(writing)
        with os.fdopen(reading) as number:
            patch.setenv("DISPLAY", f":{number.readline().strip()}")
        patch.delenv("WAYLAND_DISPLAY", raising=False)
        yield
        # GLFW would end the process if the display went first.
        gc.collect()
        glfw.terminate()
        server.terminate()


def screen() -> Pixels:
    return np.asarray(ImageGrab.grab(xdisplay=os.environ["DISPLAY"]).convert("RGB"))


@dataclass
class Traffic:
    """What crosses between host and device, in bytes."""

    up: int = 0
    down: list[int] = field(default_factory=list)

    @contextmanager
    def watched(self, device: Any) -> Iterator[None]:
        queue, buffer = type(device.queue), type(device.create_buffer(size=16, usage="COPY_DST"))
        write, texture, map_async = queue.write_buffer, queue.write_texture, buffer.map_async
        read = StagedRead.__init__

        def count_up(self_: Any, target: Any, offset: Any, data: Any, *rest: Any) -> None:
            self.up += memoryview(data).nbytes
            write(self_, target, offset, data, *rest)

        def count_texture(self_: Any, target: Any, data: Any, *rest: Any) -> None:
            self.up += memoryview(data).nbytes
            texture(self_, target, data, *rest)

        def count_down(self_: Any, mode: Any, offset: int = 0, size: int | None = None) -> Any:
            self.down.append(self_.size - offset if size is None else size)
            return map_async(self_, mode, offset, size)

        def count_read(self_: Any, device: Any, staging: Any, byte_count: int) -> None:
            self.down.append(byte_count)
            read(self_, device, staging, byte_count)

        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(StagedRead, "__init__", count_read)
            patch.setattr(queue, "write_buffer", count_up)
            patch.setattr(queue, "write_texture", count_texture)
            patch.setattr(buffer, "map_async", count_down)
            yield


@dataclass
class Seen:
    """What the window did."""

    screens: dict[str, Pixels] = field(default_factory=dict)
    psnrs: list[float] = field(default_factory=list)
    traffic: Traffic = field(default_factory=Traffic)
    frames_watched: int = 0
    paused_at: tuple[int, int] = (0, 0)
    """Steps done when it was paused, and later."""
    stepped: int = 0
    lrs: tuple[float, float] = (0.0, 0.0)
    """Before and after its slider was dragged."""
    steps_after_reset: int = -1
    is_done: bool = False


class Driver:
    """What a user does, through the events of the canvas."""

    def __init__(self, viewer: Any, seen: Seen) -> None:
        self.viewer = viewer
        self.canvas = viewer.canvas
        self.seen = seen
        self.frames = 0
        self.is_down = False
        self.canvas.add_event_handler(self._count, "before_draw")

    def _count(self, _: Any) -> None:
        self.frames += 1

    async def run(self) -> None:
        try:
            await self._watch()
            await self._pause_and_step()
            await self._turn()
            await self._change_rate()
            await self._resize()
            await self._reset()
            self.seen.is_done = True
        finally:
            self.canvas.close()

    async def _until(self, condition: Callable[[], bool]) -> None:
        from rendercanvas.utils.asyncs import sleep

        for _ in range(int(GIVE_UP_SECONDS / POLL_SECONDS)):
            if condition():
                return
            await sleep(POLL_SECONDS)
        raise TimeoutError("the window does not do what it should")

    async def _calm(self) -> None:
        from rendercanvas.utils.asyncs import sleep

        before = -1
        while before != self.frames:
            before = self.frames
            await sleep(CALM_SECONDS)

    def _pointer(self, kind: str, x: float, y: float, button: int = 0) -> None:
        is_down = kind == "pointer_down" or (kind == "pointer_move" and self.is_down)
        self.is_down = is_down
        buttons = (1,) if is_down else ()
        self.canvas.submit_event(
            {"event_type": kind, "x": x, "y": y, "button": button, "buttons": buttons,
             "modifiers": ()}
        )  # fmt: skip

    async def _drag(
        self, start: tuple[float, float], move: tuple[float, float], *, at_once: bool = False
    ) -> None:
        """`at_once`: all of it between two frames."""
        end = start[0] + move[0], start[1] + move[1]
        for kind, place, button in (
            ("pointer_move", start, 0), ("pointer_down", start, 1),
            ("pointer_move", end, 0), ("pointer_up", end, 1),
        ):  # fmt: skip
            self._pointer(kind, *place, button)
            if not at_once:
                await self._calm()
        await self._calm()

    async def _press(self, key: str) -> None:
        for kind in ("key_down", "key_up"):
            self.canvas.submit_event({"event_type": kind, "key": key, "modifiers": ()})
        await self._calm()

    async def _watch(self) -> None:
        await self._until(lambda: self.viewer.steps_done > 0)
        first_frame, first_step = self.frames, self.viewer.steps_done
        with self.seen.traffic.watched(self.viewer.device.native):
            await self._until(lambda: self.viewer.steps_done >= first_step + STEPS_WATCHED)
        self.seen.frames_watched = self.frames - first_frame
        await self._until(lambda: len(self.viewer.player.losses) > 1)

    async def _pause_and_step(self) -> None:
        await self._press(" ")
        paused_at = self.viewer.steps_done
        await self._calm()
        self.seen.paused_at = paused_at, self.viewer.steps_done
        await self._press("s")
        self.seen.stepped = self.viewer.steps_done - self.seen.paused_at[1]
        from fit import psnr

        self.seen.psnrs = [psnr(loss) for loss in self.viewer.player.losses]

    async def _turn(self) -> None:
        screens = self.seen.screens
        screens["first"] = screen()
        self._pointer("pointer_move", *PANEL)
        await self._calm()  # the panel believes that the pointer is over it until its next frame
        await self._drag((300, 400), (150, 40), at_once=True)
        screens["turned"] = screen()
        await self._press("c")
        screens["centered"] = screen()
        self.canvas.submit_event(
            {"event_type": "wheel", "dx": 0, "dy": -300, "x": 300, "y": 400, "modifiers": ()}
        )
        await self._calm()
        screens["zoomed"] = screen()

    async def _change_rate(self) -> None:
        y, x = slider_handle(self.seen.screens["first"])
        before = self.viewer.player.fit.lr
        await self._drag((x, y), (60, 0))
        self.seen.lrs = before, self.viewer.player.fit.lr

    async def _resize(self) -> None:
        for size in ((1, 1), (150, 500), (700, 500)):
            self.canvas.set_logical_size(*size)
            await self._calm()
        self.seen.screens["small"] = screen()

    async def _reset(self) -> None:
        await self._press("r")
        self.seen.steps_after_reset = self.viewer.steps_done


ACCENT = (230, 140, 66)
"""What the handle of a slider looks like, 8 bits a channel."""


def is_accent(shown: Pixels) -> np.ndarray[Any, np.dtype[np.bool_]]:
    return np.abs(shown.astype(int) - ACCENT).max(-1) <= 6


def slider_handle(shown: Pixels) -> tuple[float, float]:
    """The middle of the highest handle: row, column."""
    rows, columns = np.nonzero(is_accent(shown) & (np.arange(shown.shape[1]) > 820))
    highest = rows < rows.min() + 20
    return float(rows[highest].mean()), float(columns[highest].mean())
