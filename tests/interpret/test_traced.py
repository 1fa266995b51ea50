"""Second derivatives: the rows of the rules, differentiated through ``fwd_diff`` in a kernel."""

from __future__ import annotations

import numpy as np
import pytest

from shaderad.interpret import interpret
from shaderad.ir import nodes, ops
from shaderad.ir.types import (
    BOOL,
    FLOAT,
    INT,
    Access,
    BufferType,
    Matrix,
    Pair,
    Type,
    Vector,
)
from shaderad.rules import PARTIALS
from tests.rules.test_partials import cases, draw, is_differentiated

STEP = 1e-5
CLOSE = {"rtol": 1e-5, "atol": 1e-6}
Shapes = tuple[tuple[int, ...], ...]


def type_of(op: ops.Op, position: int, shape: tuple[int, ...]) -> Type:
    if op is ops.POWI and position == 1:
        return INT
    if op is ops.SELECT and position == 0:
        return BOOL
    if not shape:
        return FLOAT
    return Vector(FLOAT, *shape) if len(shape) == 1 else Matrix(FLOAT, *shape)


def kernel_of(op: ops.Op, shapes: Shapes) -> nodes.Kernel:
    """``y[i], y_dot[i] = fwd_diff(op)(pairs of x0[i], x0_dot[i], ...)``."""
    given = [type_of(op, k, shape) for k, shape in enumerate(shapes)]
    result = ops.result_type(op, tuple(given))
    assert result is not None
    names = [f"x{k}" for k in range(len(given))]
    parameters = tuple(nodes.Parameter(name=n, type=t) for n, t in zip(names, given, strict=True))
    operands = tuple(nodes.Var(type=p.type, name=p.name) for p in parameters)
    applied = nodes.Apply(type=result, op=op, args=operands)
    function = nodes.Function(
        name="f", parameters=parameters, result=result,
        body=(nodes.Return(value=applied),), local_types={},
    )  # fmt: skip
    i = (nodes.Var(type=INT, name="i"),)
    buffers: list[nodes.Buffer] = []

    def array(name: str, access: Access, t: Type) -> nodes.Load:
        buffers.append(nodes.Buffer(name=name, path=(name,), type=BufferType(access, t)))
        return nodes.Load(type=t, buffer=name, indices=i)

    args: list[nodes.Expr] = []
    for k, (name, t) in enumerate(zip(names, given, strict=True)):
        load = array(name, Access.IN, t)
        if is_differentiated(op, k):
            dot = array(f"{name}_dot", Access.IN, t)
            args.append(nodes.MakePair(type=Pair(t), primal=load, derivative=dot))
        else:
            args.append(load)
    pair = nodes.ForwardDiff(type=Pair(result), function=function, args=tuple(args))
    body: list[nodes.Stmt] = [nodes.Assign(name="pair", value=pair)]
    for name, part in (("y", "p"), ("y_dot", "d")):
        array(name, Access.OUT, result)
        read = nodes.PairPart(type=result, value=nodes.Var(type=pair.type, name="pair"), part=part)
        body.append(nodes.Store(buffer=name, indices=i, value=read))
    return nodes.Kernel(
        name="k", index_names=("i",), parameters=(), buffers=tuple(buffers), uniforms=(),
        body=tuple(body), local_types={"pair": pair.type},
    )  # fmt: skip


@pytest.mark.parametrize(("op", "shapes"), cases(), ids=lambda value: str(value))
def test_every_row_can_be_differentiated_again(op: ops.Op, shapes: Shapes) -> None:
    assert op in PARTIALS
    kernel = kernel_of(op, shapes)
    rng = np.random.default_rng(1)
    given: dict[str, np.ndarray] = {}
    for k, x in enumerate(draw(op, shapes)):
        given[f"x{k}"] = np.abs(x) if op is ops.POWI and k == 1 else x
        if is_differentiated(op, k):
            given[f"x{k}_dot"] = rng.uniform(-1, 1, x.shape)
    count = len(given["x0"])
    moves = {
        name: rng.uniform(-1, 1, x.shape)
        for name, x in given.items()
        if name.endswith("_dot") or f"{name}_dot" in given
    }
    run = interpret(kernel, dim=count, arrays=given)
    ends = [
        interpret(
            kernel,
            dim=count,
            arrays=given | {name: given[name] + s * STEP * move for name, move in moves.items()},
        ).outputs
        for s in (1, -1)
    ]
    dots = run.push(moves)
    bars = {name: rng.uniform(-1, 1, dot.shape) for name, dot in dots.items()}
    for name, dot in dots.items():
        np.testing.assert_allclose(dot, (ends[0][name] - ends[1][name]) / (2 * STEP), **CLOSE)
    gradients = run.pull(bars)
    forward = sum(np.sum(bars[name] * dot) for name, dot in dots.items())
    backward = sum(np.sum(gradients[name] * move) for name, move in moves.items())
    np.testing.assert_allclose(backward, forward, rtol=1e-9, atol=1e-12)
