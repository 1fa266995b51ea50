"""The C++ hosts: NAME.h is enough to run a build by Vulkan, its SPIR-V and its HLSL."""

from __future__ import annotations

import shutil
from pathlib import Path

import numpy as np
import pytest

from tests.samples import glslang
from tests.samples.host_folder import HOSTS, attempted, run

COMPILER = shutil.which("g++")
HEADER = Path("/usr/include/vulkan/vulkan.h")

pytestmark = [
    pytest.mark.gpu,
    pytest.mark.skipif(
        COMPILER is None or not HEADER.exists(),
        reason="no g++ or no Vulkan header: apt-get install g++ libvulkan-dev",
    ),
]


@pytest.fixture
def float_atomics(wgpu_features: frozenset[str]) -> None:
    """The SPIR-V of the hosts adds floats atomically."""
    if "float-atomics" not in wgpu_features:
        pytest.skip("the device has no float atomics")


@pytest.fixture(scope="module")
def program(hosts_folder: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The host of the mesh."""
    return compiled(hosts_folder, "mesh", tmp_path_factory.mktemp("cpp"))


def compiled(hosts_folder: Path, name: str, folder: Path) -> Path:
    """A host, compiled against the header of its build."""
    made = folder / f"{name}_gradient"
    assert COMPILER
    source = HOSTS / "cpp_vulkan" / f"{name}.cpp"
    options = ["-std=c++17", "-Wall", "-Wpedantic", "-Werror", "-I", hosts_folder / name]
    run([COMPILER, *options, source, "-lvulkan", "-o", made])
    return made


@pytest.mark.usefixtures("float_atomics")
def test_its_gradient_of_spirv_is_that_of_the_python_api(program: Path, hosts_folder: Path) -> None:
    lines = run([program, hosts_folder]).splitlines()
    assert lines[-1] == "PASS"
    assert len(lines) == 6


@pytest.mark.usefixtures("float_atomics")
def test_it_samples_a_texture_and_finds_the_gradient_of_all_its_levels(
    hosts_folder: Path, tmp_path: Path
) -> None:
    program = compiled(hosts_folder, "texture", tmp_path)
    lines = run([program, hosts_folder]).splitlines()
    assert lines[-1] == "PASS"
    assert len(lines) == 6
    (tmp_path / "texture").symlink_to(hosts_folder / "texture")
    shutil.copytree(hosts_folder / "texture_data", tmp_path / "texture_data")
    file = tmp_path / "texture_data" / "picture_mip.bin"
    np.fromfile(file, np.float32)[::-1].tofile(file)
    done = attempted([program, tmp_path])
    assert (done.returncode, done.stdout.splitlines()[-1]) == (1, "FAIL")


@glslang.needed
def test_its_gradient_of_hlsl_is_that_of_the_python_api(program: Path, hosts_folder: Path) -> None:
    """In the form that is shipped: floats are added by compare-exchange."""
    for mode in ("primal", "bwd"):
        source = hosts_folder / "mesh" / "hlsl" / f"squared_error_{mode}.hlsl"
        assert "InterlockedCompareExchange" in source.read_text()
        glslang.assemble(source, source.stem)
    assert run([program, hosts_folder, "hlsl"]).splitlines()[-1] == "PASS"


@pytest.mark.usefixtures("float_atomics")
@pytest.mark.parametrize("wrong", [1.0001, np.nan])
def test_a_wrong_number_fails(
    program: Path, hosts_folder: Path, tmp_path: Path, wrong: float
) -> None:
    shutil.copytree(hosts_folder / "mesh_data", tmp_path / "mesh_data")
    (tmp_path / "mesh").symlink_to(hosts_folder / "mesh")
    file = tmp_path / "mesh_data" / "expected_mesh_colors.bin"
    expected = np.fromfile(file, np.float32)
    expected[7] *= wrong
    expected.tofile(file)
    done = attempted([program, tmp_path])
    assert (done.returncode, done.stdout.splitlines()[-1]) == (1, "FAIL")


def test_a_folder_without_a_build_is_one_sentence(program: Path, tmp_path: Path) -> None:
    done = attempted([program, tmp_path])
    wanted = f"error: cannot read {tmp_path}/mesh_data/mesh_corners.bin; run prepare.py\n"
    assert (done.returncode, done.stderr) == (1, wanted)


def test_a_machine_without_a_driver_is_one_sentence(
    program: Path, hosts_folder: Path, tmp_path: Path
) -> None:
    done = attempted([program, hosts_folder], VK_DRIVER_FILES=str(tmp_path / "none"))
    assert done.returncode == 1
    assert done.stderr.splitlines()[-1].startswith("error: no Vulkan ")
