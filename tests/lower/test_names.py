"""Identifiers: the user's own wherever possible, never Slang's or the library's."""

from __future__ import annotations

import numpy as np
import pytest

import shaderad as sad
from shaderad.lower.names import RESERVED, Names, imported_modules, library_names


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


@sad.kernel
def named_as_the_entry_point_names(
    i: sad.Index, x: sad.In[float], index: float, total: sad.Add[float], out: sad.Out[float]
):
    total[0] += x[i] * index
    out[i] = x[i] + index


@pytest.mark.gpu
def test_a_uniform_on_the_device_may_bear_the_name_of_the_threads_number(
    device: sad.Device,
) -> None:
    x = np.linspace(0.0, 1.0, 5, dtype=np.float32)
    with device:
        results, pullback = sad.vjp(
            named_as_the_entry_point_names, x, sad.array(np.float32(0.5)), dim=5,
            shapes={"total": 1},
        )  # fmt: skip
        total, out = (result.numpy() for result in results)
        to_x, to_index = pullback((np.float32([2.0]), np.ones(5, np.float32)))
        np.testing.assert_allclose(total, [1.25])
        np.testing.assert_allclose(out, x + 0.5)
        np.testing.assert_allclose(to_x.numpy(), np.full(5, 2.0))
        assert float(to_index) == pytest.approx(2.0 * 2.5 + 5.0)


@pytest.mark.parametrize(
    ("line", "needed"),
    [
        ("let y = safePow(x, 2.5f);", ("safe_math",)),
        ("let y = float3(1.0f) * powi<3>(x);", ("safe_math",)),
        ("let k = floorModulo<Report>(i, 3, 1);", ()),
        ("let y = floorModulo(x, 3.0f);", ("safe_math",)),
        ("let y = load<float, X>(uint(i));", ()),
        ("public extension float : IElement", ()),
        ("let y = doubleSin(x);", ("safe_math", "double_math")),
    ],
)
def test_a_module_is_imported_where_a_line_names_something_of_it(
    line: str, needed: tuple[str, ...]
) -> None:
    assert imported_modules([line]) == needed
