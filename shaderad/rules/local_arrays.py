"""Sums and parts of derivatives of any type. Local arrays are built by synthetic functions."""

from __future__ import annotations

from collections.abc import Sequence

from shaderad.ir import nodes, ops
from shaderad.ir.nodes import Expr, Parameter
from shaderad.ir.types import (
    INT,
    LocalArray,
    Struct,
    Tuple,
    Type,
    is_differentiable,
    is_float,
    scalar_of,
)
from shaderad.rules import composing as c


def holds_array(t: Type) -> bool:
    """True if a value of type `t` holds a local array, at any depth."""
    if isinstance(t, Struct | Tuple):
        return any(holds_array(part) for _, part in c.named_parts(t))
    return isinstance(t, LocalArray)


def added(a: Expr, b: Expr) -> Expr:
    """The sum of two derivatives of one type."""
    if c.is_zero(a) or c.is_zero(b):
        return b if c.is_zero(a) else a
    t = a.type
    if is_float(t):
        return c.apply(ops.ADD, a, b)
    if isinstance(t, LocalArray):
        return _added_arrays(t, a, b)
    assert isinstance(t, Struct | Tuple)
    return c.construct(
        t,
        [
            added(c.field(a, n), c.field(b, n)) if is_differentiable(part) else c.zero(part)
            for n, part in c.named_parts(t)
        ],
    )


def placed_in_array(t: LocalArray, index: Expr, value: Expr) -> Expr:
    """A local array that is `value` at `index` and 0 elsewhere."""
    at, new = c.variable("index", INT), c.variable("value", t.element)
    body = (
        nodes.Assign(name="placed", value=c.zero(t)),
        nodes.Assign(name="placed", path=(nodes.ElementStep(index=at),), value=new),
        nodes.Return(value=c.variable("placed", t)),
    )
    parameters = (Parameter(name="index", type=INT), Parameter(name="value", type=t.element))
    return _call(t, "placed_at", parameters, body, (index, value))


def array_of(t: LocalArray, elements: Sequence[Expr]) -> Expr:
    """A local array of `elements`."""
    body: list[nodes.Stmt] = [nodes.Assign(name="placed", value=c.zero(t))]
    parameters = tuple(Parameter(name=f"e{k}", type=t.element) for k in range(t.count))
    for k, p in enumerate(parameters):
        step = nodes.ElementStep(index=c.whole(k))
        body.append(nodes.Assign(name="placed", path=(step,), value=c.variable(p.name, p.type)))
    body.append(nodes.Return(value=c.variable("placed", t)))
    return _call(t, "array_of", parameters, tuple(body), tuple(elements))


def with_zeros(t: Type, value: Expr) -> Expr:
    """A value of type ``tangent(t)``, converted to type `t`; other parts than floats are 0."""
    if value.type == t:
        return value
    if isinstance(t, LocalArray):
        parts = [with_zeros(t.element, c.element(value, c.whole(k))) for k in range(t.count)]
        return array_of(t, parts)
    assert isinstance(t, Struct | Tuple)
    kept = [(n, part) for n, part in c.named_parts(t) if is_differentiable(part)]
    # The tangent of a tuple numbers its elements anew.
    name_of = {n: str(k) if isinstance(t, Tuple) else n for k, (n, _) in enumerate(kept)}
    return c.construct(t, [
        with_zeros(part, c.field(value, name_of[n])) if n in name_of else c.zero(part)
        for n, part in c.named_parts(t)
    ])  # fmt: skip


def float_scalars(value: Expr) -> list[Expr]:
    """The float scalars of a value, at any depth, in order."""
    t = value.type
    if isinstance(t, Struct | Tuple):
        return [s for n, _ in c.named_parts(t) for s in float_scalars(c.field(value, n))]
    if isinstance(t, LocalArray):
        parts = [c.element(value, c.whole(k)) for k in range(t.count)]
        return [s for part in parts for s in float_scalars(part)]
    return c.components(value) if is_float(t) else []


def from_float_scalars(t: Type, scalars: Sequence[Expr]) -> Expr:
    """A value of type `t` with the float scalars `scalars`, in order; other parts are 0."""
    remaining = iter(scalars)

    def build(part: Type) -> Expr:
        if isinstance(part, Struct | Tuple):
            return c.construct(part, [build(inner) for _, inner in c.named_parts(part)])
        if isinstance(part, LocalArray):
            return array_of(part, [build(part.element) for _ in range(part.count)])
        if not is_float(part):
            return c.zero(part)
        scalar = scalar_of(part)
        assert scalar is not None
        count = len(c.components(c.variable("x", part)))
        return c.of_components(part, [c.convert(scalar, next(remaining)) for _ in range(count)])

    return build(t)


def _added_arrays(t: LocalArray, a: Expr, b: Expr) -> Expr:
    left, right = c.variable("left", t), c.variable("right", t)
    body: list[nodes.Stmt] = [nodes.Assign(name="placed", value=c.zero(t))]
    for k in range(t.count):
        at = c.whole(k)
        value = added(c.element(left, at), c.element(right, at))
        body.append(nodes.Assign(name="placed", path=(nodes.ElementStep(index=at),), value=value))
    body.append(nodes.Return(value=c.variable("placed", t)))
    parameters = (Parameter(name="left", type=t), Parameter(name="right", type=t))
    return _call(t, "added_arrays", parameters, tuple(body), (a, b))


def _call(
    t: LocalArray,
    name: str,
    parameters: tuple[Parameter, ...],
    body: tuple[nodes.Stmt, ...],
    args: tuple[Expr, ...],
) -> Expr:
    """A call of a synthetic function that fills the local array `placed`."""
    function = nodes.Function(name=name, parameters=parameters, result=t, body=body,
                              local_types={"placed": t})  # fmt: skip
    return nodes.Call(type=t, function=function, args=args)
