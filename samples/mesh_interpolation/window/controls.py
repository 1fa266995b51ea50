"""The panel beside the picture: its texts, and the methods that it calls.

Invariant: every control only calls a method, so keys and tests need no panel.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING

import imgui_bundle
import numpy as np
from imgui_bundle import imgui
from imgui_bundle.imgui import Col_, ImVec2, ImVec4
from wgpu.utils.imgui import ImguiRenderer

from fit import ATTRIBUTES, psnr
from window.player import MOST_STEPS_PER_FRAME, SHOWN, Player

if TYPE_CHECKING:
    from window.viewer import Viewer

WIDTH = 320
"""The width of the panel in logical pixels."""
LR_DECADES = 1.5
"""The range of the learning rate's slider to each side of the first rate, in powers of ten."""
IN_RANGE = imgui.SliderFlags_.always_clamp
HIGHEST_PSNR = 120.0
"""The top of the curve, which cannot show the infinite PSNR of a loss of 0."""
PLOT_PIXELS = 110
BUTTONS_PER_ROW = 3
FONT = Path(imgui_bundle.__file__).parent / "assets" / "fonts" / "Roboto" / "Roboto-Regular.ttf"
TEXT_PIXELS = 16
TITLE_PIXELS = 26
HINTS = "drag: turn    wheel: zoom    C: first view\nspace: pause    S: step    R: reset"

ACCENT = ImVec4(0.90, 0.55, 0.26, 1)
COLORS = {
    Col_.window_bg: ImVec4(0.075, 0.08, 0.095, 1),
    Col_.text: ImVec4(0.90, 0.90, 0.91, 1),
    Col_.text_disabled: ImVec4(0.56, 0.58, 0.62, 1),
    Col_.frame_bg: ImVec4(0.14, 0.15, 0.18, 1),
    Col_.frame_bg_hovered: ImVec4(0.19, 0.20, 0.24, 1),
    Col_.frame_bg_active: ImVec4(0.19, 0.20, 0.24, 1),
    Col_.button: ImVec4(0.14, 0.15, 0.18, 1),
    Col_.button_hovered: ImVec4(0.22, 0.23, 0.28, 1),
    Col_.button_active: ImVec4(0.62, 0.35, 0.14, 1),
    Col_.slider_grab: ACCENT,
    Col_.slider_grab_active: ACCENT,
    Col_.plot_lines: ACCENT,
}
CHOSEN = ImVec4(0.55, 0.31, 0.13, 1)


class Controls:
    """Draws the panel and calls the viewer's methods."""

    def __init__(self, viewer: Viewer) -> None:
        self.viewer = viewer
        self.renderer = ImguiRenderer(viewer.device.native, viewer.canvas)
        self.renderer.set_gui(self._panel)
        imgui.get_io().fonts.add_font_from_file_ttf(str(FONT), TEXT_PIXELS)
        style = imgui.get_style()
        for color, value in COLORS.items():
            style.set_color_(color, value)
        style.frame_rounding = style.grab_rounding = 4
        style.window_border_size = 0
        style.window_padding, style.item_spacing = ImVec2(20, 18), ImVec2(8, 8)
        style.frame_padding = ImVec2(8, 6)

    def draw(self) -> None:
        """Draws the panel over the content of the canvas."""
        self.renderer.render()

    def _panel(self) -> None:
        width, height = self.viewer.canvas.get_logical_size()
        imgui.set_next_window_pos(ImVec2(max(0, width - WIDTH), 0))
        imgui.set_next_window_size(ImVec2(min(WIDTH, width), height))
        fixed = imgui.WindowFlags_.no_decoration | imgui.WindowFlags_.no_move
        imgui.begin("panel", flags=fixed | imgui.WindowFlags_.no_saved_settings)
        self._title()
        player = self.viewer.player
        if player is not None:
            _view(player)
            _speed(player)
            _progress(player)
        imgui.set_cursor_pos_y(max(imgui.get_cursor_pos_y(), height - 64))
        imgui.text_disabled(HINTS)
        imgui.end()

    def _title(self) -> None:
        imgui.push_font(None, TITLE_PIXELS)
        imgui.text("shaderad")
        imgui.pop_font()
        imgui.text_disabled("vertex attributes, fitted to pictures")
        viewer = self.viewer
        chosen = _choice("attribute", ATTRIBUTES, viewer.attribute)
        if chosen != viewer.attribute:
            viewer.choose(chosen)
        if viewer.player is None:
            imgui.text(f"compiling the fit of {viewer.attribute} ...")


