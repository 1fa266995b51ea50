"""Facts that several packages and pages need stand in each of them alike."""

from __future__ import annotations

import json
import re

import shaderad as sad
from shaderad.language import annotations, checked
from tests.packaging.environments import PROJECT, package
from tests.samples.loading import ROOT

WEB = json.loads((package.WEB / "package.json").read_text(encoding="utf-8"))


def test_everything_has_the_version_of_the_project() -> None:
    (cited,) = re.findall(r"^version: (.*)$", (ROOT / "CITATION.cff").read_text(), re.MULTILINE)
    assert {sad.__version__, cited, WEB["version"], package.version()} == {PROJECT["version"]}


def test_the_web_loader_has_the_name_and_the_license_of_the_project() -> None:
    assert (WEB["name"], WEB["license"]) == (PROJECT["name"], PROJECT["license"])
    assert (package.WEB / "LICENSE").read_bytes() == (ROOT / "LICENSE").read_bytes()


def test_checkers_see_each_annotation_and_type_that_a_program_has() -> None:
    assert set(checked.__all__) == {*annotations.__all__, *annotations.TYPES}
