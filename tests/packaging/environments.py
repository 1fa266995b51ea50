"""Virtual environments that know nothing of the repository, and programs that run in them."""

from __future__ import annotations

import os
import subprocess
import sys
import tomllib
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from tests.samples.loading import ROOT, module_of

package = module_of(ROOT / "scripts" / "package.py")
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
COMPILER = "slangpy"
_PROBE = "filelock"
"""A small dependency, by which a package index shows that it can be reached."""


class Environment:
    """A virtual environment in `folder`, and a folder to run programs in."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.place = folder / "place"
        self.python = folder / "venv" / "bin" / "python"

    @classmethod
    def made(cls, folder: Path) -> Environment:
        """A new environment without packages, pip included."""
        environment = cls(folder)
        command = [sys.executable, "-m", "venv", "--without-pip", str(folder / "venv")]
        subprocess.run(command, check=True)
        environment.place.mkdir()
        return environment

    def install(self, *wanted: str) -> None:
        """Installs by the pip of this Python; skips the test where no index can be reached."""
        done = self._pip("install", *wanted)
        if done.returncode and self._pip("install", "--dry-run", "--no-deps", _PROBE).returncode:
            pytest.skip("no package index can be reached")
        assert done.returncode == 0, done.stderr

    def _pip(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        pip = [sys.executable, "-m", "pip", "--python", str(self.python), "--quiet"]
        return self._run([*pip, "--disable-pip-version-check", *arguments])

    def printed(self, *arguments: str) -> str:
        """What the environment's Python prints."""
        done = self._run([str(self.python), *arguments])
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    def command(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        """A run of the `shaderad` that was installed."""
        return self._run([str(self.python.with_name("shaderad")), *arguments])

    def _run(self, command: Sequence[str]) -> subprocess.CompletedProcess[str]:
        settings = {name: text for name, text in os.environ.items() if name != "PYTHONPATH"}
        settings |= {"SHADERAD_CACHE": str(self.folder / "cache"), "SHADERAD_DEVICE": ""}
        how: dict[str, Any] = {"capture_output": True, "text": True, "check": False}
        return subprocess.run(command, cwd=self.place, env=settings, **how)


def names(requirements: Sequence[str]) -> list[str]:
    """The packages of requirements such as ``wgpu>=0.32,<0.34``."""
    return [requirement.partition(">")[0] for requirement in requirements]
