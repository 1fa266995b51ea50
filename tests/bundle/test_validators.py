"""Validators beside the compiler: order of answers, and what cannot answer."""

from __future__ import annotations

import os
import sys
import time
from pathlib import Path

import pytest

import shaderad as sad
from shaderad.bundle.write import validators as judging
from shaderad.bundle.write.programs import EntryPoint
from shaderad.bundle.write.validators import Naga, Validators
from shaderad.compiler.artifact import Code, Program
from shaderad.compiler.cache import Cache
from shaderad.compiler.validate import Judgement, Status
from shaderad.ir.nodes import NO_SPAN
from shaderad.lower.bindings import Lowered, Mode

GOOD = Code("wgsl", b"@compute @workgroup_size(1) fn main() {}")


def dispatch(target: str, entry: str) -> EntryPoint:
    program = Program(entry, "", (1, 1, 1), ())
    return EntryPoint(Lowered(program, Mode.PRIMAL, (), ()), Code(target, entry.encode()), entry)


def test_naga_accepts_or_refuses_with_its_reason() -> None:
    naga = Naga()
    assert naga(GOOD, "main").status is Status.ACCEPTED
    refused = naga(Code("wgsl", b"fn main() { let x: i32 = 1.5; }"), "main")
    assert refused.status is Status.REFUSED
    assert "1.5" in refused.reason
    naga.close()


@pytest.mark.skipif(
    sys.platform != "linux", reason="other systems have no Vulkan loader to mislead"
)
def test_without_a_device_naga_cannot_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("VK_DRIVER_FILES", "/nowhere")
    monkeypatch.setenv("VK_ICD_FILENAMES", "/nowhere")
    naga = Naga()
    found = naga(GOOD, "main")
    naga.close()
    assert found.status is Status.UNAVAILABLE
    assert found.reason


def test_answers_come_in_the_order_of_questions(monkeypatch: pytest.MonkeyPatch) -> None:
    def slowly(naga: Naga, code: Code, entry: str) -> Judgement:
        time.sleep(0.2)
        return Judgement("naga", Status.ACCEPTED, entry)

    monkeypatch.setattr(Naga, "__call__", slowly)
    at_once = lambda code, entry, name: Judgement(name, Status.ACCEPTED, entry)  # noqa: E731
    monkeypatch.setattr(judging, "validate", at_once)
    validators = Validators(["hlsl", "wgsl"], cache=Cache(None))
    points = [dispatch("wgsl", "a"), dispatch("hlsl", "b"), dispatch("wgsl", "c")]
    validators.ask(points, "any", NO_SPAN)
    answers = validators.answers()
    validators.close()
    assert [one.reason for one in answers] == ["a", "b", "c"]


REFUSES_PRODUCTS = r"""#!/bin/sh
# Refuses the first line that holds a product, as compilers name it: by its #line directives.
for last; do :; done
exec "{python}" - "$last" <<'END'
import re, sys
file, line = sys.argv[1], 0
for text in open(sys.argv[1]):
    directive = re.match(r'#line (\d+)(?: "(.*)")?', text)
    if directive:
        line, file = int(directive[1]) - 1, directive[2] or file
    elif "* -7.5f" in text or "-7.5f *" in text:
        print(file + ":" + str(line) + ":1: error: no products here")
        sys.exit(1)
    line += 1
END
"""

PRODUCT = """
import shaderad as sad


@sad.kernel
def scaled(i: sad.Index, x: sad.In[float], y: sad.Out[float]):
    a = x[i] + 1.0
    y[i] = a * -7.5
"""


@pytest.mark.skipif(sys.platform == "win32", reason="the tool is a shell script")
def test_what_is_refused_is_shown_at_its_python_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tool = tmp_path / "dxc"
    tool.write_text(REFUSES_PRODUCTS.replace("{python}", sys.executable), encoding="utf-8")
    tool.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}{os.pathsep}{os.environ['PATH']}")
    source = tmp_path / "model.py"
    source.write_text(PRODUCT, encoding="utf-8")
    with pytest.raises(sad.CompileError) as caught:
        sad.build(source, tmp_path / "out", targets="hlsl")
    assert caught.value.code == "SR0712"
    assert "dxc refuses `scaled_" in caught.value.message
    assert caught.value.span is not None
    assert caught.value.span.text().strip() == "y[i] = a * -7.5"
    assert not (tmp_path / "out").exists()
