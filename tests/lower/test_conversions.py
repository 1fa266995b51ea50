"""Conversions of floats to integers: they saturate, NaN gives 0, and known ranges cost nothing."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import shaderad as sad
from shaderad.compiler.compile import compile_program
from shaderad.decorators import KernelFunction
from shaderad.ir.saturation import to_integer
from shaderad.lower.bindings import Mode, Variant
from shaderad.lower.kernels import lower_kernel
from tests.agreement import check_against_oracle

EDGES = np.float32([
    3e9, np.nan, -np.inf, 5e9, np.inf, -np.nan, 3.4e38, -3.4e38, -1.0, -0.5, -0.0, 1e-40, 0.5, 1.9,
    2147483520.0, 2147483648.0, -2147483648.0, -2147483904.0, 4294967040.0, 4294967296.0,
])  # fmt: skip
DOUBLES = np.array(
    [*EDGES, 1e300, -1e300, 2147483647.0, 2147483647.5, 2147483648.0, -2147483648.5, 4294967295.5]
)
HALVES = np.float16([65504.0, -65504.0, np.inf, -np.inf, np.nan, -1.5, 1.5, 0.0])


@sad.kernel
def converted(
    i: sad.Index,
    x: sad.In[float],
    a: sad.Out[int],
    b: sad.Out[sad.uint],
    c: sad.Out[sad.int3],
    d: sad.Out[sad.uint2],
    e: sad.Out[sad.int3],
    f: sad.Out[sad.int2],
):
    a[i] = int(x[i])
    b[i] = sad.uint(x[i])
    c[i] = sad.int3(sad.float3(x[i], -x[i], 1.0))
    d[i] = sad.uint2(sad.float2(x[i], -x[i]))
    e[i] = sad.int3(round(x[i]), int(sad.floor(x[i])), int(sad.ceil(x[i])))
    f[i] = sad.int2(int(sad.clamp(x[i], -5.0, 5.0)), int(sad.min(sad.max(x[i], 0.0), 3e9)))


def texts(kernel: KernelFunction, format_: str = "") -> str:
    (lowered,) = lower_kernel(kernel.specialise({}), Mode.PRIMAL, Variant())
    if format_:
        compile_program(lowered.program, format_)
    return lowered.program.slang


@pytest.mark.gpu
def test_floats_out_of_range_saturate(device: sad.Device) -> None:
    check_against_oracle(converted, EDGES, dim=len(EDGES))
    for dtype, name in ((np.int32, int), (np.uint32, sad.uint)):
        expected = to_integer(EDGES, np.dtype(dtype))
        array = sad.array(EDGES)
        np.testing.assert_array_equal(sad.cast(array, name).numpy(), expected)
        as_graph = sad.graph(lambda x, name=name: sad.cast(x, name))
        np.testing.assert_array_equal(as_graph(array).numpy(), expected)
        assert sad.cast(np.float32(3e9), name).numpy() == to_integer(EDGES[0], np.dtype(dtype))


@pytest.mark.gpu
@pytest.mark.parametrize("dtype", [sad.half, sad.double])
def test_other_floats_saturate(dtype: Any, device: sad.Device) -> None:
    feature, data = ("half", HALVES) if dtype is sad.half else ("double", DOUBLES)
    if feature not in device.capabilities.features:
        pytest.skip(f"no {feature}")
    x = sad.array(data, dtype=dtype)
    for integer, name in ((np.int32, int), (np.uint32, sad.uint)):
        expected = to_integer(data, np.dtype(integer))
        np.testing.assert_array_equal(sad.cast(x, name).numpy(), expected)


@sad.kernel
def in_range(i: sad.Index, x: sad.In[float], n: int, y: sad.Out[int], z: sad.Out[sad.uint]):
    y[i] = int(sad.floor(sad.clamp(x[i], -5.0, 5.0))) + int(sad.saturate(x[i]))
    z[i] = sad.uint(sad.min(sad.max(x[i], 0.0), 7.0))


@sad.kernel
def out_of_range(i: sad.Index, x: sad.In[float], n: int, y: sad.Out[int], z: sad.Out[sad.uint]):
    y[i] = int(sad.max(x[i], 0.0)) + int(float(n)) + int(sad.clamp(x[i], 0.0, 3e9))
    z[i] = sad.uint(sad.clamp(x[i], -1.0, 1.0))


def test_floats_of_a_known_range_are_converted_as_they_are() -> None:
    assert "toInt(" not in texts(in_range)
    assert "toUint(" not in texts(in_range)
    assert texts(out_of_range).count("toInt(") == 3
    assert texts(out_of_range).count("toUint(") == 1


@pytest.mark.parametrize("format_", ["wgsl", "hlsl", "metal"])
def test_every_format_has_the_conversions(format_: str) -> None:
    texts(converted, format_)


def test_values_of_the_host_saturate() -> None:
    np.testing.assert_array_equal(sad.int3(3e9, -3e9, np.nan), [2**31 - 1, -(2**31), 0])
    np.testing.assert_array_equal(sad.uint2(-1.5, 5e9), [0, 2**32 - 1])
    for k in (0, 3, 4):
        results = converted.debug(EDGES, thread=k)
        assert results["a"][k] == to_integer(EDGES[k], np.dtype(np.int32))
        assert results["b"][k] == to_integer(EDGES[k], np.dtype(np.uint32))
