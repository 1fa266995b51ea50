"""Where the language leaves nothing to chance: ranges, winners, branches, reports."""

from __future__ import annotations

import sys
from collections import Counter

import numpy as np
import pytest

import shaderad as sad
from shaderad import float2, float3
from shaderad.interpret import ReportKind
from tests.oracle import oracle

INT_MIN = -(2**31)


@sad.kernel
def reads_anywhere(i: sad.Index, x: sad.In[float], at: sad.In[int], y: sad.Out[float]):
    y[i] = 2.0 * x[at[i]]


def test_an_index_out_of_range_reads_zero_has_no_gradient_and_is_reported() -> None:
    judge = oracle(reads_anywhere, np.float32([3, 4]), np.int32([1, -1, 2, 0]), dim=4)
    assert judge.out.tolist() == [8, 0, 0, 6]
    assert judge.vjp(np.float32([1, 10, 100, 1000]))[0].tolist() == [2000, 2]
    (report,) = judge.reports
    assert report.kind is ReportKind.BOUNDS
    assert (report.name, report.thread, report.index, report.length) == ("x", 1, -1, 2)
    assert "x[at[i]]" in report.span.text()


@sad.kernel
def writes_anywhere(
    i: sad.Index, x: sad.In[float], at: sad.In[int], y: sad.Out[float], s: sad.Add[float]
):
    local = sad.LocalArray[float, 2]()
    local[at[i]] = x[i]
    y[sad.unique(at[i])] = x[i]
    s[at[i]] += local[0] + local[1]


def test_writes_out_of_range_write_nothing() -> None:
    judge = oracle(
        writes_anywhere, np.float32([1, 2, 3]), np.int32([5, 1, 0]), dim=3,
        shapes={"y": 2, "s": 2},
    )  # fmt: skip
    y, s = judge.out
    assert (y.tolist(), s.tolist()) == ([3, 2], [3, 2])
    assert judge.vjp((None, np.float32([1, 10])))[0].tolist() == [0, 10, 1]
    assert {r.kind for r in judge.reports} == {ReportKind.BOUNDS}
    assert {r.thread for r in judge.reports} == {0}


@sad.kernel
def extremes(i: sad.Index, x: sad.In[float], low: sad.Min[float], high: sad.Max[float]):
    for k in range(2):
        low[i % 2] = sad.min(low[i % 2], x[(i + k) % 4])
        high[0] = sad.max(high[0], x[i])


def test_the_lowest_thread_and_its_first_write_win_a_tie() -> None:
    x = np.float32([5, 1, 5, 1])
    judge = oracle(extremes, x, dim=4, shapes={"low": 3, "high": 1})
    low, high = judge.out
    assert low.tolist() == [1, 1, np.inf]
    assert high.tolist() == [5]
    # Even threads find 1 first in thread 0, second iteration; odd ones in thread 1, first one.
    assert judge.vjp((np.float32([1, 10, 100]), None))[0].tolist() == [0, 11, 0, 0]
    assert judge.vjp((None, np.float32([7])))[0].tolist() == [7, 0, 0, 0]
    low_dot, high_dot = judge.jvp((np.float32([1, 2, 3, 4]),))
    assert (low_dot.tolist(), high_dot.tolist()) == ([2, 2, 0], [1])


def test_nan_never_wins_in_min_and_max_arrays() -> None:
    judge = oracle(extremes, np.float32([np.nan, 2, 3, 4]), dim=4, shapes={"low": 2, "high": 1})
    assert [r.tolist() for r in judge.out] == [[2, 2], [4]]


@sad.kernel
def parts(i: sad.Index, x: sad.In[float3], low: sad.Min[float3], s: sad.Add[float3]):
    low[0].y = sad.min(low[0].y, x[i].y)
    s[0].zx += x[i].xy


def test_writes_of_components_leave_the_others_alone() -> None:
    x = np.float32([[1, 2, 3], [4, -5, 6]])
    judge = oracle(parts, x, dim=2, shapes={"low": 1, "s": 1})
    low, s = judge.out
    assert low.tolist() == [[np.inf, -5, np.inf]]
    assert s.tolist() == [[-3, 0, 5]]
    (gradient,) = judge.vjp((np.float32([[1, 2, 4]]), np.float32([[10, 20, 40]])))
    assert gradient.tolist() == [[40, 10, 0], [40, 12, 0]]


