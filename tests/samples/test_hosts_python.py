"""The Python host: what a build says is enough to run its kernels and their gradients."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest

import shaderad as sad
from tests.bundle import graph_textures
from tests.bundle.test_graph_textures import arguments
from tests.samples import host_case, host_graphs, host_kernels
from tests.samples.host_folder import HOSTS, attempted, run
from tests.samples.loading import module_of

pytestmark = pytest.mark.gpu

MAIN = HOSTS / "python_wgpu" / "main.py"
COUNT = 300
FLOAT32_SUMS = 1e-5
"""Of the largest number: hundreds of float32 terms, added in any order."""


@pytest.mark.parametrize("target", ["wgsl", "spirv"])
def test_its_gradients_are_those_of_the_python_api(
    target: str, hosts_folder: Path, wgpu_features: frozenset[str]
) -> None:
    if target == "spirv" and not wgpu_features >= {"float-atomics", "subgroups"}:
        pytest.skip("the device has no float atomics or no subgroups")
    printed = run([sys.executable, MAIN, hosts_folder, "--target", target])
    assert printed.splitlines()[-1] == "PASS"
    assert printed.count("error") == 10


def test_plans_with_every_command_give_the_gradients_of_their_source(
    wgpu_features: frozenset[str], tmp_path: Path
) -> None:
    sad.build(host_graphs.__file__, tmp_path / "graphs", targets="wgsl", validate=False)
    with sad.open_device("wgpu") as device:
        cases = [(name, case) for name, taken in host_case.graph_arguments()
                 for case in host_case.plan_calls(name, taken)]  # fmt: skip
    device.close()
    build = module_of(MAIN.parent / "shaderad_build.py", "shaderad_build").Build(
        tmp_path / "graphs", "wgsl"
    )
    for name, (mode, arrays, wanted) in cases:
        kinds = ("int" if one.dtype.kind == "i" else "float" for one in arrays)
        given = [build.array(one.tobytes(), kind, one.shape)
                 for kind, one in zip(kinds, arrays, strict=True)]  # fmt: skip
        found = build.graph(name).run(mode, given)
        for one, other in zip(found, wanted, strict=True):
            numbers = np.frombuffer(build.read(one), other.dtype).reshape(other.shape)
            largest = np.max(np.abs(other), initial=0.0)
            np.testing.assert_allclose(numbers, other, rtol=1e-5, atol=1e-5 * largest)
    short, long = (build.array(bytes(size), "float") for size in (12, 16))
    with pytest.raises(Exception, match="shapes of the arguments differ"):
        build.graph("repeated").run("primal", [short, long])


def test_it_never_imports_shaderad(hosts_folder: Path) -> None:
    code = f"""
import runpy, sys
sys.argv = ["main.py", {str(hosts_folder)!r}]
sys.path.insert(0, {str(MAIN.parent)!r})
try:
    runpy.run_path({str(MAIN)!r}, run_name="__main__")
except SystemExit as end:
    assert not end.code, end.code
