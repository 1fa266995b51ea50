"""Processor seconds of Slang over every kernel of the conformance programs, in every mode.

    python benchmarks/slang_seconds.py

Nothing is cached; what starting the compiler and reading the library takes is part of it, once.
"""

from __future__ import annotations

import resource
import sys
from collections import Counter
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

from shaderad.bundle.write.command_options import kernel_inputs
from shaderad.compiler.cache import Cache
from shaderad.compiler.child import children
from shaderad.compiler.compile import compile_program
from shaderad.diagnostics import Error
from shaderad.ir.nodes import Kernel
from shaderad.lower.bindings import Mode, Variant
from shaderad.lower.kernels import lower_kernel
from tests.conformance.kernels import kernels

MODES = (Mode.PRIMAL, Mode.BACKWARD, Mode.FORWARD)


def compiled(kernel: Kernel, mode: Mode) -> tuple[int, int]:
    """Programs, and bytes of their SPIR-V."""
    floats = frozenset(name for name, is_float in kernel_inputs(kernel).items() if is_float)
    variant = Variant(
        wanted=floats if mode is not Mode.PRIMAL else frozenset(),
        launch_shaped=frozenset(b.name for b in kernel.buffers),
        storage_buffer_limit=1000,
    )
    codes = [
        compile_program(one.program, "spirv", cache=Cache(None))
        for one in lower_kernel(kernel, mode, variant)
    ]
    return len(codes), sum(len(code.content) for code in codes)


def main() -> None:
    counts: Counter[str] = Counter()
    for kernel in kernels():
        for mode in MODES:
            try:
                count, size = compiled(kernel, mode)
            except Error as refusal:
                counts[f"refused {refusal.code}"] += 1
            else:
                counts["programs"] += count
                counts["bytes of SPIR-V"] += size
    children().close()
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    print(*(f"{count:10,} {what}" for what, count in counts.items()), sep="\n")
    print(f"{used.ru_utime + used.ru_stime:10.1f} processor seconds")


if __name__ == "__main__":
    main()
