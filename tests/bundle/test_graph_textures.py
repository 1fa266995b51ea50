"""Builds of graphs with textures: one plan serves every layout, and runs as its source does."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import shaderad as sad
from shaderad.bundle.format.document import with_digest
from tests.bundle import graph_textures
from tests.bundle.graph_textures import Sky

pytestmark = pytest.mark.gpu

RTOL, ATOL = 1e-4, 1e-4  # sums of atomic additions in any order
STEP_RTOL = 5e-3  # differences of float32 values
SMOOTH = sad.sampler("linear", "mirror")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("graph_textures") / "out"
    sad.build(graph_textures.__file__, out, targets="spirv,wgsl,hlsl,metal", jvp=True)
    return out


def floats(shape: tuple[int, ...]) -> np.ndarray:
    return np.float32(np.random.default_rng(sum(shape)).uniform(0.1, 0.9, shape))


def arguments(layout: str, count: int) -> tuple[Any, ...]:
    picture = floats((5, 7, 4))
    color = {
        "plain": lambda: sad.texture(picture),
        "mips": lambda: sad.texture(floats((8, 4, 4)), mips=True),
        "bytes": lambda: sad.texture(np.uint8(255 * picture)),
        "one texel": lambda: sad.texture(floats((1, 1, 4))),
    }[layout]()
    sky = Sky(
        cube=sad.texture(floats((6, 4, 4, 4)), dimension="cube"),
        smooth=SMOOTH,
        tint=sad.float3(1, 2, 3),
    )
    maps = {"color": color, "unused": sad.texture(floats((3, 2, 4)))}
    return maps, SMOOTH, sky, floats((count, 2)), floats((count, 3))


def derivatives(graph: Callable[..., Any], args: tuple[Any, ...]) -> list[np.ndarray]:
    out, pullback = sad.vjp(graph, *args)
    maps_bar, s_bar, sky_bar, at_bar, d_bar = pullback({"color": floats(args[4].shape), "loss": 1})
    assert s_bar is None
    color = args[0]["color"]
    maps_dot = {"color": np.cos(floats((*color.shape, 4))), "unused": None}
    sky_dot = Sky(cube=np.ones((6, 4, 4, 4), np.float32), smooth=None, tint=sad.float3(0, 1, 0))
    dots = (maps_dot, None, sky_dot, args[3], args[4])
    _, dot = sad.jvp(graph, args, dots)
    parts = [
        *out.values(), *dot.values(), at_bar, d_bar, maps_bar["color"], maps_bar["unused"],
        sky_bar.cube, sky_bar.tint,
    ]  # fmt: skip
    return [np.asarray(x) for x in parts]


@pytest.mark.parametrize(
    ("layout", "count"), [("plain", 9), ("mips", 65), ("bytes", 1), ("plain", 0), ("one texel", 3)]
)
def test_one_plan_serves_every_layout_as_the_source_does(
    folder: Path, device: sad.Device, layout: str, count: int
) -> None:
    args = arguments(layout, count)
    built = derivatives(sad.load(folder).shaded, args)
    source = derivatives(graph_textures.shaded, args)
    for x, y in zip(built, source, strict=True):
        np.testing.assert_allclose(x, y, rtol=RTOL, atol=ATOL)
    device.synchronize()


@pytest.mark.parametrize(("shape", "mips"), [((3, 5, 2), True), ((1, 1, 1), False)])
def test_layers_of_every_number_are_read(
    folder: Path, device: sad.Device, shape: tuple[int, ...], mips: bool
) -> None:
    t = sad.texture(floats(shape), mips=mips, dimension="2d-array")
    at = floats((9, 3)) * np.float32([1, 1, 4])
    pairs = []
    for graph in (sad.load(folder).clouds, graph_textures.clouds):
        loss, pullback = sad.vjp(graph, t, SMOOTH, at)
        by_t, _, by_at = pullback(1.0)
        pairs.append([loss.numpy(), by_t.numpy(), by_at.numpy()])
    for x, y in zip(*pairs, strict=True):
        np.testing.assert_allclose(x, y, rtol=RTOL, atol=ATOL)
    assert np.abs(pairs[0][1]).max() > 0.1


def test_the_gradient_is_that_of_differences(folder: Path, device: sad.Device) -> None:
    graph = sad.load(folder).shaded
    maps, s, sky, at, d = arguments("plain", 9)
    picture, step = floats((5, 7, 4)), 1e-3
    direction = np.float32(np.random.default_rng(3).normal(size=picture.shape))

    def loss(t: Any) -> Any:
        return graph({**maps, "color": t}, s, sky, at, d)["loss"].item()

    _, pullback = sad.vjp(graph, maps, s, sky, at, d)
    by_maps = pullback({"color": None, "loss": 1.0})[0]
    slope = float(np.sum(by_maps["color"].numpy() * direction))
    high, low = (loss(sad.texture(picture + h * direction)) for h in (step, -step))
    np.testing.assert_allclose(slope, (high - low) / (2 * step), rtol=STEP_RTOL)


def test_the_manifest_names_textures_and_their_numbers(folder: Path) -> None:
    manifest = json.loads((folder / "manifest.json").read_text(encoding="utf-8"))
    entry = next(one for one in manifest["entries"] if one["name"] == "shaded")
    rows = {one["name"]: (one.get("resource", "array"), one["shape"]) for one in entry["inputs"]}
    assert rows["maps.color"] == ("Texture2D", ["texels.0"])
    assert rows["maps.color.size"] == rows["sky.cube.size"] == ("array", [])
    assert rows["s"] == ("Sampler", [])
    assert rows["sky.cube"][0] == "TextureCube"
    for target in entry["targets"].values():
        for mode in ("primal", "backward", "forward"):
            plan = target[mode]
            bytes_by_name = {one["name"]: one["byte_count"] for one in plan["buffers"]}
            for name in ("maps.color", "maps.unused", "s", "sky.cube", "sky.smooth"):
                assert bytes_by_name[name] == 0
            assert len(plan["outputs"]) == {"primal": 2, "backward": 10, "forward": 4}[mode]


WRONG: dict[str, tuple[int, Any, str]] = {
    "an array": (0, {"color": floats((5, 7, 4)), "unused": floats((1, 1, 4))}, "SR0819"),
    "no sampler": (1, "linear", "SR0819"),
    "no dict": (0, SMOOTH, "SR0333"),
}


@pytest.mark.parametrize("name", WRONG)
def test_other_arguments_are_refused(folder: Path, device: sad.Device, name: str) -> None:
    position, x, code = WRONG[name]
    args = list(arguments("plain", 3))
    args[position] = x
    with pytest.raises(sad.Error) as caught:
        sad.load(folder).shaded(*args)
    assert caught.value.code == code


def test_a_texture_of_another_dimension_or_channels_is_refused(
    folder: Path, device: sad.Device
) -> None:
    maps, *others = arguments("plain", 3)
    for color in (
        sad.texture(floats((6, 2, 2, 4)), dimension="cube"),
        sad.texture(floats((3, 3))),
    ):
        with pytest.raises(sad.Error) as caught:
            sad.load(folder).shaded({**maps, "color": color}, *others)
        assert caught.value.code == "SR0819"


REFUSED = {
    "SR0736": "return look(t, s, at, 0.0) * t.shape[0]",
    "SR0735": "return look(t, s, at, 0.0), t",
    "SR0734": "return look(t, sad.sampler(), at, 0.0)",
}


@pytest.mark.parametrize("code", REFUSED)
def test_a_graph_that_a_build_cannot_hold_is_refused(tmp_path: Path, code: str) -> None:
    (tmp_path / "model.py").write_text(
        "import shaderad as sad\n"
        "from shaderad import float2, float4\n"
        "from tests.bundle.graph_textures import look\n"
        "@sad.graph\n"
        "def g(t: sad.Texture2D[float4], s: sad.Sampler, at: sad.Array[float2, 'n']):\n"
        f"    {REFUSED[code]}\n",
        encoding="utf-8",
    )
    with pytest.raises(sad.Error) as caught:
        sad.build(tmp_path / "model.py", tmp_path / "out", targets="spirv", validate=False)
    assert caught.value.code == code


SPOILED: dict[str, Callable[[dict[str, Any]], Any]] = {
    "a texture as an array": lambda e: e["inputs"][0].update(resource="array"),
    "an array as a texture": lambda e: e["inputs"][-1].update(resource="Texture2D"),
    "a texture of another dimension": lambda e: e["inputs"][0].update(resource="Texture3D"),
    "an output": lambda e: e["outputs"][0].update(resource="Texture2D"),
    "no number": lambda e: e["parameters"][1]["tree"]["parts"].pop(),
    "another number": lambda e: e["parameters"][1]["tree"]["parts"][1].update(index=1),
    "another kind": lambda e: e["parameters"][1]["tree"].update(kind="texture"),
}


@pytest.mark.parametrize("name", SPOILED)
def test_a_spoiled_manifest_is_refused(
    folder: Path, tmp_path: Path, device: sad.Device, name: str
) -> None:
    spoiled = shutil.copytree(folder, tmp_path / "out")
    manifest = json.loads((spoiled / "manifest.json").read_text(encoding="utf-8"))
    SPOILED[name](next(one for one in manifest["entries"] if one["name"] == "shaded"))
    (spoiled / "manifest.json").write_bytes(with_digest(json.dumps(manifest).encode()))
    with pytest.raises(sad.Error):
        sad.load(spoiled).shaded(*arguments("plain", 3))["color"].numpy()
