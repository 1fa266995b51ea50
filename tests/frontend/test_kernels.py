"""Whole kernels: parameters of every kind, arrays in functions, captured values, derivatives."""

import enum
import math

import numpy as np
import pytest

import shaderad as sad
from shaderad import float2, float3

pytestmark = pytest.mark.usefixtures("device")
X = np.arange(6, dtype=np.float32) - 2
SCALE = 2.0


class Mode(enum.Enum):
    HALF = 1
    DOUBLE = 2


@sad.struct
class Grid:
    heights: sad.In[float, 2]
    origin: float2
    step: float

    def at(self, row: int, column: int) -> float:
        return self.heights[row, column] * self.step + self.origin.x

    def row_sum(self, row: int) -> float:
        s = 0.0
        for k in range(self.heights.shape[1]):
            s += self.at(row, k)
        return s


@sad.struct
class World:
    grid: Grid
    weights: sad.In[float]


@sad.function
def add_up(values: sad.In[float], first: int, count: sad.Const[int]) -> float:
    s = 0.0
    for k in range(count):
        s += values[first + k]
    return s


@sad.function
def deposit(total: sad.Add[float], where: int, amount: float):
    if amount < 0.0:
        return
    total[where] += amount


@sad.function
def world_value(world: World, index: int) -> float:
    return world.grid.row_sum(index) * world.weights[index]


@sad.kernel
def sums(i: sad.Index, a: sad.In[float], b: sad.In[float], y: sad.Out[float]):
    y[i] = add_up(a, i, 2) + add_up(b, i, count=3) * 100


@sad.kernel
def deposits(i: sad.Index, x: sad.In[float], bins: sad.Add[float], other: sad.Add[float]):
    deposit(bins, i % 2, x[i])
    deposit(other, 0, 1.0)


@sad.kernel
def worlds(i: sad.Index, world: World, y: sad.Out[float]):
    y[i] = world_value(world, i) + world.grid.at(i, 0) + len(world.weights)


@sad.kernel
def powers(i: sad.Index, x: sad.In[float], n: sad.Const[int], y: sad.Out[float]):
    t = sad.LocalArray[float, n + 1]()
    for k in sad.static_range(n):
        t[k] = x[i]
    y[i] = x[i] ** n + t[n - 1] * n


@sad.kernel
def modes(i: sad.Index, x: sad.In[float], mode: sad.Const[int], y: sad.Out[float]):
    y[i] = x[i] * 2 if mode == Mode.DOUBLE.value else x[i] / 2


@sad.kernel
def scaled(i: sad.Index, x: sad.In[float], y: sad.Out[float]):
    y[i] = SCALE * x[i]


@sad.kernel
def image(y: sad.Index, x: sad.Index, src: sad.In[float, 2], out: sad.Out[float, 2]):
    h, w = src.shape
    out[y, x] = src[h - 1 - y, w - 1 - x] + 100 * h + 10 * len(src) + src.shape[-1]


@sad.kernel
def components(i: sad.Index, x: sad.In[float], y: sad.Out[float3]):
    y[i].x = x[i] * 2
    y[i].y = x[i] * 3
    if x[i] > 0:
        y[i].zx = y[i].xz
    y[i].z += x[i] * 4


@sad.kernel
def reversed_copy(i: sad.Index, x: sad.In[float], y: sad.Out[float]):
    y[sad.unique(len(x) - 1 - i)] = x[i]


@sad.kernel
def extremes(i: sad.Index, x: sad.In[float], low: sad.Min[float], high: sad.Max[float]):
    low[i % 2] = sad.min(low[i % 2], x[i])
    high[0] = max(x[i], high[0])


@sad.kernel
def uniforms(i: sad.Index, m: sad.float2x2, v: float2, n: int, flag: bool, u: sad.uint,
             y: sad.Out[float]):  # fmt: skip
    r = m @ v
    y[i] = r.x + 10 * r.y + n + (100 if flag else 0) + float(u) * 1000


@sad.function
def square(x: float) -> float:
    return x * x


@sad.kernel
def derivatives(i: sad.Index, x: sad.In[float], y: sad.Out[float3]):
    pair = sad.diff_pair(x[i])
    sad.bwd_diff(square)(pair, 1.0)
    value = sad.fwd_diff(square)(sad.diff_pair(x[i], 2.0))
    y[i] = float3(pair.d, value.p, value.d)


