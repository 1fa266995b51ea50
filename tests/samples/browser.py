"""Pages run in Chromium without a window, by a software driver: no GPU, no float atomics."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest

from tests.samples.loading import SAMPLES, module_of

chromium = module_of(SAMPLES / "mesh_interpolation" / "web" / "chromium.py", "chromium")
# `main.js` has run when its import is done, even if the page had imported it before.
SHOWN = """import(new URL("{script}", location))
    .then(() => document.querySelector("pre").textContent)"""

needed = pytest.mark.skipif(
    chromium.PROGRAM is None, reason="no chromium: apt-get install chromium"
)


def shown(
    folder: Path, page: str, flags: Sequence[str] = chromium.WEBGPU, script: str = "main.js"
) -> str:
    """What the script of a page in `folder` leaves in its ``<pre>``."""
    with chromium.served(folder) as address, chromium.Tab(flags=flags) as tab:
        tab.open(f"{address}/{page}")
        return tab.value(SHOWN.format(script=script))
