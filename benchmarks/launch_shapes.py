"""The numbers of `shaderad.compiler.launch_shapes` for this device against others.

    python benchmarks/launch_shapes.py [--runtime wgpu] [--rounds 9] [FIELD ...]

For each number, programs that depend on it run with other numbers in its place, all on the device
and in turn. Results are compared first: a number with other results than that of the table is
reported as wrong, and is not timed. Printed are milliseconds with the number of the table, and the
medians of the others' ratios to it: below 1, another number is the better one. Inputs are resident;
each run waits.
"""

from __future__ import annotations

import argparse
import statistics
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from timing import alternated, median_ratio, on_each, waited

import shaderad as sad
from shaderad import float4
from shaderad.compiler import launch_shapes
from shaderad.compiler.launch_shapes import LaunchShape

Run = Callable[[], Any]
"""Runs a program, and returns its array or arrays."""
Program = Callable[[], Run]
"""Makes the inputs of a program on the current device."""
COUNT = 1 << 20
TOLERANCE = 1e-3
"""Of the largest element: other numbers add up floats in another order."""


@sad.kernel
def shade(i: sad.Index, x: sad.In[float4], y: sad.Out[float4]):
    y[i] = sad.sqrt(x[i] * x[i] + 1.0)


@sad.kernel
def march(i: sad.Index, x: sad.In[float], y: sad.Out[float]):
    """As many steps as the data say."""
    at = x[i]
    for _ in range(int(64.0 * x[i])):
        at = at * 0.999 + 0.001
    y[i] = at


@sad.kernel
def scaled(i: sad.Index, x: sad.In[float], w: sad.In[float], y: sad.Out[float]):
    """All threads read the same weights."""
    y[i] = w[0] * x[i] * x[i] + w[1] * x[i] + w[2]


@sad.kernel
def blended(i: sad.Index, texels: sad.In[float4, 2], uv: sad.In[sad.float2], y: sad.Out[float4]):
    at = uv[i] * float(texels.shape[0] - 2)
    row, column = int(at.x), int(at.y)
    down, right = at.x - float(row), at.y - float(column)
    upper = (1.0 - right) * texels[row, column] + right * texels[row, column + 1]
    lower = (1.0 - right) * texels[row + 1, column] + right * texels[row + 1, column + 1]
    y[i] = (1.0 - down) * upper + down * lower


@sad.kernel
def picked(i: sad.Index, x: sad.In[float], k: sad.In[int], y: sad.Out[float]):
    y[i] = x[k[i]] * x[k[i]]


# -- programs -----------------------------------------------------------------------------------


def floats(*shape: int) -> np.ndarray[Any, Any]:
    """The same each time, so that results can be compared."""
    return np.random.default_rng(0).random(shape, np.float32)


def of_graph(function: Callable[..., Any], *arrays: np.ndarray[Any, Any]) -> Program:
    def program() -> Run:
        graph, given = sad.graph(function), [sad.array(x) for x in arrays]
        return lambda: graph(*given)

    return program


def plain() -> Run:
    x = sad.array(floats(COUNT, 4), dtype=float4)
    return lambda: shade(x, dim=COUNT)


def uneven() -> Run:
    x = sad.array(floats(COUNT))
    return lambda: march(x, dim=COUNT)


def same_addresses() -> Run:
    x, w = sad.array(floats(COUNT)), sad.array(floats(3))
    bar = sad.full((COUNT,), 1.0)
    return lambda: sad.vjp(lambda w: scaled(x, w, dim=COUNT), w)[1](bar)


def looked_up(at_random: bool) -> Program:
    """The gradient by 512 x 512 texels of a lookup a pixel."""

    def program() -> Run:
        side = 1024
        rows, columns = np.divmod(np.arange(side * side), side)
        uv = np.stack([rows, columns], 1).astype(np.float32) / side
        uv = np.random.default_rng(0).permutation(uv) if at_random else uv
        texels = sad.array(floats(512, 512, 4), dtype=float4)
        at, bar = sad.array(uv, dtype=sad.float2), sad.cast(sad.full((side * side,), 1.0), float4)
        return lambda: sad.vjp(lambda t: blended(t, at, dim=side * side), texels)[1](bar)

    return program


