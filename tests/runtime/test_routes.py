"""Which code of a program reaches wgpu, judged with made-up verdicts."""

from __future__ import annotations

from dataclasses import replace

import pytest

from shaderad.compiler.artifact import Code
from shaderad.compiler.validate import PipelineLayout, Verdict, VettingDevice
from shaderad.diagnostics import CompileError
from shaderad.runtime import routes
from shaderad.runtime.naga import IMMEDIATES_LIMIT, READABLE_BY_NAGA, layout_of
from tests.runtime.programs import SCALE_AND_ADD, UNDEFINED_NAME
from tests.runtime.test_guard import CAPABILITIES

DEVICE = VettingDevice(
    adapter="a test", api="none", driver="0", features=(), limits={}, version="0"
)


def judge(monkeypatch: pytest.MonkeyPatch, *accepted: str) -> list[Code]:
    """Makes the child accept only targets of `accepted`; returns what it is shown."""
    shown: list[Code] = []

    def vet(code: Code, entry: str, device: VettingDevice, layout: PipelineLayout) -> Verdict:
        assert (entry, device) == ("scale_and_add", DEVICE)
        assert layout == layout_of(SCALE_AND_ADD, code.format, DEVICE)
        shown.append(code)
        if code.format in accepted:
            return Verdict(True, content=b"mended " + code.format.encode())
        return Verdict(False, "signal SIGABRT")

    monkeypatch.setattr(routes, "vet", vet)
    return shown


def test_spirv_comes_first(monkeypatch: pytest.MonkeyPatch) -> None:
    shown = judge(monkeypatch, "spirv", "wgsl")
    code, route = routes.choose_code(SCALE_AND_ADD, CAPABILITIES, DEVICE)
    assert [code.format, route.target] == ["spirv", "spirv"]
    assert code.content == b"mended spirv"
    assert len(shown) == 1


@pytest.mark.parametrize(("limit", "has_immediates"), [(16, True), (15, False)])
def test_words_are_immediates_where_there_is_room(limit: int, has_immediates: bool) -> None:
    device = replace(DEVICE, limits={IMMEDIATES_LIMIT: limit})
    built = replace(SCALE_AND_ADD, code=Code("spirv", b""))
    for program, code_format, is_free in (
        (SCALE_AND_ADD, "spirv", True),
        (SCALE_AND_ADD, "wgsl", False),
        (built, "spirv", False),
    ):
        layout = layout_of(program, code_format, device)
        sizes = (16, 0) if has_immediates and is_free else (0, 16)
        assert (layout.immediate_bytes, layout.words_bytes) == sizes
        slots = [entry["binding"] for entry in layout.entries]
        bound = [b.slot for b in program.bindings if layout.words_bytes or b.slot != 0]
        assert slots == bound


def test_what_kills_the_child_as_spirv_is_tried_as_wgsl(monkeypatch: pytest.MonkeyPatch) -> None:
    judge(monkeypatch, "wgsl")
    code, route = routes.choose_code(SCALE_AND_ADD, CAPABILITIES, DEVICE)
    assert code.format == "wgsl"
    assert route.reason == "spirv: signal SIGABRT"


def test_both_reasons_are_told_where_neither_is_accepted(monkeypatch: pytest.MonkeyPatch) -> None:
    judge(monkeypatch)
    with pytest.raises(CompileError) as caught:
        routes.choose_code(SCALE_AND_ADD, CAPABILITIES, DEVICE)
    assert caught.value.code == "SR0612"
    assert caught.value.note.splitlines() == ["spirv: signal SIGABRT", "wgsl: signal SIGABRT"]


def test_a_pipeline_that_wgpu_refuses_is_told_from_code_that_naga_refuses(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(routes, "vet", lambda *_: Verdict(False, "no such binding", is_read=True))
    with pytest.raises(CompileError) as caught:
        routes.choose_code(SCALE_AND_ADD, CAPABILITIES, DEVICE)
    assert caught.value.code == "SR0639"
    assert caught.value.note.splitlines() == ["spirv: no such binding", "wgsl: no such binding"]


def test_no_answer_is_told_from_a_refusal(monkeypatch: pytest.MonkeyPatch) -> None:
    reason = "naga used 60 s of processor time"
    monkeypatch.setattr(routes, "vet", lambda *_: Verdict(False, reason, is_final=False))
    with pytest.raises(CompileError) as caught:
        routes.choose_code(SCALE_AND_ADD, CAPABILITIES, DEVICE)
    assert caught.value.code == "SR0623"
    assert caught.value.note.splitlines() == [f"spirv: {reason}", f"wgsl: {reason}"]
    assert "sad.range" in str(caught.value)


def test_text_that_slang_refuses_is_not_tried_twice(monkeypatch: pytest.MonkeyPatch) -> None:
    shown = judge(monkeypatch, "spirv", "wgsl")
    with pytest.raises(CompileError) as caught:
        routes.choose_code(UNDEFINED_NAME, CAPABILITIES, DEVICE)
    assert caught.value.code == "SR0501"
    assert not shown


def test_only_the_directive_that_naga_does_not_know_is_taken_from_wgsl() -> None:
    text = b"enable f16;\nenable subgroups;\nfn f() {}\n"
    assert READABLE_BY_NAGA["wgsl"](text).content == b"enable f16;\n\nfn f() {}\n"
    assert READABLE_BY_NAGA["spirv"](text).content == text


@pytest.mark.parametrize(("api", "code_format"), routes.FORMAT_BY_API.items())
def test_slangpys_compiler_is_tried_first_in_the_format_of_the_api(
    api: str, code_format: str
) -> None:
    code, _ = routes.check_compiles(SCALE_AND_ADD, replace(CAPABILITIES, api=api))
    assert code.format == code_format
