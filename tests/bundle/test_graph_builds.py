"""Builds of graphs: what they take, what they refuse, and that they are the same every time."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from html import escape
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import shaderad as sad
from shaderad.bundle.write.report import summary_lines
from tests.bundle.conftest import GRAPHS, TARGETS, Output
from tests.bundle.test_graphs import particles
from tests.bundle.test_loading import WITHOUT_SLANG, copied, edit

HEAD = """
from __future__ import annotations
import numpy as np
import shaderad as sad

weights = np.ones(3, np.float32)
"""


def source(tmp_path: Path, text: str) -> Path:
    path = tmp_path / "model.py"
    path.write_text(HEAD + text, encoding="utf-8")
    return path


REFUSED = {
    "no annotation": ("def f(x):\n    return x", "SR0730"),
    "no axes": ("def f(x: sad.Array[float]):\n    return x", "SR0730"),
    "a list of any length": ('def f(x: list[sad.Array[float, "n"]]):\n    return x', "SR0730"),
    "any number": ('def f(*x: sad.Array[float, "n"]):\n    return x', "SR0730"),
    "a size that is no name": ('def f(x: sad.Array[float, "2n"]):\n    return x', "SR0731"),
    "an array it captures": ("def f(x: sad.Array[float, 3]):\n    return x * weights", "SR0734"),
    "a text array": ("def f(x: sad.Array[float, 3]):\n    return x, f", "SR0735"),
    "sizes that differ": (
        'def f(x: sad.Array[float, "n"], y: sad.Array[float, "m"]):\n    return x + y',
        "SR0379",
    ),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_a_build_cannot_hold_is_refused(name: str, tmp_path: Path) -> None:
    text, code = REFUSED[name]
    path = source(tmp_path, f"@sad.graph\n{text}\n")
    with pytest.raises(sad.Error) as caught:
        sad.build(path, tmp_path / "out", targets="wgsl", validate=False)
    assert caught.value.code == code
    assert not (tmp_path / "out").exists()


def test_names_of_sizes_without_quotes_are_names(tmp_path: Path) -> None:
    text = (
        "@sad.graph\ndef f(x: tuple[sad.Array[float, n], sad.Array[float, n]]): return x[0] + x[1]"
    )
    sad.build(source(tmp_path, text), tmp_path / "out", targets="wgsl", validate=False)
    manifest = json.loads((tmp_path / "out/manifest.json").read_text(encoding="utf-8"))
    assert manifest["entries"][0]["sizes"] == ["n"]
    assert [one["name"] for one in manifest["entries"][0]["inputs"]] == ["x[0]", "x[1]"]


@pytest.mark.gpu
def test_numbers_among_results_are_those_of_the_source(tmp_path: Path, device: sad.Device) -> None:
    text = """
@sad.graph
def f(x: sad.Array[float, "n"]):
    return sad.sum(x), (1e999, -1e999, 3, 2**70, -0.5, 1e300, 2.0, True), None, np.float64(0.1)
"""
    sad.build(source(tmp_path, text), tmp_path / "out", targets=("spirv", "wgsl"), validate=False)
    total, numbers, nothing, tenth = sad.load(tmp_path / "out").f(np.float32([1, 2]))
    assert total.item() == 3.0
    expected = [np.inf, -np.inf, 3, 2**70, -0.5, 1e300, 2.0, True]
    assert [*map(repr, numbers)] == [*map(repr, expected)]
    assert (nothing, tenth) == (None, 0.1)


def test_what_has_no_derivative_is_built_without_and_says_why(tmp_path: Path) -> None:
    text = """
@sad.graph
def halves(x: sad.Array[float, "n"]):
    return sad.fori_loop(9, lambda k, c: sad.reverse(c) * 0.5, x, checkpoint="none")
