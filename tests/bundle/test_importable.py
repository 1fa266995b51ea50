"""`NAME_functions.slang`: programs in Slang import it and differentiate through it."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import shaderad as sad
from shaderad.bundle.write.command_options import kernel_inputs
from shaderad.compiler.artifact import Program
from shaderad.compiler.compile import compile_program
from shaderad.ir.nodes import Kernel
from shaderad.lower.bindings import Variant
from shaderad.lower.importable import lower_importable
from shaderad.lower.targets import PROFILES
from tests.conformance.kernels import kernels

Floats = np.ndarray[Any, Any]
spy = pytest.importorskip("slangpy")

KERNELS = list(kernels())
SURFACE = """
import shaderad as sad
from shaderad import float2, float3, int3


@sad.struct
class Material:
    albedo: float3
    kind: int
    lobes: sad.LocalArray[float, 2]


@sad.struct
class Mesh:
    corners: sad.In[int3]
    colors: sad.In[float3]
    materials: sad.In[Material]

    @sad.function
    def interpolate(self, face: int, uv: float2) -> float3:
        corner = self.corners[face]
        return (self.colors[corner.x] * (1.0 - uv.x - uv.y)
                + self.colors[corner.y] * uv.x + self.colors[corner.z] * uv.y)


@sad.function
def cube(x: float) -> float:
    return x * x * x


@cube.backward_derivative
def cube_bwd(x: sad.DifferentialPair[float], d_out: float):
    x.d = 3.0 * x.p * x.p * d_out


@cube.forward_derivative
def cube_fwd(x: sad.DifferentialPair[float]) -> sad.DifferentialPair[float]:
    return sad.diff_pair(cube(x.p), 3.0 * x.p * x.p * x.d)


@sad.function
def shine(m: Material, weights: sad.LocalArray[float, 2], steps: int) -> tuple[float3, float]:
    total = 0.0
    for k in range(steps):
        total = total * m.lobes[k % 2] + cube(m.lobes[k % 2]) * weights[k % 2]
    return m.albedo * total, total


@sad.function
def only_backward(x: float) -> float:
    return 2.0 * x


@only_backward.backward_derivative
def only_backward_bwd(x: sad.DifferentialPair[float], d_out: float):
    x.d = 2.0 * d_out


@sad.kernel
def shade(i: sad.Index, mesh: Mesh, face: sad.In[int], uv: sad.In[float2], color: sad.Out[float3]):
    weights = sad.LocalArray[float, 2]()
    weights[0] = uv[i].x
    weights[1] = only_backward(uv[i].y)
    tint, total = shine(mesh.materials[face[i]], weights, 3)
    color[i] = mesh.interpolate(face[i], uv[i]) * tint + total


@sad.kernel
def count(i: sad.Index, n: sad.In[int], m: sad.Out[int]):
    m[i] = n[i] + 1
"""

FIT = """
import shade_functions;

[[vk::binding(0, 0)]] RWStructuredBuffer<float2> uv_bar;
[[vk::binding(1, 0)]] RWStructuredBuffer<float> misses;
[[vk::binding(2, 0)]] RWStructuredBuffer<float> miss_dots;
struct Launch { uint count; }
[[vk::binding(3, 0)]] ConstantBuffer<Launch> launch;

[Differentiable]
float miss(float2 uv, no_diff int face)
{
    float weights[2] = { uv.x, uv.y };
    let shone = shine(mesh_materials_at(face), weights, 3);
    float3 color = Mesh_interpolate(face, uv) * shone.item0 + shone.item1;
    return dot(color, color);
}

