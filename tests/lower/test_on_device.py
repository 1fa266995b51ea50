"""Kernels that are hard to differentiate, on every runtime, against their Python in float64."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import shaderad as sad
from tests.agreement import check_against_oracle
from tests.lower import (
    adjoint_cases,
    branch_cases,
    checking,
    crowded_cases,
    function_cases,
    guard_cases,
    loop_cases,
    output_cases,
    typed_cases,
)
from tests.lower.checking import check

pytestmark = pytest.mark.gpu

CASES = adjoint_cases.CASES | loop_cases.CASES | guard_cases.CASES | output_cases.CASES
CHECKED = branch_cases.ARGUMENTS | function_cases.ARGUMENTS | typed_cases.ARGUMENTS


@pytest.mark.parametrize("name", CASES)
def test_results_and_derivatives_are_those_of_the_python_text(
    name: str, device: sad.Device
) -> None:
    check(CASES[name], device)


@pytest.mark.parametrize("name", CASES | adjoint_cases.BY_ORACLE)
def test_results_and_derivatives_are_those_of_the_oracle(name: str, device: sad.Device) -> None:
    case = (CASES | adjoint_cases.BY_ORACLE)[name]
    check_against_oracle(case.kernel, *case.args, **case.call)
    device.synchronize()


@pytest.mark.parametrize("kernel", CHECKED, ids=lambda k: k.__name__)
def test_vjp_and_jvp_agree_with_finite_differences(kernel: Any, device: sad.Device) -> None:
    sad.gradcheck(kernel, *CHECKED[kernel], dim=7)
    check_against_oracle(kernel, *CHECKED[kernel], dim=7)


def test_elements_written_in_parts_keep_zero_in_the_others(device: sad.Device) -> None:
    kernel, x, order = output_cases.stores_in_parts, loop_cases.floats(7), output_cases.ORDER
    y, s = (a.numpy() for a in kernel(x, order, dim=7, shapes={"y": (15,)}))
    is_high = x > 0.8
    odd = np.stack([x * x[order], np.where(is_high, np.sin(x), 0), x[order] * is_high], axis=1)
    checking.close(y[1::2], odd, "y")
    checking.close(y[:14:2], np.stack([x, 0 * x, 2 * x], axis=1), "y")
    checking.close(s["color"][order], np.stack([0 * x, x * x, 0 * x], axis=1), "color")
    checking.close(s["slope"][order].reshape(7, 4)[:, 2], x[order] * x[0], "slope")
    sad.gradcheck(kernel, x, order, dim=7, shapes={"y": (15,)})


def test_structs_in_structs_have_gradients_of_their_own_form(device: sad.Device) -> None:
    given = sad.array(typed_cases.materials(5), dtype=typed_cases.Mat)
    arguments = (given, loop_cases.floats(7), typed_cases.MATERIAL)
    sad.gradcheck(typed_cases.structs, *arguments, dim=7, shapes={"tot": (3,)})


def test_a_users_backward_of_a_read_adds_to_the_gradient_itself(device: sad.Device) -> None:
    w, v, a = loop_cases.floats(5), loop_cases.floats(4), 0.6
    _out, pullback = sad.vjp(function_cases.reads_with_own, w, v, a, dim=7)
    weights = np.linspace(0.5, 1.5, 7)

    def value(w: np.ndarray, v: np.ndarray, a: float) -> float:
        total = 0.0
        for i in range(7):
            s = w[i % 5] * a
            for k in range(i % 3):
                s = s * v[(k + i) % 4] * s + w[k]
            total += weights[i] * (s + w[0] * 2.0)
        return float(total)

    found = pullback(weights.astype(np.float32))
    exact = [np.zeros(5), np.zeros(4), np.zeros(1)]
    at = [w.astype(float), v.astype(float), np.array([a])]
    for slot, start in enumerate(at):
        for k in range(start.size):
            ends = []
            for sign in (1, -1):
                moved = [one.copy() for one in at]
                moved[slot][k] += sign * 1e-6
                ends.append(value(moved[0], moved[1], float(moved[2][0])))
            exact[slot][k] = (ends[0] - ends[1]) / 2e-6
    for gradient, wanted in zip(found, exact, strict=True):
        checking.close(np.ravel(gradient.numpy()), wanted, "gradient")


@pytest.mark.parametrize("count", [0, 1, 63, 64, 65, 1000])
def test_every_launch_size_sums_over_all_its_threads(count: int, device: sad.Device) -> None:
    x = np.linspace(0.5, 1.0, count, dtype=np.float32)
    total, pullback = sad.vjp(sums, x, 0.5, np.float32([2.0, 3.0]), dim=count, shapes={"t": (2,)})
    exact = x.astype(float)
    checking.close(total.numpy(), np.array([(exact * 0.5 * 2).sum(), (exact * 3).sum()]), "sums")
    x_bar, a_bar, w_bar = pullback(np.float32([1.0, 10.0]))
    checking.close(x_bar.numpy(), np.full(count, 31.0), "x")
    checking.close(a_bar.numpy(), np.array(2 * exact.sum()), "a")
    checking.close(w_bar.numpy(), np.array([0.5 * exact.sum(), 10 * exact.sum()]), "w")


@sad.kernel
def sums(i: sad.Index, x: sad.In[float], a: float, w: sad.In[float], t: sad.Add[float]):
    t[0] += x[i] * a * w[0]
    t[1] += x[i] * w[1]


def test_gradients_accumulate_where_they_are_told_to(device: sad.Device) -> None:
    case = crowded_cases.CROWDED
    out, pullback = sad.vjp(case.kernel, *case.args, **case.call)
    bars = tuple(np.ones_like(o.numpy()) for o in out)
    once = [g.numpy() for g in pullback(bars)]
    twice = pullback(bars, accumulate=pullback(bars))
    for single, double in zip(once, twice, strict=True):
        checking.close(double.numpy(), 2.0 * single, "accumulated")


def test_gradients_of_elements_outside_the_launch_are_zero(device: sad.Device) -> None:
    x = loop_cases.floats(9)
    _, pullback = sad.vjp(squares, x, dim=4)
    wanted = np.where(np.arange(9) < 4, 2.0 * x, 0.0)
    checking.close(pullback(np.ones(4, np.float32))[0].numpy(), wanted, "x")


@sad.kernel
def squares(i: sad.Index, x: sad.In[float], y: sad.Out[float]):
    y[i] = x[i] * x[i]


@sad.struct
class Mixed:
    a: float
    h: sad.half
    v: sad.half2
    t: sad.LocalArray[sad.half, 3]
    w: float


@sad.kernel
def mixes(i: sad.Index, s: sad.In[Mixed], u: sad.half, y: sad.Out[float], z: sad.Out[Mixed]):
    r = s[i]
    y[i] = float(r.h) * r.a * 2.0 + float(r.v.y) * float(r.t[2]) * float(u) + float(r.t[1])
    z[i] = r


def test_halves_that_share_words_keep_their_places(device: sad.Device) -> None:
    random = np.random.default_rng(1)
    s = {
        "a": random.uniform(0.5, 1.5, 5).astype(np.float32),
        "h": random.uniform(0.5, 1.5, 5).astype(np.float16),
        "v": random.uniform(0.5, 1.5, (5, 2)).astype(np.float16),
        "t": random.uniform(0.5, 1.5, (5, 3)).astype(np.float16),
        "w": random.uniform(0.5, 1.5, 5).astype(np.float32),
    }
    (y, z), pullback = sad.vjp(mixes, s, 0.5, dim=5)
    f = {name: value.astype(np.float64) for name, value in s.items()}
    checking.close(
        y.numpy(), f["h"] * f["a"] * 2 + f["v"][:, 1] * f["t"][:, 2] * 0.5 + f["t"][:, 1], "y"
    )
    for name, value in s.items():
        assert np.array_equal(z.numpy()[name], value)
    found, u_bar = pullback((np.ones(5, np.float32), None))
    gradient = found.numpy()
    half_eps = 1e-3  # Ten bits.
    checking.close(gradient["h"], 2 * f["a"], "h", half_eps)
    checking.close(gradient["v"][:, 1], 0.5 * f["t"][:, 2], "v", half_eps)
    checking.close(
        gradient["t"], np.stack([0 * f["a"], 0 * f["a"] + 1, 0.5 * f["v"][:, 1]], 1), "t", half_eps
    )
    checking.close(u_bar.numpy(), np.array((f["v"][:, 1] * f["t"][:, 2]).sum()), "u", half_eps)


def test_a_kernel_over_halves_sums_their_gradient_in_float(device: sad.Device) -> None:
    h = np.float16([0.5, 0.75, 1.25])
    _, pullback = sad.vjp(shares_halves, h, dim=300)
    (found,) = pullback(np.ones(300, np.float32))
    assert found.numpy().dtype == np.float16
    checking.close(found.numpy(), np.array([200.0, 200.0, 200.0]) * h.astype(float), "h", 1e-3)


@sad.kernel
def shares_halves(i: sad.Index, h: sad.In[sad.half], y: sad.Out[float]):
    y[i] = float(h[i % 3]) * float(h[i % 3])
