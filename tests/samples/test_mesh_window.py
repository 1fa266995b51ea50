"""The mesh sample's window: off screen, and a real one on a display of its own."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from PIL import Image

from tests.samples.loading import SAMPLES
from tests.samples.window_drive import (
    ATTRIBUTE,
    PICTURE_BYTES,
    SIZE,
    Driver,
    Pixels,
    Seen,
    display,
    is_accent,
)

FOLDER = SAMPLES / "mesh_interpolation"
PICTURE_COLUMNS = 820
"""What the panel leaves to the picture."""
BACKGROUND = 37
"""Of the picture, in each channel of 8 bits."""
LOSS_BYTES = 64
"""One float, and what kernels report in the same round trip."""
CLOSE = 1e-9
"""Float64, a few operations."""


@pytest.fixture
def sample(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """The sample's files import one another by their short names."""
    known = set(sys.modules)
    monkeypatch.syspath_prepend(str(FOLDER))
    yield
    for name in set(sys.modules) - known:
        if str(FOLDER) in str(getattr(sys.modules[name], "__file__", "")):
            del sys.modules[name]


@pytest.fixture
def window(sample: None) -> Any:
    for package in ("rendercanvas", "glfw", "imgui_bundle"):
        pytest.importorskip(package)
    import window

    return window


# -- without a device ----------------------------------------------------------------------


class FakeFit:
    """Counts what is asked of it."""

    def __init__(self) -> None:
        self.lr = 0.5
        self.steps_done = self.losses_read = 0
        eye, right, up = np.array([0.0, 3.0, 4.0]), np.array([1.0, 0, 0]), np.array([0, 0.8, -0.6])
        camera = SimpleNamespace(eye=eye, right=right, up=up, forward=-eye / 5, focal=2.0)
        self.views = [camera]

    def step(self) -> None:
        self.steps_done += 1

    def loss(self) -> float:
        self.losses_read += 1
        return 0.1

    def reset(self) -> None:
        self.steps_done = 0


@pytest.fixture
def player(sample: None) -> Any:
    from window.player import Player

    return Player(FakeFit())


def test_frames_that_take_long_get_fewer_steps(player: Any) -> None:
    player.steps_wanted = 16
    for _ in range(20):
        player.advance(0.001)
    before = player.fit.steps_done
    player.advance(0.001)
    assert player.fit.steps_done - before == 16
    for _ in range(10):
        player.advance(0.2)
    before = player.fit.steps_done
    player.advance(0.2)
    assert player.fit.steps_done - before == 1
    player.advance(0.2, least=0)
    assert player.fit.steps_done - before == 1


def test_the_loss_is_read_every_fourth_frame(player: Any) -> None:
    for _ in range(32):
        player.advance(0.001)
    assert player.fit.losses_read == len(player.losses) == 8


def test_nothing_advances_while_paused(player: Any) -> None:
    player.toggle()
    player.advance(0.001)
    assert player.fit.steps_done == player.fit.losses_read == 0


def test_reset_gives_the_learning_rate_back(player: Any) -> None:
    player.step()
    player.fit.lr = 3.0
    player.reset()
    assert player.fit.lr == 0.5
    assert not player.losses
    assert player.fit.steps_done == 0


def test_an_orbit_starts_at_the_camera_of_the_target(player: Any) -> None:
    wanted, found = player.fit.views[0], player.orbit.camera
    for name in ("eye", "right", "up", "forward"):
        np.testing.assert_allclose(getattr(found, name), getattr(wanted, name), atol=CLOSE)


def test_an_orbit_keeps_its_distance_and_looks_at_its_center(player: Any) -> None:
    camera = player.orbit.dragged(123, -45).zoomed(2).camera
    distance = np.linalg.norm(camera.eye)
    assert distance == pytest.approx(5 * 0.9**2)
    np.testing.assert_allclose(camera.forward, -camera.eye / distance, atol=CLOSE)
    axes = np.stack([camera.right, camera.up, camera.forward])
    np.testing.assert_allclose(axes @ axes.T, np.eye(3), atol=CLOSE)


def test_an_orbit_stops_short_of_the_poles(player: Any) -> None:
    camera = player.orbit.dragged(0, 100_000).camera
    assert 0.99 < camera.eye[1] / np.linalg.norm(camera.eye) < 1


# -- what keeps it from opening ------------------------------------------------------------


def refused(*arguments: str, **changes: str) -> str:
    """What the command says on stderr where it ends with 2."""
    environment = {**os.environ, **changes}
    for name in ("DISPLAY", "WAYLAND_DISPLAY"):
        environment.pop(name, None)
    done = subprocess.run(
        [sys.executable, FOLDER / "main.py", "--window", *arguments],
        capture_output=True, text=True, timeout=120, check=False, env=environment,
    )  # fmt: skip
    assert done.returncode == 2
    assert "Traceback" not in done.stderr
    return done.stderr


