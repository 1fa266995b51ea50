"""The way back over a loop finds what its inner loops came to, and does not run them again."""

from __future__ import annotations

import re

import pytest

import shaderad as sad
from shaderad import float3
from shaderad.decorators import KernelFunction
from tests.agreement import check_against_oracle
from tests.lower.golden_kernels import text_of
from tests.lower.loop_cases import floats
from tests.lower.reference import Case

N = 6


@sad.kernel
def linear_inside(i: sad.Index, w: sad.In[float], x: sad.In[float], y: sad.Out[float]):
    """The inner loop is linear in what it carries: only its result matters."""
    total = 0.0
    for j in range(4):
        part = x[i]
        for k in range(3):
            part += w[3 * j + k] * x[(i + k) % 6]
        total += sad.max(part, 0.2) * part
    y[i] = total


@sad.kernel
def nonlinear_inside(i: sad.Index, x: sad.In[float], y: sad.Out[float]):
    """The inner loop has states of its own, and runs again for them."""
    total = x[i]
    for _ in range(4):
        part = total
        for _ in range(3):
            part = sad.sin(part) + x[i]
        total = total * part
    y[i] = total


@sad.function
def nearest(w: sad.In[float], p: float) -> float:
    d = 10.0
    for k in range(3):
        d = sad.min(d, sad.abs(p - 3.0 * float(k) * w[k]))
    return d


@sad.kernel
def calls_inside(i: sad.Index, w: sad.In[float], x: sad.In[float], y: sad.Out[float]):
    """A call of a function with a loop, in a loop that may be left, after its result changes."""
    t = x[i]
    for step in range(1, 20, 2):
        d = nearest(w, t)
        d = d * d
        if d < 0.01:
            break
        t += 0.2 * nearest(w, d) + 0.01 * float(step)
    y[i] = t


@sad.kernel
def while_inside(i: sad.Index, n: int, x: sad.In[float], y: sad.Out[float]):
    """An inner loop whose count only its results tell, in two loops that have a limit."""
    t = x[i]
    for _ in sad.range(n, limit=8):
        for _ in range(2):
            part, steps = t, 0
            while steps < n + i % 2:
                part += 0.3 * x[(i + steps) % 6]
                steps += 1
            t = 0.5 * sad.sin(part * t) + 0.1 * float(steps)
    y[i] = t


@sad.kernel
def branches_inside(i: sad.Index, w: sad.In[float], x: sad.In[float], y: sad.Out[float]):
    """Loops in branches of a loop, and a name that two loops of an iteration write."""
    total = x[i]
    for j in range(5):
        part = 0.0
        if (i + j) % 2 == 0:
            for k in range(3):
                part += w[k] * total
        else:
            part = total * total
        for k in range(2):
            part += w[k + 3] * x[i]
        total = sad.sin(part)
        for k in range(2):
            part += w[k] * w[k]
        total += sad.sin(part)
    y[i] = total


@sad.kernel
def many_iterations(i: sad.Index, w: sad.In[float], x: sad.In[float], y: sad.Out[float]):
    """There is no room for results beside the states."""
    t = x[i]
    for j in range(3000):
        part = 0.0
        for k in range(2):
            part += w[k] * x[(i + j) % 6]
        t = 0.9 * t + part * part
    y[i] = t


@sad.function
def settled(w: sad.In[float], x: float, n: int) -> float3:
    """Both what it adds to its carry and how often are known at run time."""
    at = float3(x, 0.5, 1.0)
    for k in sad.range(n, limit=9):
        at = sad.sin(at) + w[k] * at.yzx
        if at.x > 1.3:
            break
    return at * at.y


@sad.function
def settled_twice(w: sad.In[float], x: float, n: int) -> float:
    first = settled(w, x, n)
    return sad.dot(first, settled(w, first.z, n - 1))


@sad.kernel
def calls_in_front(i: sad.Index, w: sad.In[float], n: int, x: sad.In[float], y: sad.Out[float]):
    """Calls outside of loops, in a branch, one in another, with what they gave used on."""
    value = nearest(w, x[i])
    if i % 2 == 0:
        value = value * settled_twice(w, value, n + i % 3)
    y[i] = sad.sin(value) + nearest(w, value) * settled(w, value, 3).x


@sad.function
def shifted(points: sad.LocalArray[float, 3], by: float) -> float:
    """Its own copy is a place, which what is kept of it must not be mixed up with."""
    own = points
    for k in range(3):
        own[k] = own[k] * by + points[2 - k]
    by = by * own[0]
    return own[0] * own[1] + by


@sad.kernel
def calls_that_write(i: sad.Index, x: sad.In[float], y: sad.Out[float]):
    points = sad.LocalArray[float, 3]()
    for k in range(3):
        points[k] = x[(i + k) % 6]
    value = shifted(points, x[i])
    points[1] = value
    y[i] = shifted(points, value) * points[0]


