"""Nests fold across waves in which all lanes take part, so their CUDA code has no ballots.

Slang writes a ballot before each wave operation without a mask. In the kernels of users some lanes
may be elsewhere, so those keep their ballots.
"""

from __future__ import annotations

import re
from typing import Any

import numpy as np

import shaderad as sad
from shaderad.compiler.compile import begin_compilations
from shaderad.device.devices import Device
from shaderad.runtime.routes import FORMAT_BY_API
from tests.conformance.compile_only import DEVICES, Compiling

BALLOT = re.compile(r"__ballot_sync|__activemask|_getActiveMask|_getConvergedMask")
PRELUDE_END = b"#endif\n"


def code_of(runtime: Compiling) -> dict[str, str]:
    """The CUDA code of each program, without Slang's prelude."""
    programs = list(runtime.programs.values())
    codes = begin_compilations(programs, FORMAT_BY_API["cuda"])
    texts = (code.result().content.rpartition(PRELUDE_END)[2].decode() for code in codes)
    return {f"{k} {p.name}": text for k, (p, text) in enumerate(zip(programs, texts, strict=True))}


def nests(x: Any, k: Any) -> Any:
    rows = x.reshape(100, 1000)
    return (
        sad.cumsum(k), sad.cumsum(x), sad.sum(x), sad.softmax(rows, axis=1),
        sad.argmax(rows, axis=1), sad.sort(x), sad.cumsum(rows, axis=1),
    )  # fmt: skip


def squares(w: Any, x: Any) -> Any:
    return sad.sum((x @ w) ** 2)


@sad.kernel
def shared_weight(i: sad.Index, w: sad.In[float], x: sad.In[float], y: sad.Out[float]):
    y[i] = w[0] * x[i]


def test_nests_ask_for_no_active_lanes() -> None:
    runtime = Compiling(DEVICES["cuda"])
    floats = np.zeros(100_000, np.float32)
    with Device(runtime):
        sad.graph(nests)(floats, np.zeros(100_000, np.int32))
        sad.grad(sad.graph(squares))(np.zeros((64, 3), np.float32), floats[:64_000].reshape(-1, 64))
    code = code_of(runtime)
    names = {name.split()[1] for name in code}
    assert {"input_scan_primal", "sums_primal", "sorted_by_digit_primal"} <= names
    assert any("__shfl_sync" in text for text in code.values())
    assert any("_waveSum" in text for text in code.values())
    assert [name for name, text in code.items() if BALLOT.search(text)] == []


def test_kernels_of_users_do() -> None:
    runtime = Compiling(DEVICES["cuda"])
    floats = np.zeros(1000, np.float32)
    with Device(runtime):
        _, pullback = sad.vjp(shared_weight, floats[:1], floats, dim=1000)
        pullback(floats)
    assert any(BALLOT.search(text) for text in code_of(runtime).values())
