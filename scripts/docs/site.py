"""Builds the documentation as a site with a folder for each version, and a way from one to another.

Run ``python scripts/docs/site.py [--out DIR] [--version NAME]``. The folder of this version is
written anew, by default ``out/site/VERSION`` of pyproject.toml; those of other versions stay, and
all are listed for the menu beside the title. ``index.html`` leads to the newest.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import subprocess
import sys
import tomllib
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
_NUMBERS = re.compile(r"\d+(\.\d+)*")
_REDIRECT = """<!doctype html>
<meta charset="utf-8">
<title>shaderad</title>
<meta http-equiv="refresh" content="0; url={version}/index.html">
<a href="{version}/index.html">shaderad {version}</a>
"""


def build(out: Path, version: str) -> None:
    """Writes `out`/`version`, strictly: a link that leads nowhere fails."""
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--quiet"]
    # The theme warns of its own next version.
    settings = os.environ | {"NO_MKDOCS_2_WARNING": "1"}
    done = subprocess.run([*command, "-d", str(out / version)], cwd=ROOT, env=settings, check=False)
    if done.returncode:
        raise SystemExit(done.returncode)


def index(out: Path) -> None:
    """Lists the versions in `out` as the theme reads them, and leads to the newest."""
    versions = sorted((path.parent.name for path in out.glob("*/index.html")), key=_order)[::-1]
    newest = versions[0]
    listed = [
        {"version": name, "title": name, "aliases": ["latest"] * (name == newest)}
        for name in versions
    ]
    (out / "versions.json").write_text(json.dumps(listed, indent=1) + "\n", encoding="utf-8")
    (out / "index.html").write_text(_REDIRECT.format(version=newest), encoding="utf-8")


def _order(name: str) -> tuple[list[int], str]:
    """Numbers in their order; a name such as ``dev`` is before all of them."""
    return [int(part) for part in name.split(".")] if _NUMBERS.fullmatch(name) else [], name


def main() -> None:
    text = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, default=ROOT / "out" / "site")
    parser.add_argument("--version", default=tomllib.loads(text)["project"]["version"])
    arguments = parser.parse_args()
    out = arguments.out.resolve()
    build(out, arguments.version)
    index(out)
    sys.stdout.write(
        f"{out}/index.html is the site; its search and its menu of versions need: "
        f"python -m http.server -d {out}\n"
    )


if __name__ == "__main__":
    main()
