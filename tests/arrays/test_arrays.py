"""Arrays on every runtime against NumPy: moving, slicing, arithmetic, conversions."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import shaderad as sad

# float32 arithmetic in another order or with fused operations.
RTOL = 1e-6


@sad.struct
class Ray:
    origin: sad.float3
    length: float
    id: int


def test_numbers_survive_the_way_to_the_device_and_back(device: sad.Device) -> None:
    for data in (np.arange(7, dtype=np.float32), np.int32([-5, 5]), np.array([True, False, True])):
        found = sad.array(data)
        assert found.shape == data.shape
        assert found.device is device
        np.testing.assert_array_equal(found.numpy(), data)
        assert found.numpy().dtype == data.dtype


def test_dtypes_are_what_users_write(device: sad.Device) -> None:
    assert sad.array([1.0]).dtype is float
    assert sad.array([1]).dtype is int
    assert sad.array([True]).dtype is bool
    assert sad.array(np.zeros((2, 3)), dtype=sad.float3).dtype == sad.float3
    assert sad.array([1, 2], dtype=sad.uint).dtype == sad.uint
    assert sad.array(np.float16([1, 2])).dtype == sad.half


def test_odd_numbers_of_halves_fit_their_words(device: sad.Device) -> None:
    data = np.float16([1.5, -2.25, 7.0])
    found = sad.array(data)
    np.testing.assert_array_equal(found.numpy(), data)
    np.testing.assert_array_equal(found[1:].numpy(), data[1:])
    np.testing.assert_array_equal(found[:2].numpy(), data[:2])


def test_vectors_are_elements_and_their_axis_is_apart(device: sad.Device) -> None:
    data = np.arange(6, dtype=np.float32).reshape(2, 3)
    found = sad.array(data, dtype=sad.float3)
    assert found.shape == (2,)
    assert len(found) == 2
    np.testing.assert_array_equal(found.numpy(), data)
    np.testing.assert_array_equal(found[1].numpy(), data[1])


def test_structs_come_back_as_structured_arrays(device: sad.Device) -> None:
    rays = sad.array(
        {"origin": [[1, 2, 3], [4, 5, 6]], "length": [0.5, 1.5], "id": [7, 8]}, dtype=Ray
    )
    found = rays.numpy()
    assert found.dtype.names == ("origin", "length", "id")
    np.testing.assert_array_equal(found["origin"], [[1, 2, 3], [4, 5, 6]])
    np.testing.assert_array_equal(found["id"], [7, 8])
    again = sad.array(found, dtype=Ray)
    np.testing.assert_array_equal(again.numpy(), found)
    listed = sad.array([Ray((1, 2, 3), 0.5, 7), Ray((4, 5, 6), 1.5, 8)], dtype=Ray)
    np.testing.assert_array_equal(listed.numpy(), found)


def test_parts_of_elements_are_selected_by_name(device: sad.Device) -> None:
    rays = sad.array({"origin": [[1, 2, 3]], "length": [0.5], "id": [7]}, dtype=Ray)
    np.testing.assert_array_equal(rays.length.numpy(), [0.5])
    np.testing.assert_array_equal(rays.origin.zx.numpy(), [[3, 1]])
    with pytest.raises(AttributeError):
        rays.nothing


def test_empty_arrays_are_arrays(device: sad.Device) -> None:
    empty = sad.array([])
    assert empty.shape == (0,)
    assert empty.numpy().shape == (0,)
    assert (empty * 2.0 + empty).numpy().shape == (0,)
    assert sad.array(np.zeros((0, 3)), dtype=sad.float3)[:].numpy().shape == (0, 3)


SLICES: list[object] = [
    np.s_[1],
    np.s_[-1],
    np.s_[1:3],
    np.s_[:-1],
    np.s_[::2],
    np.s_[::-1],
    np.s_[2:2],
    np.s_[1:3, 2],
    np.s_[:, 1],
    np.s_[1, 2],
    np.s_[1, 1:3],
    np.s_[..., 0],
    np.s_[None, 1],
    np.s_[:, None, ::2],
    np.s_[::-2, ::-1],
    np.s_[...],
]


@pytest.mark.parametrize("key", SLICES, ids=str)
def test_slices_are_numpys(device: sad.Device, key: object) -> None:
    data = np.arange(20, dtype=np.float32).reshape(4, 5)
    found = sad.array(data)[key]
    np.testing.assert_array_equal(found.numpy(), data[key])  # type: ignore[index]
    assert found.shape == data[key].shape  # type: ignore[index]


@pytest.mark.parametrize(
    ("key", "kind", "code"),
    [
        (7, sad.BoundsError, "SR0665"),
        (-5, sad.BoundsError, "SR0665"),
        (1.5, sad.ShapeError, "SR0380"),
        (True, sad.ShapeError, "SR0380"),
        ("x", sad.ShapeError, "SR0380"),
        ((0, 0), sad.ShapeError, "SR0381"),
    ],
)
def test_keys_that_mean_nothing_are_refused(
    device: sad.Device, key: object, kind: type[sad.Error], code: str
) -> None:
    with pytest.raises(kind) as raised:
        sad.array([1.0, 2.0, 3.0, 4.0])[key]
    assert raised.value.code == code


def test_arrays_iterate_over_their_first_axis(device: sad.Device) -> None:
    assert [one.item() for one in sad.array([1, 2, 3])] == [1, 2, 3]


ARITHMETIC: list[Callable[..., object]] = [
    operator.add,
    operator.sub,
    operator.mul,
    operator.truediv,
    operator.floordiv,
    operator.mod,
    operator.lt,
    operator.le,
    operator.gt,
    operator.ge,
    operator.eq,
    operator.ne,
]
OPERANDS: list[tuple[object, object]] = [
    (np.float32([1.5, -2.5, 4.0]), np.float32([2.0, 2.0, -1.5])),
    (np.float32([1.5, -2.5, 4.0]), 2),
    (3.0, np.float32([1.5, -2.5, 4.0])),
    (np.int32([7, -7, 9]), np.int32([2, 2, 3])),
    (np.int32([7, -7, 9]), 4),
    (np.int32([7, -7, 9]), np.float32([2.0, 2.5, 3.0])),
    (np.arange(6, dtype=np.float32).reshape(2, 3) + 1, np.float32([1.0, 2.0, 4.0])),
    (np.float32([[1.0], [2.0]]), np.float32([1.0, 2.0, 4.0])),
    (np.float32(2.0), np.float32([1.0, 2.0, 4.0])),
]


@pytest.mark.parametrize("op", ARITHMETIC, ids=lambda op: op.__name__)
def test_arithmetic_is_numpys_with_broadcasting(
    device: sad.Device, op: Callable[..., object]
) -> None:
    for left, right in OPERANDS:
        a = sad.array(left) if isinstance(left, np.ndarray | np.generic) else left
        b = sad.array(right) if isinstance(right, np.ndarray | np.generic) else right
        found = op(a, b)
        assert isinstance(found, sad.Array)
        expected = np.asarray(op(left, right))
        assert found.shape == expected.shape
        np.testing.assert_allclose(found.numpy(), expected, rtol=RTOL)


def test_numpy_arrays_mix_into_arithmetic_from_both_sides(device: sad.Device) -> None:
    x = sad.array([1.0, 2.0])
    other = np.array([3.0, 4.0])
    for found in (x + other, other + x, other.tolist() + x):
        assert isinstance(found, sad.Array)
        np.testing.assert_array_equal(found.numpy(), [4.0, 6.0])


@pytest.mark.parametrize("exponent", [0, 1, 2, 3, -1, -2, 0.5, 2.0])
def test_powers_are_exact_for_whole_exponents(device: sad.Device, exponent: float) -> None:
    data = np.float32([0.5, 2.0, 3.0] if exponent == 0.5 else [-0.5, 2.0, -3.0])
    np.testing.assert_allclose((sad.array(data) ** exponent).numpy(), data**exponent, rtol=1e-5)


def test_powers_of_whole_numbers_are_whole(device: sad.Device) -> None:
    found = sad.array([2, -3]) ** 3
    assert found.dtype is int
    np.testing.assert_array_equal(found.numpy(), [8, -27])


def test_negation_absolute_and_bits(device: sad.Device) -> None:
    x, k = sad.array([1.5, -2.0]), sad.array([5, -3])
    np.testing.assert_array_equal((-x).numpy(), [-1.5, 2.0])
    np.testing.assert_array_equal(abs(x).numpy(), [1.5, 2.0])
    np.testing.assert_array_equal((k & 6).numpy(), np.int32([5, -3]) & 6)
    np.testing.assert_array_equal((k | 6).numpy(), np.int32([5, -3]) | 6)
    np.testing.assert_array_equal((k ^ 6).numpy(), np.int32([5, -3]) ^ 6)
    np.testing.assert_array_equal((~k).numpy(), ~np.int32([5, -3]))
    np.testing.assert_array_equal(((x > 0) & (k > 0)).numpy(), [True, False])


def test_scalars_spread_over_vectors(device: sad.Device) -> None:
    data = np.arange(6, dtype=np.float32).reshape(2, 3)
    v, s = sad.array(data, dtype=sad.float3), sad.array([10.0, 100.0])
    np.testing.assert_array_equal((v * s).numpy(), data * [[10.0], [100.0]])
    np.testing.assert_array_equal((v + 1).numpy(), data + 1)
    np.testing.assert_array_equal((v - v).numpy(), 0 * data)


@pytest.mark.parametrize(
    ("compute", "code"),
    [
        (lambda: sad.array([1.0, 2.0]) + sad.array([1.0, 2.0, 3.0]), "SR0379"),
        (lambda: sad.array([1], dtype=sad.uint) + sad.array([1]), "SR0304"),
        (lambda: sad.array([True]) + 1.0, "SR0311"),
        (lambda: sad.array([1.0]) & 1, "SR0304"),
        (lambda: sad.array([2]) ** sad.array([3]), "SR0315"),
        (lambda: -sad.array([True]), "SR0316"),
        (lambda: sad.array([[1, 2, 3]], dtype=sad.int3) + sad.array([[1, 2]], dtype=sad.int2),
         "SR0304"),
        (lambda: float(sad.array([1.0, 2.0])), "SR0361"),
        (lambda: bool(sad.array([])), "SR0361"),
        (lambda: len(sad.array(1.0)), "SR0360"),
        (lambda: list(sad.array(1.0)), "SR0360"),
        (lambda: sad.array([1], dtype="text"), "SR0358"),
        (lambda: sad.array(["a"]), "SR0351"),
        (lambda: sad.array(np.zeros(2, np.dtype([("a", "f4")]))), "SR0350"),
    ],
)  # fmt: skip
def test_what_the_language_does_not_have_is_refused(
    device: sad.Device, compute: Callable[[], object], code: str
) -> None:
    with pytest.raises(sad.Error) as raised:
        compute()
    assert raised.value.code == code


def test_an_array_without_axes_is_no_sequence(device: sad.Device) -> None:
    one, row = sad.array(2.5), sad.array([1.0, 2.0])
    for use in (len, iter, list, reversed):
        with pytest.raises(TypeError) as raised:
            use(one)
        assert isinstance(raised.value, sad.ShapeError)
        with pytest.raises(TypeError):
            sad.graph(lambda x, use=use: use(sad.sum(x)))(row)
    # How libraries read data that they do not know: sequences down to numbers.
    assert [float(x) for x in row] == [1.0, 2.0]
    assert read_as_nested_sequences(sad.array([[1.0, 2.0], [3.0, 4.0]])) == [[1, 2], [3, 4]]


def read_as_nested_sequences(data: Any) -> Any:
    try:
        count = len(data)
    except TypeError:
        return float(data)
    return [read_as_nested_sequences(data[k]) for k in range(count)]


def test_one_element_is_a_python_number(device: sad.Device) -> None:
    assert float(sad.array(2.5)) == 2.5
    assert sad.array([[7]]).item() == 7
    assert bool(sad.array([1.0]) > 0.5)
    assert [10, 20, 30][sad.array(1)] == 20


def test_arrays_move_between_devices_and_do_not_mix(device: sad.Device) -> None:
    other = sad.open_device(device.capabilities.runtime)
    try:
        here, there = sad.array([1.0, 2.0]), sad.array([3.0, 4.0], device=other)
        assert there.device is other
        with pytest.raises(sad.DeviceError) as raised:
            here + there
        assert raised.value.code == "SR0650"
        np.testing.assert_array_equal((here + sad.array(there, device=device)).numpy(), [4.0, 6.0])
    finally:
        other.close()


def test_entering_a_device_makes_it_the_default_and_leaving_restores(device: sad.Device) -> None:
    other = sad.open_device(device.capabilities.runtime)
    with other:
        assert sad.array([1.0]).device is other
    assert sad.array([1.0]).device is device
    np.testing.assert_array_equal(sad.array([1.0], device=other).numpy(), [1.0])
    other.close()
    with pytest.raises(sad.DeviceError):
        sad.array([1.0], device=other)


def test_native_buffers_are_shared_without_a_copy(device: sad.Device) -> None:
    x = sad.array(np.arange(4, dtype=np.float32))
    again = sad.Array.from_native(x.native, dtype=float, shape=4)
    np.testing.assert_array_equal(again.numpy(), [0, 1, 2, 3])
    with pytest.raises(sad.ShapeError) as raised:
        sad.Array.from_native(x.native, dtype=float, shape=5)
    assert raised.value.code == "SR0359"


@sad.struct
class Box:
    shape: sad.float2
    dtype: float


def test_fields_called_as_attributes_of_arrays_are_read_by_subscript(device: sad.Device) -> None:
    def area(boxes: sad.Array) -> sad.Array:
        return sad.sum(boxes["shape"].x * boxes["shape"]["y"] * boxes["dtype"])

    given = {"shape": [[1.0, 2.0], [3.0, 4.0]], "dtype": [1.0, 2.0]}
    boxes = sad.array(given, dtype=Box)
    assert boxes.shape == (2,)
    for function in (area, sad.graph(area)):
        value, by_box = sad.value_and_grad(function)(boxes)
        assert float(value) == 26.0
        np.testing.assert_array_equal(by_box.numpy()["shape"], [[2, 1], [8, 6]])
        np.testing.assert_array_equal(by_box.numpy()["dtype"], [2, 12])
    with pytest.raises(sad.ShapeError, match="SR0380"):
        boxes["size"]
