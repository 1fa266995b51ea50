"""A program and a device -> the code for the device, and the reason for its choice.

wgpu reads SPIR-V and WGSL through naga, which may refuse correct code, end the process, or never
return. Invariant: code reaches the naga of this process, or slangpy's in-process compiler, only
after the child process has compiled it without a crash. Verdicts are cached by content, together
with the code rewritten for naga.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from shaderad.compiler.artifact import Code, Program
from shaderad.compiler.compile import compile_program
from shaderad.compiler.validate import VettingDevice, prepare_to_vet, vet
from shaderad.diagnostics import Error, error
from shaderad.runtime.capabilities import Capabilities
from shaderad.runtime.naga import layout_of

FORMAT_BY_API = {"vulkan": "spirv", "d3d12": "hlsl", "metal": "metal", "cuda": "cuda"}
"""The formats that slangpy's in-process compiler writes."""


@dataclass(frozen=True, slots=True)
class Route:
    """The form of code in which a program reached the device, and the reason."""

    program: str
    target: str
    """`spirv`, `wgsl`, or `slang` if the runtime compiles the text itself."""
    reason: str


def choose_code(
    program: Program, capabilities: Capabilities, device: VettingDevice
) -> tuple[Code, Route]:
    """The first of the formats of a wgpu device that compiles and that naga accepts.

    Raises:
        CompileError: SR0612, if naga refuses all; SR0639, if wgpu creates no pipeline from code
            that naga reads; SR0623, if naga gave no answer; an error of the compiler, if Slang
            refuses the program.
    """
    reasons: list[str] = []
    is_final, is_read = True, False
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
        verdict = vet(code, program.name, device, layout_of(program, code_format, device))
        if verdict.is_accepted:
            code = replace(code, content=verdict.content)
            return code, Route(program.name, code_format, "; ".join(reasons) or "first choice")
        reasons.append(f"{code_format}: {verdict.reason}")
        is_final = is_final and verdict.is_final
        is_read = is_read or verdict.is_read
    refusal = "SR0639" if is_read else "SR0612"
    raise error(
        refusal if is_final else "SR0623",
        program=program.name,
        adapter=capabilities.adapter,
        reason="\n".join(reasons),
    )


def check_compiles(program: Program, capabilities: Capabilities) -> tuple[Code, Route]:
    """Compiles `program` in the child process, where a crash of the compiler does no harm.

    Raises:
        CompileError: The compiler refuses the program or crashes.
    """
    code_format = FORMAT_BY_API[capabilities.api]
    code = compile_program(program, code_format, library=program.library)
    return code, Route(program.name, "slang", "slangpy compiles the text itself")
