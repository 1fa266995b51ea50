"""HLSL of a build runs on wgpu, through glslang, and gives the gradients of the Python API.

naga reads neither compare-exchange nor `WaveIsFirstLane`: built with what it reads.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest

import shaderad as sad
from tests.samples import glslang, host_case, host_kernels
from tests.samples.host_folder import HOSTS
from tests.samples.loading import module_of

pytestmark = [pytest.mark.gpu, glslang.needed]

FLOAT32_SUMS = 1e-5
"""Of the largest number: hundreds of float32 terms, added in any order."""
FOR_NAGA = {"targets": "hlsl", "atomics": "exchange", "features": "no-subgroups"}


@pytest.fixture(scope="module")
def loader(wgpu_features: frozenset[str]) -> ModuleType:
    """The Python host, which reads any target's manifest that names bindings."""
    return module_of(HOSTS / "python_wgpu" / "shaderad_build.py", "shaderad_build")


def opened(loader: ModuleType, source: str | Path, folder: Path) -> Any:
    sad.build(source, folder, **FOR_NAGA)
    glslang.assemble_build(folder)
    return loader.Build(folder, "hlsl")


def strategies(build: Any, kernel: str) -> set[str]:
    manifest = json.loads((build.folder / "manifest.json").read_text(encoding="utf-8"))
    (found,) = [one for one in manifest["entries"] if one["name"] == kernel]
    programs = found["targets"]["hlsl"]["programs"]
    return {how for one in programs for how in one.get("strategies", {}).values()}


def check_alike(build: Any, found: Mapping[str, Any], wanted: Mapping[str, Any]) -> None:
    assert found.keys() == wanted.keys()
    for name, array in found.items():
        other = np.ravel(wanted[name])
        kind = np.float32 if other.dtype.kind == "f" else np.int32
        error = np.abs(np.frombuffer(build.read(array), kind) - other).max()
        assert error <= FLOAT32_SUMS * np.abs(other).max(), name


def check_total(
    build: Any, name: str, inputs: Mapping[str, Any], dim: tuple[int, ...], data: Path
) -> None:
    """Compares the total of a kernel, and its gradients, with the files of `prepare.py`."""
    kernel, shapes = build.kernel(name), {"total": (1,)}
    found = kernel.primal(inputs, dim, shapes=shapes)
    one = build.array(np.float32(1).tobytes(), "float")
    found |= kernel.backward(inputs, {"total": one}, dim, shapes=shapes)
    wanted = {name: np.fromfile(data / f"expected_{name}.bin", np.float32) for name in found}
    check_alike(build, found, wanted)


def test_gradients_added_to_shared_vertices(
    loader: ModuleType, hosts_folder: Path, tmp_path: Path
) -> None:
    build = opened(loader, HOSTS / "kernels.py", tmp_path / "mesh")
    assert strategies(build, "squared_error") == {"scattered", "exclusive"}
    data = hosts_folder / "mesh_data"
    elements = {"mesh_corners": "int3", "mesh_colors": "float3",
                "samples": "Sample", "target": "float3"}  # fmt: skip
    inputs = {n: build.array((data / f"{n}.bin").read_bytes(), t) for n, t in elements.items()}
    check_total(build, "squared_error", inputs, inputs["samples"].shape, data)


def test_gradients_of_the_texels_of_all_levels(
    loader: ModuleType, hosts_folder: Path, tmp_path: Path
) -> None:
    build = opened(loader, HOSTS / "textured.py", tmp_path / "texture")
    data = hosts_folder / "texture_data"
    levels = [(data / f"{n}.bin").read_bytes() for n in ("picture", "picture_mip")]
    inputs = {
        "picture": build.texture(levels, (24, 16, 1)),
        "smooth": build.sampler(),
        "at": build.array((data / "at.bin").read_bytes(), "float2"),
        "target": build.array((data / "target.bin").read_bytes(), "float4"),
    }
    check_total(build, "squared_difference", inputs, inputs["at"].shape, data)


def test_gradients_summed_over_all_threads_and_of_minima(
    loader: ModuleType, tmp_path: Path
) -> None:
    results, gradients = host_case.found_by_python()
    build = opened(loader, host_kernels.__file__, tmp_path / "kernels")
    assert strategies(build, "refracted") == {"uniform", "exclusive", "scattered"}

    def taken(given: Mapping[str, tuple[str, Any, Any]]) -> dict[str, Any]:
        return {n: build.array(a.tobytes(), t, shape) for n, (t, a, shape) in given.items()}

    kernel = build.kernel("refracted")
    inputs, cotangents = taken(host_case.INPUTS), taken(host_case.COTANGENTS)
    uniforms = {name: array.tobytes() for name, array in host_case.UNIFORMS.items()}
    how = (host_case.DIM, uniforms, host_case.SHAPES)
    found = kernel.primal(inputs, *how)
    check_alike(build, found, results)
    check_alike(build, kernel.backward(inputs, cotangents, *how, found), gradients)


def test_gradients_of_an_output_that_is_permuted(loader: ModuleType, tmp_path: Path) -> None:
    build = opened(loader, host_kernels.__file__, tmp_path / "kernels")
    x, bar = np.float32([[1.0, 2.0, 3.0], [0.5, -1.0, 4.0]])
    target = np.int32([2, 0, 1])
    inputs = {
        "x": build.array(x.tobytes(), "float"),
        "target": build.array(target.tobytes(), "int"),
    }
    kernel = build.kernel("shuffled")
    y = kernel.primal(inputs, (3,))
    check_alike(build, y, {"y": np.float32([4.0, 9.0, 1.0])})
    bars = {"y": build.array(bar.tobytes(), "float")}
    check_alike(build, kernel.backward(inputs, bars, (3,)), {"x": 2 * x * bar[target]})


PREFIX_SUM = """
RWStructuredBuffer<uint> y : register(u0);

[numthreads(64, 1, 1)]
void first(uint lane : SV_GroupIndex)
{
    y[lane] = WavePrefixSum(1u);
}
"""
OP_GROUP_NON_UNIFORM_IADD, INCLUSIVE_SCAN = 349, 1


def test_glslang_takes_a_prefix_sum_for_an_inclusive_one(tmp_path: Path) -> None:
    """HLSL's is exclusive. Once this fails `isFirstOfWave` of shaders/sums.slang needs one form."""
    source = tmp_path / "first.hlsl"
    source.write_text(PREFIX_SUM)
    words = np.fromfile(glslang.assemble(source, "first"), np.uint32)
    (at,) = np.flatnonzero(words == (6 << 16 | OP_GROUP_NON_UNIFORM_IADD))
    assert words[at + 4] == INCLUSIVE_SCAN
