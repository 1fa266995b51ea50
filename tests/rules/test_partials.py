"""Every row of the derivative tables against central differences in float64, and at its corners."""

from __future__ import annotations

import numpy as np
import pytest

from shaderad.ir import ops
from shaderad.rules import PARTIALS, carries_derivative
from shaderad.rules.rows import ZERO, matrix_product

# Central differences with step 1e-5 in float64: truncation and cancellation both near 1e-10,
# amplified by the steepest op (inverse of a matrix with determinant 0.5).
STEP = 1e-5
CLOSE = {"rtol": 1e-6, "atol": 1e-7}
SAMPLES = 7

VECTORS = {ops.Rule.DOT, ops.Rule.NORM, ops.Rule.VECTORS, ops.Rule.VECTOR3}


def shapes_of(op: ops.Op) -> list[tuple[tuple[int, ...], ...]]:
    """The operand shapes, batch axis apart, with which `op` is tried."""
    if op.rule in VECTORS:
        return [((3,),) * op.arity]
    if op.rule is ops.Rule.REFRACT:
        return [((3,), (3,), ())]
    if op.rule is ops.Rule.MATMUL:
        return [((2, 3), (3, 4)), ((2, 3), (3,)), ((3,), (3, 2))]
    if op.rule is ops.Rule.TRANSPOSE:
        return [((2, 3),)]
    if op.rule in {ops.Rule.DETERMINANT, ops.Rule.SQUARE}:
        return [((size, size),) for size in (2, 3, 4)]
    return [((),) * op.arity]


def draw(op: ops.Op, shapes: tuple[tuple[int, ...], ...]) -> list[np.ndarray]:
    rng = np.random.default_rng(7)
    args = [
        rng.uniform(low, high, (SAMPLES, *shape))
        for (low, high), shape in zip(op.domain, shapes, strict=True)
    ]
    if op is ops.POWI:
        args[1] = np.array([-2.0, -1.0, 0.0, 1.0, 2.0, 3.0, 7.0])
    if op is ops.SELECT:
        args[0] = args[0] > 0
    if op.rule in {ops.Rule.DETERMINANT, ops.Rule.SQUARE}:
        args[0] = args[0] + 5 * np.eye(shapes[0][0])
    return args


def evaluate(op: ops.Op, args: list[np.ndarray]) -> np.ndarray:
    function = matrix_product if op is ops.MATMUL else op.numpy
    return np.asarray(function(*args), np.float64)


def is_differentiated(op: ops.Op, position: int) -> bool:
    return not (op is ops.POWI and position == 1) and not (op is ops.SELECT and position == 0)


def cases() -> list[tuple[ops.Op, tuple[tuple[int, ...], ...]]]:
    return [(op, shapes) for op in PARTIALS for shapes in shapes_of(op)]


@pytest.mark.parametrize(("op", "shapes"), cases(), ids=lambda value: str(value))
def test_jvp_is_the_central_difference(op: ops.Op, shapes: tuple[tuple[int, ...], ...]) -> None:
    args = draw(op, shapes)
    rng = np.random.default_rng(8)
    dots = [
        rng.uniform(-1, 1, x.shape) if is_differentiated(op, k) else np.zeros(x.shape)
        for k, x in enumerate(args)
    ]
    moved = [
        [
            x + s * d if is_differentiated(op, k) else x
            for k, (x, d) in enumerate(zip(args, dots, strict=True))
        ]
        for s in (STEP, -STEP)
    ]
    slope = (evaluate(op, moved[0]) - evaluate(op, moved[1])) / (2 * STEP)
    y_dot = PARTIALS[op].jvp(evaluate(op, args), args, dots)
    np.testing.assert_allclose(y_dot, slope, **CLOSE)


@pytest.mark.parametrize(("op", "shapes"), cases(), ids=lambda value: str(value))
def test_vjp_is_the_transpose_of_jvp(op: ops.Op, shapes: tuple[tuple[int, ...], ...]) -> None:
    args = draw(op, shapes)
    y = evaluate(op, args)
    rng = np.random.default_rng(9)
    y_bar = rng.uniform(-1, 1, y.shape)
    bars = PARTIALS[op].vjp(y, args, y_bar)
    for position, (x, x_bar) in enumerate(zip(args, bars, strict=True)):
        assert x_bar.shape == x.shape
        dots = [np.zeros(a.shape) for a in args]
        dots[position] = rng.uniform(-1, 1, x.shape)
        y_dot = PARTIALS[op].jvp(y, args, dots)
        np.testing.assert_allclose(np.sum(y_bar * y_dot), np.sum(x_bar * dots[position]), **CLOSE)