@sad.kernel
def guarded(i: sad.Index, x: sad.In[float], y: sad.Out[float]):
    y[i] = sad.sqrt(x[i]) * 0.0 if x[i] > 0.0 else 0.0
    if x[i] > 0.0 and 1.0 / x[i] < 1e9:
        y[i] += 1.0 / x[i]


def test_a_branch_not_taken_contributes_exactly_zero() -> None:
    judge = oracle(guarded, np.float32([0, -1, 4]), dim=3)
    assert judge.out.tolist() == [0, 0, 0.25]
    assert judge.vjp(np.ones(3))[0].tolist() == [0, 0, -1 / 16]


@sad.kernel
def whole_numbers(
    i: sad.Index, a: sad.In[int], b: sad.In[int], quotient: sad.Out[int], rest: sad.Out[int],
    shifted: sad.Out[int], wrapped: sad.Out[int], bits: sad.Out[sad.uint],
):  # fmt: skip
    quotient[i] = a[i] // b[i]
    rest[i] = a[i] % b[i]
    shifted[i] = a[i] >> b[i]
    wrapped[i] = a[i] * a[i] + (a[i] << b[i])
    bits[i] = sad.bitcast(sad.uint, float(a[i]))


def test_ints_wrap_and_division_by_zero_gives_zero_and_is_reported() -> None:
    a = np.int32([7, -7, INT_MIN, INT_MIN, -1, 100000])
    b = np.int32([-2, 2, -1, 0, 33, 3])
    judge = oracle(whole_numbers, a, b, dim=6)
    quotient, rest, shifted, wrapped, bits = judge.out
    assert quotient.tolist() == [-4, -4, INT_MIN, 0, -1, 33333]
    assert rest.tolist() == [-1, 1, 0, 0, 32, 1]
    assert shifted.tolist() == [0, -2, -1, INT_MIN, -1, 12500]
    last = (10**10 + 800000 + 2**31) % 2**32 - 2**31
    assert wrapped.tolist() == [49 - 2**30, 49 - 28, 0, INT_MIN, 1 - 2, last]
    assert bits.tolist() == a.astype(np.float32).view(np.uint32).tolist()
    assert [(r.kind, r.thread) for r in judge.reports] == [(ReportKind.DIVISION, 3)] * 2


@sad.kernel
def limited(i: sad.Index, n: sad.In[int], y: sad.Out[int], z: sad.Out[int]):
    for _k in sad.range(n[i], limit=3):
        y[i] += 1
    while sad.limit(z[i] < n[i], 3):
        z[i] += 1
        if z[i] == 3 and n[i] == 7:
            break
    assert n[i] < 8, "too many"


def test_loops_stop_at_their_limit_and_report_it_and_asserts_change_nothing() -> None:
    judge = oracle(limited, np.int32([2, 3, 4, 7, 9]), dim=5)
    assert [r.tolist() for r in judge.out] == [[2, 3, 3, 3, 3]] * 2
    kinds = [(r.kind, r.thread, r.name) for r in judge.reports]
    assert kinds == [
        (ReportKind.LIMIT, 2, "3"),
        (ReportKind.LIMIT, 2, "3"),
        (ReportKind.ASSERT, 4, "too many"),
    ]


@sad.function
def straight_through(x: float) -> float:
    return sad.floor(x)


@straight_through.backward_derivative(check=False)
def straight_through_bwd(x: sad.DifferentialPair[float], d_out: float):
    x.d += 3.0 * d_out


@sad.function
def only_forward(x: float) -> float:
    return x * x


@only_forward.forward_derivative
def only_forward_fwd(x: sad.DifferentialPair[float]) -> sad.DifferentialPair[float]:
    return sad.diff_pair(x.p * x.p, 5.0 * x.d)


@sad.kernel
def owns(i: sad.Index, x: sad.In[float], y: sad.Out[float], z: sad.Out[float]):
    y[i] = straight_through(x[i])
    z[i] = only_forward(x[i])


