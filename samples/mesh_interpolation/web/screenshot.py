"""Takes a picture of the page after some steps of the fit.

python samples/mesh_interpolation/web/screenshot.py FILE.png [--steps 100] [--page FOLDER]
"""

from __future__ import annotations

import argparse
from pathlib import Path
from tempfile import TemporaryDirectory
from urllib.parse import urlencode

from chromium import Tab, served

import prepare

WINDOW = (1120, 912)
# Drawings before one frame appear with the next frame. Errors are thrown.
AT_REST = """new Promise((done, fail) => (function look() {
  const { state } = document.body.dataset;
  if (state === "failed") fail(document.getElementById("message").textContent);
  else if (state !== "at rest") setTimeout(look, 20);
  else requestAnimationFrame(() => requestAnimationFrame(done));
})())"""


def shown(page: Path, **query: object) -> bytes:
    """A screenshot of the page in a folder after it has stopped."""
    with served(page) as address, Tab(WINDOW) as tab:
        tab.open(f"{address}/index.html?{urlencode(query)}")
        tab.value(AT_REST)
        return tab.picture()


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("file", type=Path)
    parser.add_argument("--steps", type=int, default=100)
    parser.add_argument("--page", type=Path, help="the output of prepare.py; default: written anew")
    given = parser.parse_args(arguments)
    if given.page and not (given.page / "index.html").is_file():
        parser.error(f"{given.page} is no page that prepare.py wrote")
    with TemporaryDirectory() as folder:
        if given.page is None:
            prepare.main([folder])
        page = given.page or Path(folder)
        query = {"steps": given.steps, "pace": 10, "samples": 2}
        given.file.write_bytes(shown(page, **query))
    print(f"wrote {given.file}")


if __name__ == "__main__":
    main()
