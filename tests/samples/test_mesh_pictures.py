"""The mesh sample's pictures, curves and page, from made-up numbers: no device."""

from __future__ import annotations

import io
import re
from html.parser import HTMLParser
from pathlib import Path
from shutil import copytree
from types import ModuleType
from xml.etree import ElementTree

import numpy as np
import pytest
from PIL import Image

from tests.samples import browser
from tests.samples.loading import ROOT, SAMPLES, module_of

FOLDER = SAMPLES / "mesh_interpolation"
SVG = "{http://www.w3.org/2000/svg}"


def part(name: str) -> ModuleType:
    return module_of(FOLDER / f"{name}.py", f"mesh_{name}")


def decoded(data: bytes) -> Image.Image:
    return Image.open(io.BytesIO(data))


def test_a_png_has_the_gamma_of_displays_and_cuts_off_what_is_too_bright() -> None:
    pictures = part("pictures")
    pixels = np.array([[[0.0, 0.5**2.2, 1.0], [-1.0, 7.0, 0.25**2.2]]])
    found = np.asarray(decoded(pictures.png(pixels)))
    np.testing.assert_array_equal(found, [[[0, 128, 255], [0, 255, 64]]])


def test_a_smaller_picture_holds_means_and_drops_what_fills_no_pixel() -> None:
    pictures = part("pictures")
    pixels = np.arange(5 * 5 * 3, dtype=float).reshape(5, 5, 3)
    found = pictures.smaller(pixels, 2)
    assert found.shape == (1, 1, 3)
    np.testing.assert_allclose(found[0, 0], pixels[:3, :3].mean((0, 1)))
    np.testing.assert_array_equal(pictures.smaller(pixels, 5), pixels)


def test_an_animation_has_every_frame_and_starts_again() -> None:
    pictures = part("pictures")
    frames = [np.full((8, 8, 3), shade, np.uint8) for shade in (0, 120, 240)]
    with decoded(pictures.webp(frames)) as animation:
        assert animation.n_frames == 3
        assert animation.info["loop"] == 0
        animation.seek(2)
        assert np.asarray(animation.convert("RGB")).mean() > 200


def numbers_of(polyline: str) -> np.ndarray:
    return np.array([pair.split(",") for pair in polyline.split()], float)


def test_a_curve_is_straight_where_a_loss_falls_by_the_same_factor() -> None:
    chart = part("chart")
    root = ElementTree.fromstring(chart.svg([(k, 0.5 * 0.9**k) for k in range(0, 101, 10)]))
    (line,) = root.iter(f"{SVG}polyline")
    slopes = np.diff(numbers_of(line.attrib["points"]), axis=0)
    np.testing.assert_allclose(slopes, np.broadcast_to(slopes[0], slopes.shape), atol=0.11)
    assert (slopes > 0).all()
    said = [text.text for text in root.iter(f"{SVG}text") if text.text]
    assert {"mean squared error", "PSNR, dB", "step", "0", "100", "40"} <= set(said)


@pytest.mark.parametrize("losses", [[], [0.25], [0.0], [1.0, float("nan"), float("inf")]])
def test_a_curve_is_drawn_of_whatever_can_be_drawn(losses: list[float]) -> None:
    chart = part("chart")
    root = ElementTree.fromstring(chart.svg(list(enumerate(losses))))
    drawn = sum(0 < loss < float("inf") for loss in losses)
    points = [numbers_of(line.attrib["points"]) for line in root.iter(f"{SVG}polyline")]
    assert sum(map(len, points)) == drawn
    assert all(np.isfinite(places).all() for places in points)


GREEN, BLUE = (0.0, 1.0, 0.0), (0.0, 0.0, 1.0)
SLANG = """\
// generated
void of_a_normal(int face)
{
    addGradient<float3, mesh_normals_in>(face, 3, 0, float3(1.0));
}

void Mesh_interpolate_bwd(int face, float2 uv)
{
    if (face > 0)
    {
        addGradient<float3, mesh_colors_in>(face, 3, 0, float3(1.0));
    }
}

void other()
{
}
"""


class Page(HTMLParser):
    """The tags of a page, and what it would have to fetch."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.fetched: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.fetched += [
            value for name, value in attrs
            if name in ("src", "href") and value and not value.startswith("data:")
        ]  # fmt: skip


@pytest.fixture
def page(tmp_path: Path) -> str:
    """A report of a fit whose pictures are one colour each."""
    report, pictures, chart = part("report"), part("pictures"), part("chart")
    (tmp_path / "spirv").mkdir()
    (tmp_path / "spirv/shade_bwd.slang").write_text(SLANG)
    copytree(ROOT / "shaders", tmp_path / "shaderad")
    green, blue = (pictures.png(np.full((64, 64, 3), color)) for color in (GREEN, BLUE))
    return report.Report(
        attribute="colors",
        numbers={"PSNR": "41 dB"},
        pictures=[report.Picture("Fit", green), report.Picture("Difference: at most 1", blue)],
        progress=[
            report.Picture(
                "Fit", pictures.webp([pictures.displayed(np.full((64, 64, 3), BLUE))]), "webp"
            ),
            report.Picture("Loss", chart.svg([(0, 0.1), (9, 0.01)])),
        ],
        gradients=[report.Picture("After 1 step", green)],
        sections=[report.Section("All views", [report.Picture("View 1", green)])],
        command="python main.py --out 'a b'",
        device="<b>card</b>",
    ).page(tmp_path)


def test_a_report_holds_all_that_it_shows_and_runs_no_script(page: str) -> None:
    read = Page(page)
    assert read.fetched == []
    assert "script" not in read.tags
    assert read.tags.count("img") == 5
    assert read.tags.count("figcaption") == 9
    assert "&lt;b&gt;card&lt;/b&gt;" in page
    assert "--out &#x27;a b&#x27;" in page
    shown = re.sub(r"<[^>]+>", "", page)
    assert "def interpolate(" in shown
    assert "void Mesh_interpolate_bwd(int face, float2 uv)" in shown
    assert "void other" not in shown
    assert "of_a_normal" not in shown
    assert "T.addCotangent" in shown
    assert "storedCotangent" not in shown


@browser.needed
def test_a_browser_shows_every_picture_of_a_report(page: str, tmp_path: Path) -> None:
    (tmp_path / "report.html").write_text(page)
    module_of(SAMPLES / "pictures.py").screenshot(
        tmp_path / "report.html", tmp_path / "report.png", (1000, 2400)
    )
    with Image.open(tmp_path / "report.png") as shot:
        assert shot.size == (1000, 2400)
        shown = np.asarray(shot.convert("RGB")).astype(int)

    def columns(color: tuple[float, float, float]) -> int:
        """The widest line of pixels of `color`."""
        wanted = 255 * np.array(color)
        return int((abs(shown - wanted).max(-1) < 8).sum(1).max())

    # Two pictures in a row, an animation beside a chart, a gradient over the whole width.
    assert columns(GREEN) > 900
    assert 400 < columns(BLUE) < 500
    curve = abs(shown - (0xD9, 0x62, 0x2B)).max(-1) < 8
    assert curve.any(0).sum() > 300
