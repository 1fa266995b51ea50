"""The mesh sample's page in Chromium: it fits as Python does, and its controls do what they say."""

from __future__ import annotations

import io
import json
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any
from urllib.parse import urlencode

import numpy as np
import pytest
from PIL import Image

import shaderad as sad
from tests.samples import browser
from tests.samples.browser import chromium
from tests.samples.host_folder import run
from tests.samples.loading import ROOT, SAMPLES, module_of

pytestmark = [pytest.mark.gpu, browser.needed, pytest.mark.slow]

WEB = SAMPLES / "mesh_interpolation" / "web"
prepare = module_of(WEB / "prepare.py", "prepare")
screenshot = module_of(WEB / "screenshot.py", "screenshot")
SIZE, STEPS = 128, 20
OFFERED = ("colors", "normals", "positions")
VIEWS = ("fit", "start", "target", "difference", "gradient")
LOSS_TOLERANCE = 1e-4
"""Relative: float32 sums in another order, through `STEPS` steps of Adam."""
ALIKE = 45.0
"""PSNR in dB: some pixels at outlines may show another triangle."""
SEEN_ALIKE = 24.0
"""PSNR in dB, of pictures that a page has stretched."""
TURNED = 20.0
"""PSNR in dB of a picture and one from another side: less."""
FITTED = """
const { Fit } = await import(new URL("fit.js", location));
const { sceneOf } = await import(new URL("scene.js", location));
const scene = await sceneOf(".");
const fit = await Fit.of(scene, ATTRIBUTE, SIZE, SIZE);
for (let k = 0; k < STEPS; k++) fit.step();
const found = { loss: await fit.loss() };
for (const show of VIEWS) {
  found[show] = [...new Float32Array(await scene.read(await fit.picture(show)))];
}
fit.reset();
fit.step();
found.firstLoss = await fit.loss();
return found;
"""
RUNNING = """(steps) => new Promise((done) => (function look() {
  if (Number(document.getElementById("steps").textContent) >= steps) done();
  else setTimeout(look, 20);
})())"""


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What `prepare.py` writes."""
    folder = tmp_path_factory.mktemp("page")
    run([sys.executable, WEB / "prepare.py", folder, "--subdivisions", "0"])
    return folder


@pytest.fixture(scope="module")
def device(wgpu_features: frozenset[str]) -> Iterator[sad.Device]:
    with sad.open_device("wgpu") as device:
        yield device
    device.close()


@pytest.fixture(scope="module")
def address(page: Path) -> Iterator[str]:
    with chromium.served(page) as address:
        yield address


@pytest.fixture(scope="module")
def tab(address: str) -> Iterator[Any]:
    """A browser that shows WebGPU's canvases."""
    with chromium.Tab(screenshot.WINDOW) as tab:
        yield tab


def open_page(tab: Any, address: str, **query: object) -> None:
    """Opens the page; small, for there is no GPU."""
    numbers = {"size": SIZE, "edge": SIZE, "steps": STEPS, **query}
    tab.open(f"{address}/index.html?{urlencode(numbers)}")


def rest(tab: Any) -> None:
    """Waits until the page shows what it should."""
    tab.value(screenshot.AT_REST)


def pixels(png: bytes | Path) -> Image.Image:
    with Image.open(png if isinstance(png, Path) else io.BytesIO(png)) as picture:
        return picture.convert("RGB")


def canvas_of(tab: Any) -> np.ndarray[Any, Any]:
    """What the page shows of the mesh, sRGB from 0 to 1."""
    box = tab.value("(({ x, y, width }) => [x, y, width])"
                    "(document.querySelector('canvas').getBoundingClientRect())")  # fmt: skip
    left, top, width = (round(one) for one in box)
    part = pixels(tab.picture()).crop((left, top, left + width, top + width))
    # The page stretches the canvas, smoothly; means over areas undo that, but for some blur.
    return np.asarray(part.resize((SIZE, SIZE), Image.Resampling.BOX), np.float32) / 255


