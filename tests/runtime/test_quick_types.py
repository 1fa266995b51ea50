"""The shortcut into cffi gives the types that cffi gives."""

from __future__ import annotations

import time

import cffi

from shaderad.runtime.quick_types import read_types_quickly

HEADER = "".join(f"typedef struct S{k} {{ int field{k}; }} S{k};" for k in range(400))
TYPES = ("S1 *", "S17[3]", "int(*)(S5 *, S399 const *)", "uint32_t []", "S2")


def made(is_quick: bool) -> tuple[list[str], float]:
    ffi = cffi.FFI()
    ffi.cdef(HEADER)
    if is_quick:
        read_types_quickly(ffi)
        read_types_quickly(ffi)
    start = time.perf_counter()
    names = [repr(ffi.typeof(name)) for name in TYPES]
    return names, time.perf_counter() - start


def test_types_are_the_same_and_come_faster() -> None:
    expected, slow_seconds = made(is_quick=False)
    found, quick_seconds = made(is_quick=True)
    assert found == expected
    assert quick_seconds < slow_seconds / 3


def test_what_wgpu_is_given_still_has_the_parts_that_are_relied_on() -> None:
    parser = vars(cffi.FFI())["_parser"]
    assert callable(parser._parse)
    assert isinstance(parser._declarations, dict)


def test_something_else_is_left_alone() -> None:
    read_types_quickly(object())
