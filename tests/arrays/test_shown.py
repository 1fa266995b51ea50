"""Arrays as notebooks show them."""

from __future__ import annotations

import base64
import io
import re
from typing import Any

import numpy as np
import pytest

import shaderad as sad
from shaderad.arrays import shown

pytestmark = pytest.mark.gpu


@sad.struct
class Lens:
    center: sad.float2
    power: float


def cells(html: str | None) -> list[list[str]]:
    assert html is not None
    rows = re.findall(r"<tr>(.*?)</tr>", html)
    return [re.findall(r"<t[dh]>(.*?)</t[dh]>", row) for row in rows]


def pixels_of(html: str) -> np.ndarray[Any, Any]:
    image = pytest.importorskip("PIL.Image")
    (data,) = re.findall(r'src="data:image/png;base64,([^"]*)"', html)
    return np.asarray(image.open(io.BytesIO(base64.b64decode(data))))


def test_the_line_says_type_shape_and_device(device: sad.Device) -> None:
    html = sad.array([1.0, 2.5], device=device)._repr_html_()
    assert html is not None
    line = f"float, shape (2,), on {device.capabilities.runtime} ({device.capabilities.adapter})"
    assert f"<div>{line}</div>" in html
    assert cells(html) == [["1"], ["2.5"]]


def test_both_ends_of_long_axes_are_shown(device: sad.Device) -> None:
    x = np.arange(20 * 20).reshape(20, 20)
    rows = cells(sad.array(x, dtype=int, device=device)._repr_html_())
    assert len(rows) == 2 * shown.END + 1
    assert rows[0] == ["0", "1", "2", "3", "...", "16", "17", "18", "19"]
    assert set(rows[shown.END]) == {"..."}
    assert rows[-1][-1] == "399"


def test_vectors_and_values_without_axes_are_rows(device: sad.Device) -> None:
    assert cells(sad.array(0.25, device=device)._repr_html_()) == [["0.25"]]
    points = sad.array([[1, 2, 3], [4, 5, 6]], dtype=sad.float3, device=device)
    assert cells(points._repr_html_()) == [["1", "2", "3"], ["4", "5", "6"]]
    empty = sad.array(np.zeros((0, 3)), dtype=sad.float3, device=device)
    assert cells(empty._repr_html_()) == []


def test_structs_have_a_column_a_field(device: sad.Device) -> None:
    data = np.array([((1, 2), 3)], [("center", "f4", 2), ("power", "f4")])
    lenses = sad.array(data, dtype=Lens, device=device)
    assert cells(lenses._repr_html_()) == [["center", "power"], ["[1. 2.]", "3.0"]]


def test_more_than_two_axes_are_numpys_text(device: sad.Device) -> None:
    html = sad.array(np.ones((2, 2, 2)), device=device)._repr_html_()
    assert html is not None
    assert "<pre>[[[1. 1.]" in html


@pytest.mark.parametrize("channels", [3, 4])
def test_two_axes_of_colours_are_a_picture(device: sad.Device, channels: int) -> None:
    levels = np.random.default_rng(0).integers(0, 256, (5, 7, channels))
    values = levels / 255.0
    values[0, 0], levels[0, 0] = np.nan, 0
    values[0, 1], levels[0, 1] = 7.0, 255
    values[0, 2], levels[0, 2] = -np.inf, 0
    dtype = sad.float3 if channels == 3 else sad.float4
    image = sad.array(values.astype(np.float32), dtype=dtype, device=device)
    html = image._repr_html_()
    assert html is not None
    np.testing.assert_array_equal(pixels_of(html), levels)
    assert 'width="189" height="135"' in html


def test_arrays_too_small_or_too_large_are_no_pictures(device: sad.Device) -> None:
    def is_picture(height: int, width: int, dtype: Any = sad.float3) -> bool:
        zero = dtype(0)
        x = np.zeros((height, width, len(zero)), zero.dtype)
        return shown.is_picture(sad.array(x, dtype=dtype, device=device))

    assert is_picture(4, 4)
    assert not is_picture(3, 4)
    assert not is_picture(4, 2049)
    assert not is_picture(4, 4, sad.int3)
    assert not is_picture(4, 4, sad.float2)


def test_no_more_is_read_than_is_shown(device: sad.Device, monkeypatch: pytest.MonkeyPatch) -> None:
    read: list[int] = []
    numpy = sad.Array.numpy
    monkeypatch.setattr(sad.Array, "numpy", lambda x: read.append(x.size) or numpy(x))
    long = sad.array(np.zeros(100_000, np.float32), device=device)
    assert cells(long._repr_html_())
    assert read == [shown.END, shown.END]
    monkeypatch.setattr(shown, "READ_LIMIT", 8)
    wide = sad.array(np.zeros((2, 5), np.float32), device=device)
    assert cells(wide._repr_html_()) == []
    assert read == [shown.END, shown.END]


def test_an_array_that_is_traced_is_shown_by_its_text(device: sad.Device) -> None:
    found: list[str | None] = []

    def loss(x: sad.Array) -> sad.Array:
        y = x * x
        found.append(x._repr_html_())
        return sad.sum(y)

    sad.grad(loss)(sad.array([1.0, 2.0], device=device))
    assert found == [None]


def test_text_has_the_values(device: sad.Device) -> None:
    runtime = device.capabilities.runtime
    x = sad.array([[1, 2, 3], [4, 5, 6]], dtype=sad.float3, device=device)
    assert str(x) == f"{x}" == "[[1. 2. 3.]\n [4. 5. 6.]]"
    assert repr(x) == (
        f"Array([[1., 2., 3.],\n       [4., 5., 6.]], float3, shape=(2,), device={runtime!r})"
    )
    assert str(sad.sum(x.x)) == "5."
    lens = sad.array({"center": [[1, 2]], "power": [3]}, dtype=Lens, device=device)
    assert str(lens) == "[([1., 2.], 3.)]"


def test_text_of_arrays_that_cannot_be_read_now_is_a_summary(device: sad.Device) -> None:
    texts: list[str] = []

    def squares(x: Any) -> Any:
        texts.extend([repr(x), str(x)])
        return sad.sum(x * x)

    x = sad.array([1.0, 2.0], device=device)
    sad.grad(squares)(x)
    sad.graph(squares)(x)
    open_, traced = set(texts[:2]), set(texts[-2:])
    assert open_ == {f"Array(float, shape=(2,), device={device.capabilities.runtime!r})"}
    assert traced == {"Array(float, shape=(n0,), traced)"}


def test_very_large_arrays_are_not_read_for_their_text(
    device: sad.Device, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(shown, "READ_LIMIT", 3)
    x = sad.array([0.0] * 4, device=device)
    assert repr(x).startswith("Array(float, shape=(4,)")
    assert str(x) == repr(x)