def encoded(linear: Any) -> Any:
    """Linear light as sRGB."""
    x = np.clip(linear, 0, 1)
    return np.where(x <= 0.0031308, 12.92 * x, 1.055 * x ** (1 / 2.4) - 0.055)


def click(tab: Any, name: str) -> None:
    tab.value(f"document.getElementById({name!r}).click()")
    rest(tab)


def text(tab: Any, name: str) -> str:
    return tab.value(f"document.getElementById({name!r}).textContent")


def psnr(found: Any, wanted: Any) -> float:
    return float(-10 * np.log10(np.mean((found - wanted) ** 2) + 1e-12))


@pytest.fixture(scope="module")
def fits(device: sad.Device, mesh_sample: SimpleNamespace) -> dict[str, SimpleNamespace]:
    """By attribute the losses of the first and the last step in Python, and all pictures then."""
    return {name: fitted(mesh_sample.fit.ATTRIBUTES[name]) for name in OFFERED}


def fitted(kind: Any) -> SimpleNamespace:
    fit = kind(size=SIZE, subdivisions=0)
    fit.step()
    first_loss = fit.loss()
    for _ in range(STEPS - 1):
        fit.step()
    pictures = {show: fit.picture(show).numpy() for show in VIEWS}
    return SimpleNamespace(first_loss=first_loss, loss=fit.loss(), pictures=pictures)


@pytest.mark.sample(3)
@pytest.mark.parametrize("attribute", OFFERED)
def test_the_page_fits_as_python_does(
    tab: Any, address: str, fits: dict[str, SimpleNamespace], attribute: str
) -> None:
    names = {"SIZE": SIZE, "STEPS": STEPS, "VIEWS": VIEWS, "ATTRIBUTE": attribute}
    constants = "".join(f"const {name} = {json.dumps(one)};" for name, one in names.items())
    tab.open(f"{address}/scene.json")
    found = tab.value(f"(async () => {{ {constants} {FITTED} }})()")
    wanted = fits[attribute]
    assert found["firstLoss"] == pytest.approx(wanted.first_loss, rel=LOSS_TOLERANCE)
    assert found["loss"] == pytest.approx(wanted.loss, rel=LOSS_TOLERANCE)
    assert wanted.loss < 0.2 * wanted.first_loss
    for show, picture in wanted.pictures.items():
        assert psnr(np.reshape(found[show], picture.shape), picture) > ALIKE, show


def test_the_page_shows_its_fit(tab: Any, address: str, fits: dict[str, SimpleNamespace]) -> None:
    open_page(tab, address, direct=1)
    rest(tab)
    check_shown(tab, fits["colors"])


def test_a_browser_that_shows_no_canvas_of_webgpu_shows_a_copy(
    address: str, fits: dict[str, SimpleNamespace]
) -> None:
    with chromium.Tab(screenshot.WINDOW, chromium.WEBGPU) as tab:
        open_page(tab, address)
        rest(tab)
        check_shown(tab, fits["colors"])


def check_shown(tab: Any, wanted: SimpleNamespace) -> None:
    """Compares numbers, curve and views of the page with what Python finds."""
    assert text(tab, "steps") == str(STEPS)
    assert float(text(tab, "psnr")) == pytest.approx(-10 * np.log10(wanted.loss), abs=0.01)
    assert tab.value("document.querySelector('.line').getAttribute('d')").count("L") == 2
    seen = {"fit": canvas_of(tab)}
    for show in ("target", "difference", "gradient"):
        tab.value(f"document.querySelector('[value={show}]').click()")
        rest(tab)
        seen[show] = canvas_of(tab)
    for show, found in seen.items():
        near = {other: psnr(found, encoded(wanted.pictures[other])) for other in seen}
        assert max(near, key=near.__getitem__) == show
        assert near[show] > SEEN_ALIKE