[shader("compute")]
[numthreads(64, 1, 1)]
void fit(uint3 id : SV_DispatchThreadID)
{
    int i = int(id.x);
    if (id.x >= launch.count)
        return;
    float2 at = uv_at(i);
    var uv = diffPair(at, float2(0.0));
    bwd_diff(miss)(uv, i % 2, 1.0);
    uv_bar[i] = uv.d;
    misses[i] = miss(at, i % 2);
    miss_dots[i] = fwd_diff(miss)(diffPair(at, float2(1.0, -2.0)), i % 2).d;
}
"""

CORNERS = np.array([[0, 1, 2], [2, 1, 3]], np.int32)
THREADS = 70


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("surface")
    source = folder / "surface.py"
    source.write_text(SURFACE, encoding="utf-8")
    out = folder / "out"
    sad.build(source, out, targets=tuple(PROFILES), binding_base=4, validate=False)
    (out / "spirv" / "fit.slang").write_text(FIT, encoding="utf-8")
    return out


def _misses(colors: Floats, materials: Floats, uv: Floats) -> Floats:
    """Of each thread, in doubles; a row of `materials` is albedo, kind and two lobes."""
    found = np.zeros(len(uv))
    for i, (u, v) in enumerate(uv):
        a, b, c = colors[CORNERS[i % 2]]
        material = materials[i % 2]
        total = 0.0
        for k in range(3):
            lobe = material[4 + k % 2]
            total = total * lobe + lobe**3 * (u, v)[k % 2]
        color = (a * (1 - u - v) + b * u + c * v) * material[:3] * total + total
        found[i] = color @ color
    return found


def _gradient(function: Callable[[Floats], float], at: Floats) -> Floats:
    """By central differences."""
    found = np.zeros_like(at)
    for k in np.ndindex(at.shape):
        step = np.zeros_like(at)
        step[k] = 1e-5
        found[k] = (function(at + step) - function(at - step)) / 2e-5
    return found


def test_slang_differentiates_through_functions_and_arrays_of_a_build(built: Path) -> None:
    # Arrange
    generator = np.random.default_rng(5)
    colors, uv = generator.uniform(0.2, 1.0, (4, 3)), generator.uniform(0.1, 0.5, (THREADS, 2))
    materials = generator.uniform(0.3, 0.9, (2, 6))
    words = materials.astype(np.float32)
    words[:, 3] = np.array([1, 2], np.int32).view(np.float32)
    device = spy.create_device(
        type=spy.DeviceType.vulkan, include_paths=[built / "spirv", built / "shaderad"]
    )
    flags = spy.BufferUsage.shader_resource | spy.BufferUsage.unordered_access

    def buffer(data: Any, size: int = 4) -> Any:
        flat = np.ascontiguousarray(data).ravel()
        count = flat.nbytes // size
        return device.create_buffer(element_count=count, struct_size=size, usage=flags, data=flat)

    def zeros(*shape: int) -> Floats:
        return np.zeros(shape, np.float32)

    bound = {
        "mesh_corners_words": buffer(CORNERS),
        "mesh_colors_words": buffer(colors.astype(np.float32)),
        "mesh_colors_bar_words": buffer(zeros(4, 3)),
        "mesh_materials_words": buffer(words),
        "mesh_materials_bar_words": buffer(zeros(2, 6)),
        "uv_words": buffer(uv.astype(np.float32)),
        "uv_bar_words": buffer(zeros(THREADS, 2)),
        "uv_bar": buffer(zeros(THREADS, 2), 8),
        "misses": buffer(zeros(THREADS)),
        "miss_dots": buffer(zeros(THREADS)),
        "launch": {"count": THREADS},
        "parameters": {"mesh_corners_length": 2, "mesh_colors_length": 4,
                       "mesh_materials_length": 2, "uv_length": THREADS},
    }  # fmt: skip

    # Act
    kernel = device.create_compute_kernel(device.load_program("fit", ["fit"]))
    kernel.dispatch([THREADS, 1, 1], vars=bound)

    def result(name: str, *shape: int) -> Floats:
        return bound[name].to_numpy().view(np.float32).reshape(shape)

    # Assert
    np.testing.assert_allclose(result("misses", THREADS), _misses(colors, materials, uv), rtol=1e-4)
    by_colors = _gradient(lambda x: _misses(x, materials, uv).sum(), colors)
    by_materials = _gradient(lambda x: _misses(colors, x, uv).sum(), materials)
    by_uv = _gradient(lambda x: _misses(colors, materials, x).sum(), uv)
    np.testing.assert_allclose(result("mesh_colors_bar_words", 4, 3), by_colors, rtol=1e-3)
    np.testing.assert_allclose(
        result("mesh_materials_bar_words", 2, 6), by_materials, rtol=1e-3, atol=1e-6
    )
    np.testing.assert_allclose(result("uv_bar", THREADS, 2), by_uv, rtol=1e-3)
    along = by_uv @ np.array([1.0, -2.0])
    np.testing.assert_allclose(result("miss_dots", THREADS), along, rtol=1e-3, atol=1e-4)


@pytest.mark.parametrize("target", PROFILES)
def test_such_a_program_compiles_for_every_target(target: str, built: Path) -> None:
    # The importing program, with what it imports in place of the import.
    text = (built / target / "shade_functions.slang").read_text(encoding="utf-8")
    head, body = text.split("\n\n", 1)
    fit = FIT.replace("import shade_functions;", "")
    whole = Program(name="fit", slang=f"{head}\n{body}\n{fit}", workgroup=(64, 1, 1), bindings=())
    assert compile_program(whole, PROFILES[target].format).content


@pytest.mark.parametrize("kernel", KERNELS, ids=[kernel.name for kernel in KERNELS])
def test_the_functions_of_conformance_kernels_are_a_module(kernel: Kernel) -> None:
    wanted = frozenset(name for name, is_float in kernel_inputs(kernel).items() if is_float)
    module = lower_importable(kernel, Variant(wanted=wanted))
    if module is not None:
        assert compile_program(module, "spirv").content


def test_the_manifest_names_the_module_of_a_kernel_that_has_functions(built: Path) -> None:
    manifest = json.loads((built / "manifest.json").read_text(encoding="utf-8"))
    shade, count = manifest["entries"]
    assert shade["targets"]["wgsl"]["functions"] == "wgsl/shade_functions.slang"
    assert "wgsl/shade_functions.slang" in manifest["files"]
    assert "functions" not in count["targets"]["wgsl"]


def test_a_function_with_one_derivative_of_its_own_gets_none_in_slang(built: Path) -> None:
    text = (built / "spirv" / "shade_functions.slang").read_text(encoding="utf-8")
    assert "[BackwardDerivative(cube_bwd_diff)]\n[ForwardDerivative(cube_fwd_diff)]" in text
    assert "only_backward" not in text