def test_without_a_display_the_command_says_so(window: Any) -> None:
    assert "error: no display to open a window on: " in refused()


def test_another_runtime_is_refused() -> None:
    assert "shares the device of wgpu" in refused("--runtime", "slangpy")


def test_a_machine_without_a_driver_is_told_so(window: Any, tmp_path: Path) -> None:
    nowhere = str(tmp_path / "none.json")
    found = refused("--screenshot", "w.png", VK_DRIVER_FILES=nowhere, VK_ICD_FILENAMES=nowhere)
    assert "error[SR0602]" in found


def test_a_missing_package_is_named_with_its_remedy(tmp_path: Path) -> None:
    (tmp_path / "rendercanvas.py").write_text("raise ModuleNotFoundError(name='rendercanvas')")
    path = os.pathsep.join([str(tmp_path), *filter(None, [os.environ.get("PYTHONPATH")])])
    message = refused(PYTHONPATH=path)
    assert "cannot load rendercanvas: pip install '.[window]' in the clone" in message


# -- with a device -------------------------------------------------------------------------


def mesh_in(shown: Pixels) -> np.ndarray[Any, Any]:
    """Which pixels of the picture show the mesh."""
    return (np.abs(shown[:800, :PICTURE_COLUMNS].astype(int) - BACKGROUND) > 2).any(-1)


def change(a: Pixels, b: Pixels) -> float:
    """The mean distance of the two pictures, in shades of 255."""
    first, second = (x[:800, :PICTURE_COLUMNS].astype(float) for x in (a, b))
    return float(np.abs(first - second).mean())


@pytest.mark.gpu
@pytest.mark.slow
def test_a_screenshot_shows_the_mesh_beside_the_panel(window: Any, tmp_path: Path) -> None:
    window.screenshot(tmp_path / "window.png", ATTRIBUTE, SIZE, steps=4)
    shown = np.asarray(Image.open(tmp_path / "window.png"))
    assert shown.shape == (*window.WINDOW_SIZE[::-1], 3)
    assert 0.1 < mesh_in(shown).mean() < 0.6
    assert is_accent(shown).any()


@pytest.mark.gpu
def test_a_frame_that_fails_closes_the_window_and_says_why(
    window: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import fit

    def lose(_: Any) -> None:
        raise RuntimeError("lost")

    monkeypatch.setattr(fit.ColorFit, "step", lose)
    with pytest.raises(RuntimeError, match="lost"):
        window.screenshot(tmp_path / "window.png", ATTRIBUTE, SIZE, steps=4)


@pytest.fixture
def seen(window: Any, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture) -> Seen:
    """A window that was opened, driven and closed."""
    if shutil.which("Xvfb") is None:
        pytest.skip("Xvfb is not installed")
    from rendercanvas.glfw import loop

    import window.viewer

    make, found = window.viewer.Viewer, Seen()

    def driven(*arguments: Any) -> Any:
        viewer = make(*arguments)
        loop.add_task(Driver(viewer, found).run)
        return viewer

    monkeypatch.setattr(window.viewer, "Viewer", driven)
    monkeypatch.setenv("SHADERAD_DEVICE", "none")  # a second device cannot be opened
    with display():
        window.run(ATTRIBUTE, SIZE)
    assert found.is_done
    assert not caplog.records  # rendercanvas logs what handlers of events raise
    return found


@pytest.mark.gpu
@pytest.mark.slow
def test_a_window_fits_while_it_is_turned_and_resized(seen: Seen) -> None:
    screens = seen.screens
    assert 0.1 < mesh_in(screens["first"]).mean() < 0.6
    assert change(screens["first"], screens["turned"]) > 2
    assert change(screens["first"], screens["centered"]) == 0
    assert mesh_in(screens["zoomed"]).sum() > 1.3 * mesh_in(screens["first"]).sum()
    assert mesh_in(screens["small"])[:500, :380].any()

    assert seen.psnrs[-1] > seen.psnrs[0] + 1
    assert seen.paused_at[0] == seen.paused_at[1]
    assert seen.stepped == 1
    assert seen.lrs[1] > 1.5 * seen.lrs[0]
    assert seen.steps_after_reset == 0

    # Far less than a picture a frame goes up, for the panel; of what comes down all is losses.
    assert seen.traffic.up < 0.25 * PICTURE_BYTES * seen.frames_watched
    assert max(seen.traffic.down) <= LOSS_BYTES
    assert len(seen.traffic.down) <= seen.frames_watched / 4 + 1
