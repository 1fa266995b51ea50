"""Gradients of elements that all threads read, in Chromium: groups sum them, at barriers.

Chromium refuses barriers where it does not see itself that all threads of a group come to them.
"""

from __future__ import annotations

import json
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest

import shaderad as sad
from shaderad.ir.types import Access
from tests.lower import loop_cases, nested_cases, reported_cases, shared_cases
from tests.lower.reference import Case
from tests.samples import browser
from tests.samples.test_hosts_web import CALLS_PAGE, check_alike, given, results_of

COMPILED = """
const device = await (await navigator.gpu.requestAdapter()).requestDevice();
const refused = [];
for (const path of await (await fetch("paths.json")).json()) {
  const module = device.createShaderModule({ code: await (await fetch(path)).text() });
  const { messages } = await module.getCompilationInfo();
  refused.push(...messages.map(({ message }) => `${path}: ${message}`));
}
document.querySelector("pre").textContent = refused.join("\\n");
"""

pytestmark = [pytest.mark.gpu, browser.needed, pytest.mark.slow]


def called(name: str, case: Case) -> tuple[dict[str, Any], dict[str, Any]]:
    """A call of the page, and what the Python API says to it."""
    kernel = case.kernel.specialise({})
    out, pullback = sad.vjp(case.kernel, *case.args, **case.call)
    bar = np.linspace(0.5, 1.5, out.numpy().size, dtype=np.float32)
    found = pullback(bar)
    names = [p.name for p in case.kernel.signature.parameters]
    arguments = dict(zip(names, case.args, strict=False))
    result = next(b.name for b in kernel.buffers if b.access is not Access.IN)
    inputs = {
        b.name: given(
            str(b.type.element), arguments[b.name], arguments[b.name].shape[: b.type.rank]
        )
        for b in kernel.buffers
        if b.access is Access.IN
    }
    uniforms = {u.name: [int(arguments[u.name])] for u in kernel.uniforms}
    call = {
        "kernel": name,
        "inputs": inputs,
        "cotangents": {result: given("float", bar)},
        "uniforms": uniforms,
        "dim": [case.dim],
        "shapes": {n: list(shape) for n, shape in case.shapes.items()},
    }
    bars = dict(zip(arguments, found, strict=True))
    wanted = {n: bar.numpy() for n, bar in bars.items() if bar is not None}
    return call, {result: out.numpy(), **wanted}


def test_gradients_that_groups_sum_are_those_of_the_python_api(
    wgpu_features: frozenset[str], tmp_path: Path
) -> None:
    build = tmp_path / "kernels"
    sad.build(shared_cases.__file__, build, targets="wgsl", validate=False)
    for name in ("layer", "called", "summed", "chosen"):
        text = (build / "wgsl" / f"{name}_bwd.slang").read_text(encoding="utf-8")
        assert "addGroupGradient<" in text
    with sad.open_device("wgpu") as device:
        pairs = [called(n.rpartition("_")[0], case) for n, case in shared_cases.CASES.items()]
    device.close()
    for found, (_, wanted) in zip(
        results_of(build, [call for call, _ in pairs], tmp_path), pairs, strict=True
    ):
        check_alike(found, wanted)


@pytest.mark.parametrize("module", [loop_cases, nested_cases, reported_cases])
def test_chromium_sees_that_all_threads_come_to_the_barriers(
    module: ModuleType, tmp_path: Path
) -> None:
    assert module.__file__ is not None
    sad.build(module.__file__, tmp_path, targets="wgsl", validate=False)
    folder = tmp_path / "wgsl"
    texts = {path: path.read_text(encoding="utf-8") for path in folder.glob("*_bwd.slang")}
    summed = [path.with_suffix(".wgsl") for path, t in texts.items() if "addGroupGradient<" in t]
    assert summed
    (tmp_path / "paths.json").write_text(json.dumps([f"wgsl/{path.name}" for path in summed]))
    (tmp_path / "main.js").write_text(COMPILED)
    (tmp_path / "calls.html").write_text(CALLS_PAGE)
    assert browser.shown(tmp_path, "calls.html") == ""
