"""What lies behind pointers: every kind of field, own derivatives, floats beside them, depth."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import shaderad as sad
from shaderad import float2, float3, float3x3, float4, half
from tests.arrays.test_trees import Mesh, numbers, triangles

pytestmark = pytest.mark.gpu

# float32, sums of a few terms in any order.
RTOL = 2e-5


@sad.struct
class Knot:
    at: float3
    pull: sad.LocalArray[float2, 2]


@sad.function
def knot_of(knots: sad.Pointer[Knot], k: int) -> float:
    return sad.detach(knots[k].at.x)


@knot_of.backward_derivative
def knot_of_bwd(knots: sad.DifferentialPair[sad.Pointer[Knot]], k: int, d_out: float):
    knot = knots.p[k]
    knots.d[0] += knot
    knots.d[1] = knot
    knots.d[2].at[k] += d_out
    knots.d[2].pull[k] = float2(d_out, 2.0 * d_out)
    knots.d[3].pull = knot.pull
    knots.d[3].at.zx = float2(1.0, 2.0)
    knots.d[3].at.y -= d_out
    knots.d[4 + k].at.x = 5.0


@sad.kernel
def tie(i: sad.Index, knots: sad.Pointer[Knot], k: sad.In[int], out: sad.Out[float]):
    out[i] = knot_of(knots, k[i])


def test_whole_elements_and_every_part_take_sums_and_stores(device: sad.Device) -> None:
    at = np.arange(12, dtype=np.float32).reshape(4, 3)
    pull = np.arange(16, dtype=np.float32).reshape(4, 2, 2)
    knots = sad.pointer(sad.array({"at": at, "pull": pull}, dtype=Knot))
    _, pullback = sad.vjp(tie, knots, np.int32([1, 1]), dim=2, bounds="ignore")
    found = pullback(np.float32([10.0, 10.0]))[0].numpy()
    expected = np.zeros((4, 7))
    whole = np.concatenate([at[1], pull[1].ravel()])
    expected[0], expected[1] = 2.0 * whole, whole
    expected[2, [1, 5, 6]] = [20.0, 10.0, 20.0]
    expected[3, :3], expected[3, 3:] = [2.0, -20.0, 1.0], whole[3:]
    np.testing.assert_array_equal(found["at"], expected[:, :3])
    np.testing.assert_array_equal(found["pull"].reshape(4, 4), expected[:, 3:])


@sad.struct
class Bone:
    weights: sad.Pointer[half]
    offset: float3
    scale: float
    index: int


@sad.kernel
def skin(i: sad.Index, bones: sad.In[Bone], out: sad.Out[float]):
    bone = bones[i]
    total = 0.0
    for k in range(len(bone.weights)):
        total += float(bone.weights[k]) * bone.scale
    out[i] = total + bone.offset.y * float(bone.index)


def skinned(bones: Any, **call: Any) -> Any:
    return skin(bones, **call)


@pytest.mark.parametrize("function", [skin, skinned])
def test_structs_with_floats_and_pointers_get_both_gradients(
    device: sad.Device, function: Any
) -> None:
    weights = [np.float16([1, 2, 3]), np.float16([4]), np.float16([5, 6])]
    bones = [
        Bone(sad.pointer(sad.array(w, dtype=half)), np.float32([0, k, 0]), 0.5 + k, 10 * k)
        for k, w in enumerate(weights)
    ]
    bar = np.float32([1.0, 10.0, 100.0])
    out, pullback = sad.vjp(function, bones, dim=3)
    expected = [w.sum() * (0.5 + k) + 10 * k * k for k, w in enumerate(weights)]
    np.testing.assert_allclose(out.numpy(), expected, rtol=RTOL)
    found = pullback(bar)[0]
    for k, w in enumerate(weights):
        by_weight = found[k].weights.numpy()
        assert by_weight.dtype == np.float16
        np.testing.assert_allclose(by_weight, np.full(len(w), (0.5 + k) * bar[k]), rtol=1e-3)
        assert found[k].scale.item() == pytest.approx(w.sum() * bar[k], rel=RTOL)
        np.testing.assert_allclose(found[k].offset.numpy(), [0, 10 * k * bar[k], 0])
        assert found[k].index == 0
    tangent = [
        Bone(sad.pointer(np.ones(len(w), np.float16)), np.float32([7, 1, 7]), 2.0, 0)
        for w in weights
    ]
    _, pushed = sad.jvp(function, (bones,), (tangent,), dim=3)
    by_hand = [2.0 * w.sum() + len(w) * (0.5 + k) + 10 * k for k, w in enumerate(weights)]
    np.testing.assert_allclose(pushed.numpy(), by_hand, rtol=RTOL)


@sad.struct
class Chain:
    link: sad.Pointer[Mesh]
    gain: float


@sad.struct
class Bead:
    chain: Chain
    next: int


@sad.struct
class World:
    beads: sad.Pointer[Bead]
    table: sad.In[float]
    bias: float


@sad.function
def bead_of(world: World, k: int) -> Bead:
    if k > 1:
        return world.beads[0]
    return world.beads[k]


@sad.function
def look_up(world: World, k: int) -> float:
    return world.beads[k].chain.link[0].first() * world.table[k]


@look_up.backward_derivative
def look_up_bwd(world: sad.DifferentialPair[World], k: int, d_out: float):
    first = world.p.beads[k].chain.link[0].first()
    world.d.beads[k].chain.link[0].triangles[0].v0.x += d_out * world.p.table[k]
    world.d.table[k] += d_out * first


@sad.kernel
def walk(i: sad.Index, world: World, out: sad.Out[float]):
    bead = bead_of(world, i)
    total = world.bias
    steps = 0
    while sad.limit(steps < 3, 3):
        mesh = bead.chain.link[steps % 2]
        for k in range(len(mesh.triangles)):
            total += mesh.triangles[k].size() * bead.chain.gain
        total *= 0.9
        bead = world.beads[bead.next]
        steps += 1
    for k in sad.static_range(2):
        mesh = bead.chain.link[k]
        total += mesh.first() * float(k + 1)
    out[i] = total + look_up(world, 1)


def world_of(data: list[np.ndarray[Any, Any]]) -> World:
    meshes = [Mesh(sad.pointer(triangles(one)), len(one)) for one in data]
    chains = [Chain(sad.pointer(meshes[k : k + 2]), 0.5 + k) for k in (0, 2)]
    beads = [Bead(chains[0], 1), Bead(chains[1], 0)]
    return World(sad.pointer(beads), np.float32([2.0, 3.0]), 0.25)


def test_a_walk_along_pointers_three_deep_is_differentiated(device: sad.Device) -> None:
    data = [0.5 * numbers(n, n) for n in (1, 2, 1, 2)]
    report = sad.gradcheck(walk, world_of(data), dim=3)
    assert [(one.name, one.size) for one in report.arguments] == [
        ("world.beads[0].chain.link[0].triangles", 8),
        ("world.beads[0].chain.link[1].triangles", 16),
        ("world.beads[0].chain.gain", 1),
        ("world.beads[1].chain.link[0].triangles", 8),
        ("world.beads[1].chain.link[1].triangles", 16),
        ("world.beads[1].chain.gain", 1),
        ("world.table", 2),
        ("world.bias", 1),
    ]
    assert all(one.comparisons for one in report.arguments)


@sad.struct
class Joint:
    turn: float3x3
    is_fixed: bool
    weights: sad.LocalArray[float, 3]


@sad.struct
class Limb:
    joints: sad.Pointer[Joint]
    order: sad.Pointer[int]
    mass: half


@sad.kernel
def bend(
    y: sad.Index,
    x: sad.Index,
    limbs: sad.In[Limb],
    angle: sad.Out[float, 2],
    total: sad.Add[float],
    lowest: sad.Min[float],
):
    limb = limbs[y]
    arm = sad.LocalArray[float, 3]()
    for k in sad.range(len(limb.order), limit=3):
        joint = limb.joints[limb.order[k]]
        turned = joint.turn @ float3(joint.weights[0], joint.weights[k], float(limb.mass))
        arm[k] = arm[(k + 2) % 3] * 0.5 + (turned.x if joint.is_fixed else turned.y)
    angle[y, x] = arm[x]
    total[limb.order[0]] += arm[x] * arm[0]
    lowest[0] = sad.min(lowest[0], arm[x])


def test_every_kind_of_field_lies_behind_pointers(device: sad.Device) -> None:
    random = np.random.default_rng(0)

    def joints(count: int) -> sad.Array:
        turn, weights = random.normal(size=(count, 3, 3)), random.normal(size=(count, 3))
        fixed = np.arange(count) % 2 == 1
        return sad.array({"turn": turn, "is_fixed": fixed, "weights": weights}, dtype=Joint)

    limbs = [
        Limb(sad.pointer(joints(2)), sad.pointer([1, 0, 1]), 1.5),
        Limb(sad.pointer(joints(1)), sad.pointer([0]), 0.75),
    ]
    report = sad.gradcheck(bend, limbs, dim=(2, 3), shapes={"total": 2, "lowest": 1})
    assert report.identity == "vjp agrees with jvp"
    assert {one.name: one.size for one in report.arguments} == {
        "limbs[0].joints": 24,
        "limbs[0].mass": 1,
        "limbs[1].joints": 12,
        "limbs[1].mass": 1,
    }


@sad.struct
class Fog:
    depth: sad.Pointer[float]
    density: float


@sad.kernel
def fogged(
    i: sad.Index, fog: Fog, picture: sad.Texture2D[float4], s: sad.Sampler, out: sad.Out[float]
):
    u = (float(i) + 0.5) / 4.0
    out[i] = picture.sample_level(s, float2(u, 0.5), 0.0).x * fog.depth[i] * fog.density


def fogged_by_function(*args: Any, **call: Any) -> Any:
    return fogged(*args, **call)


@pytest.mark.parametrize("function", [fogged, fogged_by_function])
def test_textures_stand_beside_pointers(device: sad.Device, function: Any) -> None:
    image = np.random.default_rng(5).random((1, 4, 4), np.float32)
    depth = np.float32([1, 2, 3, 4])
    fog = Fog(sad.pointer(sad.array(depth)), 0.5)
    picture, s = sad.texture(image), sad.sampler("nearest")
    out, pullback = sad.vjp(function, fog, picture, s, dim=4)
    red, bar = image[0, :, 0], np.float32([1, 10, 100, 1000])
    np.testing.assert_allclose(out.numpy(), red * depth * 0.5, rtol=RTOL)
    by_fog, by_picture, by_sampler = pullback(bar)
    np.testing.assert_allclose(by_fog.depth.numpy(), bar * red * 0.5, rtol=RTOL)
    assert by_fog.density.item() == pytest.approx(float((bar * red * depth).sum()), rel=RTOL)
    np.testing.assert_allclose(by_picture.numpy()[0, :, 0], bar * depth * 0.5, rtol=RTOL)
    assert by_sampler is None
    moved = sad.jvp(function, (fog, picture, s), (None, np.ones_like(image), None), dim=4)[1]
    np.testing.assert_allclose(moved.numpy(), depth * 0.5, rtol=RTOL)
