"""The compiled kernels of nests move the words that `explain` states, as kernels by hand do."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from math import prod
from typing import Any

import numpy as np
import pytest

import shaderad as sad
from shaderad.compiler.artifact import Program
from shaderad.compiler.compile import compile_program
from shaderad.ir import sizes
from shaderad.ir.arrays import Graph
from shaderad.ir.sizes import Size
from shaderad.ir.types import WORD_BYTES, byte_count
from shaderad.lower.bindings import Mode, Variant
from shaderad.lower.kernels import lower_kernel
from shaderad.plan.choices import PlanChoices
from shaderad.plan.kernels import PlanKernel
from shaderad.plan.nest.words import places_of, words_per_addend, words_per_element
from shaderad.plan.planning import plan
from shaderad.plan.steps import RunKernel, RunRows, RunTiles
from tests.array_check import array
from tests.devices import entered
from tests.launch_shapes import shape_of
from tests.plan.spirv_traffic import Traffic, traffic_of
from tests.plan.test_row_chains import softmax
from tests.plan.test_tiles import product
from tests.plan.test_words import column_sums, moved, row_sums, scanned, turned

SHAPE = shape_of(lanes=32)
GROUP_BYTES = 32768


# -- the count ----------------------------------------------------------------------------------

KNOWN = """
StructuredBuffer<uint4> x;
RWStructuredBuffer<uint4> y;
groupshared uint4 held[64];
uniform uint n;

[shader("compute")] [numthreads(64, 1, 1)]
void known(uint t : SV_GroupIndex)
{
    uint4 total = x[t];
    for (uint k = 0; k < n; ++k)
    {
        for (uint j = 0; j < n; ++j)
        {
            held[t] = x[k * n + j + t];
            GroupMemoryBarrierWithGroupSync();
            total += held[63 - t];
        }
        y[t + k].x = total.w;
    }
    y[t] = total;
}
"""


def test_loops_repeat_what_they_contain() -> None:
    module = compile_program(Program("known", KNOWN, (64, 1, 1), ()), "spirv").content
    outer, inner = 3, 5
    traffic = traffic_of(module, (outer, inner))
    (loaded,), (stored,) = traffic.loaded.values(), traffic.stored.values()
    assert loaded == 4 + outer * inner * 4
    assert stored == outer * 1 + 4
    assert traffic.barriers == outer * inner
    assert traffic.loaded.keys() != traffic.stored.keys()
    with pytest.raises(ValueError, match=r"1 functions and 2 loops, but .* 1 loops"):
        traffic_of(module, (outer,))


# -- nests --------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Thread:
    """What a thread of a kernel does if it takes every branch.

    Attributes:
        loaded: Words from the arrays that it reads, in the order of their names.
        stored: Words to those that it writes.
        barriers: The barriers of its workgroup.
        trips: The iterations of the loops in its code.
    """

    loaded: Sequence[int]
    stored: Sequence[int]
    barriers: int = field(default=0)
    trips: Sequence[int] = field(default=())


BY_HAND = {
    "stream": Thread([4], [4]),
    "softmax": Thread([8], [8]),
    "transpose_tiles": Thread([4], [4], 1),
    "reduce_tiles": Thread([16], [1], 1),
    "scan_tiles": Thread([1, 16], [16], 1),
    "matmul": Thread([8, 8], [64], 2),
}
"""The same for kernels that were written by hand for one NVIDIA H200, with waves of 32 lanes.

