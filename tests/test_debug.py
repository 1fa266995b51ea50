"""``kernel.debug``: a launch's threads, one after the other in Python, write what it writes."""

from __future__ import annotations

import linecache
import sys
from itertools import product
from typing import Any

import numpy as np
import pytest

import shaderad as sad
from shaderad import float2, float2x2, float3
from shaderad.interpret.machine import neutral
from shaderad.ir.types import Access
from tests.frontend.batches import kernel_over
from tests.frontend.test_semantics import FLOAT_PAIRS, FLOATS, INT_PAIRS, INTEGERS, VALUES
from tests.lower import function_cases, golden_kernels, loop_cases, output_cases, typed_cases
from tests.lower.test_golden_on_device import CALLS
from tests.oracle import oracle

CLOSE = {"rtol": 2e-4, "atol": 2e-4}
COMBINE = {Access.OUT: lambda _, b: b, Access.ADD: np.add, Access.MIN: np.fmin, Access.MAX: np.fmax}


def flat(value: Any) -> np.ndarray:
    """The numbers of a value, fields one after the other."""
    if isinstance(value, dict):
        return np.concatenate([flat(one) for one in value.values()])
    if hasattr(value, "__dict__") and not isinstance(value, np.ndarray | list):
        return flat(vars(value))
    return np.ravel(np.asarray(value, np.float64))


def check(kernel: Any, args: tuple[Any, ...], **call: Any) -> None:
    """All threads by the debugger against one launch of the interpreter."""
    judge = oracle(kernel, *args, **call)
    dims = call["dim"] if isinstance(call["dim"], tuple) else (call["dim"],)
    found: dict[str, dict[Any, Any]] = {}
    buffers = {b.name: b for b in judge.kernel.buffers if b.access is not Access.IN}
    for index in product(*map(range, dims)):
        for name, written in kernel.debug(*args, thread=index, **call).items():
            combine = COMBINE[buffers[name].access]
            known = found.setdefault(name, {})
            for place, value in written.items():
                known[place] = combine(known[place], flat(value)) if place in known else flat(value)
    for name, wanted in judge.run.outputs.items():
        columns = flat_elements(wanted, buffers[name].type.rank)
        start = neutral(buffers[name].access, np.dtype(np.float64))
        if buffers[name].access in (Access.MIN, Access.MAX) and is_integer(wanted):
            start = neutral(buffers[name].access, np.dtype(np.int32))
        for place, numbers in columns.items():
            one = found.get(name, {}).get(place, np.full(len(numbers), start))
            np.testing.assert_allclose(one, numbers, err_msg=f"{name}[{place}]", **CLOSE)


def is_integer(wanted: Any) -> bool:
    return not isinstance(wanted, dict) and wanted.dtype.kind in "iu"


def flat_elements(wanted: Any, rank: int) -> dict[Any, np.ndarray]:
    leaf = wanted
    while isinstance(leaf, dict):
        leaf = next(iter(leaf.values()))
    found: dict[Any, np.ndarray] = {}
    for index in np.ndindex(leaf.shape[:rank]):
        found[index[0] if rank == 1 else index] = flat(at(wanted, index))
    return found


def at(wanted: Any, index: tuple[int, ...]) -> Any:
    if isinstance(wanted, dict):
        return {name: at(part, index) for name, part in wanted.items()}
    return wanted[index]


CASES = {
    **{n: (c.kernel, c.args, c.call) for n, c in loop_cases.CASES.items()},
    **{n: (c.kernel, c.args, c.call) for n, c in output_cases.CASES.items()},
    **{n: (getattr(golden_kernels, n), *call) for n, call in CALLS.items()},
    **{
        k.__name__: (k, args, {"dim": 7})
        for k, args in (function_cases.ARGUMENTS | typed_cases.ARGUMENTS).items()
    },
}


@pytest.mark.parametrize("name", CASES)
def test_all_threads_together_write_what_a_launch_writes(name: str) -> None:
    kernel, args, call = CASES[name]
    check(kernel, args, bounds="ignore", **call)


@pytest.mark.parametrize(
    ("functions", "kind", "pair"),
    [
        (INTEGERS, "int", INT_PAIRS[1]),
        (FLOATS, "float", FLOAT_PAIRS[1]),
        (VALUES, "float", FLOAT_PAIRS[1]),
    ],
    ids=["integers", "floats", "values"],
)
def test_every_function_means_the_same(
    functions: dict[str, Any], kind: str, pair: np.ndarray
) -> None:
    kernel, args = kernel_over(functions, kind), (pair[:1].copy(), pair[1:].copy())
    dim = (len(functions), 1)
    wanted = oracle(kernel, *args, dim=dim).out
    for number, name in enumerate(functions):
        found = kernel.debug(*args, dim=dim, thread=(number, 0))["out"]
        np.testing.assert_allclose(found[number, 0], wanted[number, 0], err_msg=name, **CLOSE)