def test_derivatives_of_the_users_own_run_as_written_or_are_refused() -> None:
    judge = oracle(owns, np.float32([1.5]), dim=1)
    with pytest.raises(sad.DerivativeError, match="only_forward"):
        judge.vjp((np.ones(1), None))
    with pytest.raises(sad.DerivativeError, match="straight_through"):
        judge.jvp((np.ones(1),))


@sad.kernel
def inner_derivatives(i: sad.Index, x: sad.In[float], y: sad.Out[float], slope: sad.Out[float2]):
    pair = sad.fwd_diff(cubic)(sad.diff_pair(x[i], 1.0), sad.diff_pair(2.0, 0.0))
    y[i] = pair.d
    a = sad.diff_pair(sad.detach(x[i]), 100.0)
    b = sad.diff_pair(2.0)
    sad.bwd_diff(cubic)(a, b, 3.0)
    slope[i] = float2(a.d, b.d)


@sad.function
def cubic(x: float, k: float) -> float:
    s = 0.0
    for _ in range(3):
        s += straight_up(x) * k
    return s * x


@sad.function
def straight_up(x: float) -> float:
    return x * x if x > 0.0 else 0.0


def test_derivatives_inside_a_kernel_start_from_zero() -> None:
    judge = oracle(inner_derivatives, np.float32([2.0]), dim=1)
    y, slope = judge.out
    assert y.tolist() == [3 * 2 * 3 * 4]
    assert slope.tolist() == [[3 * 72, 3 * 24]]
    tangent, slope = judge.jvp((np.ones(1),))
    # y is 18 x^2; the pulled slopes are of what is detached.
    assert tangent.tolist() == [36 * 2]
    assert slope.tolist() == [[0, 0]]


@sad.kernel
def second(i: sad.Index, x: sad.In[float], y: sad.Out[float]):
    y[i] = sad.fwd_diff(cubic)(sad.diff_pair(x[i], x[i]), sad.diff_pair(2.0, 0.0)).d


def test_forward_derivatives_inside_a_kernel_have_derivatives() -> None:
    # d/dx (6 x^3) x = 18 x^3, of which the derivative is 54 x^2.
    judge = oracle(second, np.float32([2.0, -1.0]), dim=2)
    assert judge.out.tolist() == [144, 0]
    assert judge.vjp(np.ones(2))[0].tolist() == [216, 0]
    assert judge.jvp((np.ones(2),)).tolist() == [216, 0]


@sad.kernel
def over_a_grid(row: sad.Index, column: sad.Index, k: float, y: sad.Out[float, 2]):
    y[row, column] = k * float(10 * row + column)


def test_launches_are_row_major_and_uniforms_sum_over_them() -> None:
    judge = oracle(over_a_grid, 2.0, dim=(2, 3))
    assert judge.out.tolist() == [[0, 2, 4], [20, 22, 24]]
    assert judge.vjp(np.ones((2, 3)))[0] == 36
    assert oracle(over_a_grid, 2.0, dim=(0, 3)).vjp(np.ones((0, 3)))[0] == 0


def test_all_threads_are_interpreted_at_once() -> None:
    def calls(threads: int) -> int:
        counts: Counter[str] = Counter()
        sys.setprofile(lambda *event: counts.update([event[1]]))
        try:
            judge = oracle(steps, np.linspace(0.1, 1, threads, dtype=np.float32), dim=threads)
            judge.vjp(np.ones(threads))
        finally:
            sys.setprofile(None)
        return counts["call"]

    calls(10)  # reads the kernel
    assert calls(1000) < 1.5 * calls(10)


@sad.kernel
def steps(i: sad.Index, x: sad.In[float], y: sad.Out[float]):
    v = x[i]
    for _k in sad.range(100, limit=100):
        v = v * 0.5 + sad.sin(v) * x[i]
        if v > 1.5:
            break
    y[i] = v


@sad.kernel
def past_a_tenth(i: sad.Index, x: sad.In[float], y: sad.Out[int]):
    if x[i] > 0.1:
        y[i] = 1


def test_numbers_of_the_program_are_those_that_a_device_has() -> None:
    assert oracle(past_a_tenth, [0.1], dim=1).out.tolist() == [0]
