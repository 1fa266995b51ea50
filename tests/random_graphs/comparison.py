"""One random graph on one device: its results, its vjp and its jvp.

One in `STATEFUL_EVERY` is also a graph function, which captures state that changes between calls.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any
from unittest import mock

import numpy as np

import shaderad as sad
from shaderad.calls.run_graph import run_graph
from shaderad.execute.runner import evaluate
from shaderad.interpret.arrays import evaluate as in_numpy
from shaderad.ir.arrays import Graph
from shaderad.ir.types import HALF
from shaderad.rules.arrays import jvp, loops, vjp
from tests.driver_accuracy import sine_error
from tests.random_graphs.generation import Case

TOLERANCE = 2e-3
"""Sums and products of some hundred float32 numbers near 1, and differences of such."""
HALF_TOLERANCE = 3e-2
"""The same where some of them were rounded to 11 bits on the way."""
STATEFUL_EVERY = 5
"""One graph of so many is also called with state that it captures, and that changes."""
CALLS = 6
TERM_COUNT = 4
"""The numbers, of at most 1 each, that state adds up to an input."""
TERMS = 200
"""Of such a sum, each of which may be as far off as a sine."""
ROUNDED, HALF_ROUNDED = 2**-18, 2**-9
"""Relative changes of the inputs, as of several roundings; what they move, float64 may be off."""
LACKING = "SR0608"
"""A device without half or double."""


def fault(case: Case, device: sad.Device) -> str:
    """What is wrong; empty where everything agrees.

    Raises:
        DeviceError: SR0608, for what the device lacks.
    """
    rng = np.random.default_rng(case.seed)
    graph = case.graph
    shapes = [_shape(case, v.shape) for v in graph.inputs]
    data = [rng.uniform(-1, 1, shape).astype(np.float32) for shape in shapes]
    dots = [rng.uniform(-1, 1, shape).astype(np.float32) for shape in shapes]
    bars = [rng.uniform(-1, 1, _shape(case, v.shape)).astype(np.float32) for v in graph.outputs]
    tried = {
        "primal": (graph, data),
        "vjp": (pulled(case), [*data, *bars]),
        "jvp": (jvp(graph, [True] * len(data)), [*data, *dots]),
    }
    for name, (one, given) in tried.items():
        found = _difference(case, one, given, device)
        if found:
            return f"seed {case.seed}, {name} at {case.sizes}: {found}"
    # A graph function takes an extent of 1 for a number, which the random graph names.
    if case.seed % STATEFUL_EVERY == 0 and 1 not in case.sizes.values():
        found = _stateful_difference(case, data, bars, device)
        if found:
            return f"seed {case.seed}, with captured state at {case.sizes}: {found}"
    return ""


@dataclass
class State:
    """What a graph function captures, and what changes between its calls."""

    scale: float
    settings: SimpleNamespace
    table: np.ndarray[Any, Any]
    shift: sad.Array

    def change(self, rng: np.random.Generator) -> None:
        """Changes one of them, or nothing, to numbers that floats hold exactly."""
        number = float(rng.integers(1, 8)) / 8
        which = rng.integers(5)
        if which == 0:
            self.scale = number
        elif which == 1:
            self.settings.offset = number
        elif which == 2:
            self.table[0] = number
        elif which == 3:
            self.shift = sad.array(np.float32(number), device=self.shift.device)

    def moved(self, x: Any) -> Any:
        """An input as the graph sees it, between -1 and 1 as all inputs; also of NumPy arrays."""
        shift = self.shift if isinstance(x, sad.Array) else self.shift.numpy()
        return (x * self.scale + (self.settings.offset + self.table[0]) + shift) / TERM_COUNT


def _stateful(graph: Graph, state: State) -> Callable[..., Any]:
    """`graph` as a function whose inputs are moved by what it captures."""
    rows, table = sad.Array[float, "n"], sad.Array[float, "m", "n"]

    @sad.graph
    def moved(
        a: rows, b: table, c: rows, d: sad.Array[float, 3], e: sad.Array[float, ()], *others: Any
    ) -> Any:
        return run_graph(graph, [state.moved(x) for x in (a, b, c, d, e, *others)], {}, None)

    return moved


def _stateful_difference(
    case: Case, data: Sequence[Any], bars: Sequence[Any], device: sad.Device
) -> str:
    """Calls a graph function while the state changes that it captured, each time with its vjp."""
    rng = np.random.default_rng(case.seed)
    half = sad.array(np.float32(0.5), device=device)
    state = State(1.0, SimpleNamespace(offset=0.25), np.float32([0.125, 3.0]), half)
    function = _stateful(case.graph, state)
    backward = pulled(case)

    def run() -> list[Any]:
        results, pullback = sad.vjp(function, *(sad.array(x, device=device) for x in data))
        gradients = pullback([sad.array(bar, device=device) for bar in bars])
        return [one.numpy() for one in (*results, *gradients)]

    for _ in range(CALLS):
        state.change(rng)
        moved = [np.asarray(state.moved(x), np.float32) for x in data]
        given = [*moved, *bars]
        expected, reports = in_numpy(backward, given, case.sizes)
        count = len(case.graph.outputs)
        rate = state.scale / TERM_COUNT
        expected = [*expected[:count], *(rate * gradient for gradient in expected[count:])]
        found = _ran(run, reports)
        difference = found if isinstance(found, str) else _compared(
            case, backward, given, found, expected, device
        )  # fmt: skip
        if difference:
            return f"{state}: {difference}"
    return ""


def pulled(case: Case) -> Graph:
    """The vjp graph; in half of all cases loops have segments."""
    with mock.patch.object(loops, "LITTLE_BYTES", 1 if case.seed % 2 else loops.LITTLE_BYTES):
        return vjp(case.graph, [True] * len(case.graph.inputs))


def _shape(case: Case, shape: Sequence[Any]) -> tuple[int, ...]:
    from shaderad.ir import sizes

    return tuple(sizes.evaluate(extent, case.sizes) for extent in shape)


def _difference(case: Case, graph: Graph, given: Sequence[Any], device: sad.Device) -> str:
    expected, reports = in_numpy(graph, given, case.sizes)
    uploaded = [sad.array(x, device=device) for x in given]

    def run() -> list[Any]:
        return [one.numpy() for one in evaluate(graph, uploaded, case.sizes, device)]

    found = _ran(run, reports)
    if isinstance(found, str):
        return found
    return _compared(case, graph, given, found, expected, device)


def _ran(run: Callable[[], list[Any]], reports: Any) -> list[Any] | str:
    """What a run found, or what is wrong with it: nothing, where it reports what it should."""
    try:
        return run()
    except sad.BoundsError as failure:
        return "" if reports else str(failure)
    except Exception as failure:
        if isinstance(failure, sad.DeviceError) and failure.code == LACKING:
            raise
        return f"{type(failure).__name__}: {failure}"


def _compared(
    case: Case,
    graph: Graph,
    given: Sequence[Any],
    found: Sequence[Any],
    expected: Sequence[Any],
    device: sad.Device,
) -> str:
    holds_half = any(v.element == HALF for node in graph.nodes for v in node.results)
    tolerance = max(HALF_TOLERANCE if holds_half else TOLERANCE, TERMS * sine_error(device))
    step = HALF_ROUNDED if holds_half else ROUNDED
    for k, (a, e) in enumerate(zip(found, expected, strict=True)):
        if a.shape != e.shape:
            return f"output {k} has shape {a.shape}, not {e.shape}"
        # The mean of an empty row is NaN on both sides.
        differ = ~((a == e) | (np.isnan(a) & np.isnan(e)))
        scale = 1 + np.abs(e[np.isfinite(e)]).max(initial=0)
        error = np.abs(a[differ] - e[differ]).max(initial=0) / scale
        if not error <= tolerance:
            moved = _moved(case, graph, given, k, step)
            if not error <= 2 * moved:
                return f"output {k} is off by {error:.1e}, and moves by {moved:.1e} with its inputs"
    return ""


def _moved(case: Case, graph: Graph, given: Sequence[Any], k: int, step: float) -> float:
    """How far output `k` of float64 moves where all inputs change by `step` of themselves."""
    rng = np.random.default_rng(case.seed)
    changed = [x * (1 + step * rng.choice((-1, 1), x.shape)).astype(np.float32) for x in given]
    (before, *_), (after, *_) = (
        in_numpy(Graph(graph.inputs, (graph.outputs[k],)), one, case.sizes)[0]
        for one in (given, changed)
    )
    return float(np.abs(after - before).max(initial=0) / (1 + np.abs(before).max(initial=0)))
