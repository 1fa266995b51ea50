"""Reductions and scans of rows agree with the oracle on every runtime.

Each case runs with threads alone or with groups together, so that software devices test both.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

import shaderad as sad
from shaderad.interpret.arrays import evaluate
from shaderad.ir import arrays, ops
from shaderad.ir import composing as c
from shaderad.ir.arrays import ArrayType, Graph, Reducer, Value
from shaderad.ir.nodes import Assign, ElementStep, For, Function, Parameter, Return
from shaderad.ir.types import (
    BOOL,
    FLOAT,
    INT,
    UINT,
    LocalArray,
    Matrix,
    Struct,
    Type,
    Vector,
)
from shaderad.lower.passes.rows import lower_reduce, lower_scan
from tests.agreement import close
from tests.lower.row_passes import elements_of, run, variant_of

pytestmark = pytest.mark.gpu

Array = np.ndarray[Any, Any]
LENGTHS = (0, 1, 2, 63, 64, 65, 255, 256, 257, 1000, 2049, 8193, 100_003, 1_000_003)
ROWS = ((1, 300), (300, 1), (7, 1000), (1000, 7), (3, 0), (0, 3), (5, 5_000), (2, 20_000))
SUMS = 1e-6
"""Sums of up to 1e6 floats in trees lose about as much as each element did."""


def drawn(*shape: int) -> Array:
    return np.random.default_rng([5, *shape]).uniform(0.5, 1.5, shape).astype(np.float32)


@pytest.mark.parametrize("is_parallel", [False, True], ids=["alone", "together"])
def test_rows_are_summed_and_scanned(device: sad.Device, is_parallel: bool) -> None:
    variant = variant_of(device, is_parallel=is_parallel)
    for rank, shapes in ((1, [(n,) for n in LENGTHS]), (2, ROWS), (3, [(2, 3, 130)])):
        reduce = lower_reduce(elements_of(FLOAT, rank), ops.ADD, variant)
        scan = lower_scan(elements_of(FLOAT, rank), ops.ADD, variant)
        for shape in shapes:
            x = drawn(*shape)
            given, what = sad.array(x, device=device), str(shape)
            found = run(device, reduce, (FLOAT, shape[:-1]), given)
            np.testing.assert_allclose(found, x.sum(-1, dtype=np.float64), SUMS, err_msg=what)
            found = run(device, scan, (FLOAT, shape), given)
            np.testing.assert_allclose(found, x.cumsum(-1, np.float64), SUMS, err_msg=what)


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


KEPT = Struct("Kept", (("of", LocalArray(FLOAT, 6)),))


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
    is_parallel: bool = True
    shapes: tuple[tuple[int, ...], ...] = ((1,), (2, 65), (5, 300))


CASES = {
    "products": Case(ops.MUL, FLOAT, True, ((1,), (2, 65), (9000,))),
    "minima of vectors": Case(ops.MIN, Vector(FLOAT, 3), False),
    "maxima of ints": Case(ops.MAX, INT),
    "minima of uints": Case(ops.MIN, UINT, False),
    "all": Case(ops.BIT_AND, BOOL),
    "any": Case(ops.BIT_OR, BOOL, False),
    "sums of structs": Case(ops.ADD, AFFINE),
    "sums of matrices": Case(ops.ADD, Matrix(FLOAT, 3, 2), False),
    "matrix products": Case(matrix_product(), Matrix(FLOAT, 2, 2)),
    "a recurrence": Case(recurrence(), AFFINE, False),
    "local arrays": Case(last_and_sum(KEPT), KEPT, False, ((1,), (3, 200))),
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
    return (1 + rng.normal(0, 0.01, shape)).astype(np.float32)


@pytest.mark.sample(2)
@pytest.mark.parametrize("name", CASES)
def test_operators_agree_with_the_oracle(device: sad.Device, name: str) -> None:
    case, rng = CASES[name], np.random.default_rng(3)
    variant = variant_of(device, is_parallel=case.is_parallel)
    for shape in case.shapes:
        producer = elements_of(case.element, len(shape))
        data = draw(case.element, shape, rng)
        init = draw(case.element, shape[:-1], rng)
        x = Value(ArrayType(case.element, shape))
        first = Value(ArrayType(case.element, shape[:-1]))
        nodes = [
            arrays.Reduce(operands=(x, first), op=case.op),
            arrays.Scan(operands=(x,), op=case.op),
        ]
        judged, _ = evaluate(Graph((x, first), tuple(n.result for n in nodes)), [data, init])
        given = sad.array(data, dtype=case.element, device=device)
        start = sad.array(init, dtype=case.element, device=device)
        reduce = lower_reduce(producer, case.op, variant, has_init=True)
        found = run(device, reduce, (case.element, shape[:-1]), given, start)
        close(found, judged[0], f"reduced {shape}")
        scan = lower_scan(producer, case.op, variant)
        close(run(device, scan, (case.element, shape), given), judged[1], f"scanned {shape}")


@pytest.mark.parametrize("is_parallel", [False, True], ids=["alone", "together"])
def test_chunks_of_long_rows_keep_their_order(device: sad.Device, is_parallel: bool) -> None:
    count = 9000 if is_parallel else 2100
    x = draw(Matrix(FLOAT, 2, 2), (count,), np.random.default_rng(4))
    wanted = [x[0].astype(np.float64)]
    for factor in x[1:]:
        wanted.append(wanted[-1] @ factor)
    given = sad.array(x, dtype=sad.float2x2, device=device)
    variant, t = variant_of(device, is_parallel=is_parallel), Matrix(FLOAT, 2, 2)
    scan = lower_scan(elements_of(t, 1), matrix_product(), variant)
    close(run(device, scan, (t, (count,)), given), np.stack(wanted), "scanned")
    reduce = lower_reduce(elements_of(t, 1), matrix_product(), variant)
    close(run(device, reduce, (t, ()), given), wanted[-1], "reduced")
