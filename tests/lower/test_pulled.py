"""How many kernels still have their adjoints made by the compiler, and why."""

from __future__ import annotations

from collections import Counter

from benchmarks.slang_seconds import kernels
from shaderad.bundle.wanted_inputs import kernel_inputs
from shaderad.diagnostics import Error
from shaderad.lower.bindings import Mode, Variant
from shaderad.lower.kernels import lower_kernel

LEFT = {
    "too many states of loops": 1,
}
"""Reasons that conformance kernels still give, and how many do at most."""


def test_few_conformance_kernels_are_left_to_the_compiler() -> None:
    reasons: Counter[str] = Counter()
    total = 0
    for kernel in kernels():
        floats = frozenset(name for name, is_float in kernel_inputs(kernel).items() if is_float)
        outs = frozenset(b.name for b in kernel.buffers)
        variant = Variant(wanted=floats, launch_shaped=outs, storage_buffer_limit=1000)
        try:
            lowered = lower_kernel(kernel, Mode.BACKWARD, variant)
        except Error:
            continue
        total += 1
        reasons.update(one.not_pulled for one in lowered if one.not_pulled)
    assert total > 70
    assert reasons == {reason: count for reason, count in LEFT.items() if count}
