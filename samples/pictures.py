"""Makes the pictures of README and docs again, each by the command that its sample offers.

    python samples/pictures.py [mesh splats ...] [--out docs/pictures]

It makes all pictures, unless you name some; this takes minutes on two cores. The mesh comes first,
because other samples are fitted to its picture. Screenshots need chromium.
"""

from __future__ import annotations

import argparse
import shutil
import subprocess
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory

from PIL import Image

SAMPLES = Path(__file__).parent
DOCS_PICTURES = SAMPLES.parent / "docs" / "pictures"
MESH = SAMPLES / "mesh_interpolation" / "main.py"
FINE = 2
"""Pixels that are computed along an edge of each final pixel, so that outlines are smooth."""
ROW_EDGE, SQUARE_EDGE = 400, 256
MARGIN = 0.05
"""The share of an edge that is cut off on each side of the target, which has room at its edges."""
WINDOW_EDGE, WINDOW_STEPS = 800, 80
REPORT_PAGE = (1200, 1640)
"""The size of the page down to the gradients."""
HEADLESS = ("--headless=new", "--no-sandbox", "--disable-dev-shm-usage", "--hide-scrollbars")


@dataclass(frozen=True)
class Maker:
    make: Callable[[Path], None]
    """Writes into a folder."""
    files: tuple[str, ...]
    """The files that it writes there."""


def mesh(out: Path, edge: int = ROW_EDGE, steps: int = 200) -> None:
    """mesh.png, a row from the start to the target, and spot.png, the target alone."""
    with TemporaryDirectory() as folder:
        run(MESH, "--out", folder, "--size", FINE * edge, "--steps", steps)
        shrink(Path(folder, "overview.png"), out / "mesh.png", 4 * edge)
        shrink(Path(folder, "target.png"), out / "spot.png", SQUARE_EDGE, MARGIN)


def report(out: Path) -> None:
    """fit.webp, and report.png, a screenshot of the sample's page."""
    with TemporaryDirectory() as folder:
        run(MESH, "--out", folder)
        shutil.copy(Path(folder, "fit.webp"), out)
        screenshot(Path(folder, "report.html"), out / "report.png", REPORT_PAGE)


def row_of(attribute: str, out: Path, edge: int = ROW_EDGE) -> None:
    """Another attribute that the mesh sample fits, as a row like that of `mesh`."""
    with TemporaryDirectory() as folder:
        run(MESH, "--fit", attribute, "--out", folder, "--size", FINE * edge)
        shrink(Path(folder, "overview.png"), out / f"{attribute}.png", 4 * edge)


def window(out: Path) -> None:
    """The sample's window during a fit, with one screen pixel per pixel of the picture."""
    run(MESH, "--screenshot", out / "window.png", "--size", WINDOW_EDGE, "--steps", WINDOW_STEPS)


def page(out: Path) -> None:
    """A screenshot of the sample's page in a browser."""
    run(MESH.parent / "web" / "screenshot.py", out / "page.png")


def small(name: str, out: Path) -> None:
    """The one picture of a small sample."""
    run(SAMPLES / name / "main.py", "--out", out / f"{name}.png")


def cube(out: Path) -> None:
    """The chart of cubes that are fitted to few pixels."""
    run(SAMPLES / "silhouettes" / "cube.py", "--out", out / "cube.png")


def silhouettes(out: Path) -> None:
    """silhouettes.png, from the sphere to the target, and the animation silhouettes.webp."""
    with TemporaryDirectory() as folder:
        run(SAMPLES / "silhouettes" / "main.py", "--out", folder)
        shutil.copy(Path(folder, "overview.png"), out / "silhouettes.png")
        shutil.copy(Path(folder, "fit.webp"), out / "silhouettes.webp")


def overview(name: str, more: tuple[str, ...], out: Path) -> None:
    """The pictures of a sample in a row, and further files of it."""
    with TemporaryDirectory() as folder:
        run(SAMPLES / name / "main.py", "--out", folder)
        shutil.copy(Path(folder, "overview.png"), out / f"{name}.png")
        for file in more:
            shutil.copy(Path(folder, file), out)


SMALL = ("splats", "cloth", "histogram")
MAKERS: Mapping[str, Maker] = {
    "mesh": Maker(mesh, ("mesh.png", "spot.png")),
    "report": Maker(report, ("fit.webp", "report.png")),
    "normals": Maker(partial(row_of, "normals"), ("normals.png",)),
    "positions": Maker(partial(row_of, "positions", edge=SQUARE_EDGE), ("positions.png",)),
    "window": Maker(window, ("window.png",)),
    "page": Maker(page, ("page.png",)),
    "neural_texture": Maker(partial(overview, "neural_texture", ()), ("neural_texture.png",)),
    "texture": Maker(partial(overview, "texture", ()), ("texture.png",)),
    "smoke": Maker(partial(overview, "smoke", ("smoke.webp",)), ("smoke.png", "smoke.webp")),
    "silhouettes": Maker(silhouettes, ("silhouettes.png", "silhouettes.webp")),
    "cube": Maker(cube, ("cube.png",)),
    "material": Maker(partial(overview, "material", ()), ("material.png",)),
    "distributed": Maker(partial(overview, "distributed", ()), ("distributed.png",)),
    **{name: Maker(partial(small, name), (f"{name}.png",)) for name in SMALL},
}


def maker(name: str) -> str:
    """A name for argparse, checked against `MAKERS`."""
    if name not in MAKERS:
        raise argparse.ArgumentTypeError(f"{name} is none of {', '.join(MAKERS)}")
    return name


def run(script: Path, *arguments: object) -> None:
    """Runs a sample, which prints its own errors."""
    if subprocess.run([sys.executable, script, *map(str, arguments)], check=False).returncode:
        sys.exit(f"{script} failed")


def shrink(source: Path, out: Path, width: int, margin: float = 0.0) -> None:
    """Saves a picture at another width; its pixels become means over areas."""
    with Image.open(source) as picture:
        height = round(width * picture.height / picture.width)
        shares = (margin, margin, 1 - margin, 1 - margin)
        box = tuple(share * edge for share, edge in zip(shares, 2 * picture.size, strict=True))
        picture.resize((width, height), Image.Resampling.BOX, box).save(out, optimize=True)
    print(f"wrote {out}")


def screenshot(page: Path, out: Path, size: tuple[int, int]) -> None:
    """Writes a screenshot of a page in a browser as a PNG file."""
    browser = shutil.which("chromium") or shutil.which("google-chrome")
    if browser is None:
        sys.exit("no chromium here (Debian: apt-get install chromium)")
    with TemporaryDirectory() as profile:
        window = f"--window-size={size[0]},{size[1]}"
        places = [f"--user-data-dir={profile}", f"--screenshot={out}", page.resolve().as_uri()]
        command = [browser, *HEADLESS, window, *places]
        subprocess.run(command, check=True, capture_output=True, timeout=120)
    print(f"wrote {out}")


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("names", nargs="*", type=maker, metavar="NAME", help=", ".join(MAKERS))
    parser.add_argument("--out", type=Path, default=DOCS_PICTURES)
    given = parser.parse_args(arguments)
    try:
        given.out.mkdir(parents=True, exist_ok=True)
        for name in given.names or MAKERS:
            MAKERS[name].make(given.out)
    except OSError as failure:
        parser.error(str(failure))


if __name__ == "__main__":
    main()
