"""Arguments of traced functions as keys: equal only where a trace of one serves the other."""

from __future__ import annotations

from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

import pytest

import shaderad as sad
from shaderad.calls.arguments import frozen


@dataclass(frozen=True)
class Settings:
    count: Any
    name: str = "a"
    note: list[int] = field(default_factory=list[int], compare=False)


class AlwaysEqual:
    def __eq__(self, other: object) -> bool:
        return True

    def __hash__(self) -> int:
        return 0


SHARED: list[int] = []


@pytest.mark.parametrize(
    ("left", "right"),
    [(1, 1.0), (1, True), (0.0, -0.0), (Settings(1), Settings(1.0)), (Settings(1), Settings(True)),
     (Settings(1, note=[1]), Settings(1, note=[2])), (AlwaysEqual(), AlwaysEqual()),
     (Fraction(1), 1), ("1", 1), (sad.add, sad.mul), (slice(1), slice(1.0))],
)  # fmt: skip
def test_arguments_that_python_finds_equal_may_have_different_keys(left: Any, right: Any) -> None:
    assert frozen(left) == frozen(left)
    assert frozen(left) != frozen(right)
    assert frozen([left, {"a": left}]) != frozen([left, {"a": right}])


@pytest.mark.parametrize(
    ("left", "right"),
    [(Settings(1.5, "b", SHARED), Settings(1.5, "b", SHARED)), (float("nan"), float("nan")),
     (Settings((1, 2.0), "a", SHARED), Settings((1, 2.0), "a", SHARED)),
     (sad.float3, sad.float3), (None, None)],
)  # fmt: skip
def test_arguments_that_cannot_be_told_apart_have_one_key(left: Any, right: Any) -> None:
    assert frozen(left) == frozen(right)
    assert hash(frozen(left)) == hash(frozen(right))
