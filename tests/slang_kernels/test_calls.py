"""Calls of kernels in Slang, against NumPy."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import shaderad as sad
from shaderad import float3
from tests import swiftshader
from tests.slang_kernels.kernels import MIX, Ray, group_sums, mix_kernel, mix_of, shade

pytestmark = pytest.mark.gpu
mix = mix_kernel()


@pytest.mark.parametrize("count", [0, 1, 31, 32, 33, 101])
def test_arrays_and_numbers(device: sad.Device, count: int) -> None:
    x = np.random.default_rng(count).normal(size=count).astype(np.float32)
    y = mix(x, 0.7, dim=count).numpy()
    np.testing.assert_allclose(y, mix_of(x, 0.7), rtol=1e-5, atol=1e-6)


def test_arguments_by_name_and_device_numbers(device: sad.Device) -> None:
    x = np.arange(5, dtype=np.float32)
    y = mix(k=sad.array(np.float32(2.0)), x=sad.array(x), dim=5)
    np.testing.assert_array_equal(y.numpy(), mix_of(x, 2.0))


def test_slice_begins_anywhere(device: sad.Device) -> None:
    x = sad.array(np.arange(50, dtype=np.float32))
    y = mix(x[7:40], 1.0, dim=33).numpy()
    np.testing.assert_array_equal(y, mix_of(np.arange(7.0, 40.0), 1.0))


def shade_arguments() -> tuple[list[Any], dict[str, Any]]:
    rng = np.random.default_rng(1)
    rays = {
        "origin": rng.normal(size=(7, 3)).astype(np.float32),
        "turn": rng.normal(size=(7, 2, 2)).astype(np.float32),
        "length": rng.normal(size=7).astype(np.float32),
    }
    lamp = Ray(rays["origin"][0], rays["turn"][0], 2.0)
    image = rng.normal(size=(5, 7, 3)).astype(np.float32)
    return [rays, image, lamp, 3, True], {"dim": (5, 7), "shapes": {"total": (5,), "count": (1,)}}


def test_structs_axes_and_system_values(device: sad.Device) -> None:
    arguments, call = shade_arguments()
    rays, image, lamp, *_ = arguments
    y, total, count = shade(*arguments, **call)
    wanted = image * rays["length"][:5, None, None] + rays["origin"] * lamp.turn[0][1]
    np.testing.assert_allclose(y.numpy(), wanted, rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(total.numpy(), wanted.sum(1), rtol=1e-5, atol=1e-5)
    assert count.numpy().tolist() == [3 * 35]


@pytest.mark.parametrize("count", [1, 64, 1000, 70000 * 64 + 5])
def test_group_memory_and_many_groups(device: sad.Device, count: int) -> None:
    x = np.ones(count, np.float32)
    groups = -(-count // 64)
    sums = group_sums(x, dim=count, shapes={"sums": (groups,)}).numpy()
    assert sums[-1] == count - 64 * (groups - 1)
    assert sums.sum(dtype=float) == count


def test_axes_of_three_and_four(device: sad.Device) -> None:
    source = """
    void turn(uint3 at : SV_DispatchThreadID, In<int, 4> x, Out<int, 3> y)
    {
        if (all(at < uint3(y.length(2), y.length(1), y.length(0))))
            y[at.z, at.y, at.x] = x[at.x, at.y, at.z, 1] + x.length(3);
    }
    """
    types = {"x": sad.In[int, 4], "y": sad.Out[int, 3]}
    kernel = sad.slang_kernel(source, "turn", types, group=(2, 3, 4))
    x = np.arange(5 * 4 * 3 * 2, dtype=np.int32).reshape(5, 4, 3, 2)
    y = kernel(x, dim=(3, 4, 5)).numpy()
    np.testing.assert_array_equal(y, x[..., 1].transpose(2, 1, 0) + 2)


def test_names_of_generated_text_are_free(device: sad.Device) -> None:
    source = """
    struct Parameters { float report_words; };
    static const float parameters = 2;
    float add(float a, float b) { return a + b; }
    float read(In<float> user, uint index) { return user[index]; }
    void kernel_primal(uint thread : SV_DispatchThreadID, In<float> user, Out<float> lane)
    {
        Parameters Report = { parameters };
        if (thread < lane.length())
            lane[thread] = add(read(user, thread), Report.report_words);
    }
    """
    types = {"user": sad.In[float], "lane": sad.Out[float]}
    kernel = sad.slang_kernel(source, "kernel_primal", types, group=8)
    assert kernel([1.0, 2.0], dim=2).numpy().tolist() == [3.0, 4.0]


def test_index_out_of_range_is_reported(device: sad.Device) -> None:
    x = np.arange(4, dtype=np.float32)
    with pytest.raises(sad.BoundsError, match="index 4 is out of range for `x` of length 4") as e:
        mix(x, 1.0, dim=6).numpy()
    assert e.value.span is not None
    assert e.value.span.text().startswith("void mix(")
    y = mix(x, 1.0, dim=6, bounds="ignore").numpy()
    np.testing.assert_array_equal(y, [*mix_of(x, 1.0), 0.0, 0.0])


def test_file_is_read_at_the_definition(device: sad.Device, tmp_path: Path) -> None:
    (tmp_path / "parts").mkdir()
    part = tmp_path / "parts" / "factor.slang"
    part.write_text("#pragma once\nstatic const float factor = 2;\n")
    include = '#include "parts/factor.slang"\n'
    main = tmp_path / "main.slang"
    main.write_text(
        f"import shaderad;\n{include}{include}{MIX.replace('k * x[i]', 'factor * x[i]')}"
    )
    x = np.arange(4, dtype=np.float32)
    for path in (main, str(main)):
        kernel = mix_kernel(path, backward=None, forward=None)
        part.write_text("#pragma once\nstatic const float factor = 3;\n")
        np.testing.assert_array_equal(kernel(x, 9.0, dim=4).numpy(), mix_of(x, 2.0))
        part.write_text("#pragma once\nstatic const float factor = 2;\n")
    part.write_text("#pragma once\nstatic const float factor = 3;\n")
    again = mix_kernel(main, backward=None, forward=None)
    np.testing.assert_array_equal(again(x, 9.0, dim=4).numpy(), mix_of(x, 3.0))


def test_vectors_of_halves(device: sad.Device) -> None:
    if "half" not in device.capabilities.features:
        pytest.skip("no half")
    source = """
    void scale(uint i : SV_DispatchThreadID, In<half3> x, float3 by, Out<half3> y)
    {
        if (i < y.length())
            y[i] = half3(float3(x[i]) * by);
    }
    """
    types = {"x": sad.In[sad.half3], "by": float3, "y": sad.Out[sad.half3]}
    kernel = sad.slang_kernel(source, "scale", types, group=64)
    x = np.arange(15, dtype=np.float16).reshape(5, 3)
    y = kernel(x, [1.0, 2.0, 0.5], dim=5).numpy()
    np.testing.assert_array_equal(y, x * np.array([1.0, 2.0, 0.5], np.float16))


@swiftshader.needed
@pytest.mark.swiftshader
def test_without_float_atomics() -> None:
    folder = Path(__file__).parent
    swiftshader.check_passes((folder / "test_calls.py", folder / "test_derivatives.py"))
