"""Operations of a profile are those of a count by hand: each component, middle threads."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

import shaderad as sad
from tests.profiling.test_profile import row

COUNT = 1001


@sad.struct
class Ray:
    origin: sad.float3
    speed: float


@sad.kernel
def moved(i: sad.Index, x: sad.In[sad.float3], out: sad.Out[sad.float3]):
    out[i] = x[i] * 2.0 + x[i]


@sad.kernel
def lengths(i: sad.Index, rays: sad.In[Ray], out: sad.Out[float]):
    out[i] = sad.dot(rays[i].origin, rays[i].origin) + rays[i].speed


@sad.kernel
def turned(i: sad.Index, m: sad.In[sad.float3x3], v: sad.In[sad.float3], out: sad.Out[sad.float3]):
    out[i] = m[i] @ v[i]


@sad.kernel
def prefix(i: sad.Index, x: sad.In[float], out: sad.Out[float]):
    total = 0.0
    for k in range(i):
        total += x[k]
    out[i] = total


@sad.kernel
def laplacian(i: sad.Index, j: sad.Index, x: sad.In[float, 2], out: sad.Out[float, 2]):
    if i > 0 and j > 0:
        if i < x.shape[0] - 1:
            if j < x.shape[1] - 1:
                near = x[i - 1, j] + x[i + 1, j] + x[i, j - 1] + x[i, j + 1]
                out[i, j] = near - 4.0 * x[i, j]


@sad.kernel
def first(i: sad.Index, x: sad.In[float], out: sad.Out[float]):
    out[i] = x[i]
    if i == 0:
        for k in range(1000):
            out[i] += x[i] * k


@sad.kernel
def scaled(i: sad.Index, x: sad.In[float], steps: int, out: sad.Out[float]):
    value = x[i]
    for _ in range(steps):
        value *= 2.0
    out[i] = value


@sad.kernel
def least(i: sad.Index, x: sad.In[float], out: sad.Min[float]):
    out[0] = sad.min(out[0], 2.0 * x[i])


def ones(*shape: int) -> sad.Array:
    return sad.array(np.ones(shape, np.float32))


def test_each_component_counts(device: sad.Device) -> None:
    vectors = ones(COUNT, 3)
    with sad.profile() as profile:
        moved(vectors)
        lengths(sad.zeros(COUNT, Ray))
        turned(ones(COUNT, 3, 3), vectors)
    assert row(profile, "moved").operations == 6 * COUNT
    assert row(profile, "moved").bytes == 2 * 12 * COUNT
    assert row(profile, "lengths").operations == (5 + 1) * COUNT
    assert row(profile, "lengths").bytes == (16 + 4) * COUNT
    assert row(profile, "turned").operations == 3 * 5 * COUNT


def test_the_middle_thread_stands_for_all(device: sad.Device) -> None:
    with sad.profile() as profile:
        prefix(ones(COUNT), dim=COUNT)
        laplacian(ones(30, 50))
        first(ones(COUNT))
    assert row(profile, "prefix").operations == COUNT * (COUNT - 1) / 2
    assert row(profile, "laplacian").operations == 5 * 30 * 50
    assert row(profile, "first").operations == 0


def test_a_number_on_the_device_is_not_known(device: sad.Device) -> None:
    steps = sad.array(np.array(7, np.int32))
    with sad.profile() as profile:
        scaled(ones(COUNT), steps)
    assert row(profile, "scaled").operations is None


def test_one_thread_of_a_group_that_sums_for_all_does_not_count_often(device: sad.Device) -> None:
    def step(_: Any, x: sad.Array) -> sad.Array:
        return x * 0.5 + sad.sum(x)

    graph = sad.graph(lambda x: sad.fori_loop(0, 10, step, x))
    with sad.profile() as profile:
        graph(ones(1000))
    total = sum(one.operations or 0.0 for one in profile.rows)
    assert 10 * 3000 <= total <= 1.5 * 10 * 3000


def test_selections_and_the_decoding_of_minima_are_no_kernels_of_users(device: sad.Device) -> None:
    with sad.profile() as profile:
        least(ones(COUNT), shapes={"out": (1,)})
        sad.where(ones(COUNT) > 0.0, ones(COUNT), 2.0)
    assert row(profile, "least").operations == 2 * COUNT
    assert [one.name for one in profile.rows if one.kind == "kernel"] == ["least"]
    assert {one.operations for one in profile.rows if one.kind == "array function"} == {0}


def test_a_loaded_kernel_has_its_bytes(device: sad.Device, tmp_path: Path) -> None:
    source = tmp_path / "model.py"
    source.write_text(
        "import shaderad as sad\n\n\n@sad.kernel\n"
        "def squared(i: sad.Index, x: sad.In[float], out: sad.Out[float]):\n"
        "    out[i] = x[i] * x[i]\n"
    )
    sad.build(source, out=tmp_path / "out", targets="spirv", wrt="none", validate=False)
    loaded = sad.load(tmp_path / "out")
    with sad.profile() as profile:
        loaded.squared(ones(COUNT))
    found = row(profile, "squared")
    assert found.bytes == 2 * 4 * COUNT
    assert found.operations is None
