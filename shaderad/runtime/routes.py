"""A program and a device -> the code for the device, and the reason for its choice.

wgpu reads SPIR-V and WGSL through naga, which may refuse correct code, end the process, or never
return. Invariant: code reaches the naga of this process, or slangpy's in-process compiler, only
after the child process has compiled it unharmed. Verdicts are cached by content.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from shaderad.compiler.artifact import Code, Program
from shaderad.compiler.compile import compile_program
from shaderad.compiler.validate import VettingDevice, prepare_to_vet, vet
from shaderad.diagnostics import Error, error
from shaderad.runtime.capabilities import Capabilities, uniform_bytes
from shaderad.runtime.spirv import (
    with_immediates,
    with_ordered_comparisons,
    with_pointers_in_place,
    with_texel_coordinates,
)

IMMEDIATES_LIMIT = "max-immediate-size"
"""The limit of wgpu-native for the bytes of immediates; absent where a device has none."""

FORMAT_BY_API = {"vulkan": "spirv", "d3d12": "hlsl", "metal": "metal", "cuda": "cuda"}
"""The formats that slangpy's in-process compiler writes."""


@dataclass(frozen=True, slots=True)
class Route:
    """The code that a program reached the device as, and why."""

    program: str
    target: str
    """`spirv`, `wgsl`, or `slang` if the runtime compiles the text itself."""
    reason: str


def choose_code(
    program: Program, capabilities: Capabilities, device: VettingDevice
) -> tuple[Code, Route]:
    """The first of the formats of a wgpu device that compiles and that naga accepts.

    Raises:
        CompileError: SR0612, if naga refuses all; SR0623, if it gave no answer; an error of the
            compiler, if Slang refuses the program.
    """
    reasons: list[str] = []
    is_final = True
    formats = capabilities.formats if program.code is None else (program.code.format,)
    for code_format in formats:
        try:
            code = program.code or compile_program(
                program, code_format, library=program.library, before=lambda: prepare_to_vet(device)
            )
        except Error as failure:
            # SPIR-V expresses every Slang program, so the first failure is the compiler's.
            if not reasons:
                raise
            reasons.append(f"{code_format}: {failure.message}")
            continue
        code = code_for(device, program, code)
        verdict = vet(code, program.name, device)
        if verdict.is_accepted:
            return code, Route(program.name, code_format, "; ".join(reasons) or "first choice")
        reasons.append(f"{code_format}: {verdict.reason}")
        is_final = is_final and verdict.is_final
    raise error(
        "SR0612" if is_final else "SR0623",
        program=program.name,
        adapter=capabilities.adapter,
        reason="\n".join(reasons),
    )


def code_for(device: VettingDevice, program: Program, code: Code) -> Code:
    """`code` as a wgpu device takes it."""
    code = readable_by_naga(code)
    if immediate_bytes_of(program, code.format, device):
        code = replace(code, content=with_immediates(code.content))
    return code


def immediate_bytes_of(program: Program, code_format: str, device: VettingDevice) -> int:
    """The bytes of immediates that hold the words of `program`; 0 where a constant buffer does.

    Code of a build keeps its constant buffer: its verdict is about that, and wgpu compares the size
    with what the manifest says.
    """
    if code_format != "spirv" or program.code is not None:
        return 0
    byte_count = uniform_bytes(program)
    return byte_count if byte_count <= device.limits.get(IMMEDIATES_LIMIT, 0) else 0


def readable_by_naga(code: Code) -> Code:
    """`code` without constructs that naga misreads or rejects although it supports them."""
    return replace(code, content=READABLE_BY_NAGA[code.format](code.content))


def _readable_spirv(content: bytes) -> bytes:
    return with_texel_coordinates(with_pointers_in_place(with_ordered_comparisons(content)))


def _readable_wgsl(content: bytes) -> bytes:
    return content.replace(b"enable subgroups;", b"").replace(b"enable subgroups_f16;", b"")


READABLE_BY_NAGA = {"spirv": _readable_spirv, "wgsl": _readable_wgsl}
"""The formats that naga reads, in the order of preference, each with its mending."""


def check_compiles(program: Program, capabilities: Capabilities) -> tuple[Code, Route]:
    """Compiles `program` in the child process, where a crash of the compiler does no harm.

    Raises:
        CompileError: The compiler refuses the program or crashes.
    """
    code_format = FORMAT_BY_API[capabilities.api]
    code = compile_program(program, code_format, library=program.library)
    return code, Route(program.name, "slang", "slangpy compiles the text itself")
