"""Validators beside the compiler: order of answers, and what cannot answer."""

from __future__ import annotations

import sys
import time

import pytest

from shaderad.bundle import judging
from shaderad.bundle.judging import Judges, Naga
from shaderad.bundle.programs import Dispatch
from shaderad.ir.nodes import NO_SPAN
from shaderad.lower.artifact import Code, Program
from shaderad.lower.bindings import Lowered, Mode
from shaderad.lower.cache import Cache
from shaderad.lower.validate import Judgement, Status

GOOD = Code("wgsl", b"@compute @workgroup_size(1) fn main() {}")


def dispatch(target: str, entry: str) -> Dispatch:
    program = Program(entry, "", (1, 1, 1), ())
    return Dispatch(Lowered(program, Mode.PRIMAL, (), ()), Code(target, entry.encode()), entry)


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
    judges = Judges(expects_wgsl=True, cache=Cache(None))
    judges.ask([dispatch("wgsl", "a"), dispatch("hlsl", "b"), dispatch("wgsl", "c")], NO_SPAN)
    answers = judges.answers()
    judges.close()
    assert [one.reason for one in answers] == ["a", "b", "c"]