@sad.struct
class Body:
    position: float3
    turn: float2x2
    marks: sad.LocalArray[int, 2]

    def moved(self, by: float3):
        b = self
        b.position += by
        b.marks[1] = 7
        return b


@sad.function
def announced(x: float) -> float:
    print("inside", x)  # noqa: T201
    return x * 2.0


@sad.kernel
def talkative(i: sad.Index, x: sad.In[float3], bodies: sad.In[Body], y: sad.Out[float3]):
    body = bodies[i]
    other = body.moved(x[i].zyx)
    print(i, x[i], body.position, other.position, other.marks[1], body.marks[1])  # noqa: T201
    v = other.position
    w = v
    w.xz = v.zx
    y[i] = v + w
    y[i].y = announced(w.y)
    print(y[i], body.turn @ v.xy)  # noqa: T201


def one_body() -> dict[str, np.ndarray]:
    return {
        "position": np.float32([[1, 2, 3]]),
        "turn": np.float32([[[0, 1], [-1, 0]]]),
        "marks": np.int32([[1, 2]]),
    }


def test_print_shows_values_as_kernels_have_them(capsys: pytest.CaptureFixture[str]) -> None:
    written = talkative.debug(np.float32([[1, 2, 4]]), one_body(), dim=1)
    assert capsys.readouterr().out.splitlines() == [
        "0 float3(1.0, 2.0, 4.0) float3(1.0, 2.0, 3.0) float3(5.0, 4.0, 4.0) 7 2",
        "inside 4.0",
        "float3(9.0, 8.0, 9.0) float2(4.0, -5.0)",
    ]
    assert list(written) == ["y"]
    assert written["y"][0].tolist() == [9, 8, 9]


@sad.kernel
def stops(i: sad.Index, x: sad.In[float], y: sad.Out[float]):
    for k in range(2):
        v = x[i] + float(k)
        breakpoint()
        y[i] += v


