"""Vetting in the child: what naga takes, refuses and gets wrong; and the shortcut into cffi."""

from __future__ import annotations

import re
import struct
from dataclasses import replace
from pathlib import Path
from typing import Any

import cffi
import pytest

from shaderad.compiler import validate as validators
from shaderad.compiler.artifact import Code, Program
from shaderad.compiler.cache import Cache
from shaderad.compiler.child import ChildDied, ChildTimedOut
from shaderad.compiler.compile import compile_program
from shaderad.compiler.validate import VettingDevice, vet
from shaderad.runtime.spirv import leaves_loop_from_switch, with_pointers_in_place
from shaderad.runtime.wgpu_adapters import read_types_quickly

FAULTS = Path(__file__).parents[1] / "compiler_faults"


def code_of(file: str, entry: str, target: str) -> Code:
    program = Program(entry, (FAULTS / f"{file}.slang").read_text(), (1, 1, 1), ())
    return compile_program(program, target, cache=Cache(None))


@pytest.fixture(scope="module")
def device() -> VettingDevice:
    import wgpu

    info = wgpu.gpu.request_adapter_sync().info
    return VettingDevice(
        adapter=info["device"],
        api=info["backend_type"].lower(),
        driver=info["description"],
        features=(),
        limits={},
        version=wgpu.__version__,
    )


@pytest.mark.gpu
@pytest.mark.parametrize("target", ["spirv", "wgsl"])
def test_good_code_is_accepted(target: str, device: VettingDevice) -> None:
    code = code_of("loop_left_from_switch", "mended", target)
    assert vet(code, "mended", device, cache=Cache(None)).reason == ""
    assert vet(code, "mended", device, cache=Cache(None)).is_accepted


@pytest.mark.gpu
def test_a_pointer_kept_from_a_loop_is_refused_and_one_made_again_is_not(
    device: VettingDevice,
) -> None:
    code = code_of("pointer_kept_from_loop", "fault", "spirv")
    verdict = vet(code, "fault", device, cache=Cache(None))
    assert not verdict.is_accepted
    assert "can't be stored in a local variable" in verdict.reason
    mended = replace(code, content=with_pointers_in_place(code.content))
    assert vet(mended, "fault", device, cache=Cache(None)).is_accepted


@pytest.mark.gpu
def test_an_infinite_literal_is_refused_and_an_infinite_word_is_not(device: VettingDevice) -> None:
    verdict = vet(code_of("infinite_literal", "fault", "spirv"), "fault", device, cache=Cache(None))
    assert not verdict.is_accepted
    assert "Float literal is infinite" in verdict.reason
    mended = code_of("infinite_literal", "mended", "spirv")
    assert vet(mended, "mended", device, cache=Cache(None)).is_accepted


@pytest.mark.gpu
def test_a_loop_that_naga_would_never_leave_is_refused_as_spirv_only(
    device: VettingDevice,
) -> None:
    verdict = vet(
        code_of("loop_left_from_switch", "fault", "spirv"), "fault", device, cache=Cache(None)
    )
    assert not verdict.is_accepted
    assert "left from inside a switch" in verdict.reason
    text = code_of("loop_left_from_switch", "fault", "wgsl")
    assert vet(text, "fault", device, cache=Cache(None)).is_accepted


@pytest.mark.gpu
def test_a_device_that_is_not_there_is_no_verdict_on_the_code(
    device: VettingDevice, tmp_path: Path
) -> None:
    code = code_of("infinite_literal", "mended", "wgsl")
    cache = Cache(tmp_path)
    verdict = vet(code, "mended", replace(device, driver="another"), cache=cache)
    assert not verdict.is_accepted
    assert "no adapter" in verdict.reason
    assert not (tmp_path / "entries").exists()


class Dying:
    """A child that answers each request as told, and counts them."""

    def __init__(self, answer: dict[str, Any] | Exception) -> None:
        self.answer = answer
        self.request_count = 0

    def __call__(self) -> Dying:
        return self

    def request(self, message: dict[str, Any], timeout: float) -> dict[str, Any]:
        assert message["kind"] == "vet"
        assert timeout > 0
        self.request_count += 1
        if isinstance(self.answer, Exception):
            raise self.answer
        return self.answer


