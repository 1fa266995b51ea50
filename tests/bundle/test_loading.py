"""`sad.load`: a built folder serves like the source it was built from."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import shaderad as sad
from shaderad.bundle.format.document import with_digest
from tests.bundle import kernels
from tests.bundle.conftest import SOURCE, Output

pytestmark = pytest.mark.gpu

COUNT = 7
BINS = 3


def arguments() -> list[Any]:
    draw = np.random.default_rng(2)
    cloud = {"points": draw.normal(size=(BINS, 3)), "sizes": draw.normal(size=COUNT), "scale": 1.5}
    return [cloud, draw.normal(size=COUNT), draw.integers(0, BINS, COUNT), 0.75]


def from_source() -> list[Any]:
    cloud, *rest = arguments()
    return [kernels.Cloud(**cloud), *rest]


CALL: dict[str, Any] = {"dim": COUNT, "shapes": {"total": BINS, "low": 1}}


def as_numbers(tree: Any) -> Any:
    if tree is None:
        return None
    if isinstance(tree, tuple | list):
        return [as_numbers(one) for one in tree]
    if isinstance(tree, dict):
        return {name: as_numbers(one) for name, one in tree.items()}
    return np.asarray(tree.numpy(), np.float64)


def test_a_loaded_kernel_gives_what_its_source_gives(output: Output, device: sad.Device) -> None:
    loaded = sad.load(output.folder)
    out, pullback = sad.vjp(loaded.splat, *arguments(), **CALL)
    expected, expected_pullback = sad.vjp(kernels.splat, *from_source(), **CALL)
    for one, other in zip(as_numbers(out), as_numbers(expected), strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-5, atol=1e-6)
    bars = [np.ones_like(one) for one in as_numbers(out)]
    found, wanted = pullback(tuple(bars)), expected_pullback(tuple(bars))
    assert set(found[0]) == {"points", "sizes", "scale"}
    for name, one in found[0].items():
        np.testing.assert_allclose(
            as_numbers(one), as_numbers(getattr(wanted[0], name)), rtol=1e-3, atol=1e-4
        )
    assert found[2] is None
    for k in (1, 3):
        np.testing.assert_allclose(
            as_numbers(found[k]), as_numbers(wanted[k]), rtol=1e-5, atol=1e-5
        )
    device.synchronize()


def test_gradients_of_some_arguments_are_added_to_what_is_there(
    output: Output, device: sad.Device
) -> None:
    loaded = sad.load(output.folder)
    out, pullback = sad.vjp(loaded.splat, *arguments(), **CALL)
    bars = tuple(np.ones(one.shape) for one in out)
    once = pullback(bars)
    first = as_numbers(once[1])
    twice = pullback(bars, accumulate=once)
    np.testing.assert_allclose(as_numbers(twice[1]), 2.0 * first, rtol=1e-5)
    device.synchronize()


def test_constants_are_compiled_in(output: Output, device: sad.Device) -> None:
    x = np.array([0.1, 0.52, 2.0])
    (found,) = [sad.load(output.folder).levels(x, dim=3)]
    np.testing.assert_allclose(found.numpy(), np.round(x * 8) / 8)
    assert found.device is device


def test_an_index_out_of_range_names_the_line_of_the_source(
    output: Output, device: sad.Device
) -> None:
    out = sad.load(output.folder).shuffle([1.0, 2.0], [0, 5], dim=2)
    with pytest.raises(sad.BoundsError) as caught:
        out.numpy()
    line = SOURCE.read_text(encoding="utf-8").splitlines().index("    y[target[i]] = x[i]") + 1
    assert f"kernels.py as built:{line}" in str(caught.value)


def refusals() -> dict[str, tuple[str, Callable[[Any], Any]]]:
    x = np.ones(COUNT)
    return {
        "jvp": ("SR0725", lambda on: sad.jvp(on.levels, (x,), (x,), dim=COUNT)),
        "no gradient": ("SR0725", lambda on: sad.vjp(on.shuffle, x, [0] * 7, dim=7)[1](x)),
        "bounds": ("SR0726", lambda on: on.levels(x, dim=COUNT, bounds="ignore")),
        "checks": ("SR0726", lambda on: on.levels(x, dim=COUNT, checks="nan")),
        "shape": ("SR0727", lambda on: on.levels(x, dim=COUNT, shapes={"y": 9})),
        "device uniform": (
            "SR0728",
            lambda on: on.splat(*arguments()[:3], sad.array(0.75), **CALL),
        ),
        "entry": ("SR0723", lambda on: on.splatt),
    }


@pytest.mark.parametrize("name", refusals())
def test_what_the_build_does_not_hold_is_refused(
    name: str, output: Output, device: sad.Device
) -> None:
    code, attempt = refusals()[name]
    with pytest.raises(sad.Error) as caught:
        attempt(sad.load(output.folder))
    assert caught.value.code == code
    device.synchronize()


CUBED = """
import shaderad as sad
from shaderad import Array, In, Index, Out

