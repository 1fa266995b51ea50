"""Vetting in the child: what naga takes, refuses and gets wrong, and what is kept of it."""

from __future__ import annotations

import inspect
import re
import shutil
import struct
from collections.abc import Sequence
from dataclasses import asdict, replace
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from shaderad.compiler import own_sources
from shaderad.compiler import validate as validators
from shaderad.compiler.artifact import Code, Program
from shaderad.compiler.cache import Cache
from shaderad.compiler.child import ChildDied, ChildTimedOut
from shaderad.compiler.compile import compile_program
from shaderad.compiler.spirv import words_of
from shaderad.compiler.validate import PipelineLayout, Verdict, VettingDevice, vet
from shaderad.ir.dimensions import Dimension
from shaderad.runtime import wgpu_vetting
from shaderad.runtime.naga import IMMEDIATES_LIMIT, READABLE_BY_NAGA
from shaderad.runtime.naga import layout_of as declared
from shaderad.runtime.spirv import RewrittenCode, readable_spirv
from shaderad.runtime.wgpu_pipelines import create_module, create_pipeline
from tests.runtime.programs import SCALE_AND_ADD
from tests.runtime.texture_programs import loading, sampling

FAULTS = Path(__file__).parents[1] / "compiler_faults"
FORGETFUL = Cache(None)
BINDING = re.compile(r"vk::binding\((\d+), 0\)\]\] (\w+)")
KINDS = {
    "StructuredBuffer": {"type": "read-only-storage"},
    "RWStructuredBuffer": {"type": "storage"},
    "ConstantBuffer": {"type": "uniform", "has_dynamic_offset": True, "min_binding_size": 16},
}
NOTHING = PipelineLayout((), 0, 0, 0)


def layout_of(file: str) -> PipelineLayout:
    """The layout of a file of faults."""
    bindings = BINDING.findall((FAULTS / f"{file}.slang").read_text())
    entries = tuple({"binding": int(slot), "buffer": KINDS[kind]} for slot, kind in bindings)
    words_bytes = 16 if any(kind == "ConstantBuffer" for _, kind in bindings) else 0
    return PipelineLayout(entries, 0, 0, words_bytes)


def verdict_on(file: str, entry: str, target: str, device: VettingDevice) -> Verdict:
    return vet(code_of(file, entry, target), entry, device, layout_of(file), cache=FORGETFUL)


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
    verdict = verdict_on("loop_left_from_switch", "mended", target, device)
    assert verdict.reason == ""
    assert verdict.is_accepted
    assert verdict.content


@pytest.mark.gpu
def test_a_pointer_kept_from_a_loop_is_made_again(
    device: VettingDevice, monkeypatch: pytest.MonkeyPatch
) -> None:
    name = "pointer_kept_from_loop"
    assert verdict_on(name, "fault", "spirv", device).is_accepted
    as_it_is = {"spirv": lambda content, **_: RewrittenCode(content, leaves_loop_from_switch=False)}
    monkeypatch.setattr(wgpu_vetting, "READABLE_BY_NAGA", as_it_is)
    reply = wgpu_vetting.vet(request_of(code_of(name, "fault", "spirv"), "fault", device))
    assert "can't be stored in a local variable" in reply["refused"]


@pytest.mark.gpu
def test_an_infinite_literal_is_refused_and_an_infinite_word_is_not(device: VettingDevice) -> None:
    verdict = verdict_on("infinite_literal", "fault", "spirv", device)
    assert not verdict.is_accepted
    assert "Float literal is infinite" in verdict.reason
    assert verdict_on("infinite_literal", "mended", "spirv", device).is_accepted


@pytest.mark.gpu
def test_a_loop_that_naga_would_never_leave_is_refused_as_spirv_only(
    device: VettingDevice,
) -> None:
    verdict = verdict_on("loop_left_from_switch", "fault", "spirv", device)
    assert not verdict.is_accepted
    assert "left from inside a switch" in verdict.reason
    assert verdict_on("loop_left_from_switch", "fault", "wgsl", device).is_accepted


@pytest.mark.gpu
def test_a_device_that_is_not_there_is_no_verdict_on_the_code(
    device: VettingDevice, tmp_path: Path
) -> None:
    code = code_of("infinite_literal", "mended", "wgsl")
    cache, absent = Cache(tmp_path), replace(device, driver="another")
    verdict = vet(code, "mended", absent, layout_of("infinite_literal"), cache=cache)
    assert not verdict.is_accepted
    assert "no adapter" in verdict.reason
    assert not (tmp_path / "entries").exists()


@pytest.mark.gpu
def test_every_kind_of_resource_is_bound_where_a_pipeline_runs_ahead(device: VettingDevice) -> None:
    programs = [SCALE_AND_ADD, sampling(Dimension.PLANE, space=2), loading(Dimension.LAYERS)]
    for program in [*programs, *map(sampling, Dimension)]:
        compiled = compile_program(program, "spirv")
        for limit in (0, 128):
            layout = declared(program, "spirv", replace(device, limits={IMMEDIATES_LIMIT: limit}))
            features = ["immediates"] if layout.immediate_bytes else []
            request = request_of(compiled, program.name, device, features)
            limits = {IMMEDIATES_LIMIT: limit} if features else {}
            request |= {"layout": asdict(layout), "limits": limits}
            content = wgpu_vetting.vet(request)["content"]
            assert wgpu_vetting.run(request | {"content": content}, lambda stage: None) == {}


