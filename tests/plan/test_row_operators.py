"""Reductions and scans of rows agree with the oracle, whoever folds them, at known and open sizes.

Threads alone fold rows on a processor, and together on what says that it is a GPU.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pytest

import shaderad as sad
from shaderad.execute import graph_plans
from shaderad.execute.planned_steps import Known
from shaderad.execute.runner import evaluate
from shaderad.interpret.arrays import evaluate as in_numpy
from shaderad.ir import arrays, ops, sizes
from shaderad.ir import composing as c
from shaderad.ir.arrays import ArrayType, Graph, Reducer, Value
from shaderad.ir.nodes import Assign, ElementStep, For, Function, Parameter, Return
from shaderad.ir.types import (
    BOOL,
    DOUBLE,
    FLOAT,
    HALF,
    INT,
    UINT,
    LocalArray,
    Matrix,
    Struct,
    Type,
    Vector,
)
from shaderad.plan.choices import PlanChoices
from shaderad.runtime import Capabilities
from tests.agreement import close
from tests.devices import entered

pytestmark = pytest.mark.gpu

Array = np.ndarray[Any, Any]
LENGTHS = (0, 1, 2, 8, 63, 64, 65, 127, 128, 257, 1000, 2048, 2049, 8193, 100_003, 1_000_003)
ROWS = ((1, 300), (300, 1), (7, 1000), (1000, 7), (3, 0), (0, 3), (5, 5_000), (2, 20_000))
SUMS = 1e-6
"""Sums of up to 1e6 floats in trees lose about as much as each element did."""


@pytest.fixture(
    params=[(name, kind) for name in ("wgpu", "slangpy") for kind in ("alone", "together")],
    ids=lambda pair: f"{pair[0]}-{pair[1]}", scope="module",
)  # fmt: skip
def folding(request: pytest.FixtureRequest) -> Iterator[sad.Device]:
    runtime, kind = request.param
    with entered(runtime, {"kind": "discrete"} if kind == "together" else None) as opened:
        yield opened


@pytest.fixture(params=["known", "open"])
def extents(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """Lets plans know no size if these are open."""
    if request.param == "open":
        chosen = graph_plans.choices_of

        def of_no_sizes(known: Known, capabilities: Capabilities) -> PlanChoices:
            return replace(chosen(known, capabilities), known={})

        monkeypatch.setattr(graph_plans, "choices_of", of_no_sizes)
    return request.param


def reduced_and_scanned(op: Reducer, t: Type, rank: int, *, has_init: bool = False) -> Graph:
    """The reductions and scans of rows of `rank` axes."""
    shape = tuple(sizes.symbol(f"n{k}") for k in range(rank))
    x, init = Value(ArrayType(t, shape)), Value(ArrayType(t, shape[:-1]))
    total = arrays.Reduce(operands=(x, init) if has_init else (x,), op=op)
    scan = arrays.Scan(operands=(x,), op=op)
    return Graph((x, init), (total.result, scan.result))


def run(graph: Graph, given: list[Any], device: sad.Device) -> list[Array]:
    types = [v.element for v in graph.inputs]
    placed = [sad.array(data, dtype=t, device=device) for data, t in zip(given, types, strict=True)]
    known = {f"n{k}": extent for k, extent in enumerate(placed[0].shape)}
    return [result.numpy() for result in evaluate(graph, placed, known, device)]


def drawn(*shape: int) -> Array:
    return np.random.default_rng([5, *shape]).uniform(0.5, 1.5, shape).astype(np.float32)


def test_rows_are_summed_and_scanned(folding: sad.Device, extents: str) -> None:
    for rank, shapes in ((1, [(n,) for n in LENGTHS]), (2, ROWS), (3, [(2, 3, 130)])):
        graph = reduced_and_scanned(ops.ADD, FLOAT, rank)
        for shape in shapes:
            x, what = drawn(*shape), f"{shape}, {extents}"
            total, scanned = run(graph, [x, np.zeros(shape[:-1], np.float32)], folding)
            np.testing.assert_allclose(total, x.sum(-1, dtype=np.float64), SUMS, err_msg=what)
            np.testing.assert_allclose(scanned, x.cumsum(-1, np.float64), SUMS, err_msg=what)


# -- operators --------------------------------------------------------------------------------


def function(t: Type, value: Any, body: tuple[Any, ...] = (), **local_types: Type) -> Function:
    parameters = (Parameter(name="left", type=t), Parameter(name="right", type=t))
    return Function(name="then", parameters=parameters, result=t,
                    body=(*body, Return(value=value)), local_types=local_types)  # fmt: skip


def matrix_product() -> Function:
    """Does not commute."""
    t = Matrix(FLOAT, 2, 2)
    return function(t, c.apply(ops.MATMUL, c.variable("left", t), c.variable("right", t)))


AFFINE = Struct("Affine", (("factor", FLOAT), ("count", INT), ("offset", FLOAT)))


def recurrence() -> Function:
    """``r -> r factor + offset``, one after the other, counted."""
    left, right = c.variable("left", AFFINE), c.variable("right", AFFINE)
    moved = c.apply(ops.MUL, c.field(left, "offset"), c.field(right, "factor"))
    parts = [
        c.apply(ops.MUL, c.field(left, "factor"), c.field(right, "factor")),
        c.apply(ops.ADD, c.field(left, "count"), c.field(right, "count")),
        c.apply(ops.ADD, moved, c.field(right, "offset")),
    ]
    return function(AFFINE, c.construct(AFFINE, parts))


def kept(count: int) -> Struct:
    return Struct("Kept", (("of", LocalArray(FLOAT, count)),))


def last_and_sum(t: Struct) -> Function:
    """Keeps the last element's odd entries, and sums the even ones."""
    inner = t.type_by_field["of"]
    assert isinstance(inner, LocalArray)
    made, k = c.variable("made", inner), c.variable("k", INT)
    left, right = (c.field(c.variable(n, t), "of") for n in ("left", "right"))
    grown = c.apply(ops.ADD, c.element(left, k), c.element(right, k))
    grow = Assign(name="made", path=(ElementStep(index=k),), value=grown)
    loop = For(variable="k", start=c.whole(0), stop=c.whole(inner.count), step=c.whole(2),
               body=(grow,))  # fmt: skip
    return function(t, c.construct(t, [made]), (Assign(name="made", value=right), loop),
                    made=inner, k=INT)  # fmt: skip


