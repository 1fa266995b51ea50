"""Which writes of an Out array are proved to meet no element twice."""

from __future__ import annotations

import pytest

import shaderad as sad
from shaderad import float2, float3
from shaderad.bodies.injective import is_injective
from shaderad.decorators import KernelFunction


@sad.struct
class Ray:
    start: float3
    length: float


@sad.kernel
def shifted(i: sad.Index, n: int, y: sad.Out[float]):
    y[i + n - 3] = 1.0


@sad.kernel
def reversed_order(i: sad.Index, y: sad.Out[float]):
    y[9 - i] = 1.0


@sad.kernel
def pairs(i: sad.Index, y: sad.Out[float]):
    y[2 * i] = 1.0
    y[2 * i + 1] = 2.0


@sad.kernel
def filled_by_a_loop(i: sad.Index, y: sad.Out[float]):
    for k in range(3):
        y[3 * i + k] = 1.0


@sad.kernel
def filled_downwards(i: sad.Index, y: sad.Out[float]):
    for k in sad.static_range(4, 0, -2):
        j = 4 * i + k
        y[j - 1] = 1.0
        y[j - 2] = 1.0


@sad.kernel
def either_side(i: sad.Index, x: sad.In[float], y: sad.Out[float]):
    if x[i] > 0.0:
        y[i + 1] = 1.0
    else:
        y[i + 1] = 2.0


@sad.kernel
def transposed(r: sad.Index, c: sad.Index, y: sad.Out[float, 2]):
    y[c, 2 * r + 1] = 1.0


@sad.kernel
def promised(i: sad.Index, x: sad.In[int], y: sad.Out[float]):
    y[sad.unique(x[i])] = 1.0


@sad.kernel
def by_component(i: sad.Index, y: sad.Out[float3]):
    y[2 * i + 1].x = 1.0
    y[2 * i + 1].zy = float2(2.0, 3.0)


@sad.kernel
def by_field(i: sad.Index, y: sad.Out[Ray]):
    y[i + 1].start.x = 1.0
    y[i + 1].start[2] = 1.0
    y[i + 1].length = 2.0


@sad.kernel
def by_counted_component(i: sad.Index, y: sad.Out[float3]):
    for k in sad.static_range(3):
        y[9 - i][2 - k] = float(k)


@sad.kernel
def sides_taken_anew(i: sad.Index, y: sad.Out[float]):
    for k in range(2):
        if k == 0:
            y[2 * i + k] = 1.0
        else:
            y[2 * i + k] = 2.0


@sad.kernel
def component_twice(i: sad.Index, y: sad.Out[float3]):
    y[i + 1].x = 1.0
    y[i + 1].yx = float2(2.0, 3.0)


@sad.kernel
def whole_and_component(i: sad.Index, y: sad.Out[float3]):
    y[i + 1] = float3(1.0)
    y[i + 1].x = 1.0


@sad.kernel
def field_and_its_component(i: sad.Index, y: sad.Out[Ray]):
    y[i + 1].start = float3(1.0)
    y[i + 1].start.z = 1.0


@sad.kernel
def component_by_variable(i: sad.Index, k: int, y: sad.Out[float3]):
    y[i + 1][k] = 1.0
    y[i + 1].x = 1.0


@sad.kernel
def sides_of_different_iterations(i: sad.Index, y: sad.Out[float]):
    for k in range(2):
        if k == 0:
            y[2 * i + k] = 1.0
        else:
            y[2 * i + 1 - k] = 2.0


@sad.kernel
def twice(i: sad.Index, y: sad.Out[float]):
    y[i + 1] = 1.0
    y[i + 1] = 2.0


@sad.kernel
def overlapping(i: sad.Index, y: sad.Out[float]):
    y[2 * i] = 1.0
    y[2 * i + 2] = 1.0


@sad.kernel
def neighbours(i: sad.Index, y: sad.Out[float]):
    for k in range(3):
        y[2 * i + k] = 1.0


