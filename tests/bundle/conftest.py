"""One build of `kernels.py` for every target, shared by the tests that read it."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

import shaderad as sad
from shaderad.lower.targets import PROFILES

SOURCE = Path(__file__).parent / "kernels.py"
GRAPHS = Path(__file__).parent / "graphs.py"
TARGETS = tuple(PROFILES)


@dataclass(frozen=True)
class Output:
    """A folder that a build wrote."""

    folder: Path
    manifest: dict[str, Any]

    @classmethod
    def read(cls, folder: Path) -> Output:
        """What lies in `folder`."""
        return cls(folder, json.loads((folder / "manifest.json").read_text(encoding="utf-8")))

    def dispatches(self, target: str) -> list[dict[str, Any]]:
        """What the manifest says of each program for `target`."""
        entries = self.manifest["entries"]
        return [p for entry in entries for p in entry["targets"][target]["programs"]]

    def text(self, dispatch: dict[str, Any]) -> str:
        """The code of a dispatch, where it is text."""
        return (self.folder / dispatch["file"]).read_text(encoding="utf-8")


def programs_of(plans: dict[str, Any], mode: str) -> list[dict[str, Any]]:
    """The programs that the plan of a mode runs, in order."""
    by_name = {program["name"]: program for program in plans["programs"]}
    return [by_name[c["program"]] for c in plans[mode]["commands"] if c["do"] == "run"]


@pytest.fixture(scope="package")
def output(tmp_path_factory: pytest.TempPathFactory) -> Output:
    """`kernels.py`, built for every target."""
    folder = tmp_path_factory.mktemp("build") / "out"
    defines = {"count": 8, "top": 1e999}
    sad.build(SOURCE, folder, targets=TARGETS, defines=defines, validate=False)
    return Output.read(folder)


@pytest.fixture(scope="package")
def graph_output(tmp_path_factory: pytest.TempPathFactory) -> Output:
    """`graphs.py`, built for what runs here."""
    folder = tmp_path_factory.mktemp("build") / "graphs"
    # naga does not read every SPIR-V; WGSL steps in then.
    sad.build(GRAPHS, folder, targets=("spirv", "wgsl"), validate=False)
    return Output.read(folder)