@sad.function
def scaled(w: sad.In[float], p: float, by: float) -> float:
    return nearest(w, p) * by


@sad.kernel
def calls_in_calls(i: sad.Index, w: sad.In[float], x: sad.In[float], y: sad.Out[float]):
    """What the inner call gives is read by the way back of the outer one alone."""
    y[i] = scaled(w, x[i], x[(i + 1) % 6])


@sad.struct
class Bag:
    items: sad.LocalArray[float, 4]
    scale: float


@sad.function
def total_of(items: sad.LocalArray[float, 4], count: int) -> float:
    total = 0.0
    for k in range(count):
        total += items[k % 4] * items[(k + 1) % 4]
    return total


@sad.function
def total_of_bag(bag: Bag, count: int) -> float:
    return total_of(bag.items, count) * bag.scale


@sad.kernel
def parts_of_arrays(i: sad.Index, x: sad.In[float], count: int, y: sad.Out[float]):
    """Arrays that are fields, elements of other arrays, and results of nothing but a name."""
    bag = Bag(sad.LocalArray[float, 4](), x[i])
    for k in range(4):
        bag.items[k] = x[(i + k) % 6]
    bags = sad.LocalArray[Bag, 2]()
    bags[0] = bag
    bag.items[count % 4] = bag.scale * 2.0
    bags[i % 2] = bag
    whole = total_of_bag(bag, count) + total_of(bag.items, 3)
    y[i] = whole + total_of(bags[count % 2].items, count)


@sad.function
def bowl(p: float, center: float) -> float:
    """No loop, but as much work as to keep its result."""
    q = sad.sqrt((p - center) * (p - center) + 0.3)
    return sad.sin(q) * q - sad.exp(-q)


@sad.kernel
def calls_in_expressions(i: sad.Index, w: sad.In[float], x: sad.In[float], y: sad.Out[float],
                         total: sad.Add[float]):  # fmt: skip
    """Some run in each iteration, some in one side of a choice, and one is the whole value."""
    d = 10.0
    for k in range(4):
        d = sad.min(d, bowl(x[i], w[k]) + bowl(bowl(d, w[k]), 0.5))
        d = d * bowl(x[i], d) if d > 0.4 else d - 0.5
        if k % 2 == 0 and bowl(d, 0.1) > 0.0:
            d += bowl(d, x[i])
        part = bowl(d, w[k + 1])
        total[i] += part * bowl(part, d)
    y[i] = d


W, X = floats(16, seed=50), floats(N, seed=51)
CASES = {
    "linear": Case(linear_inside, (W, X), N),
    "nonlinear": Case(nonlinear_inside, (X,), N),
    "calls": Case(calls_inside, (W, X), N),
    "while": Case(while_inside, (3, X), N),
    "branches": Case(branches_inside, (W, X), N),
    "many": Case(many_iterations, (W, X), N),
    "in_front": Case(calls_in_front, (W, 3, X), N),
    "that_write": Case(calls_that_write, (X,), N),
    "in_calls": Case(calls_in_calls, (W, X), N),
    "parts_of_arrays": Case(parts_of_arrays, (X, 6), N),
    "in_expressions": Case(calls_in_expressions, (W, X), N, {"total": (N,)}),
}


@pytest.mark.parametrize(
    ("kernel", "kept"),
    [
        (linear_inside, ["part_kept"]),
        (nonlinear_inside, ["part_kept", "total_kept"]),
        (calls_inside, ["d_kept", "d_kept", "t_kept"]),
        (branches_inside, ["part_kept", "part_kept", "total_kept"]),
        (
            calls_in_expressions,
            ["d_kept", "part_kept", *(f"value_{k}_kept" for k in (2, 3, 4)), "value_kept"],
        ),
    ],
)
def test_what_is_kept_is_what_partial_derivatives_read(
    kernel: KernelFunction, kept: list[str]
) -> None:
    """By name: the states of `nearest` are its own."""
    found = re.findall(r"Array<float, \d+> (\w+_kept)", text_of(kernel))
    assert sorted(found) == kept


def test_a_function_with_a_loop_runs_once_before_the_way_back() -> None:
    backward = re.split(r"// \w+_(?:bwd|fwd): ", text_of(calls_in_front))[1]
    assert not re.search(r"\b(nearest|settled|settled_twice)\(", backward)
    assert {"nearest", "settled", "settled_twice"} == set(
        re.findall(r"void (\w+)_keeping", backward)
    )


@pytest.mark.gpu
@pytest.mark.parametrize("name", CASES)
def test_gradients_are_those_of_the_oracle(name: str, device: sad.Device) -> None:
    case = CASES[name]
    check_against_oracle(case.kernel, *case.args, **case.call)
    device.synchronize()