def test_functions_take_arrays_and_constants() -> None:
    y = sums(X, X + 1, dim=3).numpy()
    wanted = [X[i : i + 2].sum() + 100 * (X[i : i + 3] + 1).sum() for i in range(3)]
    assert y.tolist() == wanted


def test_functions_add_to_the_array_they_are_given() -> None:
    bins, other = deposits(X, dim=6, shapes={"bins": (2,), "other": (1,)})
    assert bins.numpy().tolist() == [2.0, 4.0]
    assert other.numpy().tolist() == [6.0]


def test_structs_of_arrays_come_apart_at_any_depth() -> None:
    heights = np.arange(6, dtype=np.float32).reshape(2, 3)
    world = World(Grid(heights, np.float32([0.5, 9.0]), 2.0), np.float32([1.0, 3.0]))
    y = worlds(world, dim=2).numpy()
    at = heights * 2 + 0.5
    assert y.tolist() == (at.sum(1) * [1, 3] + at[:, 0] + 2).tolist()


def test_constants_are_known_while_compiling() -> None:
    for n in (2, 3):
        assert powers(X, n, dim=6).numpy().tolist() == (X**n + X * n).tolist()


def test_enum_members_serve_as_constants() -> None:
    assert modes(X, Mode.DOUBLE, dim=6).numpy().tolist() == (X * 2).tolist()
    assert modes(X, Mode.HALF.value, dim=6).numpy().tolist() == (X / 2).tolist()


def test_captured_globals_are_read_at_each_call(monkeypatch: pytest.MonkeyPatch) -> None:
    assert scaled(X, dim=6).numpy().tolist() == (X * 2).tolist()
    monkeypatch.setitem(globals(), "SCALE", np.float32(3))
    assert scaled(X, dim=6).numpy().tolist() == (X * 3).tolist()


def test_kernels_inside_functions_see_the_names_around_them() -> None:
    @sad.struct
    class Line:
        slope: float
        base: float

        def at(self, x: float) -> float:
            return self.slope * x + self.base + shift

    @sad.function
    def twice(x: float) -> float:
        return x * 2

    @sad.kernel
    def local(i: sad.Index, line: Line, x: sad.In[float], y: sad.Out[float]):
        own: Line = line
        own.base = 1.0
        y[i] = twice(own.at(x[i]))

    shift = 0.5
    assert local(Line(2.0, 7.0), X, dim=6).numpy().tolist() == (2 * (2 * X + 1.5)).tolist()
    shift = 1.5
    assert local(Line(2.0, 7.0), X, dim=6).numpy().tolist() == (2 * (2 * X + 2.5)).tolist()


def test_two_axes() -> None:
    src = np.arange(6, dtype=np.float32).reshape(2, 3)
    out = image(src, dim=(2, 3)).numpy()
    assert out.tolist() == (src[::-1, ::-1] + 200 + 20 + 3).tolist()


def test_components_of_an_own_element() -> None:
    y = components(X, dim=6).numpy()
    wanted = np.stack([X * 2, X * 3, np.zeros_like(X)], 1)
    wanted[X > 0] = wanted[X > 0][:, [2, 1, 0]]
    wanted[:, 2] += X * 4
    assert y.tolist() == wanted.tolist()


def test_unique_writes_elsewhere() -> None:
    assert reversed_copy(X, dim=6, shapes={"y": (6,)}).numpy().tolist() == X[::-1].tolist()


def test_extremes_keep_what_nobody_touches() -> None:
    low, high = extremes(X, dim=6, shapes={"low": (3,), "high": (2,)})
    assert low.numpy().tolist() == [-2.0, -1.0, math.inf]
    assert high.numpy().tolist() == [3.0, -math.inf]


def test_uniforms_of_every_kind() -> None:
    m = np.float32([[1, 2], [3, 4]])
    y = uniforms(m, np.float32([5, 6]), -7, True, 4, dim=1).numpy()
    assert y.tolist() == [17 + 390 - 7 + 100 + 4000]


def test_derivatives_inside_a_kernel() -> None:
    y = derivatives(X, dim=6).numpy()
    assert y.tolist() == np.stack([2 * X, X * X, 4 * X], 1).tolist()


@sad.kernel
def quotients(i: sad.Index, a: sad.In[int], b: sad.In[int], y: sad.Out[int]):
    y[i] = a[i] // b[i] + a[i] % b[i] * 100


