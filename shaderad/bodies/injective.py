"""Are the indices at which an Out array is written provably different for every write?

An index tuple is provable where axis k is ``a_k * index_k + offset_k``: each Index name stands on
exactly one axis, ``a_k`` is a nonzero constant, and the offset is a constant, a variable of a loop
with constant bounds, or a uniform (alone). Two writes then collide only where their offsets
agree modulo ``a_k`` on every axis, and they write a common part of the element.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from itertools import product

from shaderad.ir import ops
from shaderad.ir.nodes import (
    Apply,
    Assign,
    Const,
    ElementStep,
    Evaluate,
    Expr,
    FieldStep,
    For,
    If,
    Step,
    Stmt,
    Store,
    SwizzleStep,
    Var,
)
from shaderad.ir.types import INT
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

    def value(self, at: Mapping[str, int]) -> int:
        return self.constant + sum(c * at[n] for n, c in self.coefficients)


@dataclass(frozen=True)
class _Side:
    """The side of an if on which a write stands."""

    number: int
    is_then: bool
    loops: tuple[str, ...]
    """Variables of the loops around the if: each of their iterations takes a side anew."""


@dataclass(frozen=True)
class _Site:
    store: Store
    ranges: Mapping[str, range]
    """Variables of the enclosing constant loops."""
    sides: tuple[_Side, ...] = ()


_Place = tuple[tuple[int, ...], Mapping[str, int]]
"""Where a write goes, and the values of the loop variables then."""
_Part = str | frozenset[int] | None
"""What one step of a path enters: a field, components, or whatever a variable index says."""


@dataclass(frozen=True)
class _Write:
    """A site in one iteration of the loops around it."""

    site: _Site
    place: tuple[int, ...]
    parts: tuple[_Part, ...]
    at: Mapping[str, int]

    def may_meet(self, other: _Write) -> bool:
        """Whether one thread may do both, on a common part of one element."""
        sides = {side.number: side for side in self.site.sides}
        for side in other.site.sides:
            own = sides.get(side.number, side)
            is_same_iteration = all(self.at[n] == other.at[n] for n in side.loops)
            if own.is_then != side.is_then and is_same_iteration:
                return False
        return all(map(_may_overlap, self.parts, other.parts))


def _may_overlap(a: _Part, b: _Part) -> bool:
    if isinstance(a, frozenset) and isinstance(b, frozenset):
        return not a.isdisjoint(b)
    return a is None or b is None or a == b


def is_injective(
    body: tuple[Stmt, ...],
    buffer: str,
    index_names: tuple[str, ...],
    uniforms: frozenset[str],
    at_zero: tuple[str, ...] = (),
) -> bool:
    """Whether no two writes of a whole dispatch to `buffer` share a part of an element.

    Args:
        body: The statements of the kernel.
        buffer: An Out array.
        index_names: Names that set the threads apart.
        uniforms: Names that all threads have in common.
        at_zero: Those of `index_names` that are 0 in every thread of the dispatch.
    """
    named = {**_named_once(body), **{n: Const(type=INT, value=0) for n in at_zero}}
    index_names = tuple(n for n in index_names if n not in at_zero)
    uniforms -= writes(body)
    sites = [s for s in _sites(body, {}, ()) if s.store.buffer == buffer]
    if all(s.store.is_unique for s in sites):
        return True
    seen: dict[tuple[int, ...], list[_Write]] = {}
    shapes = set[object]()
    for site in sites:
        indices = tuple(_unfolded(e, named) for e in site.store.indices)
        found = _places(site, indices, index_names, uniforms)
        if found is None:
            return False
        shape, places = found
        shapes.add(shape)
        if len(shapes) > 1:
            return False
        for place, at in places:
            write = _Write(site, place, _parts(site.store.path, named, at), at)
            if any(write.may_meet(other) for other in seen.get(place, [])):
                return False
            seen.setdefault(place, []).append(write)
    return True


def repeated_write(
    body: tuple[Stmt, ...], buffer: str, index_names: tuple[str, ...], uniforms: frozenset[str]
) -> Store | None:
    """A write that follows another one to the same part at the same index, whatever the values.

    This breaks what ``sad.unique`` promises; outside of loops it can be seen without running.
    """
    named = _named_once(body)
    fixed = (frozenset(index_names) | uniforms) - writes(body)
    seen: dict[tuple[Expr, ...], list[_Write]] = {}
    for site in _sites(body, {}, ()):
        indices = tuple(_unfolded(e, named) for e in site.store.indices)
        names = reads(Evaluate(call=e) for e in indices)
        if site.store.buffer != buffer or site.ranges or not names <= fixed:
            continue
        write = _Write(site, (), _parts(site.store.path, named, {}), {})
        earlier = [
            w for w in seen.get(indices, []) if site.sides[: len(w.site.sides)] == w.site.sides
        ]
        if any(None not in (*w.parts, *write.parts) and w.may_meet(write) for w in earlier):
            return site.store
        seen.setdefault(indices, []).append(write)
    return None


def _parts(
    path: tuple[Step, ...], named: Mapping[str, Expr], at: Mapping[str, int]
) -> tuple[_Part, ...]:
    parts: list[_Part] = []
    for step in path:
        if isinstance(step, FieldStep):
            parts.append(step.name)
        elif isinstance(step, SwizzleStep):
            parts.append(frozenset("xyzw".index(letter) for letter in step.components))
        else:
            assert isinstance(step, ElementStep)
            form = _linear(_unfolded(step.index, named))
            is_known = form is not None and all(n in at for n, _ in form.coefficients)
            parts.append(frozenset({form.value(at)}) if form is not None and is_known else None)
    return tuple(parts)


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
    body: tuple[Stmt, ...], ranges: Mapping[str, range], sides: tuple[_Side, ...]
) -> Iterator[_Site]:
    for s in body:
        if isinstance(s, Store):
            yield _Site(s, ranges, sides)
        elif isinstance(s, If):
            for block, is_then in ((s.then, True), (s.otherwise, False)):
                yield from _sites(block, ranges, (*sides, _Side(id(s), is_then, tuple(ranges))))
        elif isinstance(s, For) and all(isinstance(b, Const) for b in (s.start, s.stop, s.step)):
            bounds = (int(b.value) for b in (s.start, s.stop, s.step) if isinstance(b, Const))
            yield from _sites(s.body, {**ranges, s.variable: range(*bounds)}, sides)
        else:
            for block in blocks(s):
                # A loop of unknown length writes its elements again unless an index tells.
                yield from _sites(block, {**ranges, "": range(2)}, sides)


def _places(
    site: _Site,
    indices: tuple[Expr, ...],
    index_names: tuple[str, ...],
    uniforms: frozenset[str],
) -> tuple[object, list[_Place]] | None:
    """The shape of the index tuple, and its offsets modulo the coefficients, one a write."""
    forms = [_linear(e) for e in indices]
    axes: list[tuple[str, int, frozenset[tuple[str, int]]]] = []
    offsets: list[_Linear] = []
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
        offsets.append(_Linear(tuple(loops.items()), form.constant))
    if sorted(n for n, _, _ in axes if n) != sorted(index_names):
        return None
    places = _enumerated(site, axes, offsets)
    return None if places is None else (tuple(axes), places)


def _enumerated(
    site: _Site,
    axes: list[tuple[str, int, frozenset[tuple[str, int]]]],
    offsets: list[_Linear],
) -> list[_Place] | None:
    names = list(site.ranges)
    sizes = [len(site.ranges[n]) for n in names]
    total = 1
    for size in sizes:
        total *= size
    if total > _ENUMERATED:
        return None
    places: list[_Place] = []
    for values in product(*(site.ranges[n] for n in names)):
        at = dict(zip(names, values, strict=True))
        place = [offset.value(at) for offset in offsets]
        wrapped = (p % abs(a) if a else p for p, (_, a, _) in zip(place, axes, strict=True))
        places.append((tuple(wrapped), at))
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
