"""`print` in kernels: lines, their order, and that a derivative prints nothing again."""

# ruff: noqa: T201

from __future__ import annotations

import re
import struct
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import shaderad as sad
from shaderad import double, double2, float2, float2x2, float3, half, half3
from shaderad.device.reports import PRINT_BYTES, has_prints, printed
from shaderad.diagnostics import Span
from shaderad.differentiate.transforms import Pullback
from shaderad.interpret import interpret
from shaderad.ir.shown import PrintForm
from shaderad.ir.types import INT
from shaderad.lower.bindings import Lowered, Mode, Role, Site, SiteKind, Variant
from shaderad.lower.kernels import lower_kernel

gpu = pytest.mark.gpu
Capture = pytest.CaptureFixture[str]


@sad.struct
class Sample:
    at: float2
    count: int


@sad.struct
class Ray:
    origin: float3
    sample: Sample
    weights: sad.LocalArray[float, 2]
    is_hit: bool


def lines_of(device: sad.Device, capture: Capture, run: Callable[[], Any]) -> list[str]:
    """What `run` and the synchronisation after it print, without file and line."""
    capture.readouterr()
    run()
    device.synchronize()
    text = capture.readouterr().out
    device.synchronize()
    assert capture.readouterr().out == ""
    return [re.sub(r" test_prints\.py:\d+:", "", line) for line in text.splitlines()]


# -- lines ------------------------------------------------------------------------------------


@sad.kernel
def hello(i: sad.Index, j: sad.Index):
    print("hello", i, j)


@gpu
def test_lines_say_kernel_thread_and_python_line(device: sad.Device, capsys: Capture) -> None:
    hello(dim=(2, 2))
    assert capsys.readouterr().out == ""
    device.synchronize()
    line = hello.def_span.line + 1
    assert capsys.readouterr().out.splitlines() == [
        f"hello[{i}, {j}] test_prints.py:{line}: hello {i} {j}" for i in range(2) for j in range(2)
    ]


NAME = "name"


@sad.kernel
def everything(i: sad.Index, x: sad.In[float], m: float2x2, y: sad.Out[float]):
    ray = Ray(float3(x[i], 0.1, -1.0), Sample(float2(x[i]), i), sad.LocalArray[float, 2](), i > 0)
    print(f"{i=} {x[i]:.3f}|{x[i]:>6}|{i:03d}|{i:x}|{i > 0}|{2.0:.1f}", NAME, (i, x.shape))
    print(ray, m, sep=" and ", end="!\n")
    print(f"{ray.origin:.2f}{{}}", sad.uint(4000000000), -i, float3(1.0).xy)
    print()
    y[i] = x[i]


EVERYTHING = [
    "everything[1] i=1 0.100|   0.1|001|1|True|2.0 name (1, (2,))",
    "everything[1] Ray(origin=float3(0.1, 0.1, -1.0), sample=Sample(at=float2(0.1, 0.1), count=1), "
    "weights=[0.0, 0.0], is_hit=True) and float2x2([1.0, 2.0], [3.0, 4.0])!",
    "everything[1] float3(0.10, 0.10, -1.00){} 4000000000 -1 float2(1.0, 1.0)",
    "everything[1] ",
]
MATRIX = np.float32([[1, 2], [3, 4]])


@gpu
def test_numbers_vectors_matrices_and_structs_have_one_form(
    device: sad.Device, capsys: Capture
) -> None:
    found = lines_of(device, capsys, lambda: everything([0.5, 0.1], MATRIX, dim=2))
    assert len(found) == 8
    assert found[4:] == EVERYTHING


def test_one_thread_as_python_prints_the_same(capsys: Capture) -> None:
    everything.debug([0.5, 0.1], MATRIX, dim=2, thread=1)
    found = capsys.readouterr().out.splitlines()
    assert found == [line.removeprefix("everything[1] ") for line in EVERYTHING]


@gpu
def test_the_interpreter_prints_the_same(device: sad.Device, capsys: Capture) -> None:
    x = np.float32([0.5, 0.25])
    found = lines_of(device, capsys, lambda: everything(x, MATRIX, dim=2))
    ir = everything.specialise({})
    run = interpret(ir, dim=2, arrays={"x": x}, uniforms={"m": MATRIX}, rounds_constants=False)
    assert [f"everything[{line.thread}] {line.text}" for line in run.printed] == [
        f"{line}\n" for line in found
    ]


@sad.kernel
def wide(i: sad.Index, y: sad.Out[float]):
    print(half(0.1), double(0.1), double2(0.1, 1.0), half3(0.1, 2.0, 3.0), 1e20)
    y[i] = 1.0


