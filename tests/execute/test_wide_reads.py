"""Elements that one load reads whole: every type that has such loads, and arrays that lie askew."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import shaderad as sad

COUNT = 67


@sad.struct
class Inner:
    a: float
    b: sad.float4


@sad.struct
class Even:
    """Six words: three loads."""

    o: sad.float3
    n: int
    d: sad.float2


@sad.struct
class Mixed:
    """Sixteen words, of which vectors and structs lie across two loads."""

    inner: Inner
    flag: bool
    h: sad.half2
    g: sad.half
    x: sad.double
    w: sad.LocalArray[sad.uint2, 3]


@sad.struct
class Halves:
    """Six words of 16 bits."""

    a: sad.half3
    b: sad.half
    c: sad.half2


TYPES = (
    sad.float2, sad.float4, sad.int2, sad.uint4, sad.bool2, sad.bool4, sad.half2, sad.half4,
    sad.double, sad.double2, sad.double3, sad.double4, sad.float2x2, sad.float3x4, sad.float4x2,
    sad.float4x3, sad.float4x4, sad.half2x4, Inner, Even, Mixed, Halves,
)  # fmt: skip
DOUBLES = {sad.double, sad.double2, sad.double3, sad.double4, Mixed}


def random_of(dtype: np.dtype[Any], shape: tuple[int, ...], rng: np.random.Generator) -> Any:
    """Numbers that every scalar holds exactly."""
    found = np.zeros(shape, dtype)
    if dtype.names is None:
        found[...] = rng.integers(0, 2 if dtype.kind == "b" else 50, found.shape)
    for name in dtype.names or ():
        found[name] = random_of(dtype[name].base, found[name].shape, rng)
    return found


def copiers(t: Any) -> tuple[Any, Any]:
    """Kernels that copy elements: in their order, and in the other one."""

    @sad.kernel
    def copied(i: sad.Index, x: sad.In[t], y: sad.Out[t]):
        y[i] = x[i]

    @sad.kernel
    def reversed_(i: sad.Index, count: int, x: sad.In[t], y: sad.Out[t]):
        y[i] = x[count - 1 - i]

    return copied, reversed_


def floats_of(data: Any) -> list[Any]:
    """The floats of an array, by field."""
    if data.dtype.names is None:
        return [data] if data.dtype.kind == "f" else []
    return [found for name in data.dtype.names for found in floats_of(data[name])]


@pytest.mark.parametrize("t", TYPES, ids=str)
def test_elements_and_cotangents_are_read_as_they_lie(t: Any, device: sad.Device) -> None:
    if t in DOUBLES and "double" not in device.capabilities.features:
        pytest.skip(f"{device} has no double")
    rng = np.random.default_rng(3)
    blank = sad.zeros(COUNT, dtype=t).numpy()
    data = random_of(blank.dtype, blank.shape, rng)
    x = sad.array(data, dtype=t)
    copied, reversed_ = copiers(t)
    assert reversed_(COUNT, x, dim=COUNT).numpy().tobytes() == data[::-1].tobytes()
    part = reversed_(COUNT - 3, x[3:], dim=COUNT - 3)
    assert part.numpy().tobytes() == data[:2:-1].tobytes()
    if not floats_of(data):
        return
    bars = random_of(blank.dtype, blank.shape, rng)
    (found,) = sad.vjp(copied, x, dim=COUNT)[1](sad.array(bars, dtype=t))
    for got, expected in zip(floats_of(found.numpy()), floats_of(bars), strict=True):
        np.testing.assert_array_equal(got, expected)
    if t in DOUBLES:
        return  # No atomic adds them.
    _, found = sad.vjp(reversed_, COUNT, x, dim=COUNT)[1](sad.array(bars, dtype=t))
    for got, expected in zip(floats_of(found.numpy()), floats_of(bars[::-1]), strict=True):
        np.testing.assert_array_equal(got, expected)


# -- arrays that lie askew: views of arrays of smaller elements -----------------------------------


@sad.kernel
def turned(i: sad.Index, m: sad.float4, x: sad.In[sad.float4], y: sad.Out[sad.float4]):
    y[i] = m * x[i].wzyx


@sad.kernel
def weighed(i: sad.Index, m: sad.float4, x: sad.In[sad.float4], y: sad.Out[float]):
    y[i] = sad.dot(m, x[i].wzyx)


@sad.graph
def raised(x: sad.Array[sad.float4, COUNT]) -> sad.Array[sad.float4, COUNT]:
    return sad.map(lambda v: 2.0 * v + v.wzyx, x)


@pytest.mark.parametrize("skipped", [0, 1, 2, 3, 4])
def test_vectors_are_found_wherever_they_begin(skipped: int, device: sad.Device) -> None:
    rng = np.random.default_rng(4)
    data = rng.integers(1, 9, 4 * COUNT + 8).astype(np.float32)
    m = np.float32([1, 2, 3, 4])
    end = skipped + 4 * COUNT
    x = sad.reshape(sad.array(data)[skipped:end], (COUNT, 4))
    assert x.offset == 4 * skipped
    rows = data[skipped:end].reshape(COUNT, 4)
    out, pullback = sad.vjp(turned, m, x, dim=COUNT)
    np.testing.assert_array_equal(out.numpy(), m * rows[:, ::-1])
    bars = sad.reshape(sad.array(data[::-1])[skipped:end], (COUNT, 4))
    m_bar, x_bar = pullback(bars)
    np.testing.assert_array_equal(x_bar.numpy(), (m * bars.numpy())[:, ::-1])
    np.testing.assert_array_equal(m_bar.numpy(), (bars.numpy() * rows[:, ::-1]).sum(0))
    np.testing.assert_array_equal(raised(x).numpy(), 2 * rows + rows[:, ::-1])

    @sad.graph
    def inside(v: sad.Array) -> sad.Array:
        return turned(m, sad.reshape(v, (COUNT, 4)), dim=COUNT)

    flat = sad.array(data)[skipped:end]
    np.testing.assert_array_equal(inside(flat).numpy(), m * rows[:, ::-1])


def test_a_field_of_a_struct_on_the_device_is_found_where_it_lies(device: sad.Device) -> None:
    whole = sad.array({"a": 5.0, "b": [1.0, 2.0, 3.0, 4.0]}, dtype=Inner)
    x = np.arange(12, dtype=np.float32).reshape(3, 4)

    def loss(whole: sad.Array) -> sad.Array:
        return sad.sum(weighed(whole.b, x, dim=3))

    found = sad.grad(loss)(whole)
    np.testing.assert_array_equal(found.numpy()["b"], x[:, ::-1].sum(0))


@sad.kernel
def whole_and_in_parts(
    i: sad.Index,
    count: int,
    x: sad.In[sad.float4],
    whole: sad.Out[sad.float4],
    parts: sad.Out[sad.float4],
    pairs: sad.Out[sad.float2],
):
    j = count - 1 - i
    whole[j] = 2.0 * x[i]
    pairs[j] = x[i].yx
    if i % 2 == 0:
        parts[j] = x[i]
    else:
        parts[j].xz = x[i].wy


def test_vectors_are_stored_whole_or_in_parts(device: sad.Device) -> None:
    data = np.random.default_rng(5).integers(1, 9, (COUNT, 4)).astype(np.float32)
    shapes = {"whole": (COUNT,), "parts": (COUNT,), "pairs": (COUNT,)}
    whole, parts, pairs = whole_and_in_parts(COUNT, sad.array(data), dim=COUNT, shapes=shapes)
    turned_rows = data[::-1]
    np.testing.assert_array_equal(whole.numpy(), 2 * turned_rows)
    np.testing.assert_array_equal(pairs.numpy(), turned_rows[:, [1, 0]])
    is_whole = (COUNT - 1 - np.arange(COUNT)) % 2 == 0
    expected = np.where(is_whole[:, None], turned_rows, 0)
    expected[~is_whole, 0] = turned_rows[~is_whole, 3]
    expected[~is_whole, 2] = turned_rows[~is_whole, 1]
    np.testing.assert_array_equal(parts.numpy(), expected)
