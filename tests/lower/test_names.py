"""Identifiers: the user's own wherever possible, never Slang's or the library's."""

from __future__ import annotations

import pytest

from shaderad.lower.names import RESERVED, Names, library_names


def test_a_free_name_stays_as_it_is() -> None:
    assert Names().make("albedo") == "albedo"


@pytest.mark.parametrize("name", ["float", "This", "outside", "load", "at", "sin"])
def test_names_of_slang_and_the_library_get_an_underscore(name: str) -> None:
    assert name in RESERVED | library_names() | {"sin"}
    assert Names().make(name) == f"{name}_"


def test_a_name_taken_twice_is_numbered() -> None:
    names = Names()
    assert [names.make("x") for _ in range(3)] == ["x", "x_", "x_2"]


def test_a_key_keeps_its_name() -> None:
    names = Names()
    assert names.make("x", key=1) == names.make("x", key=1) == names.of(1)
    assert names.make("x", key=2) != names.of(1)


def test_a_child_knows_its_parents_names_and_keeps_its_own() -> None:
    names = Names()
    names.make("x")
    child = names.child()
    assert child.make("x") == "x_"
    assert names.make("y") == child.make("y") == "y"


@pytest.mark.parametrize(
    ("given", "wanted"),
    [("a__b", "a_b"), ("_", "value"), ("gr\u00f6\u00dfe", "gruue"), ("_x", "x")],
)
def test_what_targets_cannot_spell_is_changed(given: str, wanted: str) -> None:
    assert Names().make(given) == wanted
