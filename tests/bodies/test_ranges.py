"""Accesses whose indices a launch proves to be in range ask nothing; the others still do."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

import shaderad as sad
from shaderad.bodies.ranges import conditions
from shaderad.decorators import KernelFunction
from shaderad.lower.bindings import Mode, Variant
from shaderad.lower.kernels import lower_kernel
from tests.agreement import check_against_oracle
from tests.bodies.natural import natural_of


@sad.function
def three(w: sad.In[float], at: int) -> float:
    return w[0] + w[1] * w[at]


@sad.kernel
def at_index(i: sad.Index, x: sad.In[float], w: sad.In[float], y: sad.Out[float]):
    y[i] = x[i] * w[2] + x[i]


@sad.kernel
def stencil(i: sad.Index, x: sad.In[float], y: sad.Out[float]):
    here = x[i]
    if i > 0 and i < x.shape[0] - 1:
        here = 0.5 * here + 0.25 * (x[i - 1] + x[i + 1])
    left = x[i - 1] if i >= 1 else 0.0
    if i == x.shape[0] - 1 or i >= 5 or x[i + 1] > 0.7:
        left = left * here
    y[i] = here * left


@sad.kernel
def clamped(i: sad.Index, x: sad.In[float], shift: sad.In[int], y: sad.Out[float]):
    k = sad.clamp(i + shift[i], 0, x.shape[0] - 1)
    y[i] = x[k] * x[(i * 7 + 3) % x.shape[0]]


@sad.kernel
def rows(r: sad.Index, c: sad.Index, x: sad.In[float, 2], w: sad.In[float], y: sad.Out[float, 2]):
    total = 0.0
    for k in range(x.shape[1]):
        total += x[r, k] * w[x.shape[1] * r + k]
    y[r, c] = total * x[r, c]


@sad.kernel
def layer(i: sad.Index, x: sad.In[float], w: sad.In[float], count: int, y: sad.Out[float]):
    hidden = sad.LocalArray[float, 4]()
    for j in range(4):
        for k in range(count):
            hidden[j] += w[count * j + k] * x[k]
    total = 0.0
    for j in range(3, -1, -1):
        total += hidden[j] * hidden[j]
    y[i] = total + three(w, 2)


@sad.kernel
def gathered(i: sad.Index, x: sad.In[float], at: sad.In[int], y: sad.Out[float], s: sad.Add[float]):
    k = at[i]
    if 0 <= k and k < x.shape[0]:
        y[i] = x[k]
    s[1] += x[at[i]] * x[i]


@sad.kernel
def changed(i: sad.Index, x: sad.In[float], y: sad.Out[float]):
    k = i
    for _ in range(3):
        k = k + 1
        y[i] = y[i] + x[k]
    if x[i] > 0.0:
        k = 1
    y[i] = y[i] + x[k - 1]


@sad.function
def element(w: sad.In[float], row: int, k: int) -> float:
    return w[4 * row + k] * 2.0


@sad.function
def pair(w: sad.In[float], row: int) -> float:
    return element(w, row, 0) * element(w, row, 3)


@sad.kernel
def called(i: sad.Index, w: sad.In[float], x: sad.In[float], y: sad.Out[float]):
    total = x[i]
    for row in range(3):
        total = total * pair(w, row)
    y[i] = total * element(w, 2, i % 4)


@sad.function
def picked(values: sad.LocalArray[float, 4], k: int) -> float:
    return values[k]


@sad.function
def own(x: float, k: int) -> float:
    return x


@own.backward_derivative
def own_bwd(x: sad.DifferentialPair[float], k: int, bar: float):
    values = sad.LocalArray[float, 4]()
    x.d += bar * (1.0 + picked(values, k + 90))


@sad.kernel
def derived(i: sad.Index, x: sad.In[float], y: sad.Out[float]):
    values = sad.LocalArray[float, 4]()
    values[i % 4] = 2.0
    y[i] = own(x[i], i) * picked(values, i % 4)


@dataclass(frozen=True)
class Case:
    kernel: KernelFunction
    args: tuple[Any, ...]
    call: Mapping[str, Any]
    asking: int
    """Accesses of the backward entry and of what it calls that still ask."""


def _floats(*shape: int) -> np.ndarray:
    return np.random.default_rng(sum(shape)).uniform(0.5, 1.5, shape).astype(np.float32)


_FAR = np.array([0, -7, 3, 99, 2, 1], np.int32)
CASES = {
    case.kernel.name: case
    for case in (
        Case(at_index, (_floats(6), _floats(3)), {"dim": 6}, 0),
        Case(stencil, (_floats(6),), {"dim": 6}, 0),
        Case(clamped, (_floats(6), _FAR), {"dim": 6}, 0),
        Case(rows, (_floats(3, 4), _floats(12)), {"dim": (3, 4)}, 0),
        Case(layer, (_floats(5), _floats(20), 5), {"dim": 2}, 0),
        Case(called, (_floats(12), _floats(6)), {"dim": 6}, 0),
        Case(gathered, (_floats(6), np.arange(6, dtype=np.int32)),
             {"dim": 6, "shapes": {"s": 2}}, 1),
        Case(changed, (_floats(9),), {"dim": 6}, 2),
    )
}  # fmt: skip


def _asking(case: Case, natural: frozenset[Any]) -> int:
    """The checks in the text of the backward entry."""
    ir = case.kernel.specialise({})
    outs = frozenset(b.name for b in ir.buffers if b.access is sad.ir.types.Access.OUT)
    variant = Variant(
        wanted=frozenset({"x", "w"} & {b.name for b in ir.buffers}),
        launch_shaped=outs,
        natural=natural,
    )
    (found,) = lower_kernel(ir, Mode.BACKWARD, variant)
    return len(
        re.findall(
            r"_(?:in|add)\.at\(|localIndex<|elementIndex<\w+, NoReport>", found.program.slang
        )
    )


def _natural(case: Case) -> frozenset[Any]:
    ir = case.kernel.specialise({})
    dim = case.call["dim"] if isinstance(case.call["dim"], tuple) else (case.call["dim"],)
    reads = [p.name for p in ir.parameters if p.name not in ("y", "s")]
    given = dict(zip(reads, case.args, strict=True))
    shapes = {n: a.shape for n, a in given.items() if isinstance(a, np.ndarray)}
    shapes |= {"y": dim, "s": (2,)}
    numbers = {n: a for n, a in given.items() if isinstance(a, int)}
    return natural_of(ir, dim, shapes, numbers)


@pytest.mark.parametrize("name", CASES)
def test_what_the_launch_proves_asks_nothing(name: str) -> None:
    case = CASES[name]
    natural = _natural(case)
    assert natural <= conditions(case.kernel.specialise({}))
    assert _asking(case, natural) == case.asking
    assert _asking(case, frozenset()) > case.asking


@sad.kernel
def to_second_column(i: sad.Index, x: sad.In[float], y: sad.Out[float, 2]):
    y[i, 1] = x[i]


def test_stores_in_range_have_no_test() -> None:
    ir = to_second_column.specialise({})
    for rows, write in ((5, "writeInside<float, y_out>("), (4, "write<float, y_out>(")):
        natural = natural_of(ir, (5,), {"x": (5,), "y": (rows, 2)}, {})
        (found,) = lower_kernel(ir, Mode.PRIMAL, Variant(natural=natural))
        assert write in found.program.slang


@pytest.mark.gpu
@pytest.mark.parametrize("name", CASES)
def test_values_and_derivatives_are_those_of_the_oracle(name: str, device: sad.Device) -> None:
    case = CASES[name]
    check_against_oracle(case.kernel, *case.args, **case.call)
    device.synchronize()


@pytest.mark.gpu
def test_what_derivatives_of_the_user_call_may_be_anywhere(device: sad.Device) -> None:
    x = _floats(6)
    _, pullback = sad.vjp(derived, x, dim=6, bounds="ignore")
    np.testing.assert_allclose(pullback(np.ones(6))[0].numpy(), np.full(6, 2.0), rtol=1e-6)
    with pytest.raises(sad.Error) as caught:
        sad.vjp(derived, x, dim=6)[1](np.ones(6))[0].numpy()
    assert caught.value.code == "SR0660"


@pytest.mark.gpu
def test_one_call_out_of_range_is_found(device: sad.Device) -> None:
    with pytest.raises(sad.Error) as caught:
        np.asarray(called(_floats(11), _floats(6), dim=6))
    assert caught.value.code == "SR0660"


@pytest.mark.gpu
def test_each_launch_is_judged_by_its_own_extents(device: sad.Device) -> None:
    x, w = _floats(6), _floats(3)
    for count in (6, 2, 6):
        y = np.asarray(at_index(x, w[:3], dim=count))
        np.testing.assert_allclose(y, x[:count] * w[2] + x[:count], rtol=1e-6)
        with pytest.raises(sad.Error) as caught:
            np.asarray(at_index(x, w[:2], dim=count))
        assert caught.value.code == "SR0660"
        with pytest.raises(sad.Error) as caught:
            np.asarray(at_index(x[: count - 1], w, dim=count))
        assert caught.value.code == "SR0660"
    y = np.asarray(at_index(x[:4], w, dim=6, bounds="ignore"))
    np.testing.assert_allclose(y, np.append(x[:4] * w[2] + x[:4], [0, 0]), rtol=1e-6)
    device.synchronize()


@pytest.mark.gpu
def test_a_uniform_is_judged_by_its_value(device: sad.Device) -> None:
    x, w = _floats(5), _floats(20)
    wanted = ((w.reshape(4, 5) @ x) ** 2).sum() + w[0] + w[1] * w[2]
    np.testing.assert_allclose(np.asarray(layer(x, w, 5, dim=2)), [wanted] * 2, rtol=1e-5)
    with pytest.raises(sad.Error) as caught:
        np.asarray(layer(x, w, 6, dim=2))
    assert caught.value.code == "SR0660"
    y = np.asarray(layer(x, w, -3, dim=2))
    np.testing.assert_allclose(y, [w[0] + w[1] * w[2]] * 2, rtol=1e-6)
    on_device = sad.array(np.int32(5), device=device)
    np.testing.assert_allclose(np.asarray(layer(x, w, on_device, dim=2)), [wanted] * 2, rtol=1e-5)