"""
    path = source(tmp_path, text)
    built = sad.build(path, tmp_path / "out", targets="wgsl", validate=False, jvp=True)
    manifest = json.loads((tmp_path / "out/manifest.json").read_text(encoding="utf-8"))
    plans = manifest["entries"][0]["targets"]["wgsl"]
    assert "backward" not in plans
    assert plans["forward"]["commands"]
    assert plans["no_backward"]["code"].startswith("SR04")
    lines = [text for text, _ in summary_lines(built)]
    assert repr(built) == "\n".join(lines)
    assert built._repr_html_() == f"<pre>{escape(repr(built))}</pre>"
    assert lines[0] == "halves  primal, forward   wgsl"
    assert lines[1].startswith("        no backward: SR04")
    with pytest.raises(sad.DerivativeError) as caught:
        sad.build(path, tmp_path / "other", targets="wgsl", require_backward=True)
    assert caught.value.code == "SR0710"


def test_doubles_are_refused_where_the_target_has_none(tmp_path: Path) -> None:
    text = '@sad.graph\ndef f(x: sad.Array[sad.double, "n"]):\n    return x * x\n'
    with pytest.raises(sad.CompileError) as caught:
        sad.build(source(tmp_path, text), tmp_path / "out", targets="spirv,wgsl", validate=False)
    assert caught.value.code == "SR0711"


BUILD = "import sys, shaderad as sad; sad.build(*sys.argv[1:3], targets=sys.argv[3], jvp=True)"


def test_builds_in_different_folders_and_processes_are_equal(tmp_path: Path) -> None:
    text = GRAPHS.read_text(encoding="utf-8")
    wanted = text[: text.index("@sad.graph\ndef halved")]
    # The text of a function names where it lies in memory.
    wanted = wanted.replace('"m"]]):', '"m"]], turn=lambda x: sad.roll(x, -1)):')
    contents: list[dict[str, bytes]] = []
    for seed in ("1", "2"):
        folder = tmp_path / seed / seed
        folder.mkdir(parents=True)
        (folder / "model.py").write_text(wanted, encoding="utf-8")
        environment = {**os.environ, "PYTHONHASHSEED": seed}
        command = [sys.executable, "-c", BUILD, "model.py:moved", "out", "wgsl"]
        subprocess.run(command, cwd=folder, env=environment, timeout=300, check=True)
        out = folder / "out"
        files = [path for path in out.rglob("*") if path.is_file()]
        contents.append({path.relative_to(out).as_posix(): path.read_bytes() for path in files})
    assert contents[0] == contents[1]


@pytest.mark.gpu
def test_every_target_is_written_and_forward_mode_runs(tmp_path: Path, device: sad.Device) -> None:
    """Also of a kernel, whose forward mode `jvp=True` builds."""
    text = """
@sad.kernel
def square(i: sad.Index, x: sad.In[float], gain: float, y: sad.Out[float]):
    y[i] = gain * x[i] * x[i]

@sad.graph
def total(x: sad.Array[float, "n"], y: sad.Array[float, "n"]):
    return sad.sum(square(x, 2.0, dim=x.shape[0]) * y)
"""
    folder = tmp_path / "out"
    sad.build(source(tmp_path, text), folder, targets=TARGETS, jvp=True, validate=False)
    manifest = json.loads((folder / "manifest.json").read_text(encoding="utf-8"))
    assert set(manifest["entries"][0]["targets"]) == set(TARGETS)
    assert all((folder / one["file"]).is_file()
               for plans in manifest["entries"][0]["targets"].values()
               for one in plans["programs"])  # fmt: skip
    loaded = sad.load(folder)
    x, y, x_dot = np.array([1.0, 2.0]), np.array([3.0, -1.0]), np.array([0.5, 1.0])
    out, out_dot = sad.jvp(loaded.total, (x, y), (x_dot, None))
    np.testing.assert_allclose([out.item(), out_dot.item()], [-2.0, 2 * 3.0 - 8.0])
    _, squares_dot = sad.jvp(loaded.square, (x, 3.0), (x_dot, None), dim=2)
    np.testing.assert_allclose(squares_dot.numpy(), 6.0 * x * x_dot)
    device.synchronize()


@pytest.mark.gpu
def test_bounds_are_those_of_the_build_and_reports_name_the_source(
    tmp_path: Path, device: sad.Device
) -> None:
    text = """
@sad.kernel
def pick(i: sad.Index, x: sad.In[float], j: sad.In[int], y: sad.Out[float]):
    y[i] = x[j[i]]

@sad.graph
def picked(x: sad.Array[float, "n"], j: sad.Array[int, "m"]):
    return pick(x, j, dim=j.shape[0])
