"""Derivatives of expressions, against the interpreter's tape and against finite differences."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pytest

from shaderad.diagnostics import DerivativeError
from shaderad.interpret.cells import Cell
from shaderad.interpret.expressions import evaluate
from shaderad.interpret.machine import CallFrame
from shaderad.interpret.run import new_machine
from shaderad.interpret.tape import CellCotangents, CellTangents
from shaderad.ir import building as b
from shaderad.ir import composing as c
from shaderad.ir import nodes, ops
from shaderad.ir.arrays import Graph
from shaderad.ir.dags import in_order
from shaderad.ir.nodes import Expr
from shaderad.ir.types import (
    BOOL,
    DOUBLE,
    FLOAT,
    INT,
    LocalArray,
    Matrix,
    Struct,
    Type,
    Vector,
    is_float,
)
from shaderad.rules import PARTIALS
from shaderad.rules.expressions import pull, push
from tests.array_check import array, check, gradients

FLOAT2, FLOAT3 = Vector(FLOAT, 2), Vector(FLOAT, 3)
FLOAT2X2 = Matrix(FLOAT, 2, 2)
TYPES: tuple[Type, ...] = (FLOAT, FLOAT2, FLOAT3, Matrix(FLOAT, 3, 3), Matrix(FLOAT, 2, 3))
COUNT = 4
SAME = {"rtol": 1e-10, "atol": 1e-12}
"""Both sides evaluate the same formulas in float64."""


def operand_types(op: ops.Op, t: Type) -> tuple[Type, ...]:
    special: dict[ops.Op, tuple[Type, ...]] = {
        ops.POWI: (t, INT),
        ops.SELECT: (BOOL, t, t),
        ops.REFRACT: (t, t, FLOAT),
    }
    if op == ops.MATMUL and isinstance(t, Matrix) and t.row_count == 2:
        return (t, FLOAT3)
    if op == ops.MATMUL and t == FLOAT3:
        return (t, Matrix(FLOAT, 3, 3))
    return special.get(op, (t,) * op.arity)


APPLICATIONS = [
    (op, types)
    for op in PARTIALS
    for types in (operand_types(op, t) for t in TYPES)
    if ops.result_type(op, types) is not None
]


def shape_of(t: Type) -> tuple[int, ...]:
    if isinstance(t, Vector):
        return (t.count,)
    return (t.row_count, t.column_count) if isinstance(t, Matrix) else ()


def run(e: Expr | None, data: Mapping[str, Any], like: Any) -> Any:
    if e is None:
        return np.zeros_like(like)
    types = {v.name: v.type for v in in_order(e) if isinstance(v, nodes.Var)}
    exact = new_machine(rounds_constants=False)
    frame = CallFrame(exact, np.arange(COUNT), types, {n: Cell(x) for n, x in data.items()})
    found: Any = evaluate(frame, e, frame.rows)
    return found.data


@pytest.mark.parametrize(("op", "types"), APPLICATIONS, ids=lambda x: getattr(x, "name", ""))
def test_push_and_pull_of_an_op_are_those_of_its_row(op: ops.Op, types: tuple[Type, ...]) -> None:
    rng = np.random.default_rng(1)
    args: list[Expr] = []
    data: dict[str, Any] = {}
    for k, t in enumerate(types):
        name = f"a{k}"
        args.append(c.whole(3) if t == INT else c.variable(name, t))
        if t == BOOL:
            data[name] = rng.integers(0, 2, COUNT) > 0
        elif t != INT:
            data[name] = rng.uniform(*op.domain[k], (COUNT, *shape_of(t)))
    t = ops.result_type(op, types)
    assert t is not None
    e = nodes.Apply(type=t, op=op, args=tuple(args))
    names = [f"a{k}" for k, t in enumerate(types) if is_float(t)]
    dots = {name: rng.normal(size=data[name].shape) for name in names}
    bar = rng.normal(size=(COUNT, *shape_of(t)))
    y_dot, bars = by_tape(e, types, data, dots, bar)
    given = data | {f"{name}_dot": dot for name, dot in dots.items()} | {"bar": bar}
    by_name = {f"a{k}": c.variable(f"a{k}_dot", t) for k, t in enumerate(types) if is_float(t)}
    np.testing.assert_allclose(run(push(e, by_name), given, bar), y_dot, **SAME)
    found = pull(e, c.variable("bar", t), names)
    for name in names:
        np.testing.assert_allclose(run(found.get(name), given, data[name]), bars[name], **SAME)


def by_tape(
    e: Expr, types: tuple[Type, ...], data: Mapping[str, Any], dots: Mapping[str, Any], bar: Any
) -> tuple[Any, dict[str, Any]]:
    own = new_machine(is_recording=True)
    known = {n: Cell(x, is_tracked=x.dtype.kind == "f") for n, x in data.items()}
    type_by_name = {f"a{k}": t for k, t in enumerate(types)}
    frame = CallFrame(own, np.arange(COUNT), type_by_name, dict(known))
    y: Any = evaluate(frame, e, frame.rows)
    tangents, cotangents = CellTangents(), CellCotangents()
    for name, dot in dots.items():
        tangents.set(known[name], Cell(dot))
    with own.tape.paused():
        own.tape.push(own.tape.entries, tangents)
    cotangents.add(y, bar)
    own.tape.pull(cotangents)
    bars = {name: cotangents.take(known[name]) for name in dots}
    full = {n: np.zeros_like(data[n]) if found is None else found for n, found in bars.items()}
    return tangents.full(y).data, full


# -- values with parts ------------------------------------------------------------------------

X, Y, K = c.variable("x", FLOAT), c.variable("y", FLOAT), c.variable("i", INT)
V, M = c.variable("v", FLOAT3), c.variable("m", FLOAT2X2)
ARRAY = c.variable("l", LocalArray(FLOAT, 3))
MIXED = Struct("Mixed", (("m", FLOAT2X2), ("k", INT), ("v", FLOAT2)))
S = c.variable("s", MIXED)
POSITIONS = np.array([0, 2, 3, -1])


def graph_of(e: Expr, names: list[str]) -> Graph:
    """One elementwise node over arrays of `COUNT`."""
    types = {v.name: v.type for v in in_order(e) if isinstance(v, nodes.Var)}
    inputs = {name: array((COUNT,), types[name]) for name in names}
    return Graph(tuple(inputs.values()), (b.elementwise(e, inputs, (COUNT,)),))


def draw(*shape: int) -> Any:
    return np.random.default_rng(5).normal(size=shape)


CASES: dict[str, tuple[Expr, dict[str, Any]]] = {
    "a swizzle that repeats a component": (
        c.apply(ops.MUL, c.swizzle(V, "zxx"), V),
        {"v": draw(4, 3)},
    ),
    "a component by variable, also out of range": (
        c.apply(ops.MUL, c.element(V, K), X),
        {"v": draw(4, 3), "i": POSITIONS, "x": draw(4)},
    ),
    "a row of a matrix by variable": (
        c.element(c.apply(ops.MATMUL, M, M), K),
        {"m": draw(4, 2, 2), "i": POSITIONS},
    ),
    "two elements of a local array that may be one": (
        c.apply(ops.MUL, c.element(ARRAY, K), c.element(ARRAY, c.whole(2))),
        {"l": draw(4, 3), "i": POSITIONS},
    ),
    "a struct that also holds an int": (
        c.construct(
            MIXED,
            [
                c.apply(ops.MUL, c.field(S, "m"), c.field(S, "m")),
                c.field(S, "k"),
                c.apply(ops.MATMUL, c.field(S, "v"), c.field(S, "m")),
            ],
        ),
        {"s": {"m": draw(4, 2, 2), "k": np.arange(4), "v": draw(4, 2)}},
    ),
    "casts between floats, and a splat": (
        c.convert(FLOAT3, c.splat(Vector(DOUBLE, 3), c.convert(DOUBLE, c.apply(ops.SIN, X)))),
        {"x": draw(4)},
    ),
    "a matrix from scalars": (
        c.apply(
            ops.DETERMINANT,
            nodes.Construct(type=FLOAT2X2, parts=(X, Y, c.apply(ops.MUL, X, Y), X)),
        ),
        {"x": draw(4), "y": draw(4)},
    ),
    "a vector from a vector and a scalar": (
        c.apply(
            ops.NORMALIZE,
            nodes.Construct(type=FLOAT3, parts=(X, nodes.Splat(type=FLOAT2, value=Y))),
        ),
        {"x": draw(4), "y": draw(4)},
    ),
    "one value used twice": (
        c.apply(ops.MUL, *[c.apply(ops.EXP, c.apply(ops.SIN, X))] * 2),
        {"x": draw(4)},
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_both_modes_agree_with_differences_up_to_second_order(name: str) -> None:
    e, data = CASES[name]
    check(graph_of(e, list(data)), list(data.values()))


def test_a_side_that_is_not_chosen_contributes_nothing() -> None:
    """At x = 0 the side ``y / x`` has an infinite partial."""
    quotient = nodes.Apply(type=FLOAT, op=ops.DIV, args=(Y, X))
    is_positive = c.apply(ops.GT, X, c.number(FLOAT, 0.0))
    e = nodes.Conditional(type=FLOAT, condition=is_positive, if_true=quotient, if_false=Y)
    x, y = np.array([0.0, 1.0, 2.0, -0.0]), np.array([1.0, 2.0, 3.0, 4.0])
    x_bar, y_bar = gradients(graph_of(e, ["x", "y"]), [x, y], [np.ones(4)])
    np.testing.assert_array_equal(x_bar, [0, -2, -0.75, 0])
    np.testing.assert_array_equal(y_bar, [1, 1, 0.5, 1])


def test_detached_values_and_bits_carry_no_derivative() -> None:
    bits = nodes.Bitcast(type=FLOAT, value=nodes.Bitcast(type=INT, value=X))
    e = c.apply(ops.MUL, c.apply(ops.ADD, nodes.Detach(type=FLOAT, value=X), bits), X)
    x = np.array([1.0, 2.0, -3.0, 0.5])
    (x_bar,) = gradients(graph_of(e, ["x"]), [x], [np.ones(4)])
    np.testing.assert_array_equal(x_bar, 2 * x)


# -- calls ------------------------------------------------------------------------------------


def function_of(body: Expr, *parameters: tuple[str, Type], **own: Any) -> nodes.Function:
    return nodes.Function(
        name="wave",
        parameters=tuple(nodes.Parameter(name=n, type=t) for n, t in parameters),
        result=body.type,
        body=(nodes.Return(value=body),),
        local_types={},
        **own,
    )


def wave(**own: Any) -> Expr:
    """``sin(p) * (q * p.y)``, where `n` has no derivative."""
    p, q = c.variable("p", FLOAT2), c.variable("q", FLOAT)
    factor = c.splat(FLOAT2, c.apply(ops.MUL, q, c.component(p, 1)))
    body = c.apply(ops.MUL, c.apply(ops.SIN, p), factor)
    f = function_of(body, ("p", FLOAT2), ("n", INT), ("q", FLOAT), **own)
    return nodes.Call(type=FLOAT2, function=f, args=(c.variable("a", FLOAT2), K, X))


WAVE = {"a": draw(4, 2), "i": POSITIONS, "x": draw(4)}


@pytest.mark.parametrize(("divisor", "op"), [(0.25, ops.MUL), (0.0, ops.TIMES), (1e-9, ops.TIMES)])
def test_a_quotient_by_a_plain_constant_needs_no_guard_against_infinity(
    divisor: float, op: ops.Op
) -> None:
    found = pull(c.apply(ops.DIV, X, c.number(FLOAT, divisor)), c.variable("bar", FLOAT), ("x",))
    assert isinstance(found["x"], nodes.Apply)
    assert found["x"].op == op


@pytest.mark.parametrize("order", [2, 3])
def test_calls_have_derivatives_of_any_order(order: int) -> None:
    check(graph_of(wave(), list(WAVE)), list(WAVE.values()), order=order)


@pytest.mark.parametrize(("own", "code"), [("backward", "SR0412"), ("forward", "SR0411")])
def test_a_custom_derivative_of_the_other_mode_is_refused(own: str, code: str) -> None:
    e = wave(**{own: function_of(X, ("x", FLOAT))})
    bar = c.variable("bar", FLOAT2)
    take = (lambda: push(e, {"x": X})) if own == "backward" else (lambda: pull(e, bar, ("x",)))
    with pytest.raises(DerivativeError, match=code):
        take()
