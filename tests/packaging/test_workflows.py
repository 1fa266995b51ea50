"""The files for GitHub: valid YAML, whose commands and files exist here."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from tests.samples.loading import ROOT

yaml = pytest.importorskip("yaml")
FILES = sorted((ROOT / ".github").rglob("*.yml"))


def loaded(path: Path) -> Any:
    return yaml.safe_load(path.read_text(encoding="utf-8"))


def test_the_workflow_runs_what_this_repository_has() -> None:
    jobs = loaded(ROOT / ".github" / "workflows" / "check.yml")["jobs"]
    commands = [step["run"] for job in jobs.values() for step in job["steps"] if "run" in step]
    assert "scripts/run check" in commands
    for command in commands:
        files = re.findall(r"\b(?:scripts|tests)/[\w./]+", command)
        assert all((ROOT / file).exists() for file in files), command
    checks = (ROOT / "scripts" / "run").read_text(encoding="utf-8")
    assert "\ncheck)\n" in checks


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.name)
def test_every_file_is_valid_and_forms_ask_for_the_doctor(path: Path) -> None:
    content = loaded(path)
    assert content
    if path.name == "bug.yml":
        labels = [part["attributes"]["label"] for part in content["body"]]
        assert any("shaderad doctor" in label for label in labels)
        assert all(part["validations"]["required"] for part in content["body"])
