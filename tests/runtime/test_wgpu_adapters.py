"""The shortcut into cffi."""

from __future__ import annotations

import cffi

from shaderad.runtime.wgpu_adapters import read_types_quickly

HEADER = "".join(f"typedef struct S{k} {{ int field{k}; }} S{k};" for k in range(400))
TYPES = ("S1 *", "S17[3]", "int(*)(S5 *, S399 const *)", "uint32_t []", "S2")


def read(is_quick: bool) -> tuple[list[str], int]:
    """The types by name, and the most typedefs that cffi passed to its parser for one."""
    ffi = cffi.FFI()
    ffi.cdef(HEADER)
    parser = vars(ffi)["_parser"]
    parse, counts = parser._parse, [0]

    def counted(source: str) -> object:
        counts.append(len(parser._declarations))
        return parse(source)

    type(parser)._parse, original = (lambda _, source: counted(source)), type(parser)._parse
    try:
        if is_quick:
            read_types_quickly(ffi)
            read_types_quickly(ffi)
        names = [repr(ffi.typeof(name)) for name in TYPES]
    finally:
        type(parser)._parse = original
    return names, max(counts)


def test_types_are_the_same_of_fewer_typedefs() -> None:
    expected, all_typedefs = read(is_quick=False)
    types, typedefs = read(is_quick=True)
    assert types == expected
    assert all_typedefs >= 400
    # Structs stay; of their typedefs a type mentions two at most.
    assert typedefs <= all_typedefs - 398


def test_what_wgpu_is_given_still_has_the_parts_that_are_relied_on() -> None:
    parser = vars(cffi.FFI())["_parser"]
    assert callable(parser._parse)
    assert isinstance(parser._declarations, dict)


def test_something_else_is_left_alone() -> None:
    read_types_quickly(object())
