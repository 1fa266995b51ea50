"""Derivatives of reductions and scans, of ops and of functions."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from shaderad.ir import arrays, nodes, ops
from shaderad.ir import composing as c
from shaderad.ir.arrays import Graph, Reducer
from shaderad.ir.nodes import Expr
from shaderad.ir.types import FLOAT, INT, Matrix, Struct, Type, Vector
from tests.array_check import array, check, gradients

FLOAT2, FLOAT3, FLOAT2X2 = Vector(FLOAT, 2), Vector(FLOAT, 3), Matrix(FLOAT, 2, 2)
OPS = [ops.ADD, ops.MUL, ops.MIN, ops.MAX]
AFFINE = Struct("Affine", (("m", FLOAT2X2), ("count", INT), ("v", FLOAT2)))


def draw(*shape: int) -> Any:
    return np.random.default_rng([11, *shape]).normal(size=shape)


def reduction(op: Reducer, *data: Any, element: Type = FLOAT) -> tuple[Graph, list[Any]]:
    """Of rows; a second array is the init."""
    count = len(np.shape(data[0])) - len(shape_of(element))
    inputs = tuple(array(np.shape(x)[: count - k], element) for k, x in enumerate(data))
    return Graph(inputs, arrays.Reduce(operands=inputs, op=op).results), list(data)


def scanned(op: Reducer, data: Any, element: Type = FLOAT) -> tuple[Graph, list[Any]]:
    count = len(np.shape(data)) - len(shape_of(element))
    x = array(np.shape(data)[:count], element)
    return Graph((x,), arrays.Scan(operands=(x,), op=op).results), [data]


def shape_of(t: Type) -> tuple[int, ...]:
    if isinstance(t, Vector):
        return (t.count,)
    return (t.row_count, t.column_count) if isinstance(t, Matrix) else ()


# -- ops --------------------------------------------------------------------------------------


@pytest.mark.parametrize("count", [0, 1, 5])
@pytest.mark.parametrize("op", OPS, ids=lambda op: op.name)
def test_reductions_by_an_op(op: ops.Op, count: int) -> None:
    check(*reduction(op, draw(2, count)))
    check(*reduction(op, draw(2, count), draw(2)), order=1)
    check(*reduction(op, draw(2, count, 3), element=FLOAT3), order=1)


@pytest.mark.parametrize("count", [0, 1, 5])
@pytest.mark.parametrize("op", OPS, ids=lambda op: op.name)
def test_scans_by_an_op(op: ops.Op, count: int) -> None:
    check(*scanned(op, draw(2, count)), order=2 if count == 5 else 1)
    check(*scanned(op, draw(2, count, 3), FLOAT3), order=1)


@pytest.mark.parametrize("zeros", [[1], [1, 3], [0, 1, 2, 3, 4]])
def test_products_with_zeros(zeros: list[int]) -> None:
    data = draw(5) + 3
    data[zeros] = 0
    check(*reduction(ops.MUL, data))
    check(*scanned(ops.MUL, data))


def test_a_product_that_underflows_has_the_gradient_of_its_other_factors() -> None:
    graph, data = reduction(ops.MUL, np.array([1e-200, 1e-200, 1e300]))
    (x_bar,) = gradients(graph, data, [np.ones(())])
    np.testing.assert_allclose(x_bar, [1e100, 1e100, 0], rtol=1e-12)


@pytest.mark.parametrize(("op", "sign"), [(ops.MIN, 1), (ops.MAX, -1)])
def test_the_first_of_equal_extremes_takes_the_cotangent(op: ops.Op, sign: int) -> None:
    data = sign * np.array([2.0, 1.0, 3.0, 1.0])
    (x_bar,) = gradients(*reduction(op, data), [np.ones(())])
    np.testing.assert_array_equal(x_bar, [0, 1, 0, 0])
    x_bar, init_bar = gradients(*reduction(op, data, np.array(sign * 1.0)), [np.ones(())])
    np.testing.assert_array_equal(x_bar, [0, 0, 0, 0])
    assert init_bar == 1
    (x_bar,) = gradients(*scanned(op, data), [np.array([1.0, 10, 100, 1000])])
    np.testing.assert_array_equal(x_bar, [1, 1110, 0, 0])


def test_a_nan_does_not_take_the_cotangent_of_an_extreme() -> None:
    (x_bar,) = gradients(*reduction(ops.MAX, np.array([np.nan, 1.0, 2.0])), [np.ones(())])
    np.testing.assert_array_equal(x_bar, [0, 0, 1])


def test_the_product_of_a_scan_and_its_input_has_a_right_gradient() -> None:
    """Futhark's example ``sum(scan(*, x) * x)``."""
    x = array((4,))
    product = nodes.Apply(type=FLOAT, op=ops.MUL,
                          args=(c.variable("a0", FLOAT), c.variable("a1", FLOAT)))  # fmt: skip
    scan = arrays.Scan(operands=(x,), op=ops.MUL).result
    both = arrays.Elementwise(operands=(scan, x), expr=product, shape=(4,)).result
    graph = Graph((x,), arrays.Reduce(operands=(both,), op=ops.ADD).results)
    for data in (np.array([1.5, -0.5, 2.0, 3.0]), np.array([1.5, 0.0, 2.0, 0.0])):
        check(graph, [data])