def test_breakpoints_stop_in_the_body_at_its_own_lines(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[tuple[str, str, float]] = []

    def hook() -> None:
        frame = sys._getframe(1)
        line = linecache.getline(frame.f_code.co_filename, frame.f_lineno).split("#")[0]
        seen.append((frame.f_code.co_name, line.strip(), float(frame.f_locals["v"])))

    monkeypatch.setattr(sys, "breakpointhook", hook)
    assert stops.debug([1.0, 2.0], dim=2, thread=1) == {"y": {1: 5.0}}
    assert seen == [("stops", "breakpoint()", 2.0), ("stops", "breakpoint()", 3.0)]


@sad.kernel
def stencil(i: sad.Index, x: sad.In[float], y: sad.Out[float], s: sad.Add[int]):
    y[i] = x[i - 1] + x[i]
    s[2 * i] += 1


def test_an_index_out_of_range_is_an_error_at_its_line_or_silent() -> None:
    call = {"dim": 3, "shapes": {"s": 3}}
    with pytest.raises(sad.BoundsError, match="index -1 is out of range for `x` of length 3") as e:
        stencil.debug([1, 2, 3], thread=0, **call)
    assert e.value.code == "SR0675"
    frames = {(frame.name, frame.path.name) for frame in e.traceback}
    assert ("stencil", "test_debug.py") in frames
    assert stencil.debug([1, 2, 3], thread=0, bounds="ignore", **call) == {
        "y": {0: 1.0}, "s": {0: 1},
    }  # fmt: skip
    assert stencil.debug([1, 2, 3], thread=2, bounds="ignore", **call) == {"y": {2: 5.0}, "s": {}}


@pytest.mark.parametrize("thread", [3, -1, (3,), (0, 0)])
def test_threads_outside_of_the_launch_are_refused(thread: Any) -> None:
    with pytest.raises(sad.ShapeError, match="has no thread") as raised:
        stencil.debug([1, 2, 3], dim=3, thread=thread)
    assert raised.value.code == "SR0676"


@sad.kernel
def numbered(i: sad.Index, start: int, y: sad.Out[float]):
    y[i] = float(start + i)


def test_a_missing_dim_is_named() -> None:
    with pytest.raises(sad.ShapeError, match="needs `dim`") as raised:
        numbered.debug(3, thread=0)
    assert raised.value.code == "SR0372"


@sad.function
def is_below(n: int, stop: int) -> bool:
    return n < stop


@sad.kernel
def runs_past_limits(i: sad.Index, stop: int, y: sad.Out[int], z: sad.Out[int]):
    for _ in range(2):
        n = 0
        while sad.limit(n < stop, 4):
            n += 1
            if n == 2:
                continue
            m = 0
            while sad.limit(m < n, 2):
                m += 1
                z[i] += 1
        y[i] += n
    while is_below(y[i], 9):
        y[i] += 1


@pytest.mark.parametrize("stop", [0, 3, 4, 9])
def test_a_while_loop_stops_at_its_limit_each_time_it_runs(stop: int) -> None:
    check(runs_past_limits, (stop,), dim=1)


@sad.kernel
def rounds(i: sad.Index, n: int, y: sad.Out[float], h: sad.Out[int]):
    y[i] = 0.1
    h[i] = n * n
    h[i] += 1


def test_floats_round_and_ints_wrap() -> None:
    written = rounds.debug(65537, dim=1)
    assert written["y"][0] == np.float32(0.1)
    assert written["h"][0] == 2**17 + 2


@sad.kernel
def derives(i: sad.Index, x: sad.In[float], y: sad.Out[float], z: sad.Out[float2]):
    y[i] = sad.fwd_diff(product_of)(sad.diff_pair(x[i], 1.0), sad.diff_pair(2.0)).d
    a, b = sad.diff_pair(x[i]), sad.diff_pair(2.0)
    sad.bwd_diff(product_of)(a, b, 10.0)
    z[i] = float2(a.d, b.d)


@sad.function
def product_of(a: float, b: float) -> float:
    return a * a * b


def test_derivatives_inside_a_body_are_those_of_the_rules() -> None:
    written = derives.debug([3.0], dim=1)
    assert written["y"][0] == 12.0
    assert written["z"][0].tolist() == [120.0, 90.0]


def test_pointers_lead_to_what_they_lead_to_in_a_launch() -> None:
    points = [np.float32([[1, 2, 3], [4, 5, 6]]), np.float32([[0, 7, 0]])]
    strips = [golden_kernels.Strip(sad.pointer(p), 2.0) for p in points]
    drawing = golden_kernels.Drawing(sad.pointer(strips), 0.5)
    written = golden_kernels.draw.debug(drawing, dim=2, thread=0)
    lengths = float(np.sum(np.linalg.norm(points[0], axis=1)))
    assert written["y"][0] == pytest.approx(2.0 + 5.0 + lengths, rel=1e-6)


def test_textures_are_filtered_by_their_texels(device: sad.Device) -> None:
    @sad.kernel
    def looked_up(
        i: sad.Index, t: sad.Texture2D[sad.float4], sky: sad.TextureCube[float],
        pages: sad.Texture2DArray[float], s: sad.Sampler, uv: sad.In[sad.float2],
        out: sad.Out[sad.float4],
    ):  # fmt: skip
        h, w = t.shape(1)
        base = t.sample(s, uv[i]) + t.load(sad.int2(i, 1)) * sky.sample(s, sad.float3(uv[i], 1.0))
        steps = t.sample_grad(s, uv[i], sad.float2(0.3, 0.0), sad.float2(0.0, 0.2))
        layers, rows, _ = pages.shape(1)
        page = pages.sample_level(s, sad.float3(uv[i], float(i)), 0.7) * float(layers * rows)
        out[i] = base + t.sample_level(s, uv[i], 0.7) * float(h * w) + steps + page

    rng = np.random.default_rng(0)
    arguments = (
        sad.texture(rng.integers(0, 255, (4, 8, 4), np.uint8), mips=True),
        sad.texture(np.float32(rng.uniform(size=(6, 4, 4))), dimension="cube"),
        sad.texture(np.float32(rng.uniform(size=(2, 4, 6))), dimension="2d-array", mips=True),
        sad.sampler(wrap="mirror"),
        np.float32(rng.uniform(-1, 1, (3, 2))),
    )
    found = looked_up(*arguments).numpy()
    for k in range(3):
        written = looked_up.debug(*arguments, thread=k)["out"]
        np.testing.assert_allclose(written[k], found[k], atol=0.05)
    with pytest.raises(sad.ShapeError, match="SR0819"):
        looked_up.debug(arguments[1], *arguments[1:], thread=0)