`softmax` is for rows of 256 columns, and `matmul` for one step of 16 elements of each sum. Code for
sizes that are no multiples of 4 is left out.
"""


@pytest.fixture(scope="module")
def parallel() -> Iterator[sad.Device]:
    with entered("wgpu", {"kind": "discrete"}) as opened:
        yield opened


def row_products(x: Any, y: Any) -> Any:
    return sad.sum(x * y, axis=1)


def column_products(x: Any, y: Any) -> Any:
    return sad.sum(x * y, axis=0)


def step_of(function: Callable[..., Any], shape: tuple[int, ...], count: int) -> tuple[Any, Any]:
    """The one step of a graph of `count` arrays on a GPU, and the sizes of the graph."""
    args = [sad.array(np.ones(shape, np.float32)) for _ in range(count)]
    bound = sad.graph(function).bound(tuple(args), {})
    known = bound.form.size_by_name
    choices = PlanChoices(known, GROUP_BYTES, SHAPE)
    (step,) = choices.chosen(plan(bound.traced.variant.graph, shape=SHAPE)).steps
    return step, known


def compiled(work: PlanKernel, trips: Sequence[int]) -> tuple[Traffic, Mapping[int, str]]:
    """The traffic of a kernel, and the names of its arrays by binding."""
    variant = Variant(bounds=work.bounds, shape=SHAPE, workgroup=SHAPE.workgroup)
    (lowered,) = lower_kernel(work.kernel, Mode.PRIMAL, variant)
    names = {b.slot: b.name.removesuffix("_words") for b in lowered.program.bindings}
    return traffic_of(compile_program(lowered.program, "spirv").content, trips), names


def words_moved(
    work: PlanKernel, thread: Thread, number_of: Callable[[Size], int], count: int
) -> int:
    """The words that all threads of a kernel move, which accesses memory as `thread` does.

    An array of fewer than `count` words is accessed once, by some threads.
    """
    traffic, names = compiled(work, thread.trips)
    loaded, stored = ({names[k]: n for k, n in each.items()}
                      for each in (traffic.loaded, traffic.stored))  # fmt: skip
    assert [loaded[name] for name in sorted(loaded)] == thread.loaded
    assert [stored[name] for name in sorted(stored)] == thread.stored
    assert traffic.barriers == thread.barriers
    arrays, total = dict((*work.reads, *work.writes)), 0
    for name, words in (*loaded.items(), *stored.items()):
        value = arrays[name]
        held = number_of(sizes.product(value.shape)) * byte_count(value.element) // WORD_BYTES
        by_all = words * prod(map(number_of, work.dim))
        total += min(by_all, held) if held < count else by_all
    return total


@pytest.mark.gpu
@pytest.mark.parametrize(
    ("function", "shape", "threads"),
    [
        (moved, (64, 96), [BY_HAND["stream"]]),
        (turned, (64, 96), [BY_HAND["transpose_tiles"]]),
        (softmax, (64, 256), [BY_HAND["softmax"]]),
        # Several waves of a row meet twice for each total.
        (softmax, (4, 8192), [Thread([32], [32], 4)]),
        (row_sums, (1000, 256), [Thread([8], [1], 0, [2])]),
        (row_sums, (100, 4096), [Thread([16], [1], 1, [4])]),
        (row_sums, (1, 2**20), [Thread([16], [1], 1, [4]), Thread([2], [1], 1, [2])]),
        (row_products, (4, 64), [Thread([8, 8], [1], 0, [2])]),
        (column_sums, (4096, 256), [Thread([64], [4], 1, [16]), Thread([2], [1], 0, [2])]),
        (column_products, (200, 256), [Thread([200, 200], [4], 1, [50])]),
        (scanned, (5, 4096), [Thread([16], [16], 1)]),
        (
            scanned,
            (1, 2**20),
            [BY_HAND["reduce_tiles"], Thread([2], [2], 1), BY_HAND["scan_tiles"]],
        ),
    ],
)
def test_nests_move_the_words_that_explain_states(
    function: Callable[..., Any],
    shape: tuple[int, ...],
    threads: Sequence[Thread],
    parallel: sad.Device,
) -> None:
    step, known = step_of(function, shape, function.__code__.co_argcount)
    assert isinstance(step, RunKernel | RunRows)
    works = [step.work] if isinstance(step, RunKernel) else step.works
    places = step.writes[0].shape if isinstance(step, RunKernel) else places_of(step.instead)

    def number_of(size: Size) -> int:
        return sizes.evaluate(size, known)

    count = number_of(sizes.product(places))
    pairs = zip(works, threads, strict=True)
    total = sum(words_moved(work, thread, number_of, count) for work, thread in pairs)
    assert total / count == words_per_element(step, number_of)


def test_a_product_reads_each_element_once_for_a_block() -> None:
    x, y = array((4096, 4096)), array((4096, 4096))
    whole = plan(Graph((x, y), (product(x, y),)), shape=SHAPE)
    (step,) = PlanChoices({}, GROUP_BYTES, SHAPE).chosen(whole).steps
    assert isinstance(step, RunTiles)
    assert step.chosen is not None
    (work,), tile = step.works, step.chosen.tile
    traffic, _ = compiled(work, (1, 16))
    # Half of the threads load elements of `x`, the others elements of `y`.
    loaded = [words // 2 for words in traffic.loaded.values()]
    by_hand = BY_HAND["matmul"]
    assert loaded == by_hand.loaded
    assert [*traffic.stored.values()] == by_hand.stored
    assert traffic.barriers == by_hand.barriers
    addends = prod(tile.held) * 16
    assert sum(loaded) / addends == words_per_addend(step.sums.work, tile, int) == 2 / 128


@pytest.mark.gpu
@pytest.mark.parametrize(
    ("x", "w"), [((1, 1024, 1024), (1, 1, 7, 7)), ((16, 256, 256), (16, 16, 3, 3))]
)
def test_a_convolution_reads_what_windows_share_once(
    x: tuple[int, ...], w: tuple[int, ...], parallel: sad.Device
) -> None:
    bound = sad.graph(sad.conv).bound((np.ones(x, np.float32), np.ones(w, np.float32)), {})
    known = bound.form.size_by_name
    whole = plan(bound.traced.variant.graph, shape=SHAPE)
    (step,) = PlanChoices(known, GROUP_BYTES, SHAPE).chosen(whole).steps
    assert isinstance(step, RunTiles)
    assert step.chosen is not None
    (work,), tile = step.works, step.chosen.tile

    def number_of(size: Size) -> int:
        return sizes.evaluate(size, known)

    summed = [*map(number_of, step.sums.work.summed)]
    loops = [k for k, is_whole in enumerate(tile.are_whole) if not is_whole]
    trips = [summed[k] // tile.steps[k] for k in loops]
    if tile.run_steps:
        run = loops.index(tile.run_axis)
        trips[run : run + 1] = [trips[run] // tile.run_steps, tile.run_steps]
    traffic, _ = compiled(work, trips)
    addends = prod(tile.held) * prod(tile.steps) * prod(trips)
    assert traffic.barriers == 0
    words = words_per_addend(step.sums.work, tile, number_of)
    assert sum(traffic.loaded.values()) / addends == pytest.approx(words)
    assert sum(traffic.stored.values()) == prod(tile.held)


def scattered(x: Any, i: Any) -> Any:
    zeros = sad.zeros(5000)
    return sad.scatter_add(zeros, i, x * x), sad.scatter_add(zeros, i, x)


@pytest.mark.gpu
def test_scatters_load_each_summand_once(parallel: sad.Device) -> None:
    count = 1000
    args = np.ones(count, np.float32), np.zeros(count, np.int32)
    bound = sad.graph(scattered).bound(args, {})
    known = bound.form.size_by_name
    choices = PlanChoices(known, GROUP_BYTES, SHAPE)
    (step,) = choices.chosen(plan(bound.traced.variant.graph, shape=SHAPE)).steps
    assert isinstance(step, RunKernel)
    traffic, _ = compiled(step.work, ())
    assert [*traffic.loaded.values()] == [1, 1]
    assert [*traffic.added.values()] == [1, 1]
    assert not traffic.stored
    assert words_per_element(step, lambda size: sizes.evaluate(size, known)) == 4