# -- functions --------------------------------------------------------------------------------


def function(name: str, t: Type, body: Expr) -> nodes.Function:
    parameters = tuple(nodes.Parameter(name=n, type=t) for n in ("a", "b"))
    return nodes.Function(name=name, parameters=parameters, result=t,
                          body=(nodes.Return(value=body),), local_types={})  # fmt: skip


def pair(t: Type) -> tuple[Expr, Expr]:
    return c.variable("a", t), c.variable("b", t)


def sum_with_product() -> nodes.Function:
    """``a + b + a b``: associative."""
    a, b = pair(FLOAT)
    return function("circle", FLOAT, c.total([a, b, c.apply(ops.MUL, a, b)]))


def recurrence() -> nodes.Function:
    """``x -> a.x x + a.y``, then b."""
    a, b = pair(FLOAT2)
    slope = c.apply(ops.MUL, c.component(a, 0), c.component(b, 0))
    moved = c.apply(ops.MUL, c.component(b, 0), c.component(a, 1))
    return function("recurrence", FLOAT2, c.construct(
        FLOAT2, [slope, c.apply(ops.ADD, moved, c.component(b, 1))]))  # fmt: skip


def matrix_product() -> nodes.Function:
    a, b = pair(FLOAT2X2)
    return function("product", FLOAT2X2, c.apply(ops.MATMUL, a, b))


def affine_maps() -> nodes.Function:
    """Six floats and an int."""
    a, b = pair(AFFINE)
    m, v = c.field(b, "m"), c.field(b, "v")
    parts = [
        c.apply(ops.MATMUL, c.field(a, "m"), m),
        c.apply(ops.ADD, c.field(a, "count"), c.field(b, "count")),
        c.apply(ops.ADD, c.apply(ops.MATMUL, c.field(a, "v"), m), v),
    ]
    return function("affine", AFFINE, c.construct(AFFINE, parts))


FUNCTIONS = [
    (sum_with_product(), FLOAT),
    (recurrence(), FLOAT2),
    (matrix_product(), FLOAT2X2),
]


@pytest.mark.parametrize("count", [1, 2, 6])
@pytest.mark.parametrize(("op", "t"), FUNCTIONS, ids=lambda x: getattr(x, "name", ""))
def test_reductions_and_scans_by_a_function(op: nodes.Function, t: Type, count: int) -> None:
    data = draw(2, count, *shape_of(t))
    check(*reduction(op, data, element=t), order=1)
    check(*reduction(op, data, draw(2, *shape_of(t)), element=t), order=1)
    check(*scanned(op, data, t), order=1)


def test_second_derivatives_of_reductions_and_scans_by_a_function() -> None:
    check(*reduction(recurrence(), draw(3, 2), element=FLOAT2))
    check(*scanned(recurrence(), draw(3, 2), FLOAT2))


def test_an_empty_row_leaves_the_init_of_a_function() -> None:
    check(*reduction(recurrence(), draw(2, 0, 2), draw(2, 2), element=FLOAT2), order=1)
    check(*scanned(recurrence(), draw(2, 0, 2), FLOAT2), order=1)


def test_elements_of_more_floats_than_a_vector_has() -> None:
    data = {"m": draw(4, 2, 2), "count": np.arange(4), "v": draw(4, 2)}
    x = array((4,), AFFINE)
    for node in (arrays.Scan, arrays.Reduce):
        check(Graph((x,), node(operands=(x,), op=affine_maps()).results), [data], order=1)
