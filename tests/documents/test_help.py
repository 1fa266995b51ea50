"""``help()`` of every public name is about that name, and its example runs."""

from __future__ import annotations

import importlib.util
import inspect
import itertools
import pydoc
import re
import textwrap
from collections import defaultdict
from pathlib import Path

import pytest

import shaderad as sad
from shaderad.language import help_texts
from shaderad.language.annotations import TYPES

NAMES = [name for name in dir(sad) if name not in ("jax", "torch")]
SYNONYMS = [{"associative_scan", "scan"}]
TEXTS = help_texts.ANNOTATIONS | help_texts.FORMS
EXAMPLE = re.compile(r"Example::\n\n((?:    .*\n|\n)+)")
_numbers = itertools.count()


def shown(name: str) -> str:
    """What ``help(sad.NAME)`` prints, without its title."""
    text = pydoc.render_doc(getattr(sad, name), renderer=pydoc.plaintext)
    return text.partition("\n")[2].strip()


def test_no_two_names_share_a_text() -> None:
    names_by_text: dict[str, set[str]] = defaultdict(set)
    for name in NAMES:
        without_name = shown(name).replace(f"{name} = ", "").replace(f"shaderad.{name}\n", "\n")
        names_by_text[without_name].add(name)
    assert [names for names in names_by_text.values() if len(names) > 1] == SYNONYMS


@pytest.mark.parametrize("name", [*TEXTS, *TYPES])
def test_help_shows_the_text_of_a_name(name: str) -> None:
    text = inspect.getdoc(getattr(sad, name))
    assert text
    assert text.strip() in textwrap.dedent(shown(name).partition("\n")[2])


OF_TYPES = ["uint", "half", "double", "float3", "bool2", "uint4", "float2x3", "half4x4"]


@pytest.mark.gpu
@pytest.mark.parametrize("name", [*TEXTS, *OF_TYPES])
def test_an_example_runs(
    name: str, device: sad.Device, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    text = getattr(sad, name).__doc__
    found = EXAMPLE.search(text)
    assert found, name
    module = f"help_example_{next(_numbers)}"
    path = tmp_path / f"{module}.py"
    path.write_text(f"import numpy as np\nimport shaderad as sad\n{textwrap.dedent(found[1])}")
    spec = importlib.util.spec_from_file_location(module, path)
    assert spec is not None
    assert spec.loader is not None
    spec.loader.exec_module(importlib.util.module_from_spec(spec))
    assert capsys.readouterr().out.strip()
