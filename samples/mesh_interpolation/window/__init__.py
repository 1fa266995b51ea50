"""A window on a running fit: orbit the mesh, change the learning rate, pause, start over.

Pictures stay on the device: shaderad's arrays are wgpu buffers, which the window's own pipeline
reads. Only the loss comes back to the host.
"""

from __future__ import annotations

import importlib
import warnings
from pathlib import Path

from PIL import Image

import shaderad as sad

WINDOW_SIZE = (1140, 800)
"""In logical pixels."""
PACKAGES = ("rendercanvas", "glfw", "imgui_bundle")


class WindowError(Exception):
    """The reason why a window cannot open, in one line for the user."""


def run(attribute: str, size: int | None = None, runtime: str | None = None) -> None:
    """Opens a window; returns when it is closed.

    Args:
        attribute: One of `fit.ATTRIBUTES`.
        size: The size of the pictures in pixels; `None` for the default of the attribute.
        runtime: The runtime that the user requested, if any.

    Raises:
        WindowError: A package or a display is missing, or the runtime is not wgpu.
        DeviceError: wgpu finds no device.
    """
    _check(runtime)
    _check_display()
    # Before the canvas, which would make wgpu look for OpenGL, too.
    device = sad.open_device("wgpu")
    from rendercanvas.glfw import RenderCanvas, loop

    from window.viewer import Viewer

    title = "shaderad: mesh interpolation"
    canvas = RenderCanvas(size=WINDOW_SIZE, title=title, update_mode="ondemand", max_fps=60)
    viewer = Viewer(device, canvas, attribute, size)
    loop.run()
    viewer.close()


def screenshot(
    file: Path, attribute: str, size: int | None, steps: int, runtime: str | None = None
) -> None:
    """Writes a picture of the window after `steps` steps; needs no display.

    Raises:
        WindowError: A package is missing, or the runtime is not wgpu.
        DeviceError: wgpu finds no device.
    """
    _check(runtime)
    from rendercanvas.offscreen import OffscreenRenderCanvas

    from window.viewer import Viewer

    canvas = OffscreenRenderCanvas(size=WINDOW_SIZE, pixel_ratio=1)
    viewer = Viewer(sad.open_device("wgpu"), canvas, attribute, size)
    shown = canvas.draw()
    while not canvas.get_closed() and viewer.steps_done < steps:
        shown = canvas.draw()
        if viewer.player is not None:
            viewer.player.steps_wanted = 1
    viewer.close()
    Image.fromarray(shown[..., :3]).save(file, "PNG", optimize=True)


def _check(runtime: str | None) -> None:
    if runtime not in (None, "wgpu"):
        raise WindowError(f"the window shares the device of wgpu, which {runtime} does not use")
    try:
        for name in PACKAGES:
            importlib.import_module(name)
    except ImportError as failure:
        message = f"the window cannot load {failure.name}: pip install '.[window]' in the clone"
        raise WindowError(message) from failure


def _check_display() -> None:
    """Checks for a display, because GLFW only warns, and ends the process at its first window."""
    import glfw

    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        if glfw.init():
            return
    reason = str(said[0].message) if said else "GLFW does not say why"
    raise WindowError(f"no display to open a window on: {reason}")
