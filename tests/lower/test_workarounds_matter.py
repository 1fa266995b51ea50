"""Without what we do against a fault of naga, the oracle finds the wrong number."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import shaderad as sad
from shaderad.compiler.artifact import Code, Program
from shaderad.compiler.validate import PipelineLayout, Verdict
from shaderad.lower import kernels
from shaderad.runtime import routes, spirv
from tests.agreement import close
from tests.oracle import oracle

pytestmark = pytest.mark.gpu


def compare_instead(monkeypatch: pytest.MonkeyPatch) -> None:
    """Emitted modules test for NaN by comparison from now on."""
    emitted = kernels.assemble

    def assemble(*parts: Any) -> Program:
        program = emitted(*parts)
        slang, count = re.subn(r"isNan\((\w+)\)", r"\1 != \1", program.slang)
        assert count
        return replace(program, slang=slang)

    monkeypatch.setattr(kernels, "assemble", assemble)


@sad.kernel
def compares(i: sad.Index, x: sad.In[float], y: sad.Out[bool], is_nan: sad.Out[bool]):
    v = x[i] + 1.0
    y[i] = not (v < 1.0)
    is_nan[i] = sad.isnan(v)


def test_without_ordered_comparisons_naga_misjudges_nan(
    device: sad.Device, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A NaN test by comparison needs them, too; the one by bits needs nothing."""
    if device.capabilities.runtime != "wgpu":
        pytest.skip("naga is wgpu's")
    x = np.float32([np.nan, 1.0, -3.0])
    wanted = oracle(compares, x, dim=3).out
    close(compares(x, dim=3), wanted, "result")
    monkeypatch.setattr(spirv, "_OPPOSITES", {})

    def believed(code: Code, entry: str, device: object, layout: PipelineLayout) -> Verdict:
        del entry, device
        has_immediates = layout.immediate_bytes > 0
        content = spirv.readable_spirv(code.content, with_immediates=has_immediates).content
        return Verdict(is_accepted=True, content=content)

    monkeypatch.setattr(routes, "vet", believed)
    with sad.open_device("wgpu"):  # which has not compiled it yet
        with pytest.raises(AssertionError, match="result 0"):
            close(compares(x, dim=3), wanted, "result")
        compare_instead(monkeypatch)
        # As no device has met it yet: devices keep what they compiled.
        found = sad.kernel(compares.python)(x, dim=3)
    with pytest.raises(AssertionError, match="NaN by comparison"):
        close(found[1], wanted[1], "NaN by comparison")