@sad.kernel
def cubed(i: Index, x: In[float], y: Out[float]):
    y[i] = x[i] * x[i] * x[i]

@sad.kernel
def scaled(i: Index, x: In[float], j: int, y: Out[float]):
    y[i] = x[j] * x[i]
"""
CALLS_PER_BUILD = """
import shaderad as sad
from shaderad import Array

@sad.graph
def total(x: Array[float, "n"]):
    return sad.sum(sad.load({folder!r}).cubed(x, dim=x.shape[0]))
"""


@pytest.fixture
def cubed(tmp_path: Path) -> Path:
    """A build of one kernel with both derivatives."""
    source, folder = tmp_path / "cubed.py", tmp_path / "cubed"
    source.write_text(CUBED, encoding="utf-8")
    sad.build(source, folder, targets=("spirv", "wgsl"), jvp=True, validate=False)
    return folder


@pytest.mark.parametrize("is_graph", [False, True])
def test_no_second_derivative_is_taken_of_a_built_kernel(
    is_graph: bool, cubed: Path, device: sad.Device
) -> None:
    kernel, x = sad.load(cubed).cubed, np.float32([1.0, 2.0, 3.0])

    def total(x: Any) -> Any:
        return sad.sum(kernel(x, dim=3))

    function = sad.graph(total) if is_graph else total
    np.testing.assert_allclose(sad.grad(function)(x).numpy(), 3 * x**2, rtol=1e-6)
    with pytest.raises(sad.DerivativeError) as caught:
        sad.hvp(function, (x,), (x,))
    assert caught.value.code == "SR0752"


def test_batches_call_a_built_kernel_for_each_element(cubed: Path, device: sad.Device) -> None:
    kernel = sad.load(cubed).scaled
    xs = np.float32([[1, 2, 3], [4, 5, 6]])

    def scaled(x: Any) -> Any:
        return kernel(x, 1, dim=3)

    np.testing.assert_allclose(sad.vmap(scaled)(xs), xs[:, 1:2] * xs, rtol=1e-6)
    expected = xs[0, 1] * np.eye(3) + np.outer(xs[0], np.eye(3)[1])
    np.testing.assert_allclose(sad.jacobian(scaled)(xs[0]), expected, rtol=1e-6)


def test_a_built_kernel_is_not_built_once_more(cubed: Path, tmp_path: Path) -> None:
    source = tmp_path / "total.py"
    source.write_text(CALLS_PER_BUILD.format(folder=str(cubed)), encoding="utf-8")
    with pytest.raises(sad.CompileError) as caught:
        sad.build(source, tmp_path / "out", targets="wgsl", validate=False)
    assert caught.value.code == "SR0753"


def test_a_device_without_float_atomics_gets_code_that_needs_none(output: Output) -> None:
    with sad.open_device("wgpu", limits={"atomics": "exchange"}) as device:
        _, pullback = sad.vjp(sad.load(output.folder).splat, *arguments(), **CALL)
        _, expected_pullback = sad.vjp(kernels.splat, *from_source(), **CALL)
        bars = (np.ones(COUNT), np.ones(BINS), np.ones(1))
        found, wanted = pullback(bars), expected_pullback(bars)
        np.testing.assert_allclose(found[1].numpy(), wanted[1].numpy(), rtol=1e-4)
        points = found[0]["points"].numpy()
        np.testing.assert_allclose(points, wanted[0].points.numpy(), rtol=1e-3, atol=1e-4)
        device.synchronize()


def test_a_device_that_lacks_a_feature_is_told_so(output: Output, tmp_path: Path) -> None:
    folder = copied(output.folder, tmp_path)
    edit(folder, lambda m: [k["targets"].pop(t) for k in m["entries"]
                            for t in ("spirv-core", "wgsl", "hlsl", "metal")])  # fmt: skip
    loaded = sad.load(folder)
    with (
        sad.open_device("wgpu", limits={"storage_buffer_limit": 3}),
        pytest.raises(sad.DeviceError, match="no target of the build") as caught,
    ):
        loaded.splat(*arguments(), **CALL)
    assert caught.value.code == "SR0724"


# -- folders that are not as they were built -----------------------------------------------------


def copied(folder: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(folder, tmp_path / "copy"))


def edit(folder: Path, change: Callable[[dict[str, Any]], Any]) -> None:
    """A manifest that was changed on purpose: its hash fits."""
    path = folder / "manifest.json"
    manifest = json.loads(path.read_text(encoding="utf-8"))
    change(manifest)
    path.write_bytes(with_digest(json.dumps(manifest).encode()))


def spoiled() -> dict[str, tuple[str, Callable[[Path], Any]]]:
    return {
        "no manifest": ("SR0720", lambda at: (at / "manifest.json").unlink()),
        "no JSON": ("SR0720", lambda at: (at / "manifest.json").write_text("{")),
        "another document": ("SR0720", lambda at: (at / "manifest.json").write_text("{}")),
        "a field less": ("SR0720", lambda at: edit(at, lambda m: m["entries"][0].pop("inputs"))),
        "an unknown type": ("SR0720", lambda at: edit(at, unknown_type)),
        "an unknown role": ("SR0720", lambda at: edit(at, unknown_role)),
        "a slot of nobody": ("SR0720", lambda at: edit(at, unknown_slot)),
        "an array less": ("SR0720", lambda at: edit(at, lambda m: m["entries"][0]["inputs"].pop())),
        "a word of nobody": ("SR0720", lambda at: edit(at, unknown_word)),
        "a later version": ("SR0721", lambda at: edit(at, lambda m: m.update(schema_version=4))),
        "a changed file": ("SR0722", lambda at: (at / "wgsl/levels_primal.wgsl").write_text("")),
        "a missing file": ("SR0722", lambda at: (at / "wgsl/levels_primal.wgsl").unlink()),
    }


def unknown_type(manifest: dict[str, Any]) -> None:
    manifest["entries"][0]["inputs"][0]["type"] = "Sphere"


def unknown_role(manifest: dict[str, Any]) -> None:
    dispatch = manifest["entries"][0]["targets"]["wgsl"]["programs"][0]
    dispatch["resources"][0]["role"] = "guess"


def unknown_word(manifest: dict[str, Any]) -> None:
    run = next(c for c in manifest["entries"][0]["targets"]["wgsl"]["primal"]["commands"]
               if c["do"] == "run")  # fmt: skip
    run["words"][-1] = {"uniform": "nobody", "index": 0}


def unknown_slot(manifest: dict[str, Any]) -> None:
    dispatch = manifest["entries"][0]["targets"]["wgsl"]["programs"][0]
    dispatch["resources"][0]["slot"] = 1 << 70


@pytest.mark.parametrize("name", spoiled())
def test_a_folder_that_was_spoiled_is_refused(name: str, output: Output, tmp_path: Path) -> None:
    code, spoil = spoiled()[name]
    folder = copied(output.folder, tmp_path)
    spoil(folder)
    with pytest.raises(sad.Error) as caught:
        sad.load(folder)
    assert caught.value.code == code


# -- without the compiler ------------------------------------------------------------------------

WITHOUT_SLANG = """
import sys
sys.modules["slangpy"] = None
import numpy as np
import shaderad as sad
with sad.open_device("wgpu"):
    loaded = sad.load(sys.argv[1])
    out, pullback = sad.vjp(loaded.levels, np.array([0.3, 0.6]), dim=2)
    print(out.numpy().tolist(), pullback(np.ones(2))[0].numpy().tolist())