print([name for name in sys.modules if name.partition(".")[0] in ("shaderad", "slangpy")])
"""
    assert run([sys.executable, "-c", code]).splitlines()[-1] == "[]"


def test_a_wrong_number_fails(hosts_folder: Path, tmp_path: Path) -> None:
    for folder in ("mesh", "mesh_data", "scan", "scan_data", "texture", "texture_data"):
        (tmp_path / folder).symlink_to(hosts_folder / folder)
    wrong = tmp_path / "wrong"
    wrong.mkdir()
    for file in (hosts_folder / "mesh_data").iterdir():
        (wrong / file.name).write_bytes(file.read_bytes())
    expected = np.fromfile(wrong / "expected_mesh_colors.bin", np.float32)
    expected[7] *= 1.1
    expected.tofile(wrong / "expected_mesh_colors.bin")
    (tmp_path / "mesh_data").unlink()
    (tmp_path / "mesh_data").symlink_to(wrong)
    done = attempted([sys.executable, MAIN, tmp_path])
    assert (done.returncode, done.stdout.splitlines()[-1]) == (1, "FAIL")


def test_a_folder_without_a_build_is_one_sentence(tmp_path: Path) -> None:
    done = attempted([sys.executable, MAIN, tmp_path])
    assert done.returncode == 1
    wanted = f"error: no build in {tmp_path / 'mesh'}: manifest.json: No such file or directory\n"
    assert done.stderr == wanted


def test_a_machine_without_a_driver_is_one_sentence(hosts_folder: Path, tmp_path: Path) -> None:
    nowhere = {"VK_DRIVER_FILES": str(tmp_path / "none"), "WGPU_BACKEND_TYPE": "Vulkan"}
    done = attempted([sys.executable, MAIN, hosts_folder], **nowhere)
    assert done.returncode == 1
    assert done.stderr.endswith("error: wgpu finds no GPU and no software driver for one\n")


@pytest.fixture(scope="module")
def loader() -> ModuleType:
    return module_of(HOSTS / "python_wgpu" / "shaderad_build.py", "shaderad_build")


@pytest.fixture(scope="module", params=[0, 2])
def built(
    request: pytest.FixtureRequest,
    wgpu_features: frozenset[str],
    tmp_path_factory: pytest.TempPathFactory,
) -> Path:
    """Kernels whose resources lie in bind group 0, and in another."""
    folder = tmp_path_factory.mktemp("host") / "kernels"
    source = host_kernels.__file__
    sad.build(source, folder, targets="wgsl", space=request.param, validate=False)
    return folder


def numbers(build: Any, array: Any) -> np.ndarray[Any, Any]:
    return np.frombuffer(build.read(array), np.float32)


def agree(found: np.ndarray[Any, Any], wanted: Any) -> bool:
    wanted = np.ravel(wanted)
    return bool(np.abs(found - wanted).max() <= FLOAT32_SUMS * np.abs(wanted).max())


def test_every_role_and_word_is_served(loader: ModuleType, built: Path) -> None:
    wanted_results, wanted = host_case.found_by_python()
    build = loader.Build(built, "wgsl")
    kernel = build.kernel("refracted")

    def taken(given: Mapping[str, tuple[str, Any, Any]]) -> dict[str, Any]:
        return {n: build.array(a.tobytes(), t, shape) for n, (t, a, shape) in given.items()}

    inputs, cotangents = taken(host_case.INPUTS), taken(host_case.COTANGENTS)
    uniforms = {name: array.tobytes() for name, array in host_case.UNIFORMS.items()}
    results = kernel.primal(inputs, host_case.DIM, uniforms, host_case.SHAPES)
    assert np.frombuffer(build.read(results["count"]), np.int32).tolist() == [99]
    for name in cotangents:
        assert agree(numbers(build, results[name]), wanted_results[name]), name
    found = kernel.backward(inputs, cotangents, host_case.DIM, uniforms, host_case.SHAPES, results)
    assert found.keys() == wanted.keys()
    for name, one in wanted.items():
        assert agree(numbers(build, found[name]), one), name


def test_what_a_kernel_reports_names_the_python_line(loader: ModuleType, built: Path) -> None:
    build = loader.Build(built, "wgsl")
    inputs = {"x": build.array(np.ones(4, np.float32).tobytes(), "float"),
              "target": build.array(np.arange(4, dtype=np.int32).tobytes(), "int")}  # fmt: skip
    y = build.kernel("shuffled").primal(inputs, (4,))["y"]
    assert numbers(build, y).tolist() == [1.0] * 4
    inputs["target"] = build.array(np.arange(1, 5, dtype=np.int32).tobytes(), "int")
    with pytest.raises(loader.HostError, match=r"host_kernels.py:\d+: .* of y: 4 of 4"):
        build.read(build.kernel("shuffled").primal(inputs, (4,))["y"])


def test_arguments_that_code_would_misread_are_refused(loader: ModuleType, built: Path) -> None:
    build = loader.Build(built, "wgsl")
    powered, refracted = build.kernel("powered"), build.kernel("refracted")
    x = build.array(bytes(8), "float")
    two = np.int32(2).tobytes()
    image = build.array(bytes(4 * 4), "float", (2, 2))
    weight = build.array(bytes(8), "float")
    uniforms = {"lens": bytes(12), "gain": bytes(4)}
    cases = {
        "no value is given for count": lambda: powered.primal({"x": x}, (2,)),
        "count takes 4 bytes, not 8": lambda: powered.primal({"x": x}, (2,), {"count": bytes(8)}),
        "y was built for the shape of dim": lambda: powered.primal(
            {"x": x}, (2,), {"count": two}, shapes={"y": (3,)}
        ),
        "image has 2 axes": lambda: refracted.primal(
            {"image": x, "weight": weight}, (2, 2), uniforms, host_case.SHAPES
        ),
        "image has 16 bytes, not 48": lambda: refracted.primal(
            {"image": image, "weight": weight}, (2, 2), uniforms, host_case.SHAPES
        ),
    }
    for message, call in cases.items():
        with pytest.raises(loader.HostError, match=message):
            call()


def test_a_manifest_of_another_version_is_refused(loader: ModuleType, tmp_path: Path) -> None:
    text = '{"schema": "shaderad-manifest", "schema_version": 99}'
    (tmp_path / "manifest.json").write_text(text)
    with pytest.raises(loader.HostError, match="99"):
        loader.Build(tmp_path, "wgsl")


def test_a_kernel_without_a_derivative_says_why(loader: ModuleType, built: Path) -> None:
    build = loader.Build(built, "wgsl")
    x = build.array(np.float32([3.0, 0.5]).tobytes(), "float")
    count = {"count": np.int32(2).tobytes()}
    y = build.kernel("powered").primal({"x": x}, (2,), count)["y"]
    assert numbers(build, y).tolist() == [81.0, 0.0625]
    with pytest.raises(loader.HostError, match=r"powered was built without backward: .*`raised`"):
        build.kernel("powered").backward({"x": x}, {"y": x}, (2,), count)


def test_a_manifest_that_is_none_is_refused(loader: ModuleType, tmp_path: Path) -> None:
    (tmp_path / "manifest.json").write_text("<!doctype html>")
    with pytest.raises(loader.HostError, match="is no JSON"):
        loader.Build(tmp_path, "wgsl")


def test_code_that_is_missing_and_arrays_that_are_not_given_are_named(
    loader: ModuleType, built: Path, tmp_path: Path
) -> None:
    (tmp_path / "manifest.json").symlink_to(built / "manifest.json")
    build = loader.Build(tmp_path, "wgsl")
    x = build.array(bytes(8), "float")
    with pytest.raises(loader.HostError, match="no array is given for target"):
        build.kernel("shuffled").primal({"x": x}, (2,))
    target = build.array(bytes(8), "int")
    with pytest.raises(loader.HostError, match=r"shuffled_primal\.wgsl: No such file"):
        build.kernel("shuffled").primal({"x": x, "target": target}, (2,))


def test_a_target_that_was_not_built_is_refused(loader: ModuleType, built: Path) -> None:
    with pytest.raises(loader.HostError, match="not built for spirv"):
        loader.Build(built, "spirv")


def test_a_graph_takes_textures_with_layers(tmp_path: Path) -> None:
    sad.build(graph_textures.__file__, tmp_path / "out", targets="wgsl", validate=False)
    rng = np.random.default_rng(0)
    at = np.float32(rng.uniform(0, 1, (COUNT, 3)) * [1, 1, 4])
    with sad.open_device("wgpu") as device:
        texels = np.float32(rng.uniform(size=(3, 5, 2)))
        t = sad.texture(texels, mips=True, dimension="2d-array")
        loss, pullback = sad.vjp(graph_textures.clouds, t, sad.sampler(), at)
        levels = [t.numpy(k) for k in range(t.level_count)]
        wanted = float(loss), pullback(1.0)[2].numpy()
    device.close()
    build = module_of(MAIN.parent / "shaderad_build.py", "shaderad_build").Build(
        tmp_path / "out", "wgsl"
    )
    contents = [x.tobytes() for x in levels]
    layers, smooth = build.texture(contents, (2, 5, 3), "r32float", "2d-array"), build.sampler()
    given = [
        layers,
        build.array(layers.word, "int4", ()),
        smooth,
        build.array(smooth.word, "uint", ()),
        build.array(at.tobytes(), "float3", (COUNT,)),
    ]
    plan = build.graph("clouds")._plans["backward"]["outputs"]
    results = build.graph("clouds").run(
        "backward", [*given, build.array(np.float32(1.0).tobytes(), "float", ())]
    )
    by_name = {one["name"]: x for one, x in zip(plan, results, strict=True)}
    found = np.frombuffer(build.read(by_name["result_0"]), np.float32)[0]
    np.testing.assert_allclose(found, wanted[0], rtol=1e-4)
    found = np.frombuffer(build.read(by_name["at gradient"]), np.float32)[: at.size]
    np.testing.assert_allclose(found.reshape(at.shape), wanted[1], rtol=1e-4, atol=1e-4)


def test_a_graph_takes_textures_their_sizes_and_samplers(tmp_path: Path) -> None:
    sad.build(graph_textures.__file__, tmp_path / "out", targets="wgsl", validate=False)
    with sad.open_device("wgpu") as device:
        maps, smooth, sky, at, d = arguments("mips", COUNT)
        out, pullback = sad.vjp(graph_textures.shaded, maps, smooth, sky, at, d)
        bar = np.cos(out["color"].numpy())
        gradients = pullback({"color": bar, "loss": 1.0})
        wanted = [out["color"], out["loss"], gradients[3], gradients[2].cube]
        wanted = [x.numpy() for x in wanted]
        levels = [maps["color"].numpy(k) for k in range(maps["color"].level_count)]
        unused, cube = maps["unused"].numpy(), sky.cube.numpy()
    device.close()
    build = module_of(MAIN.parent / "shaderad_build.py", "shaderad_build").Build(
        tmp_path / "out", "wgsl"
    )
    textures = [
        build.texture([x.tobytes() for x in levels], (4, 8, 1)),
        build.texture([unused.tobytes()], (2, 3, 1)),
        build.texture([cube.tobytes()], (4, 4, 6), dimension="cube"),
    ]
    mirror = build.sampler("linear", "mirror")

    def array(x: Any, element: str, shape: tuple[int, ...]) -> Any:
        return build.array(np.asarray(x).tobytes(), element, shape)

    def with_number(x: Any) -> list[Any]:
        return [x, build.array(x.word, "uint" if x is mirror else "int4", ())]

    given = [
        *with_number(textures[0]), *with_number(textures[1]), *with_number(mirror),
        *with_number(textures[2]), *with_number(mirror),
        array(np.float32([1, 2, 3]), "float3", ()),
        array(at, "float2", (COUNT,)), array(d, "float3", (COUNT,)),
        array(np.float32(0.5), "float", ()), array(np.float32(1.25), "float", ()),
    ]  # fmt: skip
    bars = [array(bar, "float3", (COUNT,)), array(np.float32(1.0), "float", ())]
    results = build.graph("shaded").run("backward", [*given, *bars])
    names = [one["name"] for one in build.graph("shaded")._plans["backward"]["outputs"]]
    by_name = dict(zip(names, results, strict=True))
    for name, other in zip(
        ("result_0", "result_1", "at gradient", "sky.cube gradient"), wanted, strict=True
    ):
        numbers = np.frombuffer(build.read(by_name[name]), np.float32).reshape(other.shape)
        largest = np.max(np.abs(other))
        np.testing.assert_allclose(numbers, other, rtol=1e-4, atol=FLOAT32_SUMS * largest)
