"""What `shaderad` says of names that it does not have."""

from __future__ import annotations

import re
import subprocess
import sys

import pytest

import shaderad as sad
from shaderad.diagnostics.foreign_names import REMEDY_BY_NAME, remedy_for


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("InOut", "`sad.Out[float]`"),
        ("inout", "reads an array or writes it"),
        ("vec3", "`sad.float3`"),
        ("uvec2", "`sad.uint2`"),
        ("mat44", "`sad.float4x4`"),
        ("f32", "`float`"),
        ("Buffer", "`sad.array(data)`"),
        ("ndrange", "`sad.Index`"),
        ("atomic_add", "`sad.Add[float]`"),
        ("normalise", "did you mean `normalize`?"),
        ("kernl", "did you mean `kernel`?"),
    ],
)
def test_a_missing_name_says_what_to_write_instead(name: str, words: str) -> None:
    with pytest.raises(AttributeError) as caught:
        getattr(sad, name)
    assert isinstance(caught.value, sad.UnknownNameError)
    assert caught.value.code == "SR0229"
    assert f"`{name}`" in caught.value.message
    assert words in caught.value.help


def test_an_outlandish_name_gets_no_guess() -> None:
    assert not hasattr(sad, "zyzzyva")
    assert getattr(sad, "zyzzyva", None) is None
    assert remedy_for("zyzzyva", sad.__all__) == ""


def test_remedies_are_for_names_that_are_missing_and_name_what_is_there() -> None:
    assert not [name for name in REMEDY_BY_NAME if hasattr(sad, name)]
    named = {word for text in REMEDY_BY_NAME.values() for word in re.findall(r"sad\.(\w+)", text)}
    assert not [name for name in named if not hasattr(sad, name)]


def test_graph_is_the_decorator_whatever_is_imported_before() -> None:
    text = "import shaderad.graph.planning, shaderad as sad; print(callable(sad.graph))"
    found = subprocess.run([sys.executable, "-c", text], capture_output=True, check=True)
    assert found.stdout.split() == [b"True"]