# What lowers kernels and traces graphs takes as long to import as a device to open.
assert not {"shaderad.lower.kernels", "shaderad.calls.graphs"} & {*sys.modules}
"""


def test_wgpu_needs_no_slang(output: Output, tmp_path: Path) -> None:
    """A `slangpy` that cannot be imported shadows the real one, in the child process too."""
    (tmp_path / "slangpy.py").write_text("raise ImportError('not here')\n", encoding="utf-8")
    path = os.pathsep.join([str(tmp_path), os.environ.get("PYTHONPATH", "")])
    environment = {**os.environ, "PYTHONPATH": path, "SHADERAD_CACHE": str(tmp_path / "cache")}
    done = subprocess.run(
        [sys.executable, "-c", WITHOUT_SLANG, str(output.folder)],
        env=environment, capture_output=True, text=True, timeout=120, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert done.stdout.split() == ["[0.25,", "0.625]", "[0.0,", "0.0]"]


def test_a_library_of_another_version_is_used_from_the_folder(
    output: Output, tmp_path: Path
) -> None:
    folder = copied(output.folder, tmp_path)
    module = folder / "shaderad" / "rounding.slang"
    module.write_text(module.read_text(encoding="utf-8") + "\n// another\n", encoding="utf-8")
    import hashlib

    digest = hashlib.sha256(module.read_bytes()).hexdigest()
    edit(folder, lambda m: m["files"].update({"shaderad/rounding.slang": digest}))
    loaded = sad.load(folder)
    with sad.open_device("slangpy"):
        found = loaded.levels([0.3], dim=1).numpy()
    np.testing.assert_allclose(found, [0.25])
