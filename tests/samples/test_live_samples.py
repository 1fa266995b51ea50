"""The samples with pages: small fits, the files they write, and gradients."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

import shaderad as sad
from tests.samples.live_loading import live_sample

pytestmark = pytest.mark.gpu

MIPS_GAIN, BLURRED = 3.0, 25.0
"""dB of the texels: how much mips are good for, and what is found without them."""


def test_a_texture_learns_a_picture(device: sad.Device) -> None:
    with live_sample("neural_texture") as texture:
        target = texture.picture(32)
        (early, found), errors = texture.fit(target, texture.untrained(4, 256, 16), 60)
    assert errors[-1] < 0.1 * errors[0]
    assert np.square(found - target).mean() < 0.5 * np.square(early - target).mean()


def test_features_have_the_gradients_of_finite_differences(device: sad.Device) -> None:
    with live_sample("neural_texture") as sample:
        draw = np.random.default_rng(1)
        table = sad.array(draw.uniform(-1, 1, (2, 16, 2)), dtype=sad.float2)
        places = sad.array(draw.random((9, 2)), dtype=sad.float2)

        def total(table: object) -> object:
            shapes = {"features": (9, 4)}
            features = sample.texture.encode(places, table, dim=(9, 2), shapes=shapes)
            return sad.sum(sad.sin(features))

        sad.gradcheck(total, table)


def test_smoke_comes_to_look_like_the_sign(device: sad.Device) -> None:
    with live_sample("smoke") as smoke:
        start, goal = (smoke.blot(32, shape) for shape in (smoke.ring, smoke.sign))
        velocity, errors = smoke.fit(start, goal, 8)
        film, picture = smoke.fluid.film(start, velocity).numpy(), smoke.fluid.wanted(goal).numpy()
    assert start.sum() == pytest.approx(goal.sum(), rel=0.05)
    assert errors[-1] < 0.6 * errors[0]
    assert len(film) == smoke.fluid.TIME_STEPS + 1
    assert np.square(film[-1] - picture).mean() < 0.6 * np.square(film[0] - picture).mean()


def test_a_loop_of_the_fluid_is_one_dispatch(device: sad.Device) -> None:
    with live_sample("smoke") as smoke:
        start = smoke.blot(16, smoke.ring)
        velocity = sad.array(np.zeros((16, 16, 2)), dtype=sad.float2)
        state = smoke.fluid.ADAM.init(velocity)
        plan = smoke.fluid.step.explain(sad.array(start), sad.array(start), velocity, state)
    assert plan.count("loop_in_group of one workgroup") >= 4
    assert "loop of" not in plan


def test_a_sphere_comes_to_look_like_spot_from_where_no_camera_was(device: sad.Device) -> None:
    with live_sample("silhouettes") as sample:
        ball, views = sample.start(3, 48)
        found = sample.fit(ball, views, 40)
        shapes = (ball, ball._replace(positions=found.shapes[-1]))
        before, after = (sample.psnr_elsewhere(one, 48) for one in shapes)
    assert found.errors[-1] < 0.2 * found.errors[0]
    assert after > before + 7
    assert len(found.shapes) == len(found.seconds) + 1 == 41


def test_masks_alone_move_a_sphere_to_where_it_belongs(device: sad.Device) -> None:
    with live_sample("silhouettes") as sample:
        ball, views = sample.start(2, 32)
        aside = ball._replace(positions=ball.positions + sad.float3(0.1, -0.05, 0.15))
        cameras, like = views["cameras"], views["targets"]

        @sad.graph
        def miss(shift: object) -> object:
            moved = ball.positions + shift
            found = sample.shape.pictures(moved, ball.triangles, cameras, like)
            return sad.mean((found.w - goal.w) ** 2)

        goal = sample.shape.seen(aside.triangles, cameras, like, aside.positions)
        shift, adam = sad.array(np.zeros(3), dtype=sad.float3), sad.optim.Adam(0.02, beta1=0.7)
        state = adam.init(shift)
        for k in range(30):
            shift, state = adam.step(shift, sad.grad(miss)(shift), state, 0.02 * 0.93**k)
    np.testing.assert_allclose(shift.numpy(), [0.1, -0.05, 0.15], atol=0.005)


@pytest.mark.slow
def test_texels_are_found_better_with_mips(
    device: sad.Device, monkeypatch: pytest.MonkeyPatch
) -> None:
    with live_sample("texture") as sample:
        monkeypatch.setattr(sample.planet, "PIXELS", 32)
        scene = sample.on_device(sample.texels(32))
        fits, _ = sample.fit(scene, 100)
        with_mips, without = map(sample.psnr, sample.planet.errors(scene[0], fits))
    assert with_mips > without + MIPS_GAIN
    assert without > BLURRED


def test_the_planet_has_no_seam() -> None:
    with live_sample("texture") as sample:
        positions, triangles = sample.sphere()
    edges = np.concatenate([triangles[:, [0, 1]], triangles[:, [1, 2]], triangles[:, [2, 0]]])
    forth, back = ({tuple(edge) for edge in one.tolist()} for one in (edges, edges[:, ::-1]))
    assert forth == back
    assert len(forth) == len(edges)
    a, b, c = positions[triangles].swapaxes(0, 1)
    assert (np.einsum("ij,ij->i", np.cross(b - a, c - a), a) > 0).all()


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "few", "files"),
    [
        ("neural_texture", ["--size", "24"], "target.png fit.png difference.png overview.png"),
        ("smoke", ["--size", "16"], "smoke.webp overview.png"),
        ("silhouettes", ["--size", "16", "--subdivisions", "1"], "overview.png fit.webp shape.ply"),
        (
            "texture",
            ["--size", "8"],
            "photo.png without_mips.png with_mips.png target.png overview.png",
        ),
    ],
)
def test_pictures_and_a_curve_are_written(
    name: str, few: list[str], files: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "path", list(sys.path))
    with live_sample(name) as sample:
        sample.main(["--out", str(tmp_path), "--steps", "2", *few])
    assert {path.name for path in tmp_path.iterdir()} == {*files.split(), "loss.svg"}
    with Image.open(tmp_path / "overview.png") as picture:
        assert picture.width >= 2 * picture.height


@pytest.mark.parametrize("name", ["neural_texture", "silhouettes", "smoke", "texture"])
@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        (["--size", "0"], "--size"),
        (["--steps", "0"], "--steps"),
        (["--out", "{file}"], "File exists"),
    ],
)
def test_a_wrong_argument_is_one_line(
    name: str, wrong: list[str], said: str, tmp_path: Path, capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    monkeypatch.setattr(sys, "path", list(sys.path))
    (tmp_path / "file").touch()
    few = ["--size", "8", "--steps", "1"]
    with live_sample(name) as sample, pytest.raises(SystemExit) as stopped:
        sample.main([*few, *(word.format(file=tmp_path / "file") for word in wrong)])
    assert stopped.value.code == 2
    assert said in capsys.readouterr().err.splitlines()[-1]
