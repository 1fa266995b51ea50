"""Calling kernels: binding of arguments, shapes of results, options, reports."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest

import shaderad as sad
from shaderad import float2, float3


@sad.struct
class Material:
    color: float3
    roughness: float


@sad.struct
class Mesh:
    vertices: sad.In[float3]
    indices: sad.In[int]
    scale: float


@sad.kernel
def scale(i: sad.Index, x: sad.In[float], factor: float, y: sad.Out[float]):
    y[i] = factor * x[i]


@sad.kernel
def shade(i: sad.Index, material: Material, n: sad.In[float3], color: sad.Out[float3]):
    color[i] = material.color * n[i] / material.roughness


@sad.kernel
def gather(i: sad.Index, mesh: Mesh, out: sad.Out[float3]):
    out[i] = mesh.scale * mesh.vertices[mesh.indices[i]]


@sad.kernel
def split(i: sad.Index, j: sad.Index, x: sad.In[float, 2], low: sad.Out[float, 2],
          total: sad.Add[float], best: sad.Min[float]):  # fmt: skip
    low[i, j] = x[i, j] - 1.0
    total[0] += x[i, j]
    best[0] = sad.min(best[0], x[i, j])


@sad.kernel
def repeated(i: sad.Index, count: sad.Const[int], x: sad.In[float], y: sad.Out[float]):
    value = 0.0
    for _ in sad.static_range(count):
        value += x[i]
    y[i] = value


def test_positional_and_keyword_arguments_mean_the_same(device: sad.Device) -> None:
    x = np.float32([1.0, 2.0, 3.0])
    for found in (
        scale(x, 2.0, dim=3),
        scale(x, factor=2.0, dim=3),
        scale(factor=2, x=[1, 2, 3], dim=(3,)),
        scale(sad.array(x), np.float64(2.0), dim=np.int64(3)),
        scale(sad.array(x), sad.array(2.0), dim=3, device=device),
    ):
        np.testing.assert_array_equal(found.numpy(), [2.0, 4.0, 6.0])


def test_structs_are_objects_dicts_and_arrays(device: sad.Device) -> None:
    n = np.float32([[1, 1, 1], [2, 2, 2]])
    expected = np.float32([[2, 4, 6], [4, 8, 12]])
    fields = {"color": (1.0, 2.0, 3.0), "roughness": 0.5}
    for material in (Material(**fields), fields, sad.array(fields, dtype=Material)):
        np.testing.assert_array_equal(shade(material, n, dim=2).numpy(), expected)


def test_structs_bring_their_arrays_along(device: sad.Device) -> None:
    vertices = np.arange(9, dtype=np.float32).reshape(3, 3)
    for mesh in (
        Mesh(vertices=vertices, indices=[2, 0], scale=2.0),
        {"vertices": sad.array(vertices, dtype=float3), "indices": sad.array([2, 0]), "scale": 2.0},
        Mesh(vertices=sad.array(vertices), indices=[2, 0], scale=sad.array(2.0)),
    ):
        np.testing.assert_array_equal(gather(mesh, dim=2).numpy(), 2 * vertices[[2, 0]])


def test_results_come_in_parameter_order_with_the_launchs_shape_or_their_own(
    device: sad.Device,
) -> None:
    x = np.float32([[3.0, 1.0, 2.0], [6.0, 5.0, 4.0]])
    low, total, best = split(x, dim=(2, 3), shapes={"total": 1, "best": (2,)})
    np.testing.assert_array_equal(low.numpy(), x - 1)
    np.testing.assert_allclose(total.numpy(), [21.0])
    np.testing.assert_array_equal(best.numpy(), [1.0, np.inf])


def test_no_threads_still_make_and_initialise_the_results(device: sad.Device) -> None:
    low, total, best = split(
        np.zeros((0, 0), np.float32), dim=(0, 3), shapes={"total": 2, "best": 2}
    )
    assert low.numpy().shape == (0, 3)
    np.testing.assert_array_equal(total.numpy(), [0.0, 0.0])
    np.testing.assert_array_equal(best.numpy(), [np.inf, np.inf])


def test_constants_are_compiled_in_and_read_at_each_call(device: sad.Device) -> None:
    for count in (1, 3, 1):
        found = repeated(count, [1.0, 2.0], dim=2)
        np.testing.assert_array_equal(found.numpy(), np.float32([1.0, 2.0]) * count)


def test_captured_numbers_are_read_at_each_call(device: sad.Device) -> None:
    factor = 2.0

    @sad.kernel
    def times(i: sad.Index, x: sad.In[float], y: sad.Out[float]):
        y[i] = factor * x[i]

    np.testing.assert_array_equal(times([1.0], dim=1).numpy(), [2.0])
    factor = 5.0
    np.testing.assert_array_equal(times([1.0], dim=1).numpy(), [5.0])


REFUSED: list[tuple[Callable[[], Any], type[sad.Error], str]] = [
    (lambda: scale([1.0], 2.0, 3.0, dim=1), sad.ShapeError, "SR0363"),
    (lambda: scale([1.0], dim=1), sad.ShapeError, "SR0364"),
    (lambda: scale([1.0], 2.0, y=[1.0], dim=1), sad.ShapeError, "SR0365"),
    (lambda: scale([1.0], 2.0, x=[1.0], dim=1), sad.ShapeError, "SR0366"),
    (lambda: scale([1.0], 2.0, dim=(1, 1)), sad.ShapeError, "SR0373"),
    (lambda: scale([1.0], 2.0, dim=-1), sad.ShapeError, "SR0371"),
    (lambda: scale([1.0], 2.0, dim=2**31), sad.ShapeError, "SR0371"),
    (lambda: scale([1.0], 2.0, dim=1.0), sad.ShapeError, "SR0370"),
    (lambda: scale([1.0], 2.0, dim=float("nan")), sad.ShapeError, "SR0370"),
    (lambda: scale([1.0], 2.0, dim=True), sad.ShapeError, "SR0370"),
    (lambda: scale([1.0], 2.0, dim=1, bounds="maybe"), sad.ShapeError, "SR0374"),
    (lambda: scale([1.0], 2.0, dim=1, checks="all"), sad.ShapeError, "SR0375"),
    (lambda: scale([1.0], 2.0, dim=1, shapes={"z": 1}), sad.ShapeError, "SR0376"),
    (lambda: split(np.zeros((1, 1)), dim=(1, 1)), sad.ShapeError, "SR0377"),
    (lambda: scale([[1.0]], 2.0, dim=1), sad.ShapeError, "SR0368"),
    (lambda: scale(sad.array([1]), 2.0, dim=1), sad.ShapeError, "SR0367"),
    (lambda: scale([1.0], [2.0, 3.0], dim=1), sad.ShapeError, "SR0357"),
    (lambda: scale([1.0], sad.array([2.0]), dim=1), sad.ShapeError, "SR0357"),
    (lambda: scale([1.0], "2", dim=1), sad.ShapeError, "SR0351"),
    (lambda: scale([1e39], 1.0, dim=1), sad.ShapeError, "SR0354"),
    (lambda: gather({"vertices": [], "indices": []}, dim=0), sad.ShapeError, "SR0369"),
    (lambda: scale([1.0], 2.0, dim=1, device="wgpu"), sad.DeviceError, "SR0651"),
]


@pytest.mark.parametrize(("call", "kind", "code"), REFUSED, ids=[code for _, _, code in REFUSED])
def test_calls_that_do_not_fit_are_refused(
    device: sad.Device, call: Callable[[], Any], kind: type[sad.Error], code: str
) -> None:
    with pytest.raises(kind) as raised:
        call()
    assert raised.value.code == code


@sad.kernel
def picked(i: sad.Index, x: sad.In[float], index: sad.In[int], y: sad.Out[float]):
    y[i] = x[index[i]]


def test_an_index_out_of_range_raises_at_the_next_look_and_only_once(device: sad.Device) -> None:
    y = picked([1.0, 2.0], [0, 5, 1], dim=3)
    with pytest.raises(sad.BoundsError) as raised:
        y.numpy()
    assert raised.value.code == "SR0660"
    assert isinstance(raised.value, IndexError)
    text = str(raised.value)
    for part in ("`picked`", "index 5", "`x`", "length 2", "y[i] = x[index[i]]"):
        assert part in text
    np.testing.assert_array_equal(y.numpy(), [1.0, 0.0, 2.0])
    picked([1.0, 2.0], [-1], dim=1)
    with pytest.raises(sad.BoundsError):
        device.synchronize()
    device.synchronize()


def test_bounds_can_be_ignored(device: sad.Device) -> None:
    y = picked([1.0, 2.0], [0, -1, 1], dim=3, bounds="ignore")
    np.testing.assert_array_equal(y.numpy(), [1.0, 0.0, 2.0])


@sad.kernel
def checked(i: sad.Index, x: sad.In[int], y: sad.Out[int]):
    assert x[i] != 7, "seven is right out"
    y[i] = 10 // x[i]


def test_assertions_and_divisions_are_reported(device: sad.Device) -> None:
    with pytest.raises(sad.BoundsError, match="seven is right out") as raised:
        checked([1, 7], dim=2).numpy()
    assert raised.value.code == "SR0662"
    y = checked([5, 0], dim=2)
    with pytest.raises(sad.BoundsError, match="division by zero"):
        y.numpy()
    np.testing.assert_array_equal(y.numpy(), [2, 0])


def test_a_closed_device_says_so(device: sad.Device) -> None:
    other = sad.open_device(device.capabilities.runtime)
    x = sad.array([1.0], device=other)
    other.close()
    with pytest.raises(sad.DeviceError) as raised:
        scale(x, 2.0, dim=1)
    assert raised.value.code == "SR0610"


def test_long_launches_run_in_rows_of_workgroups(device: sad.Device) -> None:
    count = 65535 * 64 + 100
    y = scale(np.ones(count, np.float32), 3.0, dim=count).numpy()
    assert y.sum() == 3.0 * count


@sad.kernel
def lengths(i: sad.Index, v: sad.In[float2], y: sad.Out[float]):
    y[i] = sad.length(v[i]) + float(len(v))


def test_float_arrays_with_a_trailing_axis_are_vectors_on_the_device_too(
    device: sad.Device,
) -> None:
    v = sad.array([[3.0, 4.0], [6.0, 8.0]])
    assert v.shape == (2, 2)
    np.testing.assert_allclose(lengths(v, dim=2).numpy(), [7.0, 12.0], rtol=1e-6)
    np.testing.assert_allclose(lengths(v[1:], dim=1).numpy(), [11.0], rtol=1e-6)


def test_threads_share_a_device(device: sad.Device) -> None:
    def work(factor: int) -> float:
        total = 0.0
        for k in range(10):
            y = scale(np.full(256, k, np.float32), float(factor), dim=256, device=device)
            total += float((y * 2.0).numpy().sum())
        return total

    with ThreadPoolExecutor(4) as pool:
        found = list(pool.map(work, range(4)))
    assert found == [2.0 * 256 * 45 * factor for factor in range(4)]


def test_too_many_groups_are_refused_before_anything_is_recorded(
    device: sad.Device, monkeypatch: pytest.MonkeyPatch
) -> None:
    runtime = device.capabilities.runtime
    lifted = sad.graph(lambda x: sad.sum(x[:8]) + sad.exp(x))
    with sad.open_device(runtime, limits={"workgroup_count_limit": 2}) as narrow:
        x = sad.array(np.ones(1 << 14))
        with monkeypatch.context() as patch:
            recorded: list[Any] = []
            patch.setattr(narrow.runtime, "record_dispatch", lambda *rest: recorded.append(rest))
            with pytest.raises(sad.DeviceError) as caught:
                lifted(x)
        assert caught.value.code == "SR0611"
        assert not recorded
        np.testing.assert_allclose(lifted(x[:3]).numpy(), 3 + np.exp(np.ones(3)), rtol=1e-5)
    narrow.close()