@gpu
def test_each_number_has_the_digits_of_its_type(device: sad.Device, capsys: Capture) -> None:
    if not {"half", "double"} <= device.capabilities.features:
        pytest.skip("no half or no double")
    text = "wide[0] 0.1 0.1 double2(0.1, 1.0) half3(0.1, 2.0, 3.0) 1e+20"
    assert lines_of(device, capsys, lambda: wide(dim=1)) == [text]


# -- order and control flow -------------------------------------------------------------------


@sad.function
def clipped(x: float) -> float:
    print("in", x, end="; ")
    if x > 1.0:
        print("early")
        return x
    print("late")
    return x * x


@sad.kernel
def walks(i: sad.Index, x: sad.In[float], y: sad.Out[float]):
    total = 0.0
    for k in range(i + 1):
        total += clipped(x[i]) * 0.5
        if k == 1:
            print("break", k)
            break
    y[i] = total
    if i == 0:
        return
    print("end", clipped(2.0))


WALKS = [
    "walks[0] in 0.5; late",
    "walks[1] in 2.0; early",
    "walks[1] in 2.0; early",
    "walks[1] break 1",
    "walks[1] in 2.0; early",
    "walks[1] end 2.0",
    "walks[2] in 0.25; late",
    "walks[2] in 0.25; late",
    "walks[2] break 1",
    "walks[2] in 2.0; early",
    "walks[2] end 2.0",
]
WALKED = np.float32([0.5, 2.0, 0.25])


@gpu
@pytest.mark.parametrize("bounds", ["raise", "ignore", "unchecked"])
def test_threads_come_in_order_and_each_in_its_own(
    bounds: str, device: sad.Device, capsys: Capture
) -> None:
    assert lines_of(device, capsys, lambda: walks(WALKED, dim=3, bounds=bounds)) == WALKS


@gpu
@pytest.mark.parametrize("checks", ["nan", "writes"])
def test_checks_change_no_line(checks: str, device: sad.Device, capsys: Capture) -> None:
    assert lines_of(device, capsys, lambda: walks(WALKED, dim=3, checks=checks)) == WALKS


@gpu
def test_launches_come_one_after_the_other(device: sad.Device, capsys: Capture) -> None:
    def run() -> None:
        walks(WALKED[::-1].copy(), dim=3)
        walks(WALKED, dim=3)

    found = lines_of(device, capsys, run)
    assert found[-len(WALKS) :] == WALKS
    assert found[0] == "walks[0] in 0.25; late"


@gpu
def test_many_threads_come_in_order(device: sad.Device, capsys: Capture) -> None:
    found = lines_of(device, capsys, lambda: hello(dim=(70, 130)))
    assert found == [f"hello[{i}, {j}] hello {i} {j}" for i in range(70) for j in range(130)]


@gpu
def test_a_launch_without_threads_prints_nothing(device: sad.Device, capsys: Capture) -> None:
    assert lines_of(device, capsys, lambda: hello(dim=(0, 3))) == []


@gpu
def test_wgsl_prints_as_spirv(device: sad.Device, capsys: Capture) -> None:
    if device.capabilities.runtime != "wgpu":
        pytest.skip("only wgpu takes WGSL")
    with sad.open_device("wgpu", limits={"formats": ("wgsl",)}) as other:
        assert lines_of(other, capsys, lambda: walks(WALKED, dim=3)) == WALKS
    other.close()


# -- the buffer -------------------------------------------------------------------------------


@sad.kernel
def flood(i: sad.Index, y: sad.Out[int]):
    for k in range(100):
        print(i, k)
    y[i] = i


