"""`--verify`: built gradients are tried on this machine, and what could not be tried is said."""

from __future__ import annotations

from pathlib import Path

import pytest

import shaderad as sad
from shaderad.bundle.write import verification
from shaderad.runtime import Runtime

pytestmark = pytest.mark.gpu

RIGHT = """
import shaderad as sad
from shaderad import float2x2, float3, int3


@sad.struct
class Mesh:
    corners: sad.In[int3]
    colors: sad.In[float3]
    gain: float


@sad.struct
class Sample:
    face: int
    weights: float3


@sad.kernel
def shade(i: sad.Index, mesh: Mesh, samples: sad.In[Sample], color: sad.Out[float3]):
    corners = mesh.corners[samples[i].face]
    w = samples[i].weights
    c = mesh.colors[corners.x] * w.x + mesh.colors[corners.y] * w.y + mesh.colors[corners.z] * w.z
    color[i] = c * mesh.gain


@sad.kernel
def rows(y: sad.Index, x: sad.Index, image: sad.In[float, 2], turn: float2x2, sums: sad.Add[float],
         lowest: sad.Min[float]):
    sums[y] += image[y, x] * turn[0][1] * sad.sin(image[y, x])
    lowest[x] = sad.min(lowest[x], image[y, x])


@sad.graph
def energy(x: sad.Array[float, "n"], pick: sad.Array[int, "n"]) -> sad.Array[float]:
    return sad.sum(sad.scan(sad.mul, x) * x[pick])
"""

ODD = """
import shaderad as sad


@sad.function
def stepped(x: float) -> float:
    return round(x)


@stepped.backward_derivative(check=False)
def stepped_bwd(x: sad.DifferentialPair[float], d_out: float):
    x.d += d_out


@sad.kernel
def through(i: sad.Index, x: sad.In[float], y: sad.Out[float]):
    y[i] = stepped(x[i])


@sad.struct
class Scene:
    shade: sad.Pointer[float]


@sad.kernel
def behind(i: sad.Index, scene: Scene, y: sad.Out[float]):
    y[i] = scene.shade[i]


@sad.kernel
def far(i: sad.Index, x: sad.In[float], y: sad.Out[float]):
    y[i] = x[i + 100]


@sad.kernel
def moved(i: sad.Index, x: sad.In[float], at: sad.In[int], y: sad.Out[float]):
    y[at[i]] = x[i]
"""

WRONG = """
import shaderad as sad


@sad.function
def square(x: float) -> float:
    return x * x


@square.backward_derivative
def square_bwd(x: sad.DifferentialPair[float], d_out: float):
    x.d += x.p * d_out


@sad.kernel
def squares(i: sad.Index, x: sad.In[float], y: sad.Out[float]):
    y[i] = square(x[i])
"""


@pytest.fixture(scope="module", autouse=True)
def needs_a_device() -> None:
    try:
        sad.open_device("wgpu").close()
    except sad.DeviceError as failure:
        pytest.skip(failure.message)


def written(folder: Path, text: str) -> Path:
    (folder / "model.py").write_text(text, encoding="utf-8")
    return folder / "model.py"


def test_gradients_that_are_right_are_verified_for_each_target_that_runs(tmp_path: Path) -> None:
    source = written(tmp_path, RIGHT)
    built = sad.build(source, tmp_path / "out", targets="spirv,wgsl,hlsl", verify=True,
                      validate=False)  # fmt: skip
    found = {(one.entry, one.target): one.reason for one in built.verifications}
    for entry in ("shade", "rows", "energy"):
        assert found[entry, "spirv"] == found[entry, "wgsl"] == ""
        assert found[entry, "hlsl"] == "no runtime here takes it"
    assert (tmp_path / "out/manifest.json").is_file()


def test_what_cannot_be_tried_is_said_with_its_reason(tmp_path: Path) -> None:
    source = written(tmp_path, ODD)
    built = sad.build(source, tmp_path / "out", targets="wgsl", verify=True, validate=False)
    reasons = {one.entry: one.reason for one in built.verifications}
    assert reasons["through"] == "a derivative in it has `check=False`"
    assert reasons["behind"] == "there is no synthetic argument for `Pointer[float]`"
    assert reasons["far"].startswith("SR0660: index 10")
    assert reasons["moved"].startswith("it has no backward: ")


def test_a_wrong_gradient_fails_the_build_and_keeps_the_folder(tmp_path: Path) -> None:
    source = written(tmp_path, WRONG)
    out = tmp_path / "out"
    out.mkdir()
    (out / "mine.txt").write_text("mine", encoding="utf-8")
    with pytest.raises(sad.GradientError) as caught:
        sad.build(source, out, targets="wgsl", verify=True, validate=False)
    assert caught.value.code == "SR0751"
    assert "`squares` for wgsl is wrong" in caught.value.message
    assert [p.name for p in out.iterdir()] == ["mine.txt"]
    assert not sad.build(source, out, targets="wgsl", validate=False).verifications


def test_without_a_device_nothing_is_verified(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def none(runtime: str) -> Runtime:
        raise sad.DeviceError("SR0602", f"no {runtime} here")

    monkeypatch.setattr(verification, "open_runtime", none)
    source = written(tmp_path, WRONG)
    built = sad.build(source, tmp_path / "out", targets="wgsl", verify=True, validate=False)
    (one,) = built.verifications
    assert one.reason == "no device: no wgpu here"