def gradient_at(op: ops.Op, *args: float) -> tuple[float, ...]:
    values = [np.float64(a) for a in args]
    with np.errstate(all="ignore"):
        y = np.float64(op.numpy(*values))
    return tuple(float(x_bar) for x_bar in PARTIALS[op].vjp(y, values, np.float64(1)))


INF, NAN = float("inf"), float("nan")


@pytest.mark.parametrize(
    ("op", "args", "expected"),
    [
        (ops.ABS, (0.0,), (0.0,)),
        (ops.SIGN, (0.0,), (0.0,)),
        (ops.MIN, (2.0, 2.0), (1.0, 0.0)),
        (ops.MAX, (2.0, 2.0), (1.0, 0.0)),
        (ops.MIN, (NAN, 2.0), (0.0, 1.0)),
        (ops.MAX, (2.0, NAN), (1.0, 0.0)),
        (ops.CLAMP, (0.0, 0.0, 1.0), (1.0, 0.0, 0.0)),
        (ops.CLAMP, (1.0, 0.0, 1.0), (1.0, 0.0, 0.0)),
        (ops.CLAMP, (2.0, 3.0, 1.0), (0.0, 0.0, 1.0)),
        (ops.SATURATE, (0.0,), (1.0,)),
        (ops.SATURATE, (1.0,), (1.0,)),
        (ops.SQRT, (0.0,), (INF,)),
        (ops.SQRT, (-0.0,), (INF,)),
        (ops.LOG, (0.0,), (INF,)),
        (ops.LOG, (-0.0,), (INF,)),
        (ops.LOG, (-2.0,), (-0.5,)),
        (ops.LOG2, (-2.0,), (-0.5 / np.log(2.0),)),
        (ops.LOG10, (-2.0,), (-0.5 / np.log(10.0),)),
        (ops.LOG1P, (-3.0,), (-0.5,)),
        (ops.RCP, (0.0,), (-INF,)),
        (ops.RCP, (-0.0,), (-INF,)),
        (ops.RSQRT, (0.0,), (-INF,)),
        (ops.LOG1P, (-1.0,), (INF,)),
        (ops.ASIN, (1.0,), (INF,)),
        (ops.ACOS, (-1.0,), (-INF,)),
        (ops.ACOSH, (1.0,), (INF,)),
        (ops.ATANH, (1.0,), (INF,)),
        (ops.ATAN2, (0.0, 0.0), (0.0, 0.0)),
        (ops.HYPOT, (0.0, 0.0), (0.0, 0.0)),
        (ops.POW, (0.0, 1.0), (1.0, 0.0)),
        (ops.POW, (0.0, 0.0), (0.0, 0.0)),
        (ops.POW, (0.0, 0.5), (0.0, 0.0)),
        (ops.POW, (0.0, 2.0), (0.0, 0.0)),
        (ops.POW, (-2.0, 3.0), (12.0, 0.0)),
        (ops.POWI, (0.0, 0.0), (0.0, 0.0)),
        (ops.POWI, (0.0, 1.0), (1.0, 0.0)),
        (ops.POWI, (0.0, 2.0), (0.0, 0.0)),
        (ops.COPYSIGN, (-2.0, -0.0), (1.0, 0.0)),
        (ops.COPYSIGN, (0.0, -1.0), (0.0, 0.0)),
    ],
    ids=str,
)
def test_singular_points_are_those_of_the_conventions(
    op: ops.Op, args: tuple[float, ...], expected: tuple[float, ...]
) -> None:
    assert gradient_at(op, *args) == expected


@pytest.mark.parametrize("op", [ops.LENGTH, ops.NORMALIZE], ids=str)
def test_a_vector_of_length_zero_has_gradient_zero(op: ops.Op) -> None:
    v = np.zeros(3)
    y = np.asarray(op.numpy(v))
    (v_bar,) = PARTIALS[op].vjp(y, [v], np.ones_like(y))
    assert v_bar.tolist() == [0.0, 0.0, 0.0]


def test_an_infinite_partial_times_a_zero_cotangent_is_zero() -> None:
    (x_bar,) = PARTIALS[ops.SQRT].vjp(np.float64(0), [np.float64(0)], np.float64(0))
    assert x_bar == 0.0


def test_determinant_of_a_singular_matrix_has_its_cofactors_as_gradient() -> None:
    m = np.array([[1.0, 2.0], [2.0, 4.0]])
    (m_bar,) = PARTIALS[ops.DETERMINANT].vjp(np.float64(0), [m], np.float64(1))
    np.testing.assert_allclose(m_bar, [[4.0, -2.0], [-2.0, 1.0]], rtol=1e-12)


def test_every_row_belongs_to_an_op_that_carries_a_derivative() -> None:
    assert [op.name for op in PARTIALS if not carries_derivative(op)] == []


def test_zero_names_itself() -> None:
    assert repr(ZERO) == "ZERO"