@sad.kernel
def gathered(i: sad.Index, x: sad.In[int], y: sad.Out[float]):
    y[x[i]] = 1.0


@sad.kernel
def wrapped(i: sad.Index, y: sad.Out[float]):
    y[i % 4] = 1.0


@sad.kernel
def diagonal(r: sad.Index, c: sad.Index, y: sad.Out[float, 2]):
    y[r, r] = float(c)


@sad.kernel
def folded(r: sad.Index, c: sad.Index, y: sad.Out[float]):
    y[r + c] = 1.0


@sad.kernel
def forgets_an_index(r: sad.Index, c: sad.Index, y: sad.Out[float]):
    y[r] = float(c)


@sad.kernel
def again_in_a_loop(i: sad.Index, n: int, y: sad.Out[float]):
    for k in range(n):
        y[i + 1] = float(k)


@sad.kernel
def until(i: sad.Index, x: sad.In[float], y: sad.Out[float]):
    while y.shape[0] > 3:
        y[i + 1] = x[i]


@sad.kernel
def rebound_uniform(i: sad.Index, n: int, y: sad.Out[float]):
    if i > 2:
        n = -i
    y[i + n] = 1.0


@sad.kernel
def variable_of_another_loop(i: sad.Index, y: sad.Out[float]):
    for k in range(2):
        j = 2 * i + k
    for k in range(2):
        y[j] = float(k)


@sad.kernel
def comes_round(i: sad.Index, y: sad.Out[float]):
    y[i * 65536 * 65536] = 1.0


@sad.kernel
def at_constants(r: sad.Index, c: sad.Index, y: sad.Out[float]):
    y[3] = 1.0
    y[c + 2 * r + 1] = 2.0
    for k in sad.static_range(3):
        y[2 * k + 2 + c] = float(k)


PROVED = [
    shifted, reversed_order, pairs, filled_by_a_loop, filled_downwards, either_side, transposed,
    promised, by_component, by_field, by_counted_component, sides_taken_anew,
]  # fmt: skip
NOT_PROVED = [
    twice, overlapping, neighbours, gathered, wrapped, diagonal, folded, forgets_an_index,
    again_in_a_loop, until, rebound_uniform, variable_of_another_loop, comes_round,
    component_twice, whole_and_component, field_and_its_component, component_by_variable,
    sides_of_different_iterations,
]  # fmt: skip


def verdict(kernel: KernelFunction) -> bool:
    ir = kernel.specialise({})
    uniforms = frozenset(u.name for u in ir.uniforms)
    return is_injective(ir.body, "y", ir.index_names, uniforms)


@pytest.mark.parametrize("kernel", PROVED, ids=lambda k: k.name)
def test_distinct_writes_are_proved(kernel: KernelFunction) -> None:
    assert verdict(kernel)


@pytest.mark.parametrize("kernel", NOT_PROVED, ids=lambda k: k.name)
def test_writes_that_may_meet_are_not_proved(kernel: KernelFunction) -> None:
    assert not verdict(kernel)


@pytest.mark.parametrize("kernel", [at_constants, wrapped, folded, forgets_an_index, diagonal],
                         ids=lambda k: k.name)  # fmt: skip
def test_one_thread_repeats_only_what_it_writes_twice(kernel: KernelFunction) -> None:
    ir = kernel.specialise({})
    is_known = kernel is not wrapped  # remainders are not looked into
    assert is_injective(ir.body, "y", ir.index_names, frozenset(), ir.index_names) == is_known
    assert not is_injective(ir.body, "y", ir.index_names, frozenset())


@pytest.mark.parametrize("kernel", [twice, component_twice, until, gathered], ids=lambda k: k.name)
def test_one_thread_that_may_write_twice_is_not_proved(kernel: KernelFunction) -> None:
    ir = kernel.specialise({})
    assert not is_injective(ir.body, "y", ir.index_names, frozenset(), ir.index_names)
