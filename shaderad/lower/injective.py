"""Are the indices at which an Out array is written provably different for every write?

An index tuple is provable where axis k is ``a_k * index_k + offset_k``: each Index name stands on
exactly one axis, ``a_k`` is a nonzero constant, and the offset is a constant, a variable of a loop
with constant bounds, or a uniform (alone). Two writes then collide only where their offsets
agree modulo ``a_k`` on every axis.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from itertools import product

from shaderad.ir import ops
from shaderad.ir.nodes import Apply, Assign, Const, Expr, For, If, Stmt, Store, Var
from shaderad.ir.walk import blocks, reads, rewrite_expression, statements, writes

# Writes whose offsets are enumerated to compare them; loops beyond are not provable.
_ENUMERATED = 4096
# Indices wrap at 32 bits: beyond, a launch of ordinary size could come round to the same element.
_LARGEST_COEFFICIENT = 4096


@dataclass(frozen=True)
class _Linear:
    """``sum(coefficient * name) + constant``."""

    coefficients: tuple[tuple[str, int], ...]
    constant: int


@dataclass(frozen=True)
class _Site:
    store: Store
    ranges: Mapping[str, range]
    """Variables of the enclosing constant loops."""
    branch: tuple[tuple[int, bool], ...]
    """Which side of each enclosing if, by its number."""


def is_injective(
    body: tuple[Stmt, ...], buffer: str, index_names: tuple[str, ...], uniforms: frozenset[str]
) -> bool:
    """Whether no two writes of a whole dispatch to `buffer` share an element."""
    named = _named_once(body)
    uniforms -= writes(body)
    sites = [s for s in _sites(body, {}, ()) if s.store.buffer == buffer]
    if all(s.store.is_unique for s in sites):
        return True
    seen: dict[tuple[int, ...], list[_Site]] = {}
    shapes = set[object]()
    for site in sites:
        indices = tuple(_unfolded(e, named) for e in site.store.indices)
        found = _places(site, indices, index_names, uniforms)
        if found is None:
            return False
        shape, places = found
        shapes.add(shape)
        if len(shapes) > 1 or len(places) != len(set(places)):
            return False
        for place in places:
            if any(not _exclude(site, other) for other in seen.get(place, [])):
                return False
            seen.setdefault(place, []).append(site)
    return True


def _named_once(body: tuple[Stmt, ...]) -> dict[str, Expr]:
    """Locals that one statement binds, whole: the name stands for the expression.

    Not where the expression names the variable of several loops: the name outlives its loop.
    """
    bound: dict[str, list[Assign]] = {}
    for s in statements(body):
        if isinstance(s, Assign):
            bound.setdefault(s.name, []).append(s)
    variables = Counter(s.variable for s in statements(body) if isinstance(s, For))
    shared = {n for n, count in variables.items() if count > 1}
    return {
        n: found[0].value
        for n, found in bound.items()
        if len(found) == 1 and not found[0].path and not shared & reads(found)
    }


def _unfolded(e: Expr, named: Mapping[str, Expr]) -> Expr:
    """`e` with such names replaced; their values hold names that change no more often."""

    def unfold(part: Expr) -> Expr:
        if isinstance(part, Var) and part.name in named:
            return rewrite_expression(named[part.name], unfold)
        return part

    return rewrite_expression(e, unfold)


def _sites(
    body: tuple[Stmt, ...], ranges: Mapping[str, range], branch: tuple[tuple[int, bool], ...]
) -> Iterator[_Site]:
    for s in body:
        if isinstance(s, Store):
            yield _Site(s, ranges, branch)
        elif isinstance(s, If):
            yield from _sites(s.then, ranges, (*branch, (id(s), True)))
            yield from _sites(s.otherwise, ranges, (*branch, (id(s), False)))
        elif isinstance(s, For) and all(isinstance(b, Const) for b in (s.start, s.stop, s.step)):
            bounds = (int(b.value) for b in (s.start, s.stop, s.step) if isinstance(b, Const))
            yield from _sites(s.body, {**ranges, s.variable: range(*bounds)}, branch)
        else:
            for block in blocks(s):
                # A loop of unknown length writes its elements again unless an index tells.
                yield from _sites(block, {**ranges, "": range(2)}, branch)


def _exclude(a: _Site, b: _Site) -> bool:
    """Whether the two sites stand on different sides of one if."""
    sides = dict(a.branch)
    return any(sides.get(number, side) != side for number, side in b.branch)


def _places(
    site: _Site,
    indices: tuple[Expr, ...],
    index_names: tuple[str, ...],
    uniforms: frozenset[str],
) -> tuple[object, list[tuple[int, ...]]] | None:
    """The shape of the index tuple, and its offsets modulo the coefficients, one a write."""
    forms = [_linear(e) for e in indices]
    axes: list[tuple[str, int, frozenset[tuple[str, int]]]] = []
    offsets: list[tuple[int, dict[str, int]]] = []
    for form in forms:
        if form is None:
            return None
        own = [(n, c) for n, c in form.coefficients if n in index_names]
        rest = {n: c for n, c in form.coefficients if n not in index_names}
        symbols = frozenset((n, c) for n, c in rest.items() if n in uniforms)
        loops = {n: c for n, c in rest.items() if n in site.ranges}
        if len(own) > 1 or len(symbols) + len(loops) != len(rest):
            return None
        if any(abs(c) > _LARGEST_COEFFICIENT for _, c in form.coefficients):
            return None
        axes.append((*own[0], symbols) if own else ("", 0, symbols))
        offsets.append((form.constant, loops))
    if sorted(n for n, _, _ in axes if n) != sorted(index_names):
        return None
    return tuple(axes), _enumerated(site, axes, offsets)


def _enumerated(
    site: _Site,
    axes: list[tuple[str, int, frozenset[tuple[str, int]]]],
    offsets: list[tuple[int, dict[str, int]]],
) -> list[tuple[int, ...]]:
    names = list(site.ranges)
    sizes = [len(site.ranges[n]) for n in names]
    total = 1
    for size in sizes:
        total *= size
    if total > _ENUMERATED:
        return [(), ()]
    places: list[tuple[int, ...]] = []
    for values in product(*(site.ranges[n] for n in names)):
        at = dict(zip(names, values, strict=True))
        place = [constant + sum(c * at[n] for n, c in loops.items()) for constant, loops in offsets]
        places.append(
            tuple(p % abs(a) if a else p for p, (_, a, _) in zip(place, axes, strict=True))
        )
    return places


def _linear(e: Expr) -> _Linear | None:
    if isinstance(e, Const):
        return _Linear((), int(e.value))
    if isinstance(e, Var):
        return _Linear(((e.name, 1),), 0)
    if not isinstance(e, Apply):
        return None
    parts = [_linear(a) for a in e.args]
    if any(p is None for p in parts):
        return None
    known = [p for p in parts if p is not None]
    combine = _COMBINE.get(e.op)
    return combine(*known) if combine is not None else None


def _scaled(a: _Linear, by: int) -> _Linear:
    scaled = ((n, c * by) for n, c in a.coefficients)
    return _Linear(tuple((n, c) for n, c in scaled if c), a.constant * by)


def _sum(a: _Linear, b: _Linear) -> _Linear:
    total = dict(a.coefficients)
    for n, c in b.coefficients:
        total[n] = total.get(n, 0) + c
    kept = tuple(sorted((n, c) for n, c in total.items() if c))
    return _Linear(kept, a.constant + b.constant)


def _product(a: _Linear, b: _Linear) -> _Linear | None:
    if not a.coefficients:
        return _scaled(b, a.constant)
    return _scaled(a, b.constant) if not b.coefficients else None


def _negated(a: _Linear) -> _Linear:
    return _scaled(a, -1)


def _difference(a: _Linear, b: _Linear) -> _Linear:
    return _sum(a, _negated(b))


_COMBINE: dict[ops.Op, Callable[..., _Linear | None]] = {
    ops.NEG: _negated,
    ops.ADD: _sum,
    ops.SUB: _difference,
    ops.MUL: _product,
}