def gathered(size: int, count: int) -> Program:
    """The gradient of a gather at random."""

    def program() -> Run:
        x, bar = sad.array(floats(size)), sad.full((count,), 1.0)
        k = sad.array(np.random.default_rng(0).integers(0, size, count).astype(np.int32))
        return lambda: sad.vjp(lambda x: picked(x, k, dim=count), x)[1](bar)

    return program


def total(x: Any) -> Any:
    return sad.sum(x, axis=1)


def prefixes(x: Any) -> Any:
    return sad.cumsum(x)


def order(x: Any) -> Any:
    return sad.argsort(x)


def product(x: Any, y: Any) -> Any:
    return x @ y


def of_columns(x: Any) -> Any:
    return sad.sum(x, axis=0)


def swept(x: Any) -> Any:
    """Steps that read the elements beside their own."""
    return sad.fori_loop(50, lambda _, p: 0.5 * (sad.roll(p, 1) + sad.roll(p, -1)) + 0.001 * x, x)


# -- numbers ------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Contest:
    """A number, others in its place, and the programs that decide."""

    change: Callable[[LaunchShape, Any], LaunchShape]
    others: tuple[Any, ...]
    programs: dict[str, Program]
    has_waves: bool = True
    """False for a number of devices without waves: all sides go without."""


def field(name: str) -> Callable[[LaunchShape, Any], LaunchShape]:
    return lambda row, value: replace(row, **{name: value})


def cut(name: str) -> Callable[[LaunchShape, Any], LaunchShape]:
    return lambda row, value: replace(row, rows=replace(row.rows, **{name: value}))


LONG_ROWS = {
    "sum of 16M": of_graph(total, floats(1, 1 << 24)),
    "sums of 16 rows of 64k": of_graph(total, floats(16, 1 << 16)),
    "scan of 4M": of_graph(prefixes, floats(1 << 22)),
}
GATHERS = {
    "4M additions to 64": gathered(64, 1 << 22),
    "4M additions to 1,024": gathered(1024, 1 << 22),
    "4M additions to 4,096": gathered(4096, 1 << 22),
    "256k additions to 4,096": gathered(4096, 1 << 18),
}
SORTS = {f"order of {n:,}": of_graph(order, floats(n)) for n in (4096, 16384, 65536, 1 << 20)}
KERNELS = {"float4 map": plain, "data-dependent loop": uneven}
PRODUCTS = {
    "512 x 512 x 512": of_graph(product, floats(512, 512), floats(512, 512)),
    "16384 x 64 x 64": of_graph(product, floats(16384, 64), floats(64, 64)),
    "64 x 16384 x 64": of_graph(product, floats(64, 16384), floats(16384, 64)),
    "16 x 65536 x 32": of_graph(product, floats(16, 65536), floats(65536, 32)),
}
COLUMNS = {
    "columns of 65536 x 64": of_graph(of_columns, floats(65536, 64)),
    "columns of 4096 x 4096": of_graph(of_columns, floats(4096, 4096)),
}
LOOPS = {f"50 sweeps over {n:,}": of_graph(swept, floats(n)) for n in (64, 1024, 8192, 65536)}
CONTESTS = {
    "workgroup": Contest(field("workgroup"), (32, 64, 128, 256), KERNELS),
    "group_limit": Contest(field("group_limit"), (0, 32, 64, 128, 256, 1024), KERNELS),
    "sum_group_limit": Contest(
        field("sum_group_limit"), (32, 128, 512, 1024, 4096), {"same addresses": same_addresses}
    ),
    "adds_at_barriers": Contest(
        field("adds_at_barriers"), (False, True), {"same addresses": same_addresses}
    ),
    "held_additions": Contest(
        field("held_additions"),
        (0, 4, 8),
        {"lookups on a grid": looked_up(False), "lookups at random": looked_up(True)},
    ),
    "copied_words": Contest(field("copied_words"), (0, 1024, 4096), GATHERS),
    "indices_per_copied_word": Contest(field("indices_per_copied_word"), (1, 4, 16, 64), GATHERS),
    "fewest_copying_groups": Contest(field("fewest_copying_groups"), (1, 4, 16, 64), GATHERS),
    "rows.longest_whole": Contest(cut("longest_whole"), (512, 2048, 8192, 32768), LONG_ROWS),
    "rows.chunk_length": Contest(cut("chunk_length"), (128, 512, 1024, 4096), LONG_ROWS),
    "rows.is_together": Contest(cut("is_together"), (False, True), LONG_ROWS),
    "shortest_by_digits": Contest(field("shortest_by_digits"), (0, 1, 8192, 32768, 131072), SORTS),
    "tile_rows": Contest(field("tile_rows"), (4, 8, 16), PRODUCTS),
    "lane_teams": Contest(field("lane_teams"), ((), (4,), (8, 4)), PRODUCTS),
    "shares_in_groups": Contest(
        field("shares_in_groups"), (False, True), PRODUCTS, has_waves=False
    ),
    "enough_threads": Contest(field("enough_threads"), (1024, 2048, 4096, 8192, 32768), PRODUCTS),
    "stream": Contest(field("stream"), (8192, 32768, 131072), COLUMNS),
    "shortest_stream": Contest(field("shortest_stream"), (8, 32, 128), COLUMNS),
    "loop_threads": Contest(field("loop_threads"), ((32, 64), (32, 256), (128, 256)), LOOPS),
    "loop_step_cost": Contest(field("loop_step_cost"), (-1, 500_000, 10**9), LOOPS),
}


