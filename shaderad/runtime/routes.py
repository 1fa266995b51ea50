"""A program and a device -> the code that reaches it, and why that way.

wgpu reads SPIR-V and WGSL through naga, which may refuse correct code, end the process, or never
return. Invariant: nothing reaches the host's own naga, and no text slangpy's in-process compiler,
before the child process has been through it unharmed. Verdicts are cached by content.
"""

from __future__ import annotations

from dataclasses import replace

from shaderad.diagnostics import Error, error
from shaderad.lower.artifact import Code, Program
from shaderad.lower.compile import VettingDevice, compile_program, prepare_to_vet, vet
from shaderad.runtime.protocol import Capabilities, Route
from shaderad.runtime.spirv_comparisons import with_ordered_comparisons
from shaderad.runtime.spirv_pointers import with_pointers_in_place

WGPU_TARGETS = ("spirv", "wgsl")
"""In the order they are tried."""

TARGET_BY_API = {"d3d12": "hlsl", "metal": "metal"}
"""What slangpy compiles to, where it is not SPIR-V; for CUDA, SPIR-V stands in."""


def choose_code(
    program: Program, capabilities: Capabilities, device: VettingDevice
) -> tuple[Code, Route]:
    """The first of SPIR-V and WGSL that compiles and that naga takes.

    Raises:
        CompileError: SR0612, where neither does; SR0623, where naga gave no answer; the first one's
            own error, where Slang refuses.
    """
    reasons: list[str] = []
    is_final = True
    for target in WGPU_TARGETS if program.code is None else (program.code.target,):
        try:
            code = program.code or compile_program(
                program, target, library=program.library, before=lambda: prepare_to_vet(device)
            )
        except Error as failure:
            # SPIR-V takes all that Slang does; that WGSL cannot express a program is no news.
            if not reasons:
                raise
            reasons.append(f"{target}: {failure.message}")
            continue
        code = readable_by_naga(code)
        verdict = vet(code, program.name, device)
        if verdict.is_accepted:
            return code, Route(program.name, target, "; ".join(reasons) or "first choice")
        reasons.append(f"{target}: {verdict.reason}")
        is_final = is_final and verdict.is_final
    raise error(
        "SR0612" if is_final else "SR0623",
        program=program.name,
        adapter=capabilities.adapter,
        reason="\n".join(reasons),
    )


def readable_by_naga(code: Code) -> Code:
    """`code` without what naga takes for something else, or does not know but does anyway."""
    if code.target == "spirv":
        content = with_pointers_in_place(with_ordered_comparisons(code.content))
        return replace(code, content=content)
    without = code.content.replace(b"enable subgroups;", b"").replace(b"enable subgroups_f16;", b"")
    return replace(code, content=without)


def check_compiles(program: Program, capabilities: Capabilities) -> tuple[Code, Route]:
    """Lets the child compile `program`, so that what crashes the compiler crashes it there.

    Raises:
        CompileError: What the child's compiler said.
    """
    target = TARGET_BY_API.get(capabilities.api, "spirv")
    code = compile_program(program, target, library=program.library)
    return code, Route(program.name, "slang", "slangpy compiles the text itself")