"""
    path = source(tmp_path, text)
    line = path.read_text(encoding="utf-8").splitlines().index("    y[i] = x[j[i]]") + 1
    x, j = np.array([1.0, 2.0]), np.array([1, 5])
    for bounds in ("raise", "ignore"):
        sad.build(path, tmp_path / bounds, targets="spirv", bounds=bounds, validate=False)
    out = sad.load(tmp_path / "raise").picked(x, j)
    with pytest.raises(sad.BoundsError, match=f"model.py as built:{line}") as caught:
        out.numpy()
    assert caught.value.code == "SR0660"
    np.testing.assert_array_equal(sad.load(tmp_path / "ignore").picked(x, j).numpy(), [2.0, 0.0])
    device.synchronize()


# -- what a loaded graph does not do -------------------------------------------------------------


def refusals() -> dict[str, tuple[str, Callable[[Any], Any]]]:
    x = np.ones(8, np.float32)
    pair = (x, np.zeros(1, np.int32))
    return {
        "another number of axes": ("SR0345", lambda on: on.scan_product(np.ones((2, 2)))),
        "another extent": ("SR0346", lambda on: on.straight(np.ones((3, 2)), np.ones((1, 2)))),
        "sizes that differ": ("SR0347", lambda on: on.joined(x, np.ones(3))),
        "an assumption": ("SR0732", lambda on: on.joined(x[:3], x[:3])),
        "another container": ("SR0333", lambda on: on.moved(x, [x, x, x])),
        "no argument": ("SR0364", lambda on: on.moved(x)),
        "an argument too many": ("SR0363", lambda on: on.scan_product(x, x)),
        "an unknown name": ("SR0365", lambda on: on.scan_product(y=x)),
        "a fixed parameter": ("SR0365", lambda on: on.layer(x, {}, 1.0, 2, order=2)),
        "an argument twice": ("SR0366", lambda on: on.scan_product(x, x=x)),
        "forward mode": ("SR0725", lambda on: sad.jvp(on.scan_product, (x,), (x,))),
        "second order": ("SR0733", lambda on: sad.hvp(on.scan_product, (x,), (x,))),
        "inside of a graph": ("SR0733", lambda on: sad.graph(lambda a: on.scan_product(a))(x)),
        "a gradient by keyword": ("SR0453", lambda on: sad.vjp(on.moved, x, pairs=pair)),
    }


@pytest.mark.gpu
@pytest.mark.parametrize("name", refusals())
def test_what_a_loaded_graph_does_not_do_is_refused(name: str, graph_output: Output) -> None:
    code, attempt = refusals()[name]
    with sad.open_device("wgpu"), pytest.raises(sad.Error) as caught:
        attempt(sad.load(graph_output.folder))
    assert caught.value.code == code


@pytest.mark.gpu
def test_arguments_without_floats_have_no_gradient(graph_output: Output) -> None:
    with sad.open_device("wgpu"):
        counted = sad.load(graph_output.folder).counted
        assert sad.vjp(counted, np.arange(3))[1]((1, 1)) == (None,)


@pytest.mark.gpu
def test_arrays_that_start_inside_of_their_buffers_are_taken(
    graph_output: Output, device: sad.Device
) -> None:
    loaded = sad.load(graph_output.folder)
    x = np.random.default_rng(0).normal(size=9).astype(np.float32)
    part = sad.array(x)[4:]
    np.testing.assert_allclose(loaded.joined(part, part).numpy(),
                               2 * np.concatenate([x[4:8], x[6:]]), rtol=1e-6)  # fmt: skip
    y, *_ = loaded.calls_a_kernel(part, sad.array(np.float32([1.0, 0.5]))[1])
    expected, *_ = loaded.calls_a_kernel(x[4:], 0.5)
    np.testing.assert_allclose(y.numpy(), expected.numpy(), rtol=1e-5)
    device.synchronize()


@pytest.mark.gpu
def test_loaded_graphs_are_steps_of_what_is_differentiated(
    graph_output: Output, device: sad.Device
) -> None:
    loaded = sad.load(graph_output.folder)

    def loss(x: Any) -> Any:
        return loaded.scan_product(x * 2.0) * 3.0

    x = np.array([0.5, 1.0, 0.25])
    gradient = sad.grad(loss)(x).numpy()
    # sum(cumprod(y) * y) with y = 2 x: y0^2 + y0 y1^2 + y0 y1 y2^2
    y0, y1, y2 = 2.0 * x
    wanted = [2 * y0 + y1**2 + y1 * y2**2, 2 * y0 * y1 + y0 * y2**2, 2 * y0 * y1 * y2]
    np.testing.assert_allclose(gradient, 6.0 * np.array(wanted), rtol=1e-5)
    (center, *_), pullback = sad.vjp(loaded.weighed, particles(np.random.default_rng(0), 4),
                                     np.ones((4, 4, 3)))  # fmt: skip
    assert pullback((np.ones_like(center.numpy()), None, None))[1].shape == (4, 4, 3)
    device.synchronize()


@pytest.mark.gpu
def test_one_schedule_serves_whichever_gradients_are_asked_for(
    graph_output: Output, device: sad.Device, monkeypatch: pytest.MonkeyPatch
) -> None:
    loaded, x = sad.load(graph_output.folder), np.float32([1.0, 2.0, 4.0, 8.0, 9.0])
    stage, staged = device.stages.begun, list[str]()
    monkeypatch.setattr(device.stages, "begun", lambda *a: staged.append(a[1]) or stage(*a))
    loaded.joined(x, x)
    both = [one.numpy() for one in sad.vjp(loaded.joined, x, x)[1](np.ones(7))]
    count = len(staged)
    assert count
    _, pullback = sad.vjp(lambda left: loaded.joined(left, x), x)
    np.testing.assert_array_equal(pullback(np.ones(7))[0].numpy(), both[0])
    _, pullback = sad.vjp(lambda right: loaded.joined(x, right), x)
    np.testing.assert_array_equal(pullback(np.ones(7))[0].numpy(), both[1])
    assert len(staged) == count


# -- folders that are not as they were built -----------------------------------------------------


def spoiled() -> dict[str, Callable[[dict[str, Any]], Any]]:
    def plan(manifest: dict[str, Any]) -> dict[str, Any]:
        graph = next(one for one in manifest["entries"] if one["name"] == "scan_product")
        return graph["targets"]["spirv"]["primal"]

    def program(manifest: dict[str, Any]) -> dict[str, Any]:
        return manifest["entries"][0]["targets"]["wgsl"]["programs"][0]

    def run(manifest: dict[str, Any]) -> dict[str, Any]:
        return next(one for one in plan(manifest)["commands"] if one["do"] == "run")

    def layer(manifest: dict[str, Any]) -> dict[str, Any]:
        return next(one for one in manifest["entries"] if one["name"] == "layer")

    return {
        "no such command": lambda m: run(m).update(do="jump"),
        "no such program": lambda m: run(m).update(program="nobody"),
        "no such buffer": lambda m: run(m)["bind"].update(x0_words=99),
        "no such resource": lambda m: run(m)["bind"].update(x9_words=0),
        "a slot of nobody": lambda m: program(m)["resources"][0].update(slot=-1),
        "words left out": lambda m: run(m)["words"].pop(),
        "no size": lambda m: run(m).update(groups="n +"),
        "an unknown size": lambda m: run(m).update(groups="k + 1"),
        "an unknown extent": lambda m: plan(m)["outputs"][0].update(shape=["k"]),
        "no such output": lambda m: m["entries"][-1]["result"].update(index=7),
        "an input twice": lambda m: m["entries"][0]["inputs"].append(m["entries"][0]["inputs"][0]),
        "no inputs of a plan": lambda m: plan(m)["inputs"].pop(),
        "a result too many": lambda m: plan(m)["outputs"].append(plan(m)["outputs"][0]),
        "a result that nothing writes": lambda m: plan(m)["commands"].clear(),
        "a later buffer aligned": lambda m: plan(m)["aligned_inputs"].append(1),
        "a size without end": lambda m: run(m).update(groups="(" * 5000),
        "a field less": lambda m: layer(m)["result"]["parts"][0]["parts"].pop(),
        "no such type": lambda m: m["entries"][0]["inputs"][0].update(type="Sphere"),
    }


@pytest.mark.parametrize("name", spoiled())
def test_a_plan_that_was_spoiled_is_refused(
    name: str, graph_output: Output, tmp_path: Path
) -> None:
    folder = copied(graph_output.folder, tmp_path)
    edit(folder, spoiled()[name])
    with pytest.raises(sad.CompileError) as caught:
        sad.load(folder)
    assert caught.value.code == "SR0720"


def test_a_program_that_was_changed_is_refused(graph_output: Output, tmp_path: Path) -> None:
    folder = copied(graph_output.folder, tmp_path)
    next((folder / "wgsl").glob("scan_product*.wgsl")).write_text("", encoding="utf-8")
    with pytest.raises(sad.CompileError) as caught:
        sad.load(folder)
    assert caught.value.code == "SR0722"


# -- without the compiler ------------------------------------------------------------------------

GRADIENT = (
    WITHOUT_SLANG[: WITHOUT_SLANG.index("    out, pullback")]
    + """
    x = np.array([2.0, 3.0])
    value, gradient = sad.value_and_grad(loaded.scan_product)(x)
    print(value.item(), gradient.numpy().tolist(), loaded.halved(x).numpy().tolist())
"""
)


@pytest.mark.gpu
def test_wgpu_needs_no_slang_for_graphs(graph_output: Output, tmp_path: Path) -> None:
    """A `slangpy` that cannot be imported shadows the real one, in the child process too."""
    (tmp_path / "slangpy.py").write_text("raise ImportError('not here')\n", encoding="utf-8")
    path = os.pathsep.join([str(tmp_path), os.environ.get("PYTHONPATH", "")])
    environment = {**os.environ, "PYTHONPATH": path, "SHADERAD_CACHE": str(tmp_path / "cache")}
    folder = Path(shutil.copytree(graph_output.folder, tmp_path / "elsewhere"))
    done = subprocess.run(
        [sys.executable, "-c", GRADIENT, str(folder)],
        env=environment, capture_output=True, text=True, timeout=120, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    # y0^2 + y0 y1^2, and its gradient (2 y0 + y1^2, 2 y0 y1); 5 is halved three times
    assert done.stdout.split("\n")[0] == "22.0 [13.0, 12.0] [0.375, 0.25]"
