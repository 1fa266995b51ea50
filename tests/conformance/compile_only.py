"""Every program of the catalogue -> the code that devices get which this machine lacks.

A `Compiling` runtime has the capabilities of such a device. It keeps every program that it is given
and dispatches none, so whatever the conformance tests would run there, all modes, passes and sorts
of sums of a parallel device, is lowered, and can be compiled.
"""

from __future__ import annotations

import shutil
from collections import Counter
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from functools import partial
from itertools import chain
from typing import Any
from unittest import mock

import pytest

from shaderad.compiler.artifact import Code, Program
from shaderad.compiler.child import PROCESSES
from shaderad.compiler.compile import begin_compilations
from shaderad.compiler.validate import Judgement, Status, validate
from shaderad.device.devices import Device
from shaderad.runtime import Capabilities
from shaderad.runtime.routes import FORMAT_BY_API
from tests.conformance import checks, nvrtc
from tests.conformance.cases import Tolerance
from tests.fake_runtime import CAPABILITIES, FakeBuffer, FakePipeline, FakeRuntime

_GPU = replace(
    CAPABILITIES,
    kind="discrete",
    storage_buffer_limit=30,
    workgroup_threads_limit=1024,
    group_bytes_limit=1 << 15,
)
DEVICES: dict[str, Capabilities] = {
    "cuda": replace(
        _GPU,
        api="cuda",
        features=frozenset({"float-atomics", "subgroups", "half", "double", "int64-atomics"}),
        subgroup_size=32,
    ),
    "d3d12": replace(
        _GPU,
        api="d3d12",
        features=frozenset({"subgroups", "half", "double"}),
        atomics="compare-exchange",
        subgroup_size=4,
    ),
    "metal": replace(
        _GPU,
        api="metal",
        features=frozenset({"float-atomics", "subgroups", "half"}),
        subgroup_size=4,
    ),
}
"""By API, what slangpy says of a common GPU."""

MODES = {"primal": checks.check_primal, "vjp": checks.check_vjp, "jvp": checks.check_jvp}
TOGETHER = 20
"""CUDA kernels in one text: nvcc needs 0.4 s for its own headers and Slang's prelude, and
more than in proportion for long texts."""

_PRELUDE_END = b"#endif\n"


class Compiling(FakeRuntime):
    """Keeps programs; memory is zero, whatever is dispatched."""

    def __init__(self, capabilities: Capabilities) -> None:
        super().__init__({})
        self.capabilities = capabilities
        self.programs: dict[tuple[str, str], Program] = {}

    def allocate(self, byte_count: int, *, zeroed: bool = True) -> FakeBuffer:
        del zeroed  # A loop of a graph that reads when to end ends at once.
        return super().allocate(byte_count)

    def pipeline(self, program: Program) -> FakePipeline:
        self.programs[program.name, program.slang] = program
        return super().pipeline(program)

    def record_dispatch(self, *_: Any) -> None: ...


def programs_of(api: str) -> list[Program]:
    """All that the conformance tests run on a device of `api`."""
    runtime = Compiling(DEVICES[api])
    with Device(runtime) as device, mock.patch.object(Tolerance, "check"):
        for mode, check in MODES.items():
            for name in checks.programs_with(mode):
                try:
                    check(name, device)
                except pytest.skip.Exception:
                    continue
    return list(runtime.programs.values())


@dataclass(frozen=True)
class Compiled:
    """All programs for one API: Slang wrote code of each."""

    api: str
    programs: Sequence[Program]
    judgements: Sequence[Judgement]
    """One a program, by the validator; empty if the format has none."""

    def refusals(self) -> list[str]:
        """The programs that the validator refuses, in its words."""
        pairs = zip(self.programs, self.judgements, strict=False)
        return [f"{p.name}: {j.reason}" for p, j in pairs if j.status is Status.REFUSED]

    @property
    def summary(self) -> str:
        """One line: how many programs, and what became of them."""
        start = f"{FORMAT_BY_API[self.api]}: Slang compiles {len(self.programs)} programs"
        if not self.judgements:
            return f"{start}, which no validator reads"
        counts = Counter(
            j.status.value + (f" ({j.reason})" if j.status is Status.UNAVAILABLE else "")
            for j in self.judgements
        )
        said = ", ".join(f"{count} {what}" for what, count in counts.most_common())
        return f"{start}; {self.judgements[0].validator}: {said}"


def compiled(api: str, every: int = 1) -> Compiled:
    """Compiles each `every`-th program of `api`, and asks the validator of its format.

    Raises:
        CompileError: Slang refuses one.
    """
    programs = programs_of(api)[::every]
    codes = [code.result() for code in begin_compilations(programs, FORMAT_BY_API[api])]
    judge = _cuda_judgements if api == "cuda" else _judgements
    return Compiled(api, programs, judge(programs, codes))


def _judgements(programs: Sequence[Program], codes: Sequence[Code]) -> list[Judgement]:
    with ThreadPoolExecutor(PROCESSES) as threads:
        judged = threads.map(validate, codes, [program.name for program in programs])
    return [judgement for judgement in judged if judgement is not None]


def _cuda_judgements(programs: Sequence[Program], codes: Sequence[Code]) -> list[Judgement]:
    judge = _by_nvcc if shutil.which("nvcc") else nvrtc.judged
    chunks = [codes[first : first + TOGETHER] for first in range(0, len(codes), TOGETHER)]
    with ThreadPoolExecutor(PROCESSES) as threads:
        return list(chain.from_iterable(threads.map(partial(_together, judge), chunks)))


def _together(judge: Callable[[Code], Judgement], codes: Sequence[Code]) -> list[Judgement]:
    """The judgement of all codes as one text; each by itself if that is not accepted."""
    judgement = judge(_joined(codes))
    if judgement.status is not Status.ACCEPTED and len(codes) > 1:
        return [judge(code) for code in codes]
    return [judgement] * len(codes)


def _joined(codes: Sequence[Code]) -> Code:
    """One CUDA text, with the prelude once and each kernel in a namespace of its own."""
    parts = [code.content.rpartition(_PRELUDE_END) for code in codes]
    assert len({prelude for prelude, _, _ in parts}) == 1
    bodies = [
        b"namespace k%d {\n%s}\n" % (number, body.replace(b'extern "C" ', b""))
        for number, (_, _, body) in enumerate(parts)
    ]
    return Code("cuda", parts[0][0] + _PRELUDE_END + b"".join(bodies))


def _by_nvcc(code: Code) -> Judgement:
    judgement = validate(code, "")
    assert judgement is not None
    return judgement
