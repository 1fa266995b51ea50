"""Derivatives of one expression of the kernel IR: `push` is its jvp, `pull` its vjp.

Expressions share their parts: what one object computes is differentiated once, so a derivative is
as long as its primal, not as its primal written out. Derivatives have the type of their primal,
with 0 in what holds no float. `None` is a derivative that is zero whatever the numbers are.
Invariant: a side of a `Conditional` that is not chosen contributes nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

import numpy as np

from shaderad.ir import nodes, ops
from shaderad.ir.nodes import Expr
from shaderad.ir.types import (
    LocalArray,
    Matrix,
    Struct,
    Tuple,
    Type,
    Vector,
    is_bool,
    is_differentiable,
    is_float,
    scalar_of,
)
from shaderad.ir.walk import children, map_children
from shaderad.rules import calls
from shaderad.rules import composing as c
from shaderad.rules.local_arrays import added, placed_in_array
from shaderad.rules.partials import PARTIALS, carries_derivative
from shaderad.rules.symbolic import Symbolic, expression
from shaderad.rules.table import ByComponent, Zero

Dots = Mapping[str, "Expr | None"]
"""The tangent of each variable."""
Bars = dict[int, Expr]
"""Of one node: the cotangents of its operands, by position in `operands`."""


def push(e: Expr, dots: Dots) -> Expr | None:
    """The tangent of `e`, where its variables have the tangents `dots`."""
    found: dict[int, Expr | None] = {}
    for node in in_order(e):
        if isinstance(node, nodes.Var):
            made = dots.get(node.name)
        else:
            made = push_node(node, [found[id(a)] for a in operands(node)])
        found[id(node)] = None if made is None or c.is_zero(made) else made
    return found[id(e)]


def push_node(e: Expr, dots: list[Expr | None]) -> Expr | None:
    """The tangent of `e` from those of its operands."""
    if not is_differentiable(e.type) or all(d is None for d in dots):
        return None
    made = _PUSH[type(e)](e, dots)
    return None if made is None or c.is_zero(made) else made


def pull(e: Expr, e_bar: Expr, wanted: Iterable[str]) -> dict[str, Expr]:
    """The cotangents of the variables `wanted`, where `e` has the cotangent `e_bar`."""
    names = frozenset(wanted)
    order = in_order(e)
    depends = _dependents(order, names)
    bars: dict[int, Expr] = {id(e): e_bar}
    found: dict[str, Expr] = {}
    for node in reversed(order):
        bar = bars.pop(id(node), None)
        if bar is None or c.is_zero(bar) or id(node) not in depends:
            continue
        if isinstance(node, nodes.Var):
            _accumulate(found, node.name, bar)
        elif isinstance(node, nodes.Conditional):
            for name, part in _pull_conditional(node, bar, names).items():
                _accumulate(found, name, part)
        else:
            args = operands(node)
            for position, part in pull_node(node, bar).items():
                if id(args[position]) in depends:
                    _accumulate(bars, id(args[position]), part)
    return {name: bar for name, bar in found.items() if not c.is_zero(bar)}


def pull_node(e: Expr, bar: Expr) -> Bars:
    """The cotangents of the operands of `e`; of a conditional they come by names (`pull`)."""
    return _PULL[type(e)](e, bar)


def in_order(e: Expr) -> list[Expr]:
    """Every part of `e` once, operands first; no recursion, fused expressions are deep."""
    found: dict[int, Expr] = {}
    stack = [(e, False)]
    while stack:
        node, is_ready = stack.pop()
        if id(node) in found:
            continue
        if is_ready:
            found[id(node)] = node
        else:
            stack.append((node, True))
            stack += [(child, False) for child in reversed(operands(node))]
    return list(found.values())


def operands(e: Expr) -> list[Expr]:
    """The parts of `e` that it is made of."""
    return list(children(e))


def variables(e: Expr) -> frozenset[str]:
    """Names that `e` reads."""
    return frozenset(node.name for node in in_order(e) if isinstance(node, nodes.Var))


def substitute(e: Expr, by_name: Mapping[str, Expr]) -> Expr:
    """`e` with its variables replaced; what was shared stays shared."""
    made: dict[int, Expr] = {}
    for node in in_order(e):
        if isinstance(node, nodes.Var):
            made[id(node)] = by_name.get(node.name, node)
        else:
            made[id(node)] = map_children(node, lambda child: made[id(child)])
    return made[id(e)]


def has_choice(e: Expr) -> bool:
    """Whether `e` evaluates something that it may not use."""
    return any(
        isinstance(node, nodes.Conditional)
        or (isinstance(node, nodes.Apply) and node.op == ops.SELECT)
        for node in in_order(e)
    )


def without_unused(part: Expr, bar: Expr) -> Expr:
    """`part`, a multiple of the cotangent `bar`, but 0 where it is NaN though `bar` is 0.

    Not ``select(bar == 0, 0, part)``: that would not move with `bar`.
    """
    if not (_is_numeric(part.type) and _is_numeric(bar.type)) or c.is_zero(part):
        return part
    if isinstance(part.type, Matrix):
        bars = c.rows(bar) if bar.type == part.type else [bar] * part.type.row_count
        rows = [without_unused(row, one) for row, one in zip(c.rows(part), bars, strict=True)]
        return c.construct(part.type, rows)
    is_nan = c.apply(ops.ISNAN, part)
    if bar.type == part.type:
        is_nothing = c.apply(ops.EQ, bar, c.number(bar.type, 0))
    else:
        each = [c.apply(ops.EQ, one, c.number(one.type, 0)) for one in c.components(bar)]
        together = each[0]
        for one in each[1:]:
            together = c.apply(ops.BIT_AND, together, one)
        is_nothing = c.splat(is_nan.type, together)
    is_unused = c.apply(ops.BIT_AND, is_nan, is_nothing)
    return c.select(is_unused, c.zero(part.type), part)


def _is_numeric(t: Type) -> bool:
    scalar = scalar_of(t)
    return scalar is not None and is_float(scalar)


def _accumulate(bars: dict[Any, Expr], key: Any, bar: Expr) -> None:
    known = bars.get(key)
    bars[key] = bar if known is None else added(known, bar)


def _dependents(order: Iterable[Expr], names: frozenset[str]) -> set[int]:
    """The parts through which a derivative flows to one of `names`."""
    found: set[int] = set()
    for node in order:
        if not is_differentiable(node.type) or isinstance(node, nodes.Detach | nodes.Bitcast):
            continue
        if isinstance(node, nodes.Var):
            reaches = node.name in names
        else:
            reaches = any(id(a) in found for a in operands(node))
        if reaches:
            found.add(id(node))
    return found


def _full(dots: Iterable[Expr | None], args: Iterable[Expr]) -> list[Expr]:
    """Tangents with zeros written out."""
    return [c.zero(a.type) if d is None else d for d, a in zip(dots, args, strict=True)]


# -- primitives -------------------------------------------------------------------------------
# y = op(a, b, ..)    y_dot = sum(partial * tangent)    bars: partial * y_bar    (PARTIALS)


def _push_apply(e: nodes.Apply, dots: list[Expr | None]) -> Expr | None:
    if not carries_derivative(e.op):
        return None
    if e.op == ops.SELECT:
        return c.select(e.args[0], *_full(dots[1:], e.args[1:]))
    row = PARTIALS[e.op]
    if not isinstance(row, ByComponent):
        given = [_symbol(a) for a in e.args]
        found = row.jvp(_array(e), given, [_symbol(d) for d in _full(dots, e.args)])
        return expression(found, e.type)
    if isinstance(e.type, Matrix):
        return c.construct(e.type, [
            c.zero(e.type.row) if d is None else d
            for d in (_push_apply(one, [None if d is None else c.row(d, k) for d in dots])
                      for k, one in enumerate(_by_rows(e)))])  # fmt: skip
    terms = [
        _scaled(row, partial, dot, e)
        for partial, dot in zip(_partials(row, e), dots, strict=True)
        if dot is not None
    ]
    kept = [t for t in terms if t is not None]
    return c.total(kept) if kept else None


def _pull_apply(e: nodes.Apply, bar: Expr) -> Bars:
    if not carries_derivative(e.op):
        return {}
    if e.op == ops.SELECT:
        nothing = c.zero(e.type)
        return {1: c.select(e.args[0], bar, nothing), 2: c.select(e.args[0], nothing, bar)}
    row = PARTIALS[e.op]
    if not isinstance(row, ByComponent):
        found = row.vjp(_array(e), [_symbol(a) for a in e.args], _array(bar))
        return {
            k: expression(b, a.type) for k, (b, a) in enumerate(zip(found, e.args, strict=True))
        }
    if isinstance(e.type, Matrix):
        by_row = [_pull_apply(one, c.row(bar, k)) for k, one in enumerate(_by_rows(e))]
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
    made: list[nodes.Apply] = []
    for k in range(e.type.row_count):
        args = tuple(c.row(a, k) if isinstance(a.type, Matrix) else a for a in e.args)
        made.append(nodes.Apply(type=e.type.row, op=e.op, args=args, span=e.span))
    return made


def _symbol(e: Expr) -> Any:
    """`e` as an argument of a rule: ints, which are exponents, as numbers."""
    value = c.number_of(e)
    return value if isinstance(value, int) and not is_float(e.type) else Symbolic(e)


def _array(e: Expr) -> Any:
    """`e` where a rule takes an array, which to NumPy a `Symbolic` is."""
    return Symbolic(e)


def _partials(row: ByComponent, e: nodes.Apply) -> tuple[Any, ...]:
    with np.errstate(all="ignore"):
        return row.partials(_array(e), *(_symbol(a) for a in e.args))


def _scaled(row: ByComponent, partial: Any, d: Expr, e: nodes.Apply) -> Expr | None:
    """``partial * d``, where zero wins if the row says so; `None` for zero."""
    if isinstance(partial, Zero):
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
    """``sign(x) * d``, where zero wins."""
    nothing = c.number(x.type, 0)
    is_positive, is_negative = c.apply(ops.GT, x, nothing), c.apply(ops.LT, x, nothing)
    below = c.select(is_negative, c.apply(ops.NEG, d), c.zero(d.type))
    return c.select(is_positive, d, below)


def _is_plain(e: Expr) -> bool:
    """Whether `e` is a constant, or a quotient of two, neither 0 nor infinite in any float type."""
    parts = e.args if isinstance(e, nodes.Apply) and e.op == ops.DIV else (e,)
    values = map(c.number_of, parts)
    return all(value is not None and 0.01 < abs(value) < 100.0 for value in values)


# -- values made of parts, and parts of values --------------------------------------------------


def _push_construct(e: nodes.Construct, dots: list[Expr | None]) -> Expr:
    return c.construct(e.type, _full(dots, e.parts))


def _pull_construct(e: nodes.Construct, bar: Expr) -> Bars:
    if isinstance(e.type, Struct | Tuple):
        return {k: c.field(bar, n) for k, (n, _) in enumerate(c.named_parts(e.type))}
    if isinstance(e.parts[0].type, Vector) and isinstance(e.type, Matrix):
        return dict(enumerate(c.rows(bar)))
    scalars = iter(c.components(bar))
    found: Bars = {}
    for k, part in enumerate(e.parts):
        if isinstance(part.type, Vector):
            found[k] = c.construct(part.type, [next(scalars) for _ in range(part.type.count)])
        else:
            found[k] = next(scalars)
    return found


def _push_field(e: nodes.Field, dots: list[Expr | None]) -> Expr | None:
    return None if dots[0] is None else c.field(dots[0], e.name)


def _pull_field(e: nodes.Field, bar: Expr) -> Bars:
    t = e.value.type
    assert isinstance(t, Struct | Tuple)
    return {
        0: c.construct(t, [bar if n == e.name else c.zero(part) for n, part in c.named_parts(t)])
    }


def _push_swizzle(e: nodes.Swizzle, dots: list[Expr | None]) -> Expr | None:
    return None if dots[0] is None else c.swizzle(dots[0], e.components)


def _pull_swizzle(e: nodes.Swizzle, bar: Expr) -> Bars:
    t = c.vector_of(e.value)
    parts = [c.zero(t.element)] * t.count
    for letter, part in zip(e.components, c.components(bar), strict=True):
        k = "xyzw".index(letter)
        parts[k] = added(parts[k], part)
    return {0: c.construct(t, parts)}


def _push_element(e: nodes.Element, dots: list[Expr | None]) -> Expr | None:
    return None if dots[0] is None else c.element(dots[0], e.index)


def _pull_element(e: nodes.Element, bar: Expr) -> Bars:
    """Each component takes the cotangent where it is the one that was read."""
    t = e.value.type
    if isinstance(t, LocalArray):
        return {0: placed_in_array(t, e.index, bar)}
    assert isinstance(t, Vector | Matrix)
    count = t.count if isinstance(t, Vector) else t.row_count
    nothing = c.zero(bar.type)
    known = c.number_of(e.index)
    if known is not None:
        return {0: c.construct(t, [bar if k == known else nothing for k in range(count)])}
    parts = [c.select(c.apply(ops.EQ, e.index, c.whole(k)), bar, nothing) for k in range(count)]
    return {0: c.construct(t, parts)}


def _push_splat(e: nodes.Splat, dots: list[Expr | None]) -> Expr | None:
    return None if dots[0] is None else c.splat(e.type, dots[0])


def _pull_splat(e: nodes.Splat, bar: Expr) -> Bars:
    return {0: c.summed(bar)}


def _push_cast(e: nodes.Cast, dots: list[Expr | None]) -> Expr | None:
    return None if dots[0] is None else c.convert(e.type, dots[0])


def _pull_cast(e: nodes.Cast, bar: Expr) -> Bars:
    return {0: c.convert(e.value.type, bar)}


# -- choices and calls ------------------------------------------------------------------------


def _push_conditional(e: nodes.Conditional, dots: list[Expr | None]) -> Expr:
    if_true, if_false = _full(dots[1:], (e.if_true, e.if_false))
    return nodes.Conditional(type=e.type, condition=e.condition, if_true=if_true, if_false=if_false)


def _pull_conditional(e: nodes.Conditional, bar: Expr, names: frozenset[str]) -> dict[str, Expr]:
    """The cotangents of each side in a conditional again: zero times infinity never meet."""
    sides = [pull(side, bar, names) for side in (e.if_true, e.if_false)]
    found: dict[str, Expr] = {}
    for name in sorted({*sides[0], *sides[1]}):
        t = next(side[name].type for side in sides if name in side)
        if_true, if_false = (side.get(name, c.zero(t)) for side in sides)
        found[name] = nodes.Conditional(
            type=t, condition=e.condition, if_true=if_true, if_false=if_false
        )
    return found


def _push_call(e: nodes.Call, dots: list[Expr | None]) -> Expr:
    wanted = calls.differentiable(e.function)
    return calls.push(e, _full([dots[k] for k in wanted], [e.args[k] for k in wanted]))


def _pull_call(e: nodes.Call, bar: Expr) -> Bars:
    return calls.pull(e, bar)


def _no_push(e: Expr, _: list[Expr | None]) -> None:
    return None


_PUSH: dict[type[Expr], Callable[[Any, list[Expr | None]], Expr | None]] = {
    nodes.Apply: _push_apply,
    nodes.Construct: _push_construct,
    nodes.Field: _push_field,
    nodes.Swizzle: _push_swizzle,
    nodes.Element: _push_element,
    nodes.Splat: _push_splat,
    nodes.Cast: _push_cast,
    nodes.Conditional: _push_conditional,
    nodes.Call: _push_call,
    nodes.Bitcast: _no_push,
    nodes.Detach: _no_push,
}
_PULL: dict[type[Expr], Callable[[Any, Expr], Bars]] = {
    nodes.Apply: _pull_apply,
    nodes.Construct: _pull_construct,
    nodes.Field: _pull_field,
    nodes.Swizzle: _pull_swizzle,
    nodes.Element: _pull_element,
    nodes.Splat: _pull_splat,
    nodes.Cast: _pull_cast,
    nodes.Call: _pull_call,
}