@sad.kernel
def shifted(i: sad.Index, a: sad.In[int], y: sad.Out[int]):
    y[i] = (a[i] << 33) + (1 << a[i])


@sad.kernel
def checked(i: sad.Index, x: sad.In[float], y: sad.Out[float]):
    assert x[i] > -1.5, "x is too small"
    y[i] = x[i]


@sad.kernel
def beyond(i: sad.Index, x: sad.In[float], y: sad.Out[float]):
    t = sad.LocalArray[float, 3]()
    t[i] = x[i + 1]
    y[i] = t[i] + 1


@sad.kernel
def compared(i: sad.Index, x: sad.In[float], z: sad.In[float], y: sad.Out[sad.int4],
             negated: sad.Out[sad.int4], n: sad.Out[int]):  # fmt: skip
    a, b = x[i], z[i]
    y[i] = sad.int4(a == b, a != b, a < b, a >= b)
    negated[i] = sad.int4(not a == b, not a != b, not a < b, not a >= b)
    nan = math.nan
    n[i] = int(nan != nan) + 2 * int(a != a) + 4 * int(sad.any(float2(a) != float2(b)))


def test_comparisons_with_nan_are_those_of_python() -> None:
    x = np.float32([math.nan, 1, math.nan, 1])
    z = np.float32([1, math.nan, math.nan, 1])
    y, negated, n = compared(x, z, dim=4)
    wanted = np.stack([x == z, x != z, x < z, x >= z], 1)
    assert y.numpy().tolist() == wanted.astype(int).tolist()
    assert negated.numpy().tolist() == (~wanted).astype(int).tolist()
    assert n.numpy().tolist() == [7, 5, 7, 1]


def test_division_of_ints_by_zero_gives_zero_and_is_reported() -> None:
    a, b = np.int32([7, 7]), np.int32([2, 0])
    y = quotients(a, b, dim=2)
    with pytest.raises(sad.BoundsError, match="quotients"):
        y.numpy()
    assert quotients(a, b, dim=2, bounds="ignore").numpy().tolist() == [103, 0]


def test_shift_counts_are_taken_modulo_32() -> None:
    assert shifted(np.int32([3, 35]), dim=2).numpy().tolist() == [6 + 8, 70 + 8]


def test_a_failing_assert_is_reported_with_its_text() -> None:
    y = checked(X, dim=6)
    with pytest.raises(sad.BoundsError, match="x is too small"):
        y.numpy()
    assert checked(X, dim=6, bounds="ignore").numpy().tolist() == X.tolist()


def test_indices_out_of_range_read_zero_and_write_nothing() -> None:
    with pytest.raises(sad.BoundsError, match="beyond"):
        beyond(X, dim=6).numpy()
    y = beyond(X, dim=6, bounds="ignore").numpy()
    assert y.tolist() == [*(X[1:4] + 1).tolist(), 1.0, 1.0, 1.0]


def test_a_kernel_is_read_again_whenever_what_it_read_differs(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Without a launch: the IR is another one."""

    @sad.struct
    class Lens:
        focal: float = 2.0

    @sad.function
    def squared(x: float) -> float:
        return x * x

    class Settings:
        rates = (1.0, (2, Mode))

    @sad.kernel
    def kernel(i: sad.Index, x: sad.In[float], y: sad.Out[float]):
        y[i] = squared(x[i]) + abs(x[i]) * Lens().focal + Settings.rates[0]

    def backward(x: sad.DifferentialPair[float], y_bar: float):
        x.d += 3.0 * y_bar

    seen = [kernel.specialise({})]
    assert kernel.specialise({}) is seen[0]
    squared.backward_derivative(backward)
    seen.append(kernel.specialise({}))
    monkeypatch.setattr(Lens, "focal", 3.0)
    seen.append(kernel.specialise({}))
    monkeypatch.setitem(globals(), "abs", squared)
    seen.append(kernel.specialise({}))
    monkeypatch.setattr(Settings, "rates", (1.0, (2, enum.Enum("Mode", "HALF"))))
    seen.append(kernel.specialise({}))
    assert len(set(map(id, seen))) == len(seen)
    monkeypatch.setattr(Settings, "rates", (float("1"), Settings.rates[1]))
    assert kernel.specialise({}) is seen[-1]
