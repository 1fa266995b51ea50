"""The report on this machine's devices: its page, from JSON alone, and one part of it."""

from __future__ import annotations

import base64
import json
import os
import subprocess
import sys
from pathlib import Path
from time import time
from typing import Any

import pytest

from scripts.gpu.page import page
from tests.samples.loading import ROOT

ONE_PIXEL = base64.b64decode(
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAQAAAC1HAwCAAAAC0lEQVR42mNkYAAAAAYAAjCB0C8AAAAASUVORK5CYII="
)


def outcome(name: str, status: str = "passed", detail: str = "", **facts: Any) -> dict[str, Any]:
    return {"name": name, "status": status, "detail": detail, "seconds": 1.0, "facts": facts}


def report(**parts: list[dict[str, Any]]) -> dict[str, Any]:
    device = {
        "id": "wgpu:0",
        "adapter": "A <GPU>",
        "kind": "discrete",
        "api": "vulkan",
        "driver": "",
    }
    return {
        "made": "today", "command": "scripts/run gpu", "seconds": 3, "system": "Linux",
        "versions": {"numpy": "2"}, "devices": [{**device, "parts": parts}], "machine": {},
    }  # fmt: skip


def test_a_fault_has_its_words_and_its_reproducer(tmp_path: Path) -> None:
    text = page(report(programs=[outcome("program 3", "failed", "off by <1>")]), tmp_path)
    assert "off by &lt;1&gt;" in text
    assert "SHADERAD_DEVICE=wgpu:0 python -m scripts.gpu.parts --only" in text
    assert "A &lt;GPU&gt;" in text


def test_ratios_above_the_limit_are_marked(tmp_path: Path) -> None:
    milliseconds = {"shaderad": 3.0, "by hand": 2.0, "jax": 4.0}
    ratios = {"by hand": 1.5, "jax": 0.75}
    measured = outcome("W1", milliseconds=milliseconds, ratios=ratios, size="9", dispatches=2)
    text = page(report(benchmarks=[measured]), tmp_path)
    assert '2.00 ms, <span class="slow">1.50x</span>' in text
    assert '4.00 ms, <span class="passed">0.75x</span>' in text


def test_the_ten_lowest_percents_are_marked(tmp_path: Path) -> None:
    def benchmark(percent: int) -> dict[str, Any]:
        times = {"milliseconds": {"shaderad": 1.0}, "size": "9"}
        return outcome(f"at {percent}", percent_of_copy=float(percent), percent_of_fma=1.0, **times)

    text = page(report(benchmarks=[benchmark(5 * k) for k in range(1, 13)]), tmp_path)
    assert text.count('class="slow"') == 10
    assert '<span class="slow">50 %, 1 %</span>' in text
    assert '<span class="passed">55 %, 1 %</span>' in text


def test_pictures_are_part_of_the_page(tmp_path: Path) -> None:
    (tmp_path / "cloth.png").write_bytes(ONE_PIXEL)
    text = page(report(samples=[outcome("cloth", picture="cloth.png", said="fine")]), tmp_path)
    assert base64.b64encode(ONE_PIXEL).decode() in text


def test_what_was_left_out_is_counted(tmp_path: Path) -> None:
    outcomes = [outcome("a"), outcome("b", "left out"), outcome("c", "refused", "no half")]
    text = page(report(conformance=outcomes), tmp_path)
    assert '<span class="left">1 of 3</span> <small>1 refused, 1 left out</small>' in text


@pytest.mark.gpu
def test_one_trial_runs_by_its_reproducer() -> None:
    command = (sys.executable, "-m", "scripts.gpu.parts", "--only", "open: sorts")
    environment = {**os.environ, "SHADERAD_DEVICE": "wgpu"}
    done = subprocess.run(
        command, cwd=ROOT, env=environment, check=True, capture_output=True, text=True
    )
    assert "passed" in done.stdout


@pytest.mark.gpu
def test_trials_are_logged_for_as_long_as_there_is_time(tmp_path: Path) -> None:
    log = tmp_path / "trials.jsonl"
    command = (sys.executable, "-m", "scripts.gpu.parts", "--log", log, "--end", f"{time() + 6}")
    environment = {**os.environ, "SHADERAD_DEVICE": "wgpu"}
    subprocess.run(command, cwd=ROOT, env=environment, check=True, capture_output=True)
    lines = [json.loads(line) for line in log.read_text().splitlines()]
    status = {line["name"]: line["status"] for line in lines if "status" in line}
    assert status["open: open"] == "passed"
    assert "left out" in status.values()