@gpu
def test_what_does_not_fit_is_counted_and_the_next_lines_come(
    device: sad.Device, capsys: Capture
) -> None:
    *lines, last = lines_of(device, capsys, lambda: flood(dim=2000))
    left_out = re.fullmatch(r"shaderad: (\d+) more lines .* did not fit .* 1 MiB", last)
    assert left_out is not None
    assert len(lines) == (PRINT_BYTES // 4 - 4) // 9
    assert len(lines) + int(left_out[1]) == 200_000
    pairs = [tuple(map(int, line.split()[1:])) for line in lines]
    assert pairs == sorted(set(pairs))
    assert len(lines_of(device, capsys, lambda: flood(dim=3))) == 300


SITE = Site(SiteKind.PRINT, Span("/x/kernels.py", 7), "print", PrintForm(("k ", ""), (INT,), ("",)))


def buffer(claimed: int, left_out: int, *records: tuple[int, ...]) -> bytes:
    """What threads leave: site + 1, launch, thread, number, three extents, and the value."""
    content = bytearray(PRINT_BYTES)
    struct.pack_into("<3I", content, 0, claimed, left_out & 0xFFFFFFFF, left_out >> 32)
    for k, record in enumerate(records):
        struct.pack_into("<8I", content, 16 + 32 * k, *record)
    return bytes(content)


def lines_in(content: bytes) -> list[str]:
    return printed(content, lambda number: (f"kernel{number}", SITE)).splitlines()


def test_an_untouched_buffer_has_no_lines() -> None:
    assert not has_prints(bytes(16))


def test_lines_that_do_not_end_go_on_in_their_thread_alone() -> None:
    content = buffer(
        24, 0, (1, 5, 9, 0, 4, 0, 0, 3), (2, 5, 2, 1, 4, 0, 0, 2), (2, 5, 2, 0, 4, 0, 0, 1)
    )
    assert lines_in(content) == [
        "kernel1[0, 2] kernels.py:7: k 1k 2",
        "kernel0[2, 1] kernels.py:7: k 3",
    ]


def test_words_claimed_by_what_did_not_fit_are_not_read() -> None:
    content = buffer(PRINT_BYTES, (1 << 32) + 1, (1, 0, 0, 0, 0, 0, 0, 8))
    first, last = lines_in(content)
    assert first == "kernel0[0] kernels.py:7: k 8"
    assert last.startswith("shaderad: 4294967297 more lines")


@gpu
def test_lines_come_before_the_error_of_the_same_launch(
    device: sad.Device, capsys: Capture
) -> None:
    @sad.kernel
    def fails(i: sad.Index, x: sad.In[float], y: sad.Out[float]):
        print("reads", i + 1)
        y[i] = x[i + 1]

    fails([1.0, 2.0], dim=2)
    with pytest.raises(sad.BoundsError):
        device.synchronize()
    assert [line.split(": ")[1] for line in capsys.readouterr().out.splitlines()] == [
        "reads 1",
        "reads 2",
    ]
    device.synchronize()


@sad.kernel
def silent_walks(i: sad.Index, x: sad.In[float], y: sad.Out[float]):
    y[i] = x[i]


def lowered(kernel: Any, mode: Mode, limit: int = 16) -> Lowered:
    variant = Variant(
        wanted=frozenset({"x"}), launch_shaped=frozenset({"y"}), storage_buffer_limit=limit
    )
    return lower_kernel(kernel.specialise({}), mode, variant)[0]


def test_only_what_prints_binds_the_buffer() -> None:
    for kernel, mode, is_bound in (
        (walks, Mode.PRIMAL, True),
        (walks, Mode.BACKWARD, False),
        (walks, Mode.FORWARD, False),
        (silent_walks, Mode.PRIMAL, False),
    ):
        found = lowered(kernel, mode)
        assert (Role.PRINT in {r.role for r in found.resources}) == is_bound
        assert ("Printer" in found.program.slang) == is_bound


def test_the_buffer_counts_among_those_that_a_device_binds() -> None:
    with pytest.raises(sad.CompileError, match="`print`") as raised:
        lowered(walks, Mode.PRIMAL, limit=3)
    assert raised.value.code == "SR0507"


# -- derivatives ------------------------------------------------------------------------------


@sad.kernel
def plain(i: sad.Index, x: sad.In[float], y: sad.Out[float]):
    total = 0.0
    for _k in sad.range(i + 1, limit=4):
        total += sad.sin(x[i]) * x[i + 1]
        if total > 1.0:
            break
    y[i] = total


@sad.function
def told(x: float) -> float:
    print("sin of", x)
    return sad.sin(x)


@sad.kernel
def loud(i: sad.Index, x: sad.In[float], y: sad.Out[float]):
    total = 0.0
    for k in sad.range(i + 1, limit=4):
        print(k, x[i + 1], x[0])
        total += told(x[i]) * x[i + 1]
        if total > 1.0:
            print(f"{total=}")
            break
    y[i] = total


X = np.float32([0.3, 1.4, 0.9, 1.2])
X_DOT = np.float32([0.5, -1.0, 2.0, 0.25])


def loss_of(kernel: Any) -> Callable[[Any], Any]:
    return lambda x: sad.sum(kernel(x, dim=3))


def gradients(kernel: Any) -> dict[str, Callable[[], Any]]:
    """Derivatives of one evaluation of `kernel` each."""
    graph = sad.graph(loss_of(kernel))

    def pulled() -> Any:
        _, pull = sad.vjp(kernel, X, dim=3)
        return [pull(np.ones(3, np.float32)), pull(np.float32([1, 2, 3]))]

    def x() -> sad.Array:
        return sad.array(X)

    return {
        "vjp": pulled,
        "jvp": lambda: sad.jvp(kernel, (X,), (X_DOT,), dim=3),
        "grad": lambda: sad.grad(loss_of(kernel))(x()),
        "value_and_grad": lambda: sad.value_and_grad(loss_of(kernel))(x()),
        "hvp": lambda: sad.hvp(loss_of(kernel), (x(),), (X_DOT,)),
        "jacobian": lambda: sad.jacobian(lambda x: kernel(x, dim=3))(x()),
        "graph": lambda: graph(x()),
        "grad of graph": lambda: sad.grad(graph)(x()),
        "jvp of graph": lambda: sad.jvp(graph, (x(),), (X_DOT,)),
        "hvp of graph": lambda: sad.hvp(graph, (x(),), (X_DOT,)),
        "grad in graph": lambda: sad.graph(lambda x: 2.0 * sad.grad(loss_of(kernel))(x))(x()),
    }


def numbers(found: Any) -> list[np.ndarray]:
    if isinstance(found, tuple | list):
        return [one for part in found for one in numbers(part)]
    return [] if found is None or isinstance(found, Pullback) else [np.asarray(found.numpy())]


@gpu
@pytest.mark.parametrize("name", gradients(plain))
def test_a_derivative_prints_once_and_is_what_it_is_without(
    name: str, device: sad.Device, capsys: Capture
) -> None:
    wanted = numbers(gradients(plain)[name]())
    once = lines_of(device, capsys, lambda: loud(X, dim=3))
    assert len(once) == 12
    found: list[np.ndarray] = []
    lines = lines_of(device, capsys, lambda: found.extend(numbers(gradients(loud)[name]())))
    assert lines == once
    assert len(found) == len(wanted) > 0
    for one, other in zip(found, wanted, strict=True):
        np.testing.assert_array_equal(one, other)


@gpu
def test_gradcheck_takes_a_kernel_that_prints(device: sad.Device) -> None:
    del device
    assert sad.gradcheck(loud, X, dim=3)


@sad.function
def cubed(x: float) -> float:
    print("cubed", x)
    return x * x * x


@sad.kernel
def derives(i: sad.Index, x: sad.In[float], y: sad.Out[float]):
    a = sad.diff_pair(x[i])
    sad.bwd_diff(cubed)(a, 1.0)
    b = sad.fwd_diff(cubed)(sad.diff_pair(x[i], 1.0))
    print(a.d, b.d)
    y[i] = cubed(x[i])


def test_derivatives_inside_of_a_kernel_are_silent_in_every_form(
    device: sad.Device, capsys: Capture
) -> None:
    found = lines_of(device, capsys, lambda: derives([2.0], dim=1))
    assert found == ["derives[0] 12.0 12.0", "derives[0] cubed 2.0"]
    derives.debug([2.0], dim=1, thread=0)
    assert capsys.readouterr().out.splitlines() == ["12.0 12.0", "cubed 2.0"]


@sad.function
def squared(x: float) -> float:
    print("squared", x)
    return x * x


@squared.backward_derivative
def squared_bwd(x: sad.DifferentialPair[float], d: float):
    print("backward", x.p, d)
    x.d += 2.0 * x.p * d


@sad.kernel
def chain(i: sad.Index, x: sad.In[float], y: sad.Out[float]):
    total = x[i]
    for _k in sad.range(3):
        total = squared(total)
    y[i] = total


@gpu
def test_a_derivative_of_the_users_own_prints_where_it_runs(
    device: sad.Device, capsys: Capture
) -> None:
    found = lines_of(device, capsys, lambda: sad.grad(loss_of(chain))(sad.array(X)))
    assert [line for line in found if line.startswith("chain[1] squared")] == [
        line for line in lines_of(device, capsys, lambda: chain(X, dim=3)) if "chain[1]" in line
    ]
    backward = [line for line in found if line.startswith("chain[1] backward")]
    assert len(backward) == 3
    assert backward[0].endswith(" 1.0")


@sad.kernel
def lowest(i: sad.Index, x: sad.In[float], m: sad.Min[float]):
    print("sees", x[i])
    m[0] = sad.min(m[0], x[i])


@gpu
def test_finding_who_has_the_minimum_prints_nothing(device: sad.Device, capsys: Capture) -> None:
    found: list[Any] = []

    def run() -> None:
        call = sad.value_and_grad(lambda x: sad.sum(lowest(x, dim=4, shapes={"m": 1})))
        found.extend(call(sad.array(X)))

    assert len(lines_of(device, capsys, run)) == 4
    np.testing.assert_array_equal(found[1].numpy(), [1, 0, 0, 0])


# -- on numbers -------------------------------------------------------------------------------


def test_a_function_on_numbers_prints_as_python(capsys: Capture) -> None:
    assert clipped(0.1) == pytest.approx(0.01)
    assert capsys.readouterr().out == "in 0.1; late\n"
