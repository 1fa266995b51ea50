"""Kernels for devices whose threads run in turn."""

from __future__ import annotations

import re

import shaderad as sad
from shaderad.lower.bindings import Mode, Variant
from shaderad.lower.kernels import lower_kernel
from tests.launch_shapes import shape_of


@sad.kernel
def scaled(i: sad.Index, x: sad.In[float], by: float, y: sad.Out[float]):
    y[i] = by * x[i]


def test_words_of_the_constant_buffer_are_read_before_loops() -> None:
    (lowered,) = lower_kernel(
        scaled.specialise({}), Mode.PRIMAL, Variant(shape=shape_of(is_parallel=False))
    )
    text = lowered.program.slang
    assert text.count("heldParameters = parameters;") == 1
    assert "heldParameters.by" in text
    assert not re.search(r"\bparameters\.", text)