PANIC = "noise\nthread '<unnamed>' panicked at naga/src/proc/emitter.rs:35:13:\nnot started!\nmore"


@pytest.mark.parametrize(
    ("answer", "is_accepted", "reason"),
    [
        ({}, True, ""),
        ({"refused": "bad"}, False, "bad"),
        (ChildDied("signal SIGABRT", PANIC), False, "emitter.rs:35:13: not started!"),
        (ChildDied("signal SIGSEGV", ""), False, "signal SIGSEGV"),
    ],
    ids=["accepted", "refused", "panic", "crash"],
)
def test_a_verdict_is_asked_for_once(
    answer: dict[str, Any] | Exception,
    is_accepted: bool,
    reason: str,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
) -> None:
    dying = Dying(answer)
    monkeypatch.setattr(validators, "vetter", dying)
    code = Code("spirv", b"words")
    device = VettingDevice("adapter", "vulkan", "driver 1", (), {}, "0.32")
    for _asked_then_remembered in range(2):
        verdict = vet(code, "main", device, cache=Cache(tmp_path))
        assert verdict.is_accepted is is_accepted
        assert verdict.reason.endswith(reason)
    assert dying.request_count == 1
    vet(code, "main", replace(device, driver="driver 2"), cache=Cache(tmp_path))
    assert dying.request_count == 2


@pytest.mark.parametrize(
    ("answer", "reason"),
    [
        (ChildTimedOut("naga", "used 60 s of processor time"), "naga, .* over 5 bytes of SPIR-V"),
        (ChildTimedOut("driver", "stood still for 120 s"), "the driver's compiler stood still"),
        (ChildDied("signal SIGKILL", ""), "killed over 5 bytes of SPIR-V .*SIGKILL.* memory"),
        (ChildDied("signal SIGABRT", "memory allocation of 9 bytes failed"), "memory ran out"),
        (ChildDied("signal SIGINT", ""), "SIGINT"),
        ({"failure": "no device"}, "no device"),
    ],
    ids=["naga hangs", "the driver hangs", "killed", "no memory", "interrupted", "no device"],
)
def test_no_answer_is_no_verdict(
    answer: dict[str, Any] | Exception,
    reason: str,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
) -> None:
    dying = Dying(answer)
    monkeypatch.setattr(validators, "vetter", dying)
    code = Code("spirv", b"words")
    device = VettingDevice("adapter", "vulkan", "driver 1", (), {}, "0.32")
    for asked_times in (1, 2):
        verdict = vet(code, "main", device, cache=Cache(tmp_path))
        assert not verdict.is_accepted
        assert not verdict.is_final
        assert re.search(reason, verdict.reason)
        assert dying.request_count == asked_times
    dying.answer = {}
    assert vet(code, "main", device, cache=Cache(tmp_path)).is_accepted


def test_only_a_loop_left_from_a_switch_is_found() -> None:
    assert leaves_loop_from_switch(code_of("loop_left_from_switch", "fault", "spirv").content)
    assert not leaves_loop_from_switch(code_of("loop_left_from_switch", "mended", "spirv").content)


@pytest.mark.parametrize(
    ("body", "is_found"),
    [
        ("for (int i = 0; i < n; i++) { if (o[i] > 9) break; o[i] = 1; }", False),
        ("for (int i = 0; i < n; i++) { switch (i) { case 1: o[1] = 2; break; } }", False),
        ("switch (n) { case 1: for (int i = 0; i < n; i++) o[i] = 3; break; }", False),
        ("for (int i = 0; i < n; i++) for (int k = 0; k < i; k++) { o[k] = 2; }", False),
        (
            "for (int i = 0; i < n; i++) for (int k = 0; k < i; k++)"
            " { if (o[k] > 1) continue; o[k] = 2; }",
            True,
        ),
    ],
)
def test_loops_and_switches_that_naga_reads_right_pass(body: str, is_found: bool) -> None:
    text = (
        "[[vk::binding(0, 0)]] RWStructuredBuffer<float> o;\n"
        '[shader("compute")] [numthreads(1, 1, 1)] void f() { int n = int(o[0]); ' + body + " }\n"
    )
    code = compile_program(Program("f", text, (1, 1, 1), ()), "spirv", cache=Cache(None))
    assert leaves_loop_from_switch(code.content) is is_found


