"""Structs with pointers as kernel parameters: values, gradients and tangents on every runtime."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import shaderad as sad
from shaderad import float2, float4
from shaderad.arrays.pointers import HostPointer
from shaderad.calls.call import bound_call, on_device

pytestmark = pytest.mark.gpu

# float32, sums of a few dozen terms in any order.
RTOL = 2e-5
THREADS = 200


@sad.struct
class Triangle:
    v0: float4
    v1: float4

    def size(self) -> float:
        return sad.dot(self.v0, self.v1)


@sad.struct
class Mesh:
    triangles: sad.Pointer[Triangle]
    count: int

    def first(self) -> float:
        return self.triangles[0].v0.x


@sad.struct
class Scene:
    meshes: sad.Pointer[Mesh]
    count: int
    exposure: float


@sad.function
def total_size(mesh: Mesh) -> float:
    total = 0.0
    for k in range(mesh.count):
        total += mesh.triangles[k].size()
    return total


@sad.kernel
def render(i: sad.Index, scene: Scene, weight: sad.In[float], out: sad.Out[float]):
    mesh = scene.meshes[i % len(scene.meshes)]
    if weight[i] > 1.5:
        mesh = scene.meshes[0]
    out[i] = (total_size(mesh) + 2.0 * scene.meshes[0].first()) * weight[i] * scene.exposure


# The seed program: what lies behind two pointers gets its gradient from a derivative of the user's.
@sad.function
def foo(scene: Scene) -> float:
    return sad.detach(scene.meshes[0].triangles[0].v0.x)


@foo.backward_derivative
def foo_bwd(scene: sad.DifferentialPair[Scene], d_out: float):
    mesh = scene.p.meshes[0]
    scene.d.meshes[0].triangles[0].v0.x += d_out
    scene.d.meshes[0].triangles[mesh.count - 1].v1.wz -= float2_of(d_out)
    scene.d.meshes[scene.p.count - 1].triangles[0].v0 = mesh.triangles[0].v0
    scene.d.exposure += 3.0 * d_out


@sad.function
def float2_of(x: float) -> float2:
    return float2(x, 2.0 * x)


@sad.kernel
def seed(i: sad.Index, scene: Scene, weight: sad.In[float], out: sad.Out[float]):
    out[i] = foo(scene) * weight[i]


def numbers(count: int, seed: int) -> np.ndarray[Any, Any]:
    return np.random.default_rng(seed).normal(size=(count, 2, 4)).astype(np.float32)


def triangles(data: np.ndarray[Any, Any]) -> sad.Array:
    return sad.array({"v0": data[:, 0], "v1": data[:, 1]}, dtype=Triangle)


def scene_of(*meshes: np.ndarray[Any, Any], exposure: float = 0.5) -> Scene:
    mesh_array = sad.array([Mesh(sad.pointer(triangles(m)), len(m)) for m in meshes])
    return Scene(meshes=sad.pointer(mesh_array), count=len(meshes), exposure=exposure)


def rendered(
    meshes: list[np.ndarray[Any, Any]], weight: np.ndarray[Any, Any], exposure: float
) -> np.ndarray[Any, Any]:
    """What `render` computes, in float64."""
    sizes = np.array([np.sum(m[:, 0] * m[:, 1], dtype=np.float64) for m in meshes])
    chosen = np.where(weight > 1.5, 0, np.arange(len(weight)) % len(meshes))
    return (sizes[chosen] + 2.0 * float(meshes[0][0, 0, 0])) * weight * exposure


WEIGHT = np.linspace(1.0, 2.0, THREADS, dtype=np.float32)
BAR = np.linspace(-1.0, 3.0, THREADS, dtype=np.float32)


def gradients_of(mesh: Any) -> np.ndarray[Any, Any]:
    found = mesh.triangles.numpy()
    return np.stack([found["v0"], found["v1"]], axis=1)


@pytest.mark.parametrize("sizes", [(3, 2), (1, 4, 2), (3,)], ids=str)
def test_gradients_behind_two_pointers_are_those_of_the_formula(
    device: sad.Device, sizes: tuple[int, ...]
) -> None:
    meshes = [numbers(n, k) for k, n in enumerate(sizes)]
    out, pullback = sad.vjp(render, scene_of(*meshes), WEIGHT, dim=THREADS)
    np.testing.assert_allclose(out.numpy(), rendered(meshes, WEIGHT, 0.5), rtol=RTOL, atol=1e-5)
    found, by_weight = pullback(BAR)
    factor = 0.5 * WEIGHT.astype(np.float64) * BAR
    chosen = np.where(WEIGHT > 1.5, 0, np.arange(THREADS) % len(sizes))
    for k, data in enumerate(meshes):
        expected = data[:, ::-1] * np.sum(factor[chosen == k])
        if k == 0:
            expected[0, 0, 0] += 2.0 * np.sum(factor)
        np.testing.assert_allclose(gradients_of(found.meshes[k]), expected, rtol=RTOL, atol=1e-4)
    assert (found.count, found.meshes[0].count) == (0, 0)
    plain = rendered(meshes, np.asarray(WEIGHT, np.float64), 1.0)
    assert found.exposure.item() == pytest.approx(np.dot(plain, BAR), rel=RTOL)
    np.testing.assert_allclose(by_weight.numpy(), plain / WEIGHT * 0.5 * BAR, rtol=1e-4, atol=1e-5)


def test_gradcheck_looks_behind_pointers(device: sad.Device) -> None:
    report = sad.gradcheck(render, scene_of(numbers(2, 0), numbers(1, 1)), WEIGHT[:5], dim=5)
    names = [one.name for one in report.arguments]
    behind = [f"scene.meshes[{k}].triangles" for k in range(2)]
    assert names == [*behind, "scene.exposure", "weight"]
    assert report.identity == "vjp agrees with jvp"


def test_tangents_are_pushed_through_pointers(device: sad.Device) -> None:
    meshes, tangents = [numbers(3, 0), numbers(2, 1)], [numbers(3, 2), numbers(2, 3)]
    primals = (scene_of(*meshes), WEIGHT)
    _, found = sad.jvp(render, primals, (scene_of(*tangents, exposure=0.25), None), dim=THREADS)
    h = 1e-4

    def moved(way: float) -> np.ndarray[Any, Any]:
        there = [m.astype(np.float64) + way * t for m, t in zip(meshes, tangents, strict=True)]
        return rendered(there, WEIGHT.astype(np.float64), 0.5 + way * 0.25)

    np.testing.assert_allclose(
        found.numpy(), (moved(h) - moved(-h)) / (2 * h), rtol=1e-4, atol=1e-5
    )


def test_tangents_of_other_counts_are_refused(device: sad.Device) -> None:
    primals = (scene_of(numbers(3, 0)), WEIGHT)
    with pytest.raises(sad.DerivativeError) as caught:
        sad.jvp(render, primals, (scene_of(numbers(3, 0), numbers(1, 1)), None), dim=THREADS)
    assert caught.value.code == "SR0452"
    with pytest.raises(sad.ShapeError) as caught:
        sad.jvp(render, primals, (scene_of(numbers(4, 0)), None), dim=THREADS)
    assert caught.value.code == "SR0382"


def test_own_backward_adds_and_stores_behind_pointers(device: sad.Device) -> None:
    meshes = [numbers(3, 0), numbers(2, 1)]
    out, pullback = sad.vjp(seed, scene_of(*meshes), WEIGHT, dim=THREADS)
    np.testing.assert_array_equal(out.numpy(), meshes[0][0, 0, 0] * WEIGHT)
    found, _ = pullback(BAR)
    total = float(np.dot(WEIGHT.astype(np.float64), BAR))
    expected = np.zeros((3, 2, 4))
    expected[0, 0, 0] = total
    expected[2, 1, 3], expected[2, 1, 2] = -total, -2.0 * total
    np.testing.assert_allclose(gradients_of(found.meshes[0]), expected, rtol=RTOL)
    # Every thread stores the same: nothing is summed.
    stored = gradients_of(found.meshes[1])
    np.testing.assert_array_equal(stored[0, 0], meshes[0][0, 0])
    assert not stored[1].any()
    assert not stored[:, 1].any()
    assert found.exposure.item() == pytest.approx(3.0 * total, rel=RTOL)


def test_an_own_backward_behind_pointers_has_no_jvp(device: sad.Device) -> None:
    with pytest.raises(sad.DerivativeError) as caught:
        sad.jvp(
            seed, (scene_of(numbers(1, 0)), WEIGHT), (scene_of(numbers(1, 1)), None), dim=THREADS
        )
    assert caught.value.code == "SR0412"
    # No derivative goes through it where its arguments have none.
    out, moved = sad.jvp(seed, (scene_of(numbers(1, 0)), WEIGHT), (None, WEIGHT), dim=THREADS)
    np.testing.assert_array_equal(moved.numpy(), out.numpy())


def test_a_python_function_gathers_the_gradient_of_an_array_behind_many_pointers(
    device: sad.Device,
) -> None:
    def loss(shared: sad.Array) -> sad.Array:
        meshes = [Mesh(sad.pointer(shared), 3), Mesh(sad.pointer(shared), 1)]
        return render(Scene(sad.pointer(meshes), 2, 0.5), WEIGHT, dim=THREADS)

    data = numbers(3, 0)
    _, pullback = sad.vjp(loss, triangles(data))
    found = pullback(BAR)[0].numpy()
    meshes = [Mesh(sad.pointer(triangles(data)), 3), Mesh(sad.pointer(triangles(data)), 1)]
    scene = Scene(sad.pointer(meshes), 2, 0.5)
    parts = sad.vjp(render, scene, WEIGHT, dim=THREADS)[1](BAR)[0].meshes
    expected = gradients_of(parts[0]) + gradients_of(parts[1])
    np.testing.assert_allclose(found["v0"], expected[:, 0], rtol=RTOL, atol=1e-5)
    np.testing.assert_allclose(found["v1"], expected[:, 1], rtol=RTOL, atol=1e-5)
    tangent = triangles(numbers(3, 5))
    _, pushed = sad.jvp(loss, (triangles(data),), (tangent,))
    identity = sum(float(np.sum(found[n] * tangent.numpy()[n])) for n in ("v0", "v1"))
    assert np.dot(pushed.numpy(), BAR) == pytest.approx(identity, rel=1e-4)


def test_a_python_function_of_a_scene_returns_a_scene_of_gradients(device: sad.Device) -> None:
    scene = scene_of(numbers(2, 0), numbers(1, 1))

    def shaded(given: Scene) -> sad.Array:
        return render(given, WEIGHT, dim=THREADS)

    (found,) = sad.vjp(shaded, scene)[1](BAR)
    expected, _ = sad.vjp(render, scene, WEIGHT, dim=THREADS)[1](BAR)
    for k in range(2):
        np.testing.assert_allclose(
            gradients_of(found.meshes[k]), gradients_of(expected.meshes[k]), rtol=RTOL
        )
    assert found.exposure.item() == pytest.approx(expected.exposure.item(), rel=RTOL)


def test_gradients_behind_pointers_accumulate(device: sad.Device) -> None:
    _, pullback = sad.vjp(render, scene_of(numbers(2, 0), numbers(1, 1)), WEIGHT, dim=THREADS)
    once = pullback(BAR)
    before = [gradients_of(m) for m in once[0].meshes]
    twice = pullback(BAR, accumulate=once)
    for k, single in enumerate(before):
        np.testing.assert_allclose(gradients_of(twice[0].meshes[k]), 2.0 * single, rtol=RTOL)


@pytest.mark.parametrize("nothing", [None, []], ids=repr)
def test_a_pointer_to_nothing_reads_zero_and_is_reported(device: sad.Device, nothing: Any) -> None:
    scene = Scene(sad.pointer([Mesh(sad.pointer(nothing), 0)]), 1, 0.5)
    out, pullback = sad.vjp(render, scene, WEIGHT, dim=THREADS, bounds="ignore")
    assert not out.numpy().any()
    assert pullback(BAR)[0].meshes[0].triangles.numpy().shape[0] == 0
    with pytest.raises(sad.BoundsError) as caught:
        render(scene, WEIGHT, dim=THREADS).numpy()
    assert "`scene.meshes.triangles` of length 0" in str(caught.value)


def test_a_pointer_does_not_read_into_its_neighbour(device: sad.Device) -> None:
    first, second = numbers(2, 0), numbers(2, 1)
    meshes = [Mesh(sad.pointer(triangles(first)), 3), Mesh(sad.pointer(triangles(second)), 2)]
    scene = Scene(sad.pointer(meshes), 2, 1.0)
    one = np.float32([1.0])
    out, pullback = sad.vjp(render, scene, one, dim=1, bounds="ignore")
    assert out.numpy()[0] == pytest.approx(rendered([first], one, 1.0)[0], rel=RTOL)
    assert not gradients_of(pullback(one)[0].meshes[1]).any()
    with pytest.raises(sad.BoundsError) as caught:
        render(scene, one, dim=1).numpy()
    assert "index 2 is out of range for `scene.meshes.triangles` of length 2" in str(caught.value)


def test_slices_of_one_array_have_gradients_of_their_own(device: sad.Device) -> None:
    data = numbers(5, 0)
    whole = triangles(data)
    meshes = [Mesh(sad.pointer(whole[1:3]), 2), Mesh(sad.pointer(whole[2:5]), 3)]
    scene = Scene(sad.pointer(meshes), 2, 0.5)
    found = sad.vjp(render, scene, WEIGHT, dim=THREADS)[1](BAR)[0].meshes
    expected = sad.vjp(render, scene_of(data[1:3], data[2:5]), WEIGHT, dim=THREADS)[1](BAR)[0]
    for k in range(2):
        assert np.array_equal(gradients_of(found[k]) != 0, gradients_of(expected.meshes[k]) != 0)
        np.testing.assert_allclose(
            gradients_of(found[k]), gradients_of(expected.meshes[k]), rtol=RTOL
        )


def bound_for_triangles(device: sad.Device, slices: list[sad.Array]) -> sad.Array:
    meshes = [Mesh(sad.pointer(one), len(one)) for one in slices]
    call = bound_call(render, (Scene(sad.pointer(meshes), 2, 0.5), WEIGHT), {"dim": THREADS})
    return on_device(call).operand("scene_meshes_triangles_target")


def test_slices_that_follow_each_other_are_bound_as_they_lie(device: sad.Device) -> None:
    data = numbers(6, 0)
    whole = triangles(data)
    bound = bound_for_triangles(device, [whole[1:3], whole[3:3], whole[3:6]])
    assert bound.buffer is whole.buffer
    np.testing.assert_array_equal(bound.numpy(), whole[1:6].numpy())
    for others in ([whole[3:6], whole[1:3]], [whole[0:2], whole[3:6]], [whole[0:3], whole[2:6]]):
        bound = bound_for_triangles(device, others)
        assert bound.buffer is not whole.buffer
        expected = np.concatenate([one.numpy() for one in others])
        np.testing.assert_array_equal(bound.numpy(), expected)


@sad.kernel
def copied(i: sad.Index, values: sad.Pointer[int], out: sad.Out[int]):
    out[i] = values[i] * len(values)


def test_a_pointer_may_be_a_parameter_and_lead_to_whole_numbers(device: sad.Device) -> None:
    found = copied(sad.pointer([3, 4, 5]), dim=3)
    np.testing.assert_array_equal(found.numpy(), [9, 12, 15])


def test_a_pointer_keeps_its_array_alive_and_its_structs_as_they_were(device: sad.Device) -> None:
    data = numbers(1, 0)
    mesh = Mesh(sad.pointer(triangles(data)), 1)
    scene = Scene(sad.pointer([mesh]), 1, 0.5)
    mesh.count = 7
    del mesh
    found = render(scene, WEIGHT, dim=THREADS).numpy()
    np.testing.assert_allclose(found, rendered([data], WEIGHT, 0.5), rtol=RTOL, atol=1e-5)


def test_what_is_no_pointer_is_refused_by_its_place(device: sad.Device) -> None:
    with pytest.raises(sad.ShapeError) as caught:
        render(Scene([], 0, 1.0), WEIGHT, dim=THREADS)  # pyright: ignore[reportArgumentType]
    assert caught.value.code == "SR0390"
    assert "`scene.meshes` takes a pointer to `Mesh`" in str(caught.value)


def test_structs_of_another_class_behind_a_pointer_are_refused(device: sad.Device) -> None:
    wrong = Scene(sad.pointer(np.zeros(3, np.float32)), 3, 1.0)
    with pytest.raises(sad.ShapeError) as caught:
        render(wrong, WEIGHT, dim=THREADS)
    assert caught.value.code == "SR0391"
    with pytest.raises(sad.ShapeError) as caught:
        render(Scene(sad.pointer([wrong]), 1, 1.0), WEIGHT, dim=THREADS)
    assert caught.value.code == "SR0391"


def test_pointers_are_sequences_of_what_they_lead_to(device: sad.Device) -> None:
    scene = scene_of(numbers(2, 0), numbers(1, 1))
    assert isinstance(scene.meshes, HostPointer)
    assert len(scene.meshes) == 2
    assert [len(mesh.triangles) for mesh in scene.meshes.target] == [2, 1]
    assert sad.pointer(scene.meshes) is scene.meshes
