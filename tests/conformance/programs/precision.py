"""Long sums, and arithmetic in 16 and 64 bits."""

from __future__ import annotations

from typing import Any

import shaderad as sad
from shaderad import double, half
from tests.conformance.programs.program import Program, over_kernel

TERMS = 1000003
BLOCK = 1024
"""Terms that one partial sum takes: about the square root of all, so both levels stay short."""
BLOCKS = (TERMS + BLOCK - 1) // BLOCK


@sad.kernel
def sum_blocks(i: sad.Index, x: sad.In[float], partial: sad.Out[float]):
    total = 0.0
    for k in sad.range(i * BLOCK, min((i + 1) * BLOCK, len(x)), limit=BLOCK):
        total += x[k]
    partial[i] = total


@sad.kernel
def sum_all(i: sad.Index, x: sad.In[float], y: sad.Add[float]):
    y[0] += x[i]


def sum_in_two_levels(x: Any) -> dict[str, Any]:
    return {"y": sum_all(sum_blocks(x, dim=BLOCKS), dim=BLOCKS, shapes={"y": 1})}


@sad.kernel
def sum_squares_of_halves(i: sad.Index, x: sad.In[half], y: sad.Add[float]):
    y[0] += float(x[i]) * float(x[i])


@sad.kernel
def cancel(i: sad.Index, x: sad.In[double], y: sad.Out[double]):
    one = double(1.0)
    y[i] = (one + x[i]) * (one + x[i]) - one - 2.0 * x[i]


@sad.kernel
def convert(i: sad.Index, x: double, y: sad.Out[float]):
    y[i] = float(x)


PROGRAMS = {
    "own-sum-large-f32": Program(sum_in_two_levels),
    "own-sum-large-f32/one level": over_kernel(sum_all, dim=TERMS, shapes={"y": 1}),
    "own-f16-sumsq": over_kernel(
        sum_squares_of_halves, dim=257, shapes={"y": 1}, needs="half", dtype="f16"
    ),
    "own-f64-cancel": over_kernel(cancel, dim=2, needs="double", dtype="f64"),
    "fut-conv0": over_kernel(convert, dim=1, needs="double"),
}
