"""The package keeps its shape: small rooms, no imports that point upward, no large circle.

Each limit is what `python scripts/house.py` prints today; lower it when the figure falls.
"""

from __future__ import annotations

from pathlib import Path

import pytest

import shaderad as sad
from shaderad.diagnostics.foreign_names import REMEDY_BY_NAME
from tests.samples.loading import ROOT, module_of

house = module_of(ROOT / "scripts/house.py")

LARGEST_ROOM = 30
"""Files a room."""
LARGEST_CIRCLE = 3
"""Files that all reach each other by imports, those for types included. The aim is 1."""
SHARED_CLASS_NAMES = 0
WEAK_DOCSTRINGS = 0.0
LONG_FILES, LONG_FUNCTIONS = 16, 8
"""Over the limits of STYLE.md."""
NAMESPACES = {"jax", "render", "torch"}
"""Rooms that are public names."""


@pytest.fixture(scope="module")
def today():
    return house.House()


def test_rooms_are_small(today) -> None:
    assert {r: n for r, n in today.rooms().items() if n > LARGEST_ROOM} == {}


def test_no_room_hides_a_public_name_or_the_remedy_for_one(today) -> None:
    rooms = {room.split(".")[1] for room in today.rooms() if "." in room}
    assert rooms & {*sad.__all__, *REMEDY_BY_NAME} <= NAMESPACES


def test_no_import_points_upward(today) -> None:
    assert today.upward(today.edges | today.type_edges) == []


def test_few_files_import_each_other_and_those_of_one_room(today) -> None:
    circles = today.circles()
    assert [one for one in circles if len(one) > LARGEST_CIRCLE] == []
    rooms = [{today.modules[name].room for name in one} for one in circles]
    assert [one for one in rooms if len(one) > 1] == []


def test_words_do_not_get_worse(today) -> None:
    assert len(today.shared_class_names()) <= SHARED_CLASS_NAMES
    assert today.weak_docstring_share() <= WEAK_DOCSTRINGS


def test_files_and_functions_do_not_get_longer(today) -> None:
    assert len(today.long_files()) <= LONG_FILES, today.long_files()
    assert len(today.long_functions()) <= LONG_FUNCTIONS, today.long_functions()


def test_a_variable_says_what_it_holds(today) -> None:
    rooms = {room.split(".")[1] for room in today.vague_names() if "." in room}
    assert rooms <= house.ROOMS_TO_REBUILD, today.vague_names()


def test_lines_and_names_are_counted(tmp_path: Path) -> None:
    package = tmp_path / "shaderad"
    package.mkdir()
    (tmp_path / "pyproject.toml").write_text("[tool.importlinter]\ncontracts = []\n")
    body = "    x = 1\n" * 40
    text = f'def f():\n    """Of\n    two lines."""\n{body}\n\ndef g(found):\n    one = 2\n{body}'
    (package / "__init__.py").write_text(text + "\n" * 400)
    measured = house.House(tmp_path)
    assert measured.long_files() == ["shaderad"]
    assert measured.long_functions() == ["shaderad.g"]
    assert measured.vague_names() == {"shaderad": 2}


def test_circles_are_the_strongly_connected_components() -> None:
    edges = {("a", "b"), ("b", "c"), ("c", "a"), ("c", "d"), ("d", "e"), ("e", "d"), ("f", "a")}
    found = house.circles("abcdef", edges)
    assert sorted(sorted(each) for each in found) == [["a", "b", "c"], ["d", "e"], ["f"]]


@pytest.mark.parametrize(
    ("edge", "wanted"),
    [
        (("p.low", "p.high.part"), True),
        (("p.high", "p.low.part"), False),
        (("p.left.a", "p.right"), True),
        (("p.left.a", "p.left.b"), False),
        (("p.one", "p.other"), False),
        (("p.low", "elsewhere"), False),
    ],
)
def test_an_import_points_upward_by_the_layers(edge: tuple[str, str], wanted: bool) -> None:
    levels = house.levels_of(["high", "one : other", "left | right", "(low)"], "p")
    assert house.is_upward(edge, levels) is wanted


def test_imports_count_wherever_they_stand(tmp_path: Path) -> None:
    package = tmp_path / "shaderad"
    package.mkdir()
    (tmp_path / "pyproject.toml").write_text("[tool.importlinter]\ncontracts = []\n")
    for name in ("a", "b", "c"):
        (package / f"{name}.py").write_text('"""What it is."""\n')
    (package / "__init__.py").write_text(
        "from shaderad import a\nif TYPE_CHECKING:\n    from shaderad.b import x\n"
        "def f():\n    import shaderad.c\n"
    )
    found = house.House(tmp_path)
    assert found.edges == {("shaderad", "shaderad.a"), ("shaderad", "shaderad.c")}
    assert found.type_edges == {("shaderad", "shaderad.b")}
    assert found.python_lines() == 8
    assert found.weak_docstring_share() == 1.0
