"""What `shaderad build --report` counts: numbers where all threads agree, else nothing."""

from __future__ import annotations

import pytest

import shaderad as sad
from shaderad import float3
from shaderad.bundle.write.programs import launch_shaped_names
from shaderad.decorators import KernelFunction
from shaderad.lower.bindings import Mode, Variant
from shaderad.lower.prepare.traffic import Traffic, traffic_of

UINT_BYTES, FLOAT_BYTES, FLOAT3_BYTES = 4, 4, 12


def traffic(function: KernelFunction, mode: Mode, *wanted: str) -> Traffic | None:
    kernel = function.specialise({})
    shaped = launch_shaped_names(kernel)
    return traffic_of(kernel, mode, Variant(wanted=frozenset(wanted), launch_shaped=shaped))


@sad.function
def faded(c: float3, by: float) -> float3:
    return c * by


@sad.kernel
def gather(
    i: sad.Index, colors: sad.In[float3], at: sad.In[int], x: sad.In[float], y: sad.Out[float3]
):
    y[i] = faded(colors[at[i]], x[i]) + colors[0]


def test_a_gather_reads_elements_and_adds_its_gradient_by_floats() -> None:
    read = 2 * FLOAT3_BYTES + UINT_BYTES + FLOAT_BYTES
    assert traffic(gather, Mode.PRIMAL) == Traffic(read, FLOAT3_BYTES, 0, 0)
    # `colors[0]` is the same for all threads: a group adds it once, and it is read once before.
    read = FLOAT3_BYTES + UINT_BYTES + FLOAT_BYTES + FLOAT3_BYTES
    assert traffic(gather, Mode.BACKWARD, "colors", "x") == Traffic(read, FLOAT_BYTES, 3, 3)


def test_inputs_without_derivative_add_nothing() -> None:
    found = traffic(gather, Mode.BACKWARD, "x")
    assert found is not None
    assert (found.written_bytes, found.atomics, found.group_atomics) == (FLOAT_BYTES, 0, 0)


@sad.kernel
def histogram(i: sad.Index, x: sad.In[float], bin: sad.In[int], n: sad.Add[float]):
    for k in range(3):
        n[bin[i]] += x[i] * float(k)


@sad.kernel
def total(i: sad.Index, x: sad.In[float3], gain: float, n: sad.Add[float3]):
    n[0] += x[i] * gain


def test_atomics_of_threads_and_of_groups_are_told_apart() -> None:
    times = 3
    assert traffic(histogram, Mode.PRIMAL) == Traffic(times * 8, 0, times, 0)
    assert traffic(total, Mode.PRIMAL) == Traffic(FLOAT3_BYTES, 0, 0, 3)
    found = traffic(total, Mode.BACKWARD, "x", "gain")
    assert found == Traffic(FLOAT3_BYTES, FLOAT3_BYTES, 0, 1)


@sad.kernel
def searches(i: sad.Index, x: sad.In[float], count: sad.In[int], y: sad.Out[float]):
    for k in range(count[i]):
        y[i] += x[k]


@sad.kernel
def sometimes(i: sad.Index, x: sad.In[float], flag: sad.In[int], y: sad.Out[float]):
    if flag[i] > 0:
        y[i] = x[i]


@sad.kernel
def leaves_early(i: sad.Index, x: sad.In[float], flag: sad.In[int], y: sad.Out[float]):
    if flag[i] > 0:
        return
    y[i] = x[i]


@sad.kernel
def chooses(i: sad.Index, x: sad.In[float], flag: sad.In[int], y: sad.Out[float]):
    y[i] = x[i] if flag[i] > 0 else 0.0


@pytest.mark.parametrize("kernel", [searches, sometimes, leaves_early, chooses])
def test_where_data_decide_there_is_no_number(kernel: KernelFunction) -> None:
    assert traffic(kernel, Mode.PRIMAL) == Traffic(None, FLOAT_BYTES, 0, 0)


@sad.kernel
def either(i: sad.Index, x: sad.In[float], flag: sad.In[int], y: sad.Out[float]):
    if flag[i] > 0:
        y[i] = x[i]
    else:
        y[i] = x[0]


def test_branches_that_cost_the_same_have_a_number() -> None:
    assert traffic(either, Mode.PRIMAL) == Traffic(8, FLOAT_BYTES, 0, 0)


def test_other_modes_are_not_counted() -> None:
    assert traffic(gather, Mode.FORWARD, "x") is None