def test_controls_do_what_they_say(tab: Any, address: str) -> None:
    open_page(tab, address)
    rest(tab)
    there, fitted = canvas_of(tab), float(text(tab, "psnr"))
    tab.drag((300, 500), (420, 540))
    rest(tab)
    assert psnr(canvas_of(tab), there) < TURNED
    tab.value("document.getElementById('view').dispatchEvent(new Event('dblclick'))")
    rest(tab)
    np.testing.assert_array_equal(canvas_of(tab), there)
    click(tab, "step")
    assert text(tab, "steps") == str(STEPS + 1)
    assert float(text(tab, "psnr")) != fitted
    tab.value("""{
      const rate = document.getElementById("lr");
      rate.value = -3;
      rate.dispatchEvent(new Event("input"));
    }""")
    assert text(tab, "lr-value") == "0.0010"
    click(tab, "reset")
    assert text(tab, "steps") == str(STEPS)
    assert float(text(tab, "psnr")) < fitted - 3
    assert text(tab, "dispatches").startswith("color_step_shade_primal")


def test_the_page_pauses_and_goes_on(tab: Any, address: str) -> None:
    open_page(tab, address, steps=100_000)
    tab.value(f"({RUNNING})(5)")
    click(tab, "pause")
    paused = int(text(tab, "steps"))
    assert text(tab, "pause") == "Go on"
    tab.value("document.getElementById('pause').click()")
    tab.value(f"({RUNNING})({paused + 5})")


def test_another_attribute_begins_anew(tab: Any, address: str) -> None:
    open_page(tab, address)
    rest(tab)
    tab.value("""{
      const attribute = document.getElementById("attribute");
      attribute.value = "normals";
      attribute.dispatchEvent(new Event("change"));
    }""")
    rest(tab)
    assert text(tab, "steps") == str(STEPS)
    assert text(tab, "dispatches").startswith("normal_step_shade_primal")


@pytest.mark.parametrize(
    ("name", "value", "said"),
    [
        ("steps", "many", "is no number from 0 on"),
        ("size", "16.5", "is no whole number up to 2048"),
        ("edge", "99999", "is no whole number up to 2048"),
    ],
)
def test_a_number_in_the_address_is_checked(
    tab: Any, address: str, name: str, value: str, said: str
) -> None:
    open_page(tab, address, **{name: value})
    with pytest.raises(RuntimeError, match=f"{name}={value} in the address {said}"):
        rest(tab)


def test_a_browser_without_webgpu_is_told_so(address: str) -> None:
    flags = ("--disable-features=WebGPU", "--disable-gpu")
    with chromium.Tab(flags=flags) as tab:
        open_page(tab, address)
        with pytest.raises(RuntimeError, match="this page needs WebGPU"):
            rest(tab)
        assert tab.value("document.querySelector('main').hidden")


def test_the_page_looks_as_its_documentation_shows(tab: Any, address: str) -> None:
    open_page(tab, address, size=2 * SIZE, edge=2 * SIZE, steps=100, pace=20)
    rest(tab)
    found = pixels(tab.picture())
    stored = pixels(ROOT / "docs" / "pictures" / "page.png")
    assert found.size == stored.size
    assert psnr(np.asarray(found) / 255.0, np.asarray(stored) / 255.0) > SEEN_ALIKE


@pytest.mark.parametrize(
    ("program", "arguments", "said"),
    [
        (prepare, ["{file}"], "cannot write into {file}: File exists"),
        (prepare, ["--subdivisions", "-1"], "invalid choice: -1"),
        (screenshot, ["x.png", "--page", "{folder}"], "{folder} is no page"),
    ],
)
def test_a_wrong_argument_is_one_line(
    program: ModuleType,
    arguments: list[str],
    said: str,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    places = {"file": tmp_path / "file", "folder": tmp_path}
    places["file"].touch()
    with pytest.raises(SystemExit) as stopped:
        program.main([word.format(**places) for word in arguments])
    assert stopped.value.code == 2
    assert said.format(**places) in capsys.readouterr().err.splitlines()[-1]