def request_of(
    code: Code, entry: str, device: VettingDevice, features: Sequence[str] = ()
) -> dict[str, Any]:
    """A request without a layout."""
    return {
        "format": code.format, "content": code.content, "entry": entry, "adapter": device.adapter,
        "api": device.api, "driver": device.driver, "features": list(features), "limits": {},
    }  # fmt: skip


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
        ({"content": b"mended"}, True, ""),
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
        verdict = vet(code, "main", device, NOTHING, cache=Cache(tmp_path))
        assert verdict.is_accepted is is_accepted
        assert verdict.reason.endswith(reason)
        assert verdict.content == (b"mended" if is_accepted else b"")
    assert dying.request_count == 1
    vet(code, "main", replace(device, driver="driver 2"), NOTHING, cache=Cache(tmp_path))
    assert dying.request_count == 2
    vet(code, "main", device, replace(NOTHING, immediate_bytes=16), cache=Cache(tmp_path))
    assert dying.request_count == 3


def test_a_changed_rewriter_misses_the_cache(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    answering, package = Dying({"content": b"mended"}), tmp_path / "package"
    monkeypatch.setattr(validators, "vetter", answering)
    monkeypatch.setattr(
        own_sources, "digest_of", partial(own_sources.digest_of.__wrapped__, package=package)
    )
    shutil.copytree(own_sources.PACKAGE, package, ignore=shutil.ignore_patterns("__pycache__"))
    device, cache = VettingDevice("adapter", "vulkan", "driver 1", (), {}, "0.32"), Cache(tmp_path)
    code = Code("spirv", b"words")
    for number, name in enumerate(own_sources.VETTING, 2):
        vet(code, "main", device, NOTHING, cache=cache)
        vet(code, "main", device, NOTHING, cache=cache)
        assert answering.request_count == number - 1
        with (package / name).open("a") as file:
            file.write("# changed")
        vet(code, "main", device, NOTHING, cache=cache)
        assert answering.request_count == number


def test_a_program_runs_ahead_once_on_a_machine(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    asked: list[str] = []
    answers = iter([ChildDied("signal SIGSEGV", ""), {"failure": "no device"}, {}])

    class Running:
        def request(self, message: dict[str, Any], timeout: float) -> dict[str, Any]:
            assert timeout > 0
            asked.append(message["kind"])
            answer = next(answers)
            if isinstance(answer, Exception):
                raise answer
            return answer

    monkeypatch.setattr(validators, "vetter", Running)
    monkeypatch.setattr(validators, "default_cache", lambda: Cache(tmp_path))
    device = VettingDevice("adapter", "vulkan", "driver 1", (), {}, "0.32")
    for count in (1, 2, 3, 3):
        validators.run_ahead(Code("spirv", b"words"), "main", device, NOTHING)
        assert asked == ["run"] * count


def test_the_key_has_every_file_whose_functions_a_verdict_depends_on() -> None:
    functions = (
        wgpu_vetting.vet,
        create_pipeline,
        create_module,
        words_of,
        *READABLE_BY_NAGA.values(),
    )
    files = {Path(inspect.getfile(one)).relative_to(own_sources.PACKAGE) for one in functions}
    assert files == set(map(Path, own_sources.VETTING))


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
        verdict = vet(code, "main", device, NOTHING, cache=Cache(tmp_path))
        assert not verdict.is_accepted
        assert not verdict.is_final
        assert re.search(reason, verdict.reason)
        assert dying.request_count == asked_times
    dying.answer = {}
    assert vet(code, "main", device, NOTHING, cache=Cache(tmp_path)).is_accepted


def leaves_loop(module: bytes) -> bool:
    return readable_spirv(module).leaves_loop_from_switch


def test_only_a_loop_left_from_a_switch_is_found() -> None:
    assert leaves_loop(code_of("loop_left_from_switch", "fault", "spirv").content)
    assert not leaves_loop(code_of("loop_left_from_switch", "mended", "spirv").content)


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
    assert leaves_loop(code.content) is is_found


def test_what_is_no_spirv_is_left_to_naga() -> None:
    for module in (b"", b"junk", struct.pack("<8I", 0x07230203, 0x10500, 0, 9, 0, 0, 0, 0)):
        assert not leaves_loop(module)


@pytest.mark.gpu
def test_a_device_lost_to_earlier_code_is_no_verdict_on_the_next(
    device: VettingDevice, monkeypatch: pytest.MonkeyPatch
) -> None:
    import wgpu

    code = code_of("loop_left_from_switch", "mended", "spirv")
    request = request_of(code, "mended", device)
    lost = wgpu.gpu.request_adapter_sync().request_device_sync()
    lost.destroy()
    kept = [lost]

    def device_of(*_key: Any) -> Any:
        if not kept:
            kept.append(wgpu.gpu.request_adapter_sync().request_device_sync())
        return kept[0]

    device_of.cache_clear = kept.clear  # type: ignore[attr-defined]
    monkeypatch.setattr(wgpu_vetting, "_vetting_device", device_of)
    assert wgpu_vetting.vet(request).keys() == {"content"}
    assert kept != [lost]


@pytest.mark.gpu
def test_memory_that_runs_out_is_no_verdict(
    device: VettingDevice, monkeypatch: pytest.MonkeyPatch
) -> None:
    import wgpu

    def full(device: object, code: Code) -> None:
        raise wgpu.GPUOutOfMemoryError(f"no room for {len(code.content)} bytes")

    monkeypatch.setattr(wgpu_vetting, "_vetting_device", lambda *key: None)
    monkeypatch.setattr(wgpu_vetting, "create_module", full)
    request = request_of(Code("spirv", b"words"), "main", device)
    stages: list[str] = []
    assert wgpu_vetting.vet(request, stages.append) == {"failure": "no room for 5 bytes"}
    assert stages[-1] == "naga"
