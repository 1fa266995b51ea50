"""Adapters are chosen, opened and listed alike by all runtimes."""

from __future__ import annotations

import importlib
import subprocess
import sys

import pytest

from shaderad.diagnostics import DeviceError
from shaderad.diagnostics.errors import MissingPackageError
from shaderad.runtime import devices, open_runtime
from shaderad.runtime.capabilities import Kind
from shaderad.runtime.devices import RUNTIMES, DeviceInfo, choose
from tests.runtime.programs import SCALE_AND_ADD


def test_every_listed_device_can_be_opened_by_its_position() -> None:
    for info in devices():
        opened = open_runtime(info.runtime, adapter=info.index)
        assert opened.capabilities.adapter == info.adapter
        assert opened.capabilities.api == info.api
        opened.close()


def test_an_unknown_runtime_is_refused() -> None:
    with pytest.raises(DeviceError, match="opengl") as caught:
        open_runtime("opengl")
    assert caught.value.code == "SR0601"


def test_the_adapter_may_follow_the_name(runtime_name: str) -> None:
    with pytest.raises(DeviceError, match="voodoo") as caught:
        open_runtime(f"{runtime_name}:voodoo")
    assert caught.value.code == "SR0602"


def test_the_environment_chooses_where_the_caller_does_not(
    runtime_name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SHADERAD_DEVICE", f"{runtime_name}:0")
    opened = open_runtime()
    assert opened.capabilities.runtime == runtime_name
    opened.close()


def test_something_that_is_no_device_is_not_wrapped() -> None:
    with pytest.raises(DeviceError, match="`dict`") as caught:
        open_runtime(native={})
    assert caught.value.code == "SR0616"


def test_an_unknown_limit_is_refused(runtime_name: str) -> None:
    with pytest.raises(DeviceError, match="storage_buffer_limit") as caught:
        open_runtime(runtime_name, limits={"buffers": 8})
    assert caught.value.code == "SR0613"


@pytest.mark.parametrize("runtime", RUNTIMES)
def test_a_runtime_whose_package_is_missing_says_what_to_install(
    runtime: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in [name for name in sys.modules if name.startswith(f"shaderad.runtime.{runtime}")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, runtime, None)
    with pytest.raises(MissingPackageError, match=f"pip install {runtime}") as caught:
        open_runtime(runtime)
    assert caught.value.code == "SR0625"
    assert isinstance(caught.value, ImportError)
    assert runtime not in {info.runtime for info in devices()}


def test_importing_the_stage_loads_neither_library() -> None:
    program = "import sys, shaderad.runtime; print({'wgpu', 'slangpy'} & set(sys.modules))"
    finished = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    assert finished.stdout.strip() == "set()"


def device(index: int, adapter: str, kind: Kind, api: str = "vulkan") -> DeviceInfo:
    return DeviceInfo(
        runtime="wgpu", index=index, adapter=adapter, kind=kind, api=api, driver="1.2.3"
    )


FOUND = [
    device(0, "llvmpipe", "software"),
    device(1, "Iris", "integrated"),
    device(2, "Radeon", "discrete"),
    device(3, "GeForce", "discrete"),
    device(4, "GeForce", "unknown", "cuda"),
]


@pytest.mark.parametrize(
    ("wanted", "index"),
    [(None, 2), ("", 2), (0, 0), ("1", 1), ("geforce", 3), ("cuda", 4), ("LLVM", 0)],
)
def test_a_position_a_part_of_the_name_or_the_best_is_chosen(
    wanted: str | int | None, index: int
) -> None:
    assert choose("wgpu", FOUND, wanted).index == index


@pytest.mark.parametrize(("rank", "index"), [(None, 2), ("0", 2), ("1", 3), ("2", 2), ("7", 3)])
def test_processes_of_a_machine_share_its_best_adapters(
    rank: str | None, index: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("LOCAL_RANK", raising=False)
    if rank is not None:
        monkeypatch.setenv("LOCAL_RANK", rank)
    assert choose("wgpu", FOUND, "auto").index == index


def test_adapters_are_shared_within_one_api(monkeypatch: pytest.MonkeyPatch) -> None:
    twice = [device(0, "H100", "unknown"), device(1, "H100", "unknown", "cuda")]
    monkeypatch.setenv("LOCAL_RANK", "1")
    assert choose("slangpy", twice, "auto").index == 0


def test_a_rank_that_is_no_number_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LOCAL_RANK", "first")
    with pytest.raises(DeviceError, match="LOCAL_RANK") as caught:
        choose("wgpu", FOUND, "auto")
    assert caught.value.code == "SR0638"


@pytest.mark.parametrize("wanted", [9, "9", "voodoo"])
def test_what_is_not_there_is_refused_with_the_list_of_what_is(wanted: str | int) -> None:
    with pytest.raises(DeviceError, match="3: GeForce") as caught:
        choose("wgpu", FOUND, wanted)
    assert caught.value.code == "SR0602"


def test_a_machine_without_adapters_is_told_so() -> None:
    with pytest.raises(DeviceError, match="no adapter at all"):
        choose("slangpy", [], None)


# The package's own name `devices` is the function.
devices_module = importlib.import_module("shaderad.runtime.devices")


class FakeModule:
    """A runtime with some adapters, which opens the best one as its name."""

    def __init__(self, name: str, adapters: list[DeviceInfo]) -> None:
        self._name, self._adapters = name, adapters

    def list_devices(self) -> list[DeviceInfo]:
        return self._adapters

    def open_device(self, wanted: str | int | None, limits: object) -> str:
        return f"{self._name}: {choose(self._name, self._adapters, wanted).adapter}"


LLVMPIPE, RADEON = FOUND[0], FOUND[2]
CUDA = device(1, "H100", "unknown", "cuda")


@pytest.mark.parametrize(
    ("by_wgpu", "by_slangpy", "opened"),
    [
        ([], [CUDA], "slangpy: H100"),
        ([LLVMPIPE], [LLVMPIPE, CUDA], "slangpy: H100"),
        ([LLVMPIPE, RADEON], [LLVMPIPE, RADEON, CUDA], "wgpu: Radeon"),
        ([LLVMPIPE], [], "wgpu: llvmpipe"),
    ],
)
def test_cuda_is_used_where_vulkan_has_no_gpu(
    by_wgpu: list[DeviceInfo],
    by_slangpy: list[DeviceInfo],
    opened: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    modules = {"wgpu": FakeModule("wgpu", by_wgpu), "slangpy": FakeModule("slangpy", by_slangpy)}
    monkeypatch.delenv("SHADERAD_DEVICE", raising=False)
    monkeypatch.setattr(devices_module, "runtime_module", modules.__getitem__)
    monkeypatch.setattr(devices_module, "has_nvidia_driver", lambda: True)
    assert devices_module.open_runtime() == opened


def test_without_nvidias_driver_no_second_library_is_asked(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    modules = {"wgpu": FakeModule("wgpu", [LLVMPIPE])}
    monkeypatch.delenv("SHADERAD_DEVICE", raising=False)
    monkeypatch.setattr(devices_module, "runtime_module", modules.__getitem__)
    monkeypatch.setattr(devices_module, "has_nvidia_driver", lambda: False)
    assert devices_module.open_runtime() == "wgpu: llvmpipe"


@pytest.mark.parametrize(
    ("words", "part"),
    [
        ("error[E00100]: failed to load downstream compiler 'nvrtc'", "NVRTC"),
        ("Failed to locate CUDA headers (cuda_fp16.h) required for half", "cuda_fp16.h"),
    ],
)
def test_a_missing_part_of_cuda_is_named(words: str, part: str) -> None:
    slangpy_runtime = pytest.importorskip("shaderad.runtime.slangpy_runtime")
    failure = slangpy_runtime._not_compiled(SCALE_AND_ADD, words)
    assert failure.code == "SR0637"
    assert part in failure.message
