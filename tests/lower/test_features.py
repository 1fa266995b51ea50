"""What a program needs of a device, whether its arrays or its arithmetic alone needs it."""

from __future__ import annotations

import pytest

import shaderad as sad
from shaderad.decorators import KernelFunction
from tests.lower.golden_kernels import lowered


@sad.kernel
def plain(i: sad.Index, x: sad.In[float], y: sad.Out[float]):
    y[i] = sad.sin(x[i])


@sad.kernel
def through_half(i: sad.Index, x: sad.In[float], y: sad.Out[float]):
    y[i] = float(sad.half(x[i]) * sad.half(2.0))


@sad.kernel
def through_double(i: sad.Index, x: sad.In[sad.float2], y: sad.Out[float]):
    y[i] = float(sad.dot(sad.double2(x[i]), sad.double2(x[i])))


@sad.kernel
def copied_doubles(i: sad.Index, x: sad.In[sad.double], y: sad.Out[sad.double]):
    y[i] = x[i]


@pytest.mark.parametrize(
    ("kernel", "feature"),
    [(plain, None), (through_half, "half"), (through_double, "double"), (copied_doubles, "double")],
)
def test_a_program_names_each_optional_type_that_it_computes_with(
    kernel: KernelFunction, feature: str | None
) -> None:
    for one in lowered(kernel):
        assert one.program.features & {"half", "double"} == ({feature} if feature else set())
