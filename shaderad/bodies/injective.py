"""Proves that no two writes of a dispatch to an Out array share an element.

An index tuple is provable if axis k is ``a_k * index_k + offset_k``, where each Index name stands
on exactly one axis and ``a_k`` is a nonzero constant. The offset is a constant, a variable of a
loop with constant bounds, or a uniform (alone). Two writes then collide only if their offsets agree
modulo ``a_k`` on every axis and they write a common part of the element.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from itertools import product

from shaderad.bodies.loops import constant_range
from shaderad.ir import nodes, ops, sizes
from shaderad.ir.nodes import Expr, Step
from shaderad.ir.sizes import Size
from shaderad.ir.types import INT
from shaderad.ir.walk import Block, blocks, reads, rewrite_expression, statements, writes

# Largest number of iterations whose offsets are enumerated; longer loops are not provable.
_MAX_ITERATIONS = 4096
# Indices wrap at 32 bits: with larger coefficients a usual launch could reach an element twice.
_LARGEST_COEFFICIENT = 4096


@dataclass(frozen=True)
class _Side:
    """The branch of an if that contains a write."""

    if_id: int
    is_then: bool
    loops: tuple[str, ...]
    """Variables of the loops around the if: it branches anew in each of their iterations."""


@dataclass(frozen=True)
class _Site:
    store: nodes.Store
    ranges: Mapping[str, range]
    """Variables of the enclosing constant loops."""
    sides: tuple[_Side, ...] = ()


_Place = tuple[tuple[int, ...], Mapping[str, int]]
"""Offsets of a write modulo the coefficients, and the values of the loop variables."""
_Named = Mapping[str, Expr]
"""Expressions of locals by name."""
_Part = str | frozenset[int] | None
"""The part that a step of a path enters: a field, components, or `None` for a variable index."""


@dataclass(frozen=True)
class _Write:
    """A store in one iteration of the loops around it."""

    site: _Site
    parts: tuple[_Part, ...]
    counters: Mapping[str, int]

    def may_meet(self, other: _Write) -> bool:
        """True if one thread may execute both writes on a common part of one element."""
        sides = {side.if_id: side for side in self.site.sides}
        for side in other.site.sides:
            own = sides.get(side.if_id, side)
            is_same_iteration = all(self.counters[n] == other.counters[n] for n in side.loops)
            if own.is_then != side.is_then and is_same_iteration:
                return False
        return all(map(_may_overlap, self.parts, other.parts))


def _may_overlap(a: _Part, b: _Part) -> bool:
    if isinstance(a, frozenset) and isinstance(b, frozenset):
        return not a.isdisjoint(b)
    return a is None or b is None or a == b


def is_injective(
    body: Block,
    buffer: str,
    index_names: tuple[str, ...],
    uniforms: frozenset[str],
    at_zero: tuple[str, ...] = (),
) -> bool:
    """True if provably no two writes of a dispatch to `buffer` share a part of an element.

    Args:
        body: The statements of the kernel.
        buffer: An Out array.
        index_names: Names whose values differ between threads.
        uniforms: Names with the same value in all threads.
        at_zero: Those of `index_names` that are 0 in every thread of the dispatch.
    """
    named = {**_named_once(body), **{n: nodes.Const(type=INT, value=0) for n in at_zero}}
    index_names = tuple(n for n in index_names if n not in at_zero)
    uniforms -= writes(body)
    sites = [s for s in _sites(body, {}, ()) if s.store.buffer == buffer]
    if all(s.store.is_unique for s in sites):
        return True
    seen: dict[tuple[int, ...], list[_Write]] = {}
    shapes = set[object]()
    for site in sites:
        indices = [_unfolded(e, named) for e in site.store.indices]
        shape_and_places = _places(site, indices, index_names, uniforms)
        if shape_and_places is None:
            return False
        shape, places = shape_and_places
        shapes.add(shape)
        for place, counters in places:
            write = _Write(site, _parts(site.store.path, named, counters), counters)
            if any(write.may_meet(other) for other in seen.get(place, [])):
                return False
            seen.setdefault(place, []).append(write)
    return len(shapes) == 1


def repeated_write(
    body: Block, buffer: str, index_names: tuple[str, ...], uniforms: frozenset[str]
) -> nodes.Store | None:
    """A write outside loops that always repeats an earlier one, which ``sad.unique`` forbids."""
    named = _named_once(body)
    fixed = (frozenset(index_names) | uniforms) - writes(body)
    seen: dict[tuple[Expr, ...], list[_Write]] = {}
    for site in _sites(body, {}, ()):
        indices = tuple(_unfolded(e, named) for e in site.store.indices)
        names = reads(nodes.Evaluate(call=e) for e in indices)
        if site.store.buffer != buffer or site.ranges or not names <= fixed:
            continue
        write = _Write(site, _parts(site.store.path, named, {}), {})
        earlier = [
            w for w in seen.get(indices, []) if site.sides[: len(w.site.sides)] == w.site.sides
        ]
        if any(None not in (*w.parts, *write.parts) and w.may_meet(write) for w in earlier):
            return site.store
        seen.setdefault(indices, []).append(write)
    return None


def _parts(path: tuple[Step, ...], named: _Named, counters: Mapping[str, int]) -> tuple[_Part, ...]:
    return tuple(_part(step, named, counters) for step in path)


def _part(step: Step, named: _Named, counters: Mapping[str, int]) -> _Part:
    if isinstance(step, nodes.FieldStep):
        return step.name
    if isinstance(step, nodes.SwizzleStep):
        return frozenset("xyzw".index(letter) for letter in step.components)
    assert isinstance(step, nodes.ElementStep)
    form = _linear(_unfolded(step.index, named))
    if form is None or not sizes.symbols(form) <= counters.keys():
        return None
    return frozenset({sizes.evaluate(form, counters)})


def _named_once(body: Block) -> _Named:
    """The expressions of locals that are bound once, and as a whole.

    Excludes expressions with a variable of several loops: the local outlives the loop.
    """
    bound: dict[str, list[nodes.Assign]] = {}
    for s in statements(body):
        if isinstance(s, nodes.Assign):
            bound.setdefault(s.name, []).append(s)
    variables = Counter(s.variable for s in statements(body) if isinstance(s, nodes.For))
    shared = {n for n, count in variables.items() if count > 1}
    return {
        n: assigns[0].value
        for n, assigns in bound.items()
        if len(assigns) == 1 and not assigns[0].path and not shared & reads(assigns)
    }


def _unfolded(e: Expr, named: _Named) -> Expr:
    """`e` with the names in `named` replaced, also in the expressions that replace them."""

    def unfold(part: Expr) -> Expr:
        if isinstance(part, nodes.Var) and part.name in named:
            return rewrite_expression(named[part.name], unfold)
        return part

    return rewrite_expression(e, unfold)


def _sites(body: Block, ranges: Mapping[str, range], sides: tuple[_Side, ...]) -> Iterator[_Site]:
    for s in body:
        if isinstance(s, nodes.Store):
            yield _Site(s, ranges, sides)
        elif isinstance(s, nodes.If):
            for block, is_then in ((s.then, True), (s.otherwise, False)):
                yield from _sites(block, ranges, (*sides, _Side(id(s), is_then, tuple(ranges))))
        elif isinstance(s, nodes.For) and (counters := constant_range(s)) is not None:
            yield from _sites(s.body, {**ranges, s.variable: counters}, sides)
        else:
            for block in blocks(s):
                # Two iterations of a loop of unknown length; no index may name its variable.
                yield from _sites(block, {**ranges, "": range(2)}, sides)


def _places(
    site: _Site,
    indices: list[Expr],
    index_names: tuple[str, ...],
    uniforms: frozenset[str],
) -> tuple[object, list[_Place]] | None:
    """The shape of the index tuple, and its places, one for each write; `None` if not provable."""
    axes: list[tuple[str, int, frozenset[tuple[str, int]]]] = []
    offsets: list[Size] = []
    for form in map(_linear, indices):
        if form is None:
            return None
        coefficients = _coefficients(form)
        own = [(n, c) for n, c in coefficients.items() if n in index_names]
        symbols = frozenset((n, c) for n, c in coefficients.items() if n in uniforms)
        outer = [n for n in coefficients if n not in site.ranges]
        if len(own) > 1 or len(own) + len(symbols) != len(outer):
            return None
        if any(abs(c) > _LARGEST_COEFFICIENT for c in coefficients.values()):
            return None
        axes.append((*own[0], symbols) if own else ("", 0, symbols))
        offsets.append(sizes.substituted(form, dict.fromkeys(outer, 0)))
    if sorted(n for n, _, _ in axes if n) != sorted(index_names):
        return None
    if math.prod(map(len, site.ranges.values())) > _MAX_ITERATIONS:
        return None
    places: list[_Place] = []
    for values in product(*site.ranges.values()):
        counters = dict(zip(site.ranges, values, strict=True))
        place = [sizes.evaluate(offset, counters) for offset in offsets]
        wrapped = (p % abs(a) if a else p for p, (_, a, _) in zip(place, axes, strict=True))
        places.append((tuple(wrapped), counters))
    return tuple(axes), places


def _linear(e: Expr) -> Size | None:
    """`e` as a linear polynomial in the names of the body; `None` for other expressions."""
    if isinstance(e, nodes.Const):
        return int(e.value)
    if isinstance(e, nodes.Var):
        return sizes.symbol(e.name)
    if not isinstance(e, nodes.Apply) or e.op not in _COMBINE:
        return None
    args = [arg for arg in map(_linear, e.args) if arg is not None]
    is_product = e.op is ops.MUL and not any(isinstance(arg, int) for arg in args)
    return None if is_product or len(args) < len(e.args) else _COMBINE[e.op](*args)


_COMBINE: dict[ops.Op, Callable[..., Size]] = {
    ops.NEG: partial(sizes.multiply, -1),
    ops.ADD: sizes.add,
    ops.SUB: sizes.subtract,
    ops.MUL: sizes.multiply,
}


def _coefficients(form: Size) -> dict[str, int]:
    """The coefficients of a linear polynomial by name."""
    return {} if isinstance(form, int) else {str(m[0]): c for m, c in form.terms if m}
