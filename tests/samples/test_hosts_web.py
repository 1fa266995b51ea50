"""The web page in Chromium: its loader runs kernels and plans as the Python API does."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import shaderad as sad
from tests.samples import browser, host_case, host_graphs, host_kernels
from tests.samples.host_folder import HOSTS

pytestmark = [pytest.mark.gpu, browser.needed, pytest.mark.slow]

TOLERANCE = 1e-5
"""Of the largest number: float32 sums, grouped otherwise than on wgpu's device."""
CALLS_PAGE = '<!doctype html><pre></pre><script type="module" src="main.js"></script>'
CALLS_SCRIPT = """
import { load } from "./shaderad.js";

const build = await load(".");
const taken = ({ type, shape, words }) => build.array(Uint32Array.from(words), type, shape);
const all = (given) => Object.fromEntries(Object.entries(given).map(([k, v]) => [k, taken(v)]));
const words = async ([name, one]) => [name, [...new Uint32Array(await build.read(one))]];

async function prepared({ graph, mode, arrays, carries, times }) {
  const made = await build.graph(graph).prepared(mode, arrays.map(taken), carries);
  for (let k = 0; k < times; k++) made.run();
  return { ...made.outputs };
}

async function run(call) {
  const { graph, mode, arrays, kernel, inputs, cotangents, uniforms, dim, shapes } = call;
  if (call.times) return prepared(call);
  if (graph) return { ...await build.graph(graph).run(mode, arrays.map(taken)) };
  const made = await build.kernel(kernel);
  const numbers = Object.entries(uniforms).map(([k, v]) => [k, Uint32Array.from(v)]);
  const how = { dim, shapes, uniforms: Object.fromEntries(numbers) };
  const results = await made.primal(all(inputs), how);
  const found = await made.backward(all(inputs), all(cotangents), { ...how, results });
  return { ...results, ...found };
}

const found = [];
for (const call of await (await fetch("calls.json")).json()) {
  try {
    found.push(Object.fromEntries(await Promise.all(Object.entries(await run(call)).map(words))));
  } catch (failure) {
    found.push(failure.message);
  }
}
document.querySelector("pre").textContent = JSON.stringify(found);
"""


def taken(arrays: Mapping[str, tuple[str, Any, Any]]) -> dict[str, Any]:
    return {name: given(*one) for name, one in arrays.items()}


def given(type_name: str, array: Any, shape: tuple[int, ...] | None = None) -> dict[str, Any]:
    """An argument as the page takes it."""
    array = np.asarray(array)
    array = array.astype(np.float32 if array.dtype.kind == "f" else np.int32)
    words = np.ravel(array).view(np.uint32).tolist()
    return {"type": type_name, "shape": array.shape if shape is None else shape, "words": words}


def results_of(build: Path, calls: list[Any], folder: Path) -> list[Any]:
    """What the loader finds for each call."""
    page = folder / "page"
    page.mkdir()
    for path in build.iterdir():
        (page / path.name).symlink_to(path)
    (page / "shaderad.js").symlink_to(HOSTS / "web" / "shaderad.js")
    (page / "main.js").write_text(CALLS_SCRIPT)
    (page / "calls.html").write_text(CALLS_PAGE)
    (page / "calls.json").write_text(json.dumps(calls))
    return json.loads(browser.shown(page, "calls.html"))


def check_alike(found: Any, wanted: Mapping[str, Any]) -> None:
    """Compares by name, or by position where a plan's outputs have none."""
    assert not isinstance(found, str), found
    assert found.keys() == wanted.keys()
    for name, words in found.items():
        other = np.ravel(wanted[name])
        one = np.array(words, np.uint32).view(np.float32 if other.dtype.kind == "f" else np.int32)
        largest = np.max(np.abs(other), initial=0.0)
        np.testing.assert_allclose(one, other, rtol=TOLERANCE, atol=TOLERANCE * largest)


def test_its_gradients_are_those_of_the_python_api(hosts_folder: Path, tmp_path: Path) -> None:
    (tmp_path / "hosts").mkdir()
    (tmp_path / "hosts" / "web").symlink_to(HOSTS / "web")
    (tmp_path / "hosts" / "out").symlink_to(hosts_folder)
    shown = browser.shown(tmp_path / "hosts", "web/index.html")
    assert shown.startswith("PASS\n")
    assert len(shown.splitlines()) == 11


def test_it_trains_a_texture(hosts_folder: Path, tmp_path: Path) -> None:
    (tmp_path / "web").symlink_to(HOSTS / "web")
    (tmp_path / "out").symlink_to(hosts_folder)
    shown = browser.shown(tmp_path, "web/texture.html", script="texture.js")
    first, *_, last = [float(line.split()[-1]) for line in shown.splitlines()]
    assert last < first / 100


def test_a_folder_without_a_build_is_one_sentence(tmp_path: Path) -> None:
    shown = browser.shown(HOSTS, "web/index.html?out=../nowhere")
    assert shown == "FAIL\ncannot read ../nowhere/mesh/manifest.json: File not found"


def test_a_browser_without_webgpu_is_one_sentence(hosts_folder: Path, tmp_path: Path) -> None:
    (tmp_path / "web").symlink_to(HOSTS / "web")
    (tmp_path / "out").symlink_to(hosts_folder)
    flags = ("--disable-features=WebGPU", "--disable-gpu")
    shown = browser.shown(tmp_path, "web/index.html", flags)
    assert shown == "FAIL\nthis browser gives no WebGPU adapter"


