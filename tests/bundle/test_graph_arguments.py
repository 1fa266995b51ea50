"""Arguments of graphs that were built: defaults, and what messages call them."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import shaderad as sad
from tests.samples.loading import module_of

pytestmark = pytest.mark.gpu

TEXT = """
from typing import TypedDict
import shaderad as sad

class Line(TypedDict):
    slope: sad.Array[float, "n"]
    shift: float

@sad.graph
def apply(x: sad.Array[float, "n"], line: Line, times: int = 2, gain: float = -0.5,
          pair: tuple[float, bool] = (1e999, True)):
    return sad.sum(x * line["slope"] + line["shift"]) * gain * sad.cast(times, float), pair

UP = sad.float3(0, 2, 0)

@sad.struct
class Ball:
    centre: sad.float3
    radius: float

@sad.struct
class Scene:
    ball: Ball
    count: int

@sad.graph
def rise(scene: Scene, by: sad.float3, x: sad.Array[float, "n"]):
    height = sad.dot(scene.ball.centre + by + sad.float3(1, 0, 0), UP) - scene.ball.radius
    return height * sad.sum(x) + x.shape[0] / 2 + 0.0 * scene.count
"""
X = np.float32([1.0, 2.0])
LINE = {"slope": X, "shift": 1.0}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("arguments")
    (path / "model.py").write_text(TEXT, encoding="utf-8")
    sad.build(path / "model.py", path / "out", targets="spirv,wgsl", validate=False)
    return path / "out"


def test_what_a_call_leaves_out_has_its_default(folder: Path, device: sad.Device) -> None:
    apply = sad.load(folder).apply
    value, (large, flag) = apply(X, LINE)
    assert (value.item(), large.item(), flag.item()) == (-7.0, np.inf, 1)
    value, (large, flag) = apply(X, LINE, 1, pair=(2.0, False))
    assert (value.item(), large.item(), flag.item()) == (-3.5, 2.0, 0)
    gradient, _ = sad.vjp(apply, X, LINE)[1]((1.0, None))
    np.testing.assert_allclose(gradient.numpy(), -X)
    device.synchronize()


def test_structs_and_vectors_are_arguments(folder: Path, device: sad.Device) -> None:
    rise, source = sad.load(folder).rise, module_of(folder.parent / "model.py")
    vector, numbers = sad.float3(1, 2, 3), (1.0, 2.0, 3.0)
    scenes = [source.Scene(source.Ball(x, 0.5), 7) for x in (vector, numbers)]
    as_dict = {"ball": {"centre": [1.0, 2.0, 3.0], "radius": 0.5}, "count": 7}
    for function, scene, by in [
        (source.rise, scenes[0], (0.0, 1.0, 0.0)),
        (rise, scenes[0], (0.0, 1.0, 0.0)),
        (rise, scenes[1], sad.float3(0, 1, 0)),
        (rise, as_dict, sad.array([0.0, 1.0, 0.0])),
    ]:
        value, (by_scene, by_by) = sad.value_and_grad(function, (0, 1))(scene, by, X)
        assert value.item() == 5.5 * 3.0 + 1.0
        assert type(by_scene) is type(scene)
        assert isinstance(by_by, tuple) == isinstance(by, tuple)
        ball = by_scene["ball"] if scene is as_dict else by_scene.ball
        centre, radius = ball.values() if scene is as_dict else (ball.centre, ball.radius)
        assert isinstance(centre, tuple) == (scene is scenes[1])
        for found in (centre, by_by):
            np.testing.assert_allclose([float(x) for x in found], [0.0, 6.0, 0.0])
        assert radius.item() == -3.0
    device.synchronize()


def test_defaults_are_in_the_manifest_as_text(folder: Path) -> None:
    manifest = json.loads((folder / "manifest.json").read_text(encoding="utf-8"))
    parameters = manifest["entries"][0]["parameters"]
    assert ["default" in one for one in parameters] == [False, False, True, True, True]
    assert parameters[2]["default"] == {"kind": "number", "value": "2"}
    assert parameters[4]["default"]["parts"][0] == {"kind": "number", "value": "inf"}


REFUSED: dict[str, tuple[Callable[[Any], Any], str, str]] = {
    "no whole number": (lambda on: on(X, LINE, 2.5), "SR0353", "`times` takes `int`"),
    "too large": (lambda on: on(X, LINE, 1 << 40), "SR0354", "`times` holds 1099511627776"),
    "no number": (lambda on: on(X, LINE, gain="a"), "SR0351", "`gain` is not an array of numbers"),
    "no key": (lambda on: on(X, {"slope": X}), "SR0333", "must be a dict with slope, shift"),
    "another size": (
        lambda on: on(X, {**LINE, "slope": [1.0]}),
        "SR0347",
        "the size `n` is 2 in `x` and 1 in `line.slope`",
    ),
}


@pytest.mark.parametrize("name", REFUSED)
def test_messages_call_arguments_by_their_names(
    name: str, folder: Path, device: sad.Device
) -> None:
    call, code, text = REFUSED[name]
    with pytest.raises(sad.Error) as caught:
        call(sad.load(folder).apply)
    assert caught.value.code == code
    assert text in str(caught.value)
    device.synchronize()
