"""Closed devices, arrays of another device, and devices that are not there."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import shaderad as sad
from tests.wrong_calls.kernels import X, check, square

CLOSED = [
    "square(theirs, dim=4)",
    "square(X, dim=4, device=other)",
    "theirs.numpy()",
    "theirs + 1.0",
    "theirs[0]",
    "float(theirs[0])",
    "out.numpy()",
    "pull(X)",
    "pull(theirs)",
    "sad.array(X, device=other)",
    "sad.array(theirs, dtype=float, device=device)",
    "sad.jvp(square, (theirs,), (X,), dim=4)",
    "sad.gradcheck(square, theirs, dim=4)",
    "other.synchronize()",
]
ELSEWHERE = [
    ("square(theirs, dim=4, device=device)", "`x` lives on another device"),
    ("pull_here(theirs)", "`out_bar` lives on another device"),
    ("pull_here(X, accumulate=(theirs,))", "`accumulate` lives on another device"),
    ("sad.jvp(square, (sad.array(X),), (theirs,), dim=4)", "`x` lives on another device"),
    ("sad.array(X) + theirs", "lives on another device"),
]
ABSENT = [
    ("sad.open_device('cuda')", "SR0601", "no runtime `cuda`"),
    ("sad.open_device(5)", "SR0620", "found 5"),
    ("sad.open_device('wgpu', adapter=1.5)", "SR0620", "found 1.5"),
    ("sad.open_device('wgpu', adapter=True)", "SR0620", "found True"),
    ("sad.open_device('wgpu', adapter='no such card')", "SR0602", "no adapter `no such card`"),
    ("sad.open_device(adapter='no such card')", "SR0602", "`wgpu` has no", "`slangpy` has no"),
    ("sad.open_device('wgpu', adapter=99)", "SR0602", "no adapter `99`"),
    ("sad.open_device('wgpu:99')", "SR0602", "no adapter `99`"),
    ("sad.open_device('slangpy', adapter='no such card')", "SR0602", "`slangpy` has no adapter"),
    ("sad.open_device('wgpu', limits={'nothing': 8})", "SR0613", "no limit `nothing`"),
    ("sad.open_device('wgpu', limits={'storage_buffer_limit': 'a'})", "SR0621", "found 'a'"),
    ("sad.open_device('wgpu', limits={'storage_buffer_limit': -1})", "SR0621", "found -1"),
    ("sad.open_device('wgpu', native=5)", "SR0616", "this is a `int`"),
    ("sad.array(X, device='wgpu')", "SR0651", "found a `str`"),
    ("sad.Array.from_native(None)", "SR0619", "this is a `NoneType`"),
    ("sad.Array.from_native(sad.array(X).native, shape=-4)", "SR0371", "found -4"),
    ("sad.Array.from_native(sad.array(X).native, shape=400)", "SR0359", "needs 1600"),
    ("sad.Array.from_native(sad.array(X).native, 'x')", "SR0358", "'x'"),
]


def second_device(device: sad.Device) -> dict[str, Any]:
    """Another device of the same runtime, with an array and a pullback that live there."""
    opened = sad.open_device(device.capabilities.runtime)
    theirs = sad.array(X, device=opened)
    out, pull = sad.vjp(square, theirs, dim=4)
    _, pull_here = sad.vjp(square, X, dim=4)
    return {"other": opened, "theirs": theirs, "out": out, "pull": pull, "pull_here": pull_here}


@pytest.fixture(scope="module")
def other(device: sad.Device) -> Iterator[dict[str, Any]]:
    names = second_device(device)
    yield names
    names["other"].close()


@pytest.fixture(scope="module")
def closed(device: sad.Device) -> dict[str, Any]:
    names = second_device(device)
    names["other"].close()
    return names


@pytest.mark.parametrize("text", CLOSED)
def test_a_closed_device_is_named_whatever_is_asked_of_it(
    text: str, device: sad.Device, closed: dict[str, Any]
) -> None:
    check(text, "SR0610", "is closed", device.capabilities.adapter, device=device, **closed)


def test_closing_twice_is_fine_and_other_devices_go_on(
    device: sad.Device, closed: dict[str, Any]
) -> None:
    closed["other"].close()
    np.testing.assert_array_equal(square(X, dim=4).numpy(), X * X)


@pytest.mark.parametrize(("text", "found"), ELSEWHERE)
def test_arrays_of_another_device_are_named(
    text: str, found: str, device: sad.Device, other: dict[str, Any]
) -> None:
    check(text, "SR0650", found, device=device, **other)


@pytest.mark.parametrize("wrong", ABSENT, ids=lambda w: w[0])
def test_devices_that_are_not_there_are_named(wrong: tuple[str, ...], device: sad.Device) -> None:
    check(*wrong)
