"""docs/pictures holds what `scripts/run pictures` makes, no more and no less.

Devices round differently and add in any order, so that pictures are compared by a bar.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from tests.documents.page_pictures import PAGE_PICTURES
from tests.samples.loading import ROOT, SAMPLES, module_of

STORED = ROOT / "docs" / "pictures"
ALIKE = 35.0
"""dB: by eye the same, though single pixels may differ."""
COARSE = 24.0
"""dB, where a smaller picture is compared: its outlines are coarser."""
README_BYTES = 1_000_000


def likeness(found: Path, stored: Path) -> float:
    """PSNR in dB; the stored picture is made as small as the other."""
    with Image.open(found) as one, Image.open(stored) as other:
        wanted = other.convert("RGB").resize(one.size, Image.Resampling.BOX)
        miss = np.asarray(one.convert("RGB"), float) - np.asarray(wanted, float)
    return -10 * np.log10(max(np.square(miss / 255).mean(), 1e-12))


def test_every_stored_picture_is_made_by_the_command() -> None:
    pictures = module_of(SAMPLES / "pictures.py")
    made = {file for maker in pictures.MAKERS.values() for file in maker.files}
    # Compared in `tests/packaging/test_quick_start.py` and in `tests/documents/test_blocks.py`.
    by_its_page = {"quick_start.png", *(name for _, name in PAGE_PICTURES.values())}
    by_hand = {"call.svg"}
    assert {path.name for path in STORED.iterdir()} == made | by_its_page | by_hand


def test_pictures_are_small_enough_for_a_readme() -> None:
    assert {p.name for p in STORED.iterdir() if p.stat().st_size > README_BYTES} == set()


@pytest.mark.gpu
@pytest.mark.slow
@pytest.mark.parametrize("name", ["histogram", "cloth", "splats"])
def test_a_small_sample_still_makes_its_picture(name: str, tmp_path: Path) -> None:
    pictures = module_of(SAMPLES / "pictures.py")
    pictures.MAKERS[name].make(tmp_path)
    assert likeness(tmp_path / f"{name}.png", STORED / f"{name}.png") > ALIKE


@pytest.mark.gpu
@pytest.mark.slow
def test_the_mesh_sample_still_makes_its_pictures(tmp_path: Path) -> None:
    pictures = module_of(SAMPLES / "pictures.py")
    pictures.mesh(tmp_path, edge=100, steps=60)
    for file in pictures.MAKERS["mesh"].files:
        assert likeness(tmp_path / file, STORED / file) > COARSE


@pytest.mark.gpu
@pytest.mark.slow
def test_the_window_still_looks_as_its_picture(tmp_path: Path) -> None:
    pytest.importorskip("imgui_bundle")
    module_of(SAMPLES / "pictures.py").MAKERS["window"].make(tmp_path)
    assert likeness(tmp_path / "window.png", STORED / "window.png") > ALIKE


def test_a_picture_nobody_can_make_is_named(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        module_of(SAMPLES / "pictures.py").main(["mona_lisa"])
    assert "mona_lisa is none of mesh, report" in capsys.readouterr().err
