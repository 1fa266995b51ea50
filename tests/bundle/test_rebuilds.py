"""Builds after builds: what did not change is neither compiled nor judged again."""

from __future__ import annotations

import os
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

import shaderad as sad
from shaderad.bundle.write import validators as judging
from shaderad.bundle.write.stages import Built
from shaderad.compiler import compile as compiling
from shaderad.compiler import validate as validators
from shaderad.compiler.cache import Cache
from shaderad.compiler.child import Child
from shaderad.compiler.validate import Status
from tests.bundle.test_manifest import contents

TOOLS = {"spirv-val", "glslangValidator"}

TWO = """
import shaderad as sad


@sad.kernel
def double(i: sad.Index, x: sad.In[float], y: sad.Out[float]):
    y[i] = 2.0 * x[i]


@sad.kernel
def square(i: sad.Index, x: sad.In[float], y: sad.Out[float]):
    y[i] = x[i] * x[i]
"""


class Asked:
    """What child processes and validators were asked, instead of nobody's counting it."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.compiled: list[str] = []
        self.judged: list[str] = []
        request, run = Child.request, validators.subprocess.run

        def counted(child: Child, message: dict[str, Any], timeout: float) -> dict[str, Any]:
            kind, entry = message["kind"], message.get("entry", "")
            (self.judged if kind == "vet" else self.compiled).append(entry or kind)
            return request(child, message, timeout)

        def counted_run(command: tuple[str, ...], **options: Any) -> Any:
            self.judged.append(Path(command[0]).name)
            return run(command, **options)

        monkeypatch.setattr(Child, "request", counted)
        monkeypatch.setattr(validators.subprocess, "run", counted_run)

    def forget(self) -> None:
        self.compiled.clear()
        self.judged.clear()


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Asked:
    """Counts from an empty cache on."""
    cache = Cache(tmp_path / "cache")
    for module in (compiling, validators, judging):
        monkeypatch.setattr(module, "default_cache", lambda: cache)
    return Asked(monkeypatch)


@pytest.fixture
def source(tmp_path: Path) -> Path:
    path = tmp_path / "two.py"
    path.write_text(TWO, encoding="utf-8")
    return path


def build(source: Path, out: str = "out") -> Built:
    return sad.build(source, source.parent / out)


def test_an_unchanged_rebuild_asks_nobody_and_gives_the_same(source: Path, asked: Asked) -> None:
    first = build(source)
    assert {"double_primal", "double_bwd", "square_primal", "square_bwd"} < set(asked.compiled)
    written = contents(first.folder)
    asked.forget()
    again = build(source)
    assert asked.compiled == asked.judged == []
    assert again.judgements == first.judgements
    assert contents(again.folder) == written


def test_only_the_kernel_that_changed_is_compiled_and_judged(source: Path, asked: Asked) -> None:
    before = build(source).judgements
    asked.forget()
    source.write_text(TWO.replace("2.0", "3.0"), encoding="utf-8")
    after = build(source).judgements
    assert Counter(asked.compiled) == {"double_primal": 3, "double_bwd": 3}
    asked_of_tools = Counter(one for one in asked.judged if one in TOOLS)
    assert set(asked_of_tools.values()) <= {2}
    assert set(asked.judged) - TOOLS <= {"double_primal", "double_bwd", "nothing"}
    assert [j.validator for j in before] == [j.validator for j in after]


def test_code_that_moved_in_its_file_is_not_compiled_again(source: Path, asked: Asked) -> None:
    build(source)
    asked.forget()
    source.write_text("# a comment\n\n\n" + TWO, encoding="utf-8")
    built = build(source)
    assert asked.compiled == asked.judged == []
    assert built.kernels[0].span.line == 9


def test_what_a_validator_could_not_say_is_asked_again(
    source: Path, asked: Asked, monkeypatch: pytest.MonkeyPatch
) -> None:
    missing = judging.Judgement("judge", Status.UNAVAILABLE, "not found")
    monkeypatch.setattr(judging, "validate", lambda *question: missing)
    built = build(source)
    assert missing in built.judgements
    monkeypatch.undo()
    assert missing not in build(source).judgements


def test_another_version_of_a_validator_is_asked_again(
    source: Path, asked: Asked, monkeypatch: pytest.MonkeyPatch
) -> None:
    build(source)
    asked.forget()
    monkeypatch.setattr(judging, "tool_identity", lambda *tool: "judge 2")
    monkeypatch.setattr(judging, "validate", lambda *question: judged.append(question))
    judged: list[Any] = []
    build(source)
    assert len(judged) == 8
    assert asked.compiled == []


IMPORTS = """
import sys
sys.argv = ["shaderad", "build", "two.py", "-o", "out"]
from shaderad.cli import app
app(standalone_mode=False)
print(*sorted(sys.modules))
"""


def test_a_rebuild_of_kernels_imports_no_runtime_and_nothing_of_graphs(source: Path) -> None:
    """Nearly all of its time goes into imports."""
    for _ in range(2):
        done = subprocess.run(
            [sys.executable, "-c", IMPORTS], cwd=source.parent,
            env={**os.environ, "SHADERAD_CACHE": str(source.parent / "cache")},
            stdout=subprocess.PIPE, text=True, check=True, timeout=300,
        )  # fmt: skip
    loaded = set(done.stdout.splitlines()[-1].split())
    assert "shaderad.bundle.write.stages" in loaded
    heavy = {"wgpu", "slangpy", "rich", "shaderad.plan.planning", "shaderad.calls.graphs",
             "shaderad.bundle.write.graph_manifest", "shaderad.rules.arrays"}  # fmt: skip
    assert not heavy & loaded
