"""Derivatives of expressions of the kernel IR: `push` is the jvp, `pull` the vjp.

Expressions are DAGs: each node is differentiated once, so the size of a derivative is linear in the
number of nodes. Derivatives have the type of their primal, with 0 in the parts that hold no float.
`None` is a structural zero. Invariant: the side of a `Conditional` that is not chosen contributes
nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from shaderad.ir import composing as c
from shaderad.ir import nodes, ops
from shaderad.ir.dags import in_order
from shaderad.ir.nodes import Expr
from shaderad.ir.types import (
    LocalArray,
    Matrix,
    Struct,
    Tuple,
    Vector,
    is_bool,
    is_differentiable,
    is_float,
)
from shaderad.ir.walk import children
from shaderad.rules.pairs import differentiable, pull_call, push_call
from shaderad.rules.partials import PARTIALS, carries_derivative
from shaderad.rules.rows import ByComponent, ZeroPartial
from shaderad.rules.symbolic import Symbolic, expression

Dots = Mapping[str, "Expr | None"]
"""Tangents by variable."""
Bars = dict[int, Expr]
"""Cotangents of the operands of a node, by position in `operands`."""


def push(e: Expr, dots: Dots) -> Expr | None:
    """The tangent of `e` for the tangents `dots` of its variables."""
    dot_of: dict[int, Expr | None] = {}
    for node in in_order(e):
        if isinstance(node, nodes.Var):
            dot = dots.get(node.name)
        else:
            dot = push_node(node, [dot_of[id(a)] for a in children(node)])
        dot_of[id(node)] = None if dot is None or c.is_zero(dot) else dot
    return dot_of[id(e)]


def push_node(e: Expr, dots: list[Expr | None]) -> Expr | None:
    """The tangent of `e` for the tangents `dots` of its operands."""
    if not is_differentiable(e.type) or all(d is None for d in dots):
        return None
    dot = _PUSH[type(e)](e, dots)
    return None if dot is None or c.is_zero(dot) else dot


def pull(e: Expr, e_bar: Expr, wanted: Iterable[str]) -> dict[str, Expr]:
    """The cotangents of the variables `wanted`, for the cotangent `e_bar` of `e`."""
    names = frozenset(wanted)
    order = in_order(e)
    bar_by_name: dict[str, Expr] = {}

    def take(node: Expr, bar: Expr) -> bool:
        if isinstance(node, nodes.Var):
            _accumulate(bar_by_name, node.name, bar)
        elif isinstance(node, nodes.Conditional):
            for name, part in _pull_conditional(node, bar, names).items():
                _accumulate(bar_by_name, name, part)
        else:
            return False
        return True

    pull_through(order, e_bar, active_parts(order, names.__contains__), take)
    return {name: bar for name, bar in bar_by_name.items() if not c.is_zero(bar)}


def pull_through(
    order: Sequence[Expr], bar: Expr, active: set[int], take: Callable[[Expr, Expr], bool]
) -> None:
    """Pulls `bar`, the cotangent of the last node in `order`, back through the `active` nodes.

    If ``take(node, bar)`` returns True, it has consumed the cotangent `bar` of `node`, which is not
    pulled further.
    """
    bars: dict[int, Expr] = {id(order[-1]): bar}
    for node in reversed(order):
        node_bar = bars.pop(id(node), None)
        if node_bar is None or c.is_zero(node_bar) or id(node) not in active:
            continue
        if not take(node, node_bar):
            args = children(node)
            for position, part in pull_node(node, node_bar).items():
                if id(args[position]) in active:
                    _accumulate(bars, id(args[position]), part)


def active_parts(
    order: Iterable[Expr], varies: Callable[[str], bool], wanted: frozenset[str] = frozenset()
) -> set[int]:
    """Ids of the nodes, in order, that depend differentiably on a name that `varies`, or on a
    buffer in `wanted`.
    """
    active: set[int] = set()
    for e in order:
        if not is_differentiable(e.type) or isinstance(e, nodes.Detach | nodes.Bitcast):
            continue
        if isinstance(e, nodes.Var):
            is_active = varies(e.name)
        elif isinstance(e, nodes.Load):
            is_active = e.buffer in wanted
        else:
            is_active = any(id(part) in active for part in children(e))
            if isinstance(e, nodes.Call):
                is_active |= not wanted.isdisjoint(e.function.buffers)
        if is_active:
            active.add(id(e))
    return active


def pull_node(e: Expr, bar: Expr) -> Bars:
    """The cotangents of the operands of `e`, which is no `Conditional`."""
    return _PULL[type(e)](e, bar)


def _accumulate(bars: dict[Any, Expr], key: Any, bar: Expr) -> None:
    bars[key] = c.added(bars[key], bar) if key in bars else bar


def _full(dots: Iterable[Expr | None], args: Iterable[Expr]) -> list[Expr]:
    """Tangents, with `Zero` for `None`."""
    return [c.zero(a.type) if d is None else d for d, a in zip(dots, args, strict=True)]


# -- primitives -------------------------------------------------------------------------------
# y = op(a, b, ...)    y_dot = sum(partial * tangent)    bars: partial * y_bar    (PARTIALS)


def _push_apply(e: nodes.Apply, dots: list[Expr | None]) -> Expr | None:
    if not carries_derivative(e.op):
        return None
    if e.op == ops.SELECT:
        return c.select(e.args[0], *_full(dots[1:], e.args[1:]))
    row = PARTIALS[e.op]
    if not isinstance(row, ByComponent):
        args = [_symbol(a) for a in e.args]
        y_dot = row.jvp(_array(e), args, [_symbol(d) for d in _full(dots, e.args)])
        return expression(y_dot, e.type)
    if isinstance(e.type, Matrix):
        return c.construct(e.type, [
            c.zero(e.type.row) if d is None else d
            for d in (_push_apply(row_of_e, [None if d is None else c.row(d, k) for d in dots])
                      for k, row_of_e in enumerate(_by_rows(e)))])  # fmt: skip
    terms = [
        _scaled(row, partial, dot, e)
        for partial, dot in zip(_partials(row, e), dots, strict=True)
        if dot is not None
    ]
    nonzero = [t for t in terms if t is not None]
    return c.total(nonzero) if nonzero else None


def _pull_apply(e: nodes.Apply, bar: Expr) -> Bars:
    if not carries_derivative(e.op):
        return {}
    if e.op == ops.SELECT:
        zero = c.zero(e.type)
        return {1: c.select(e.args[0], bar, zero), 2: c.select(e.args[0], zero, bar)}
    row = PARTIALS[e.op]
    if not isinstance(row, ByComponent):
        bars = row.vjp(_array(e), [_symbol(a) for a in e.args], _array(bar))
        return {k: expression(b, a.type) for k, (b, a) in enumerate(zip(bars, e.args, strict=True))}
    if isinstance(e.type, Matrix):
        by_row = [_pull_apply(row_of_e, c.row(bar, k)) for k, row_of_e in enumerate(_by_rows(e))]
        return {
            k: c.construct(a.type, [part.get(k, c.zero(e.type.row)) for part in by_row])
            for k, a in enumerate(e.args)
            if a.type == e.type
        }
    scaled = {k: _scaled(row, partial, bar, e) for k, partial in enumerate(_partials(row, e))}
    return {k: b for k, b in scaled.items() if b is not None}


def _by_rows(e: nodes.Apply) -> list[nodes.Apply]:
    """An op by component on matrices, row by row."""
    assert isinstance(e.type, Matrix)
    rows: list[nodes.Apply] = []
    for k in range(e.type.row_count):
        args = tuple(c.row(a, k) if isinstance(a.type, Matrix) else a for a in e.args)
        rows.append(nodes.Apply(type=e.type.row, op=e.op, args=args, span=e.span))
    return rows


def _symbol(e: Expr) -> Any:
    """`e` as an argument of a rule; a constant int is an exponent and stays a number."""
    value = c.number_of(e)
    return value if isinstance(value, int) and not is_float(e.type) else Symbolic(e)


def _array(e: Expr) -> Any:
    """`e`, typed as the array that it is for NumPy."""
    return Symbolic(e)


def _partials(row: ByComponent, e: nodes.Apply) -> tuple[Any, ...]:
    with np.errstate(all="ignore"):
        return row.partials(_array(e), *(_symbol(a) for a in e.args))


def _scaled(row: ByComponent, partial: Any, d: Expr, e: nodes.Apply) -> Expr | None:
    """``partial * d``, where 0 times infinity is 0 if ``row.zero_wins``; `None` for zero."""
    if isinstance(partial, ZeroPartial):
        return None
    if isinstance(partial, Symbolic):
        mask = partial.expr
        if isinstance(mask, nodes.Cast) and is_bool(mask.value.type):
            return c.select(mask.value, d, c.zero(d.type))
        if isinstance(mask, nodes.Apply) and mask.op == ops.SIGN:
            return _signed(mask.args[0], d)
        if not row.zero_wins or _is_plain(mask):
            return expression(partial * Symbolic(d), e.type)
        return c.apply(ops.TIMES, expression(partial, e.type), d)
    factor = float(partial)
    if factor == 0:
        return None
    if factor == -1:
        return c.apply(ops.NEG, d)
    return c.apply(ops.MUL, c.number(e.type, factor), d)


def _signed(x: Expr, d: Expr) -> Expr:
    """``sign(x) * d``, where 0 times infinity is 0."""
    zero = c.number(x.type, 0)
    is_positive, is_negative = c.apply(ops.GT, x, zero), c.apply(ops.LT, x, zero)
    below = c.select(is_negative, c.apply(ops.NEG, d), c.zero(d.type))
    return c.select(is_positive, d, below)


def _is_plain(e: Expr) -> bool:
    """True if `e` is a constant, or a quotient of two, far from 0 and infinity in any type."""
    parts = e.args if isinstance(e, nodes.Apply) and e.op == ops.DIV else (e,)
    values = map(c.number_of, parts)
    return all(value is not None and 0.01 < abs(value) < 100.0 for value in values)


# -- construction and access ---------------------------------------------------------------------


def _pull_construct(e: nodes.Construct, bar: Expr) -> Bars:
    if isinstance(e.type, Struct | Tuple):
        return {k: c.field(bar, n) for k, (n, _) in enumerate(c.named_parts(e.type))}
    if isinstance(e.parts[0].type, Vector) and isinstance(e.type, Matrix):
        return dict(enumerate(c.rows(bar)))
    scalars = iter(c.components(bar))
    bars: Bars = {}
    for k, part in enumerate(e.parts):
        if isinstance(part.type, Vector):
            bars[k] = c.construct(part.type, [next(scalars) for _ in range(part.type.count)])
        else:
            bars[k] = next(scalars)
    return bars


def _pull_field(e: nodes.Field, bar: Expr) -> Bars:
    t = e.value.type
    assert isinstance(t, Struct | Tuple)
    parts = [bar if n == e.name else c.zero(part) for n, part in c.named_parts(t)]
    return {0: c.construct(t, parts)}


def _pull_swizzle(e: nodes.Swizzle, bar: Expr) -> Bars:
    t = e.value.type
    assert isinstance(t, Vector)
    parts = [c.zero(t.element)] * t.count
    for letter, part in zip(e.components, c.components(bar), strict=True):
        k = "xyzw".index(letter)
        parts[k] = c.added(parts[k], part)
    return {0: c.construct(t, parts)}


def _pull_element(e: nodes.Element, bar: Expr) -> Bars:
    """``value_bar[k] = bar if k == index else 0``."""
    t = e.value.type
    if isinstance(t, LocalArray):
        return {0: c.placed_in_array(t, e.index, bar)}
    assert isinstance(t, Vector | Matrix)
    positions = range(t.count if isinstance(t, Vector) else t.row_count)
    zero = c.zero(bar.type)
    index = c.number_of(e.index)
    if index is not None:
        return {0: c.construct(t, [bar if k == index else zero for k in positions])}
    parts = [c.select(c.apply(ops.EQ, e.index, c.whole(k)), bar, zero) for k in positions]
    return {0: c.construct(t, parts)}


# -- choices and calls ------------------------------------------------------------------------


def _push_conditional(e: nodes.Conditional, dots: list[Expr | None]) -> Expr:
    if_true, if_false = _full(dots[1:], (e.if_true, e.if_false))
    return c.conditional(e.condition, if_true, if_false)


def _pull_conditional(e: nodes.Conditional, bar: Expr, names: frozenset[str]) -> dict[str, Expr]:
    """The cotangents of each side under the condition, so that the other side cannot add NaN."""
    sides = [pull(side, bar, names) for side in (e.if_true, e.if_false)]
    bars: dict[str, Expr] = {}
    for name in sorted({*sides[0], *sides[1]}):
        t = next(side[name].type for side in sides if name in side)
        if_true, if_false = (side.get(name, c.zero(t)) for side in sides)
        bars[name] = c.conditional(e.condition, if_true, if_false)
    return bars


def _push_call(e: nodes.Call, dots: list[Expr | None]) -> Expr:
    wanted = differentiable(e.function)
    return push_call(e, _full([dots[k] for k in wanted], [e.args[k] for k in wanted]))


# A rule is applied only if some tangent is not zero.
_PUSH: dict[type[Expr], Callable[[Any, list[Any]], Expr | None]] = {
    nodes.Apply: _push_apply,
    nodes.Construct: lambda e, dots: c.construct(e.type, _full(dots, e.parts)),
    nodes.Field: lambda e, dots: c.field(dots[0], e.name),
    nodes.Swizzle: lambda e, dots: c.swizzle(dots[0], e.components),
    nodes.Element: lambda e, dots: c.element(dots[0], e.index),
    nodes.Splat: lambda e, dots: c.splat(e.type, dots[0]),
    nodes.Cast: lambda e, dots: c.convert(e.type, dots[0]),
    nodes.Conditional: _push_conditional,
    nodes.Call: _push_call,
    nodes.TextureCall: _push_call,
    nodes.Bitcast: lambda e, dots: None,
    nodes.Detach: lambda e, dots: None,
}
_PULL: dict[type[Expr], Callable[[Any, Expr], Bars]] = {
    nodes.Apply: _pull_apply,
    nodes.Construct: _pull_construct,
    nodes.Field: _pull_field,
    nodes.Swizzle: _pull_swizzle,
    nodes.Element: _pull_element,
    nodes.Splat: lambda e, bar: {0: c.summed(bar)},
    nodes.Cast: lambda e, bar: {0: c.convert(e.value.type, bar)},
    nodes.Call: pull_call,
    nodes.TextureCall: pull_call,
}
