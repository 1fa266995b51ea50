"""Captured vectors, matrices, structs and tuples of them: constants that each call reads again."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import shaderad as sad
from shaderad import float3, float3x3


@sad.struct
class Light:
    power: float
    kind: int
    color: float3

    def scaled(self, factor: float) -> float3:
        return self.color * (self.power * factor)


@sad.struct
class Room:
    light: Light
    turn: float3x3


UP = float3(0, 1, 0)
TURN = float3x3(1, 2, 3, 4, 5, 6, 7, 8, 9)
LIGHT = Light(2.0, 3, float3(1, 2, 3))
ROOM = Room(LIGHT, TURN)
WEIGHTS = (1.0, 2.0, 4.0)
TABLE = ((1.0, 2.0), (3.0, 4.0))
AXES = (float3(1, 0, 0), UP)
LIGHTS = (LIGHT, Light(3.0, 1, [1, 1, 1]))  # pyright: ignore[reportArgumentType]


@sad.function
def brightness(light: Light) -> float:
    return light.power * light.color.y


@sad.kernel
def lit(i: sad.Index, x: sad.In[float3], y: sad.Out[float3]):
    own = LIGHT
    own.power = x[i].x
    y[i] = UP * brightness(own) + TURN @ x[i] + LIGHT.scaled(0.5) * LIGHT.kind
    y[i].z += ROOM.turn[1, 2] * brightness(ROOM.light) + ROOM.light.power


@sad.kernel
def weighted(i: sad.Index, x: sad.In[float], y: sad.Out[float]):
    total = 0.0
    for k in sad.static_range(3):
        total += WEIGHTS[k] * x[i]
    for row in sad.static_range(2):
        for column in sad.static_range(2):
            total += TABLE[row][column] * x[i] ** (row + column)
        total += AXES[row].y * brightness(LIGHTS[row])
    for k in sad.static_range(1):
        total += x.shape[k]
    y[i] = total


def lit_by_numpy(x: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    found = np.asarray(UP) * x[0] * LIGHT.color[1] + np.asarray(TURN) @ x
    found = found + np.asarray(LIGHT.color) * LIGHT.power * 0.5 * LIGHT.kind
    light = ROOM.light
    found[2] += ROOM.turn[1, 2] * light.power * light.color[1] + light.power
    return found


def test_each_call_reads_captured_values_again(
    monkeypatch: pytest.MonkeyPatch, device: sad.Device
) -> None:
    x = np.float32([0.5, -1.0, 2.0])
    light, turn = Light(2.0, 3, float3(1, 2, 3)), float3x3(*range(1, 10))
    own = {"LIGHT": light, "TURN": turn, "ROOM": Room(light, turn)}
    for name, value in own.items():
        monkeypatch.setitem(globals(), name, value)

    def check() -> None:
        np.testing.assert_allclose(lit(x[None]).numpy()[0], lit_by_numpy(x), rtol=1e-6)

    check()
    gradient = sad.vjp(lit, x[None])[1]([[1.0, 1.0, 1.0]])[0].numpy()[0]
    np.testing.assert_allclose(gradient, np.sum(turn, 0) + np.float32([2, 0, 0]))
    light.power = 5.0
    check()
    turn[1, 2] = -6.0  # in place, and again in `ROOM`
    check()
    light.color[1] = 7.0
    check()
    monkeypatch.setitem(globals(), "UP", float3(0, 0, 3))
    own["ROOM"].light = Light(1.0, 0, float3(0, 1, 0))
    check()


def test_captured_tuples_are_indexed_by_static_ranges(device: sad.Device) -> None:
    expected = [7 * x + 1 + 2 * x + 3 * x + 4 * x**2 + 3.0 + 2 for x in (2.0, 3.0)]
    np.testing.assert_allclose(weighted([2.0, 3.0]).numpy(), expected)
    by_x = sad.vjp(weighted, [2.0, 3.0])[1]([1.0, 1.0])[0]
    np.testing.assert_allclose(by_x.numpy(), [12 + 8 * x for x in (2.0, 3.0)])


def test_fields_that_are_no_constants_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    for field, value, code in [
        ("power", sad.array(1.0), "SR0212"),
        ("kind", 1.5, "SR0303"),
        ("color", [1.0, 2.0], "SR0303"),
    ]:
        monkeypatch.setattr(LIGHT, field, value)
        with pytest.raises(sad.LanguageError) as caught:
            lit([[1.0, 2.0, 3.0]])
        assert caught.value.code == code
        assert f"LIGHT.{field}" in str(caught.value) or code == "SR0303"
        monkeypatch.undo()