@dataclass(frozen=True)
class Case:
    op: Reducer
    element: Type
    shapes: tuple[tuple[int, ...], ...] = ((1,), (2, 65), (5, 300), (3, 2100))


CASES = {
    "products": Case(ops.MUL, FLOAT, ((1,), (2, 65), (9000,))),
    "minima of vectors": Case(ops.MIN, Vector(FLOAT, 3)),
    "maxima of ints": Case(ops.MAX, INT),
    "maxima of halves": Case(ops.MAX, HALF),
    "sums of doubles": Case(ops.ADD, DOUBLE),
    "minima of uints": Case(ops.MIN, UINT),
    "all": Case(ops.BIT_AND, BOOL),
    "any": Case(ops.BIT_OR, BOOL),
    "sums of structs": Case(ops.ADD, AFFINE),
    "sums of matrices": Case(ops.ADD, Matrix(FLOAT, 3, 2)),
    "matrix products": Case(matrix_product(), Matrix(FLOAT, 2, 2), ((1,), (2, 65), (9000,))),
    "a recurrence": Case(recurrence(), AFFINE),
    "local arrays": Case(last_and_sum(kept(6)), kept(6)),
    "large elements": Case(last_and_sum(kept(25)), kept(25)),
}


def draw(t: Type, shape: tuple[int, ...], rng: np.random.Generator) -> Any:
    """Elements whose long products stay in range."""
    if isinstance(t, Struct):
        return {name: draw(f, shape, rng) for name, f in t.fields}
    if isinstance(t, LocalArray):
        return rng.uniform(-1, 1, (*shape, t.count)).astype(np.float32)
    if isinstance(t, Matrix):
        turns = np.eye(t.row_count, t.column_count)
        return (turns + rng.normal(0, 0.01, (*shape, *turns.shape))).astype(np.float32)
    if isinstance(t, Vector):
        return draw(t.element, (*shape, t.count), rng)
    if t == BOOL:
        return rng.random(shape) < 0.5
    if t in (INT, UINT):
        return rng.integers(0 if t == UINT else -50, 50, shape).astype(str(t) + "32")
    dtypes = {HALF: np.float16, FLOAT: np.float32, DOUBLE: np.float64}
    return (1 + rng.normal(0, 0.01, shape)).astype(dtypes[t])


@pytest.mark.sample(6)
@pytest.mark.parametrize("name", CASES)
def test_operators_agree_with_the_oracle(name: str, folding: sad.Device, extents: str) -> None:
    case, rng = CASES[name], np.random.default_rng(3)
    for shape in case.shapes:
        data = draw(case.element, shape, rng)
        init = draw(case.element, shape[:-1], rng)
        graph = reduced_and_scanned(case.op, case.element, len(shape), has_init=True)
        known = {f"n{k}": extent for k, extent in enumerate(shape)}
        judged, _ = in_numpy(graph, [data, init], known)
        for found, exact in zip(run(graph, [data, init], folding), judged, strict=True):
            close(found, exact, f"{shape}, {extents}")


# -- reads and code ---------------------------------------------------------------------------


@pytest.mark.parametrize("length", [5, 3000])
def test_elements_that_are_gathered_are_checked(
    length: int, folding: sad.Device, extents: str
) -> None:
    def looked_up(x: Any, i: Any) -> Any:
        return sad.sum(x[i]), sad.cumsum(x[i])

    x, places = drawn(length), np.random.default_rng(1).integers(0, length, 2 * length, np.int32)
    with folding:
        total, scanned = sad.graph(looked_up)(x, places)
        exact = x[places].astype(np.float64)
        np.testing.assert_allclose(total.numpy(), exact.sum(), 1e-5, err_msg=extents)
        np.testing.assert_allclose(scanned.numpy(), exact.cumsum(), 1e-5, err_msg=extents)
        places[7] = length
        for result in sad.graph(looked_up)(x, places):
            with pytest.raises(sad.BoundsError):
                result.numpy()
            break
        folding.synchronize()


@pytest.mark.parametrize("length", [3, 300, 5000])
def test_long_code_of_elements_keeps_sums_exact(
    length: int, folding: sad.Device, extents: str
) -> None:
    def total(x: Any) -> Any:
        for _ in range(12):
            x = x + 0.125 * sad.abs(x)
            x = sad.where(x > 4.0, 0.25 * x, x)
        return sad.sum(x, axis=1)

    x = drawn(3, length)
    with folding:
        found = sad.graph(total)(x).numpy()
    wide = x.astype(np.float64)
    for _ in range(12):
        wide = wide + 0.125 * np.abs(wide)
        wide = np.where(wide > 4, 0.25 * wide, wide)
    np.testing.assert_allclose(found, wide.sum(1), 3e-6, err_msg=extents)