def plan_calls(name: str, taken: list[Any]) -> Iterator[tuple[Any, list[Any]]]:
    """Calls of the plans of a graph, and what its source says to each."""
    for mode, arrays, wanted in host_case.plan_calls(name, taken):
        spelled = [given("int" if one.dtype.kind == "i" else "float", one) for one in arrays]
        yield {"graph": name, "mode": mode, "arrays": spelled}, wanted


def test_plans_with_every_command_give_the_gradients_of_their_source(
    wgpu_features: frozenset[str], tmp_path: Path
) -> None:
    build = tmp_path / "graphs"
    sad.build(host_graphs.__file__, build, targets="wgsl", validate=False)
    with sad.open_device("wgpu") as device:
        pairs = [pair for call in host_case.graph_arguments() for pair in plan_calls(*call)]
    device.close()
    manifest = json.loads((build / "manifest.json").read_text(encoding="utf-8"))
    plans = [graph["targets"]["wgsl"] for graph in manifest["entries"]]
    commands = {name for one in plans for mode in ("primal", "backward")
                for name in commands_of(one[mode]["commands"])}  # fmt: skip
    assert commands == {"run", "copy", "fill", "repeat", "while"}
    found = results_of(build, [call for call, _ in pairs], tmp_path)
    for one, (_, wanted) in zip(found, pairs, strict=True):
        check_alike(one, {str(k): array for k, array in enumerate(wanted)})


def test_a_prepared_graph_runs_again_with_what_it_carries(
    wgpu_features: frozenset[str], tmp_path: Path
) -> None:
    build, times = tmp_path / "graphs", 3
    sad.build(host_graphs.__file__, build, targets="wgsl", validate=False)
    x, y = host_case.floats(7), host_case.floats(7, 1)[:, 0]
    pair, gain = [given("float", x), given("float", y)], [given("float", x), given("float", 0.5)]
    prepared = {"mode": "primal", "carries": {}, "times": times}
    calls = [
        {**prepared, "graph": "repeated", "arrays": pair, "carries": {0: 0, 1: 1}},
        {**prepared, "graph": "called", "arrays": gain},
        {**prepared, "graph": "called", "arrays": gain, "carries": {0: 1}},
        {**prepared, "graph": "swapped", "arrays": pair, "carries": {0: 0, 1: 1}},
        {**prepared, "graph": "halved", "arrays": gain[:1]},
        {**prepared, "graph": "halved", "arrays": [given("float", x, (9,))]},
    ]
    found, again, *refused = results_of(build, calls, tmp_path)
    with sad.open_device("wgpu") as device:
        carried = (sad.array(x), sad.array(y))
        for _ in range(times):
            carried = host_graphs.repeated(*carried)
        check_alike(found, {str(k): one.numpy() for k, one in enumerate(carried)})
        outputs = host_graphs.called(x, 0.5)
        check_alike(again, {str(k): one.numpy() for k, one in enumerate(outputs)})
    device.close()
    assert refused == [
        "output 1 has 12 bytes, not 28",
        "output 0 is an input itself: it cannot be carried",
        "halved looks when a loop is over: it cannot be prepared",
        "7 elements have no shape (9)",
    ]


def commands_of(commands: list[Any]) -> Iterator[str]:
    for one in commands:
        yield one["do"]
        yield from commands_of(one.get("body", []))


def test_kernels_with_every_role_and_word_are_served(
    wgpu_features: frozenset[str], tmp_path: Path
) -> None:
    """The second call meets an index out of range, of which the third knows nothing."""
    build = tmp_path / "kernels"
    sad.build(host_kernels.__file__, build, targets="wgsl", space=1, validate=False)
    results, gradients = host_case.found_by_python()
    uniforms = {n: one.view(np.uint32).tolist() for n, one in host_case.UNIFORMS.items()}
    ones, targets = given("float", np.ones(4)), given("int", np.arange(4))
    shuffled = {"kernel": "shuffled", "inputs": {"x": ones, "target": targets}, "uniforms": {},
                "cotangents": {"y": ones}, "dim": [4]}  # fmt: skip
    calls = [
        {
            "kernel": "refracted",
            "inputs": taken(host_case.INPUTS),
            "cotangents": taken(host_case.COTANGENTS),
            "dim": host_case.DIM,
            "shapes": host_case.SHAPES,
            "uniforms": uniforms,
        },
        {**shuffled, "shapes": {}, "inputs": {"x": ones, "target": given("int", np.arange(1, 5))}},
        {**shuffled, "shapes": {}},
        {**shuffled, "shapes": {"y": [3]}},
        {**shuffled, "shapes": {}, "cotangents": {"y": given("float", np.ones(3))}},
        {
            "kernel": "powered",
            "inputs": {"x": ones},
            "cotangents": {"y": ones},
            "dim": [4],
            "uniforms": {"count": [2]},
            "shapes": {},
        },
    ]
    first, second, third, short, few, fourth = results_of(build, calls, tmp_path)
    check_alike(first, {**results, **gradients})
    assert re.fullmatch(r"host_kernels.py:\d+: bounds of y: 4 of 4", second)
    assert short == "y was built for the shape of dim, (4), not (3)"
    assert few == "y cotangent has 12 bytes, not 16"
    assert fourth.startswith("powered was built without backward: ")
    check_alike(third, {"y": np.ones(4, np.float32), "x": np.full(4, 2.0, np.float32)})
