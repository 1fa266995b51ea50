"""`--wrt`: derivatives by some inputs, and none by others that could be mistaken for zero."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import shaderad as sad
from shaderad.bundle.write.command_options import wanted_inputs
from shaderad.lower.bindings import Mode
from tests.bundle.conftest import SOURCE

KNOWN = {
    "shade": {"mesh.colors": True, "mesh.corners": False, "gain": True, "color": False},
    "tone": {"gain": True, "gains": True},
}


@pytest.mark.parametrize(
    ("wrt", "shade", "tone"),
    [
        ((), {"mesh.colors", "gain"}, {"gain", "gains"}),
        (("gain",), {"gain"}, {"gain"}),
        (("mesh",), {"mesh.colors"}, set[str]()),
        (("mesh.colors, tone.gains",), {"mesh.colors"}, {"gains"}),
        (("shade.mesh", "tone.gain"), {"mesh.colors"}, {"gain"}),
        (("none",), set(), set()),
    ],
)
def test_names_choose_inputs_that_hold_floats(
    wrt: tuple[str, ...], shade: set[str], tone: set[str]
) -> None:
    assert wanted_inputs(wrt, KNOWN) == {"shade": shade, "tone": tone}


@pytest.mark.parametrize(
    ("name", "code", "words"),
    [
        ("colour", "SR0746", "`mesh.colors`"),
        ("mesh.color", "SR0746", "`gain`"),
        ("tone.mesh", "SR0746", "`--wrt tone.mesh`"),
        ("shade", "SR0746", "`--wrt shade`"),
        ("mesh.corners", "SR0747", "`--wrt mesh.corners`"),
        ("color", "SR0747", "hold floats"),
        ("none,gains", "SR0746", "`--wrt none`"),
    ],
)
def test_names_that_choose_nothing_are_refused(name: str, code: str, words: str) -> None:
    with pytest.raises(sad.LanguageError) as caught:
        wanted_inputs([name], KNOWN)
    assert caught.value.code == code
    assert words in str(caught.value)


def test_an_entry_without_the_names_is_built_without_backward(tmp_path: Path) -> None:
    defines = {"count": 8, "top": 1.0}
    built = sad.build(
        SOURCE, tmp_path / "out", targets="wgsl", wrt="cloud.points,x_1", defines=defines,
        validate=False,
    )  # fmt: skip
    found = {k.name: k.by_target["wgsl"] for k in built.kernels}
    refusal = found["levels"].refusals[Mode.BACKWARD]
    assert refusal.reason == "`--wrt` names none of its inputs"
    backward = found["splat"].by_mode[Mode.BACKWARD]
    assert backward.outputs == ("cloud_points gradient", "x_1 gradient")
    manifest = json.loads((tmp_path / "out/manifest.json").read_text(encoding="utf-8"))
    (splat, *_) = manifest["entries"]
    known = [*splat["inputs"], *splat["uniforms"]]
    assert {one["name"] for one in known if one["is_differentiable"]} == {"cloud_points", "x_1"}


FILE = """
import shaderad as sad


@sad.kernel
def scale(i: sad.Index, x: sad.In[float], gain: float, y: sad.Out[float]):
    y[i] = gain * gain * x[i]


@sad.graph
def energy(x: sad.Array[float, "n"], k: sad.Array[int, "n"], gain: float) -> sad.Array[float]:
    return sad.sum(x * x * k) * gain
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    source = tmp_path_factory.mktemp("wrt") / "file.py"
    source.write_text(FILE, encoding="utf-8")
    sad.build(source, source.parent / "out", targets="spirv,wgsl", wrt="scale.x,energy.x",
              jvp=True, validate=False)  # fmt: skip
    return source.parent / "out"


X = np.array([1.0, 2.0, -3.0])


@pytest.mark.gpu
def test_derivatives_by_what_was_chosen_are_right(folder: Path, device: sad.Device) -> None:
    loaded = sad.load(folder)
    k = np.array([1, 0, 2])
    _, pullback = sad.vjp(lambda x: loaded.scale(x, 1.5, dim=3), X)
    np.testing.assert_allclose(pullback(X)[0].numpy(), 2.25 * X)
    _, moved = sad.jvp(lambda x: loaded.scale(x, 1.5, dim=3), (X,), (X,))
    np.testing.assert_allclose(moved.numpy(), 2.25 * X)
    gradient = sad.grad(loaded.energy)(X, k, 0.5)
    np.testing.assert_allclose(gradient.numpy(), X * k)
    assert device.synchronize() is None


def differentiations(loaded: Any) -> dict[str, Any]:
    k = np.array([1, 0, 2])
    return {
        "kernel by all": lambda: sad.vjp(loaded.scale, X, 1.5, dim=3)[1](np.ones(3)),
        "kernel forward": lambda: sad.jvp(loaded.scale, (X, 1.5), (X, 0.0), dim=3),
        "graph by another": lambda: sad.grad(loaded.energy, argnums=2)(X, k, 0.5),
        "graph by all": lambda: sad.vjp(loaded.energy, X, k, 0.5)[1](1.0),
        "graph forward": lambda: sad.jvp(lambda gain: loaded.energy(X, k, gain), (0.5,), (1.0,)),
    }


@pytest.mark.gpu
@pytest.mark.parametrize("name", differentiations(None))
def test_what_was_left_out_is_an_error_and_never_zero(
    folder: Path, device: sad.Device, name: str
) -> None:
    with pytest.raises(sad.DerivativeError) as caught:
        differentiations(sad.load(folder))[name]()
    assert caught.value.code == "SR0748"
    assert "`--wrt`" in str(caught.value)
    assert device.synchronize() is None