@contextmanager
def rows_changed(contest: Contest, value: Any) -> Iterator[None]:
    """All rows of the table with another number."""
    before = dict(launch_shapes.TABLE)
    for kind, row in before.items():
        changed = contest.change(row, value)
        launch_shapes.TABLE[kind] = (
            changed if contest.has_waves else replace(changed, lane_teams=())
        )
    try:
        yield
    finally:
        launch_shapes.TABLE.update(before)


def held(name: str, shape: LaunchShape) -> Any:
    """The number that the device has."""
    found: Any = shape
    for part in name.split("."):
        found = getattr(found, part)
    return found


def results_of(run: Run) -> list[np.ndarray[Any, Any]]:
    found = run()
    arrays = found if isinstance(found, tuple | list) else [found]
    return [np.asarray(x.numpy(), np.float64) for x in arrays if x is not None]


def are_equal(found: list[np.ndarray[Any, Any]], expected: list[np.ndarray[Any, Any]]) -> bool:
    return all(
        np.allclose(x, y, rtol=TOLERANCE, atol=TOLERANCE * np.abs(y).max(initial=0.0))
        for x, y in zip(found, expected, strict=True)
    )


def decide(runtime: str, name: str, contest: Contest, rounds: int) -> None:
    """Prints a line for each program."""
    with sad.open_device(runtime) as device:
        own = held(name, device.capabilities.launch_shape)
    others = [value for value in contest.others if value != own]
    for title, program in contest.programs.items():
        steps: dict[str, Callable[[], None]] = {}
        devices: list[sad.Device] = []
        expected: list[np.ndarray[Any, Any]] = []
        for value in (own, *others):
            with rows_changed(contest, value):
                device = sad.open_device(runtime)
                devices.append(device)
                with device:
                    run = program()
                    found = results_of(run)
            expected = expected or found
            if are_equal(found, expected):
                steps[str(value)] = waited(device, run)
        times = alternated(steps, rounds)
        mine = times[str(own)]
        ratio_by_value = {v: median_ratio(x, mine) for v, x in times.items()}
        ratios = "  ".join(
            f"{v}: {ratio_by_value[str(v)]:.2f}" if str(v) in times else f"{v}: WRONG RESULTS"
            for v in others
        )
        median = statistics.median(mine)
        print(f"{runtime:8} {name:18} {title:24} {own}: {median:7.2f} ms   {ratios}", flush=True)
        for device in devices:
            device.close()


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("fields", nargs="*", metavar="FIELD", choices=[*CONTESTS, []])
    parser.add_argument("--runtime", nargs="*", default=[])
    parser.add_argument("--rounds", type=int, default=9)
    given = parser.parse_args()

    def run(runtime: str) -> None:
        for name in given.fields or CONTESTS:
            decide(runtime, name, CONTESTS[name], given.rounds)

    on_each(given.runtime, run)


if __name__ == "__main__":
    main()
