"""Which writes become locals, which sums stay in registers, which writes reach memory."""

from __future__ import annotations

import pytest

import shaderad as sad
from shaderad.bodies.outputs import resolve_outputs
from shaderad.ir.nodes import Accumulate, Store
from shaderad.ir.walk import statements


@sad.kernel
def writes(
    i: sad.Index,
    x: sad.In[float],
    n: int,
    own: sad.Out[float],
    other: sad.Out[float],
    total: sad.Add[float],
    counts: sad.Add[int],
):
    own[i] = x[i]
    if x[i] > 0.0:
        own[i] += 2.0
        total[0] += own[i]
    other[i + 1] = own[i]
    total[n] += x[i]
    total[i % 2] += x[i]
    counts[0] += 1


def test_own_elements_and_sums_at_fixed_indices_are_locals() -> None:
    resolved = resolve_outputs(writes.specialise({}), frozenset({"own", "other"}))
    assert resolved.own == ("own",)
    assert [s.name for s in resolved.sums] == ["total_0", "total_n"]
    stores = [s.buffer for s in statements(resolved.body) if isinstance(s, Store)]
    sums = [s.buffer for s in statements(resolved.body) if isinstance(s, Accumulate)]
    assert stores == ["other"]
    assert sums == ["total", "counts"]


def test_an_out_of_another_shape_is_written_in_memory() -> None:
    resolved = resolve_outputs(square.specialise({}), frozenset())
    assert resolved.own == ()
    assert len([s for s in statements(resolved.body) if isinstance(s, Store)]) == 1


@sad.kernel
def square(i: sad.Index, x: sad.In[float], y: sad.Out[float]):
    y[i] = x[i] * x[i]


@sad.kernel
def mixes(i: sad.Index, y: sad.Out[float]):
    y[i] = 1.0
    y[i + 1] = 2.0


@sad.kernel
def reads_another(i: sad.Index, y: sad.Out[float]):
    y[i] = 1.0
    y[i] = y[i + 1]


@pytest.mark.parametrize(("kernel", "code"), [(mixes, "SR0280"), (reads_another, "SR0281")])
def test_an_out_is_own_or_not_and_read_only_where_own(kernel: object, code: str) -> None:
    with pytest.raises(sad.LanguageError, match=code):
        resolve_outputs(kernel.specialise({}), frozenset({"y"}))


@sad.kernel
def many_sums(i: sad.Index, x: sad.In[float], t: sad.Add[float], t_0: float):
    for k in sad.static_range(9):
        t[0] += x[i] * float(k) * t_0
    t[1] += 1.0
    t[2] += 1.0
    t[3] += 1.0
    t[4] += 1.0
    t[5] += 1.0
    t[6] += 1.0
    t[7] += 1.0
    t[8] += 1.0


def test_registers_hold_eight_sums_and_no_name_of_the_users() -> None:
    resolved = resolve_outputs(many_sums.specialise({}), frozenset())
    names = [s.name for s in resolved.sums]
    assert len(names) == 8
    assert names[0] == "t_0_"