def _view(player: Player) -> None:
    player.show = _choice("picture", SHOWN, player.show)
    count = len(player.fit.views)
    if count > 1:
        numbers = [str(k + 1) for k in range(count)]
        chosen = _choice("seen from", numbers, "", a_row=count)
        if chosen:
            player.look_from(int(chosen) - 1)


def _speed(player: Player) -> None:
    _label("learning rate", f"{player.fit.lr:.3g}")
    decades = math.log10(player.fit.lr / player.first_lr)
    moved, decades = imgui.slider_float("##lr", decades, -LR_DECADES, LR_DECADES, "", IN_RANGE)
    if moved:
        player.fit.lr = player.first_lr * 10.0**decades
    _label("steps a frame, at most", str(player.steps_wanted))
    _, player.steps_wanted = imgui.slider_int(
        "##steps", player.steps_wanted, 1, MOST_STEPS_PER_FRAME, "", IN_RANGE
    )
    imgui.spacing()
    pressed = _buttons(["pause" if player.is_running else "run", "step", "reset"])
    if pressed == "step":
        player.step()
    elif pressed == "reset":
        player.reset()
    elif pressed:
        player.toggle()


def _progress(player: Player) -> None:
    psnrs = [min(psnr(loss), HIGHEST_PSNR) for loss in player.losses]
    numbers = {"step": str(player.fit.steps_done)}
    if psnrs:
        numbers |= {"loss": f"{player.losses[-1]:.2e}", "PSNR": f"{psnrs[-1]:.1f} dB"}
    imgui.spacing()
    imgui.begin_table("numbers", BUTTONS_PER_ROW)
    for name in numbers:
        imgui.table_next_column()
        imgui.text_disabled(name)
    imgui.table_next_row()
    for text in numbers.values():
        imgui.table_next_column()
        imgui.text(text)
    imgui.end_table()
    imgui.plot_lines("##psnr", np.array(psnrs, np.float32), graph_size=ImVec2(-1, PLOT_PIXELS))


def _label(text: str, value: str = "") -> None:
    """Writes a label above the next control, which is as wide as the panel."""
    imgui.spacing()
    imgui.text_disabled(text)
    if value:
        imgui.same_line()
        imgui.set_cursor_pos_x(_inner_right() - imgui.calc_text_size(value).x)
        imgui.text(value)
    imgui.set_next_item_width(-1)


def _inner_right() -> float:
    return WIDTH - imgui.get_style().window_padding.x


def _choice(label: str, options: Iterable[str], chosen: str, a_row: int = BUTTONS_PER_ROW) -> str:
    """Draws a button for each option, with `chosen` lit; returns the pressed one, else `chosen`."""
    _label(label)
    return _buttons(list(options), chosen, a_row) or chosen


def _buttons(labels: list[str], lit: str = "", a_row: int = BUTTONS_PER_ROW) -> str | None:
    gap = imgui.get_style().item_spacing.x
    width = (WIDTH - 2 * imgui.get_style().window_padding.x - (a_row - 1) * gap) / a_row
    pressed = None
    for k, label in enumerate(labels):
        if k % a_row:
            imgui.same_line()
        if label == lit:
            for kind in (Col_.button, Col_.button_hovered):
                imgui.push_style_color(kind, CHOSEN)
        if imgui.button(label, ImVec2(width, 0)):
            pressed = label
        if label == lit:
            imgui.pop_style_color(2)
    return pressed