def test_what_is_no_spirv_is_left_to_naga() -> None:
    for module in (b"", b"junk", struct.pack("<8I", 0x07230203, 0x10500, 0, 9, 0, 0, 0, 0)):
        assert not leaves_loop_from_switch(module)


@pytest.mark.gpu
def test_a_device_lost_to_earlier_code_is_no_verdict_on_the_next(
    device: VettingDevice, monkeypatch: pytest.MonkeyPatch
) -> None:
    import wgpu

    from shaderad.runtime import wgpu_adapters

    code = code_of("loop_left_from_switch", "mended", "spirv")
    request = {
        "format": "spirv", "content": code.content, "entry": "mended", "adapter": device.adapter,
        "api": device.api, "driver": device.driver, "features": [], "limits": {},
    }  # fmt: skip
    lost = wgpu.gpu.request_adapter_sync().request_device_sync()
    lost.destroy()
    kept = [lost]

    def device_of(*_key: Any) -> Any:
        if not kept:
            kept.append(wgpu.gpu.request_adapter_sync().request_device_sync())
        return kept[0]

    device_of.cache_clear = kept.clear  # type: ignore[attr-defined]
    monkeypatch.setattr(wgpu_adapters, "_vetting_device", device_of)
    assert wgpu_adapters.vet(request) == {}
    assert kept != [lost]


@pytest.mark.gpu
def test_memory_that_runs_out_is_no_verdict(
    device: VettingDevice, monkeypatch: pytest.MonkeyPatch
) -> None:
    import wgpu

    from shaderad.runtime import wgpu_adapters

    def full(device: object, code: Code) -> None:
        raise wgpu.GPUOutOfMemoryError(f"no room for {len(code.content)} bytes")

    monkeypatch.setattr(wgpu_adapters, "_vetting_device", lambda *key: None)
    monkeypatch.setattr(wgpu_adapters, "create_module", full)
    request = {
        "format": "spirv", "content": b"words", "entry": "main", "adapter": device.adapter,
        "api": device.api, "driver": device.driver, "features": [], "limits": {},
    }  # fmt: skip
    stages: list[str] = []
    assert wgpu_adapters.vet(request, stages.append) == {"failure": "no room for 5 bytes"}
    assert stages[-1] == "naga"


HEADER = "".join(f"typedef struct S{k} {{ int field{k}; }} S{k};" for k in range(400))
TYPES = ("S1 *", "S17[3]", "int(*)(S5 *, S399 const *)", "uint32_t []", "S2")


def read(is_quick: bool) -> tuple[list[str], int]:
    """The types by name, and the most typedefs that cffi passed to its parser for one."""
    ffi = cffi.FFI()
    ffi.cdef(HEADER)
    parser = vars(ffi)["_parser"]
    parse, counts = parser._parse, [0]

    def counted(source: str) -> object:
        counts.append(len(parser._declarations))
        return parse(source)

    type(parser)._parse, original = (lambda _, source: counted(source)), type(parser)._parse
    try:
        if is_quick:
            read_types_quickly(ffi)
            read_types_quickly(ffi)
        names = [repr(ffi.typeof(name)) for name in TYPES]
    finally:
        type(parser)._parse = original
    return names, max(counts)


def test_types_are_the_same_of_fewer_typedefs() -> None:
    expected, all_typedefs = read(is_quick=False)
    types, typedefs = read(is_quick=True)
    assert types == expected
    assert all_typedefs >= 400
    # Structs stay; of their typedefs a type mentions two at most.
    assert typedefs <= all_typedefs - 398


def test_what_wgpu_is_given_still_has_the_parts_that_are_relied_on() -> None:
    parser = vars(cffi.FFI())["_parser"]
    assert callable(parser._parse)
    assert isinstance(parser._declarations, dict)


def test_something_else_is_left_alone() -> None:
    read_types_quickly(object())
