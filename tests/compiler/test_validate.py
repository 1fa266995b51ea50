"""Validators that accept, refuse, are missing, too old, or break: which of it fails a build."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from shaderad.compiler import validate as validators
from shaderad.compiler.artifact import Code
from shaderad.compiler.validate import Judgement, Status, validate, validator_names

SPIRV = Code("spirv", b"\x03\x02\x23\x07")

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="tools are shell scripts here")


@pytest.fixture
def tools(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The only folder in which tools are looked for."""
    monkeypatch.setattr(sys, "executable", str(tmp_path / "python"))
    monkeypatch.setenv("PATH", str(tmp_path))
    return tmp_path


def judgement_of(tools: Path, name: str, script: str, code: Code) -> Judgement:
    """What is said of `code` where the tool `name` runs `script`."""
    tool = tools / name
    tool.write_text(f"#!/bin/sh\n{script}\n", encoding="utf-8")
    tool.chmod(0o755)
    found = validate(code, "main")
    assert found is not None
    assert (found.validator, found.path) == (name, str(tool))
    return found


def test_a_tool_that_ends_with_zero_accepts(tools: Path) -> None:
    assert judgement_of(tools, "spirv-val", "exit 0", SPIRV).status is Status.ACCEPTED


def test_a_refusal_carries_the_tools_words_without_our_folder(tools: Path) -> None:
    script = 'for last; do :; done; echo "$last:3: bad operand"; exit 1'
    found = judgement_of(tools, "spirv-val", script, SPIRV)
    assert (found.status, found.reason) == (Status.REFUSED, "code.spv:3: bad operand")


def test_a_silent_refusal_is_one(tools: Path) -> None:
    found = judgement_of(tools, "spirv-val", "exit 3", SPIRV)
    assert (found.status, found.reason) == (Status.REFUSED, "exit code 3")


def test_a_missing_tool_refuses_nothing_and_says_how_to_get_it(tools: Path) -> None:
    del tools
    found = validate(SPIRV, "main")
    assert found is not None
    assert (found.status, found.reason, found.path) == (Status.UNAVAILABLE, "not found", "")
    assert found.remedy.startswith("pip install")


def test_a_tool_from_before_slang_refuses_nothing(tools: Path) -> None:
    script = "echo 'error: Invalid source language operand: 11' >&2; exit 1"
    found = judgement_of(tools, "spirv-val", script, SPIRV)
    assert (found.status, found.reason) == (Status.UNAVAILABLE, "too old")
    assert found.remedy


def test_a_tool_that_dies_refuses_nothing(tools: Path) -> None:
    found = judgement_of(tools, "spirv-val", "kill -SEGV $$", SPIRV)
    assert (found.status, found.reason) == (Status.UNAVAILABLE, "died of SIGSEGV")


def test_a_tool_that_hangs_refuses_nothing(tools: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(validators, "TIMEOUT_SECONDS", 0.1)
    found = judgement_of(tools, "spirv-val", "exec /bin/sleep 20", SPIRV)
    assert found.status is Status.UNAVAILABLE
    assert "no answer" in found.reason


def test_a_tool_that_cannot_start_refuses_nothing(tools: Path) -> None:
    (tools / "spirv-val").write_bytes(b"\x7fELF nothing that runs")
    (tools / "spirv-val").chmod(0o755)
    found = validate(SPIRV, "main")
    assert found is not None
    assert found.status is Status.UNAVAILABLE


def test_a_tool_is_not_asked_about_names_it_cannot_know(tools: Path) -> None:
    code = Code("hlsl", b"double d = asdouble(a, b);")
    found = judgement_of(tools, "glslangValidator", "exit 1", code)
    assert (found.status, found.reason) == (Status.UNAVAILABLE, "it does not know `asdouble`")


def test_the_entry_point_is_named_to_tools_that_want_it(tools: Path) -> None:
    script = 'case " $* " in *" -e main "*) exit 0;; esac; exit 1'
    found = judgement_of(tools, "glslangValidator", script, Code("hlsl", b""))
    assert found.status is Status.ACCEPTED


def test_text_that_no_external_tool_reads_is_not_judged(tools: Path) -> None:
    del tools
    assert validate(Code("metal", b""), "main") is None


def dxc_says(tools: Path, script: str, hlsl: bytes) -> Judgement:
    """What is said of `hlsl` where dxc runs `script`."""
    tool = tools / "dxc"
    tool.write_text(f"#!/bin/sh\n{script}\n", encoding="utf-8")
    tool.chmod(0o755)
    found = validate(Code("hlsl", hlsl), "main", "dxc")
    assert found is not None
    return found


def test_dxc_is_asked_only_where_it_is_found(tools: Path) -> None:
    assert validator_names("hlsl") == ("glslangValidator",)
    assert dxc_says(tools, "exit 0", b"").status is Status.ACCEPTED
    assert validator_names("hlsl") == ("glslangValidator", "dxc")
    assert validator_names("spirv") == ("spirv-val",)
    assert validator_names("wgsl") == ("naga",)
    assert validator_names("metal") == ()
    assert validator_names("cuda") == ()


def test_dxc_is_told_the_profile_the_entry_point_and_whether_there_are_halves(tools: Path) -> None:
    script = """for last; do :; done; test -f "$last" || exit 9
    case " $* " in *" -enable-16bit-types "*) halves=1;; *) halves=0;; esac
    case " $* " in *" -E main "*" -T cs_6_2 "*) echo "halves: $halves"; exit 1;; esac; exit 2"""
    assert dxc_says(tools, script, b"float x;").reason == "halves: 0"
    assert dxc_says(tools, script, b"half3 x; half y;").reason == "halves: 1"


def test_what_dxc_refuses_is_refused_in_its_words(tools: Path) -> None:
    said = dxc_says(tools, "echo 'code.hlsl:3:1: error: no such type' >&2; exit 1", b"tloat x;")
    assert (said.status, said.reason) == (Status.REFUSED, "code.hlsl:3:1: error: no such type")
