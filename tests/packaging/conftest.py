"""What is installed: made once for all tests of packaging, whichever process runs them."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from filelock import FileLock

from tests.packaging.environments import Environment, package


def made_once(factory: pytest.TempPathFactory, name: str, make: Callable[[Path], object]) -> Path:
    """The folder `name` of this run of pytest, in which `make` has been run by one process."""
    base = factory.getbasetemp()
    folder = (base.parent if "PYTEST_XDIST_WORKER" in os.environ else base) / name
    with FileLock(f"{folder}.lock"):
        if not folder.exists():
            try:
                make(folder)
            except BaseException:  # A skip is none of the usual ones.
                shutil.rmtree(folder, ignore_errors=True)
                raise
    return folder


@pytest.fixture(scope="package")
def built(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """The wheel and the sdist."""
    pytest.importorskip("build")
    return package.python_packages(tmp_path_factory.mktemp("dist"))


@pytest.fixture(scope="package")
def complete(built: tuple[Path, Path], tmp_path_factory: pytest.TempPathFactory) -> Environment:
    """An environment after ``pip install shaderad``."""
    wheel, _ = built

    def make(folder: Path) -> None:
        Environment.made(folder).install(str(wheel))

    return Environment(made_once(tmp_path_factory, "complete", make))
