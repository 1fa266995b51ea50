"""Which indices are in range whatever the arrays hold, so that no access has to ask.

An index that is made of constants, of Index names, extents, counters of loops and whole-number
uniforms lies between two `Size`s. It is in range where certain sizes are 0 or more, which a host
knows before it launches. Invariant: where they are, each index that is marked is in range wherever
it is reached.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import TypeVar

from shaderad.bodies import intervals
from shaderad.bodies.intervals import Interval
from shaderad.bodies.outputs import AlreadyRead, CheckIndex
from shaderad.ir import nodes, ops, sizes
from shaderad.ir.nodes import Expr, Function, Kernel, Stmt
from shaderad.ir.sizes import Size
from shaderad.ir.types import INT, UINT, LocalArray, Matrix, Type, Vector
from shaderad.ir.walk import changed, map_children, reachable, step_type

_ALL: dict[Type, Interval] = {
    INT: Interval(-(1 << 31), (1 << 31) - 1),
    UINT: Interval(0, (1 << 32) - 1),
}
"""All numbers of a type."""

_Node = TypeVar("_Node", Expr, Stmt)


@dataclass(frozen=True, kw_only=True)
class InRange(Expr):
    """An index of an array, known to be in range; stands on all axes of an access or on none."""

    value: Expr


def extent_of_launch(axis: int) -> Size:
    """The symbol of an extent of the launch."""
    return sizes.symbol(f"{axis}")


def extent_of(buffer: str, axis: int) -> Size:
    """The symbol of an extent of an array."""
    return sizes.symbol(f"{buffer}.{axis}")


def value_of(uniform: str) -> Size:
    """The symbol of a whole-number uniform."""
    return sizes.symbol(uniform)


def conditions(kernel: Kernel) -> frozenset[Size]:
    """The sizes that matter: `marked` may be told which of them are 0 or more."""
    ranges = _Ranges(frozenset())
    ranges.kernel_body(kernel, kernel.body, kernel.local_types)
    return frozenset(ranges.asked)


def marked(
    kernel: Kernel,
    body: tuple[Stmt, ...],
    types: Mapping[str, Type],
    natural: frozenset[Size],
    shaped_as: Mapping[str, str],
) -> tuple[Stmt, ...]:
    """`body` of `kernel` with the indices marked that are in range.

    Args:
        kernel: Whose arrays, Index names and uniforms `body` has.
        body: Its statements, in any stage before they are pulled.
        types: Of the names that it assigns.
        natural: Sizes of `conditions` that are 0 or more in every launch.
        shaped_as: By array, another one that has its shape: tangents are not in `conditions`.
    """
    return _Ranges(natural, shaped_as).kernel_body(kernel, body, types)


def is_in_range(
    kernel: Kernel, buffer: str, indices: tuple[Expr, ...], natural: frozenset[Size]
) -> bool:
    """Whether indices of Index names, uniforms and constants are in range."""
    return _Ranges(natural).are_in_range(buffer, indices, _given(kernel))


_Names = dict[str, Interval]


def _given(kernel: Kernel) -> _Names:
    """What is known of Index names and uniforms."""
    found = {
        u.name: intervals.only(value_of(u.name)) for u in kernel.uniforms if u.type in (INT, UINT)
    }
    for axis, name in enumerate(kernel.index_names):
        found[name] = Interval(0, sizes.subtract(extent_of_launch(axis), 1))
    return found


class _Ranges:
    """One kernel and the functions that it calls."""

    def __init__(
        self, natural: frozenset[Size], shaped_as: Mapping[str, str] = MappingProxyType({})
    ) -> None:
        self._natural = natural
        self._shaped_as = shaped_as
        self._functions: dict[Function, Function] = {}
        self._arguments: dict[Function, list[Interval | None]] = {}
        """What is known of the parameters of functions, from all their calls together."""
        self._called_elsewhere: set[Function] = set()
        """Those of whose parameters nothing is known."""
        self._is_noting = False
        self._types: Mapping[str, Type] = {}
        self._numbers: set[str] = set()
        """Names of numbers of elements that are there."""
        self.asked: set[Size] = set()
        """What was to be 0 or more, and is no constant."""

    def kernel_body(
        self, kernel: Kernel, body: tuple[Stmt, ...], types: Mapping[str, Type]
    ) -> tuple[Stmt, ...]:
        """Looks at all calls first, callers before what they call."""
        self._is_noting = True
        self._body(body, _given(kernel), types)
        functions = reachable(body)
        self._called_elsewhere = _called_by_derivatives(functions)
        for f in reversed(functions):
            self._function_body(f)
        self._is_noting = False
        return self._body(body, _given(kernel), types)

    def _body(
        self, body: tuple[Stmt, ...], names: _Names, types: Mapping[str, Type]
    ) -> tuple[Stmt, ...]:
        """The body of a kernel or function, given what is known of the names before."""
        outer = self._types, self._numbers
        self._types, self._numbers = types, set()
        assigned = changed(body)
        made = self._block(body, {n: v for n, v in names.items() if n not in assigned})
        self._types, self._numbers = outer
        return made

    def _function_body(self, f: Function) -> tuple[Stmt, ...]:
        types = {p.name: p.type for p in f.parameters} | f.local_types
        known = [] if f in self._called_elsewhere else self._arguments.get(f, [])
        names = {p.name: v for p, v in zip(f.parameters, known, strict=False) if v is not None}
        return self._body(f.body, names, types)

    def _note_call(self, e: nodes.Call, names: _Names) -> None:
        found = [self._interval(a, names) for a in e.args]
        before = self._arguments.get(e.function, found)
        self._arguments[e.function] = [
            None if a is None or b is None else intervals.hull(a, b)
            for a, b in zip(before, found, strict=True)
        ]

    def _function(self, f: Function) -> Function:
        """`f` with marks."""
        if self._is_noting:
            return f
        if f not in self._functions:
            self._functions[f] = f  # Its own derivatives may call it.
            body = self._function_body(f)
            own = (None if g is None else self._function(g) for g in (f.backward, f.forward))
            made = (body, *own)
            if made != (f.body, f.backward, f.forward):
                body, backward, forward = made
                self._functions[f] = replace(f, body=body, backward=backward, forward=forward)
        return self._functions[f]

    # -- statements -------------------------------------------------------------------------------

    def _block(self, body: tuple[Stmt, ...], names: _Names) -> tuple[Stmt, ...]:
        """`body` with marks; `names` is what is known before, and is left as it is after."""
        return tuple(self._statement(s, names) for s in body)

    def _statement(self, s: Stmt, names: _Names) -> Stmt:
        if isinstance(s, nodes.If):
            return self._branch(s, names)
        if isinstance(s, nodes.For | nodes.While):
            return self._loop(s, names)
        made = self._marked(s, names)
        if isinstance(made, nodes.Assign):
            return self._assigned(made, names)
        if isinstance(made, nodes.BackwardDiff):
            made = replace(made, function=self._function(made.function))
        for name in changed((s,)):
            names.pop(name, None)
        return made

    def _assigned(self, s: nodes.Assign, names: _Names) -> Stmt:
        _set(names, s.name, None if s.path else self._interval(s.value, names))
        if isinstance(s.value, CheckIndex) and isinstance(s.value.indices[0], InRange):
            self._numbers.add(s.name)
        return replace(s, path=tuple(self._path(self._types[s.name], s.path, names)))

    def _branch(self, s: nodes.If, names: _Names) -> Stmt:
        condition = self._expression(s.condition, names)
        sides = self._sides(s.condition, names)
        then, otherwise = map(self._block, (s.then, s.otherwise), sides)
        for name in changed((s,)):
            known = [side[name] for side in sides if name in side]
            _set(names, name, intervals.hull(*known) if len(known) == len(sides) else None)
        return replace(s, condition=condition, then=then, otherwise=otherwise)

    def _loop(self, s: nodes.For | nodes.While, names: _Names) -> Stmt:
        """What the loop assigns is unknown in it and behind it, its counter apart."""
        counter = self._counter(s, names) if isinstance(s, nodes.For) else None
        bounds = self._bounds(s, names) if isinstance(s, nodes.For) else {}
        for name in changed((s,)):
            names.pop(name, None)
        if isinstance(s, nodes.While):
            bounds = {"condition": self._expression(s.condition, names)}
        inside = dict(names)
        if isinstance(s, nodes.For):
            _set(inside, s.variable, counter)
        else:
            self._assume(s.condition, inside, holds=True)
        return replace(s, **bounds, body=self._block(s.body, inside))

    def _bounds(self, s: nodes.For, names: _Names) -> dict[str, Expr]:
        return {n: self._expression(getattr(s, n), names) for n in ("start", "stop", "step")}

    def _counter(self, s: nodes.For, names: _Names) -> Interval | None:
        start, stop = (self._exact(e, names) for e in (s.start, s.stop))
        if not isinstance(s.step, nodes.Const):
            return None
        asked = start.asked | stop.asked
        if s.step.value > 0:
            return Interval(start.low, sizes.subtract(stop.high, 1), asked)
        return Interval(sizes.add(stop.low, 1), start.high, asked)

    # -- conditions -------------------------------------------------------------------------------

    def _sides(self, condition: Expr, names: _Names) -> tuple[_Names, _Names]:
        """What is known where a condition holds, and where it does not."""
        sides = dict(names), dict(names)
        for side, holds in zip(sides, (True, False), strict=True):
            self._assume(condition, side, holds=holds)
        return sides

    def _assume(self, e: Expr, names: _Names, *, holds: bool) -> None:
        """Takes from a condition what it says of names, where it `holds` or does not."""
        if isinstance(e, nodes.Logical) and e.is_and == holds:
            self._assume(e.left, names, holds=holds)
            self._assume(e.right, names, holds=holds)
        elif isinstance(e, nodes.Apply) and e.op is ops.NOT:
            self._assume(e.args[0], names, holds=not holds)
        elif isinstance(e, nodes.Apply) and e.args[0].type in _ALL:
            left, right = e.args[0], e.args[-1]
            if e.op in (ops.LT, ops.GE):
                self._assume_order(left, right, names, is_less=(e.op is ops.LT) == holds)
            elif e.op in (ops.GT, ops.LE):
                self._assume_order(right, left, names, is_less=(e.op is ops.GT) == holds)

    def _assume_order(self, a: Expr, b: Expr, names: _Names, *, is_less: bool) -> None:
        """``a < b``, or ``b <= a``."""
        low, high, gap = (a, b, 1) if is_less else (b, a, 0)
        below, above = self._exact(low, names), self._exact(high, names)
        asked = below.asked | above.asked
        if isinstance(low, nodes.Var):
            end = sizes.minimum(below.high, sizes.subtract(above.high, gap))
            names[low.name] = Interval(below.low, end, asked)
        if isinstance(high, nodes.Var):
            start = sizes.maximum(above.low, sizes.add(below.low, gap))
            names[high.name] = Interval(start, above.high, asked)

    # -- accesses ---------------------------------------------------------------------------------

    def _marked(self, node: _Node, names: _Names) -> _Node:
        """A node with marks at its own indices and in all its operands."""
        made = map_children(node, lambda e: self._expression(e, names))
        if isinstance(made, nodes.KnownNumber) and isinstance(made.number, nodes.Var):
            return replace(made, is_inside=made.is_inside or made.number.name in self._numbers)
        if isinstance(made, _Access) and self.are_in_range(made.buffer, made.indices, names):
            marks = tuple(InRange(type=i.type, value=i, span=i.span) for i in made.indices)
            return replace(made, indices=marks)
        return made

    def _expression(self, e: Expr, names: _Names) -> Expr:
        if isinstance(e, nodes.Conditional):
            return self._choice(e, names)
        if isinstance(e, nodes.Logical):
            return self._logical(e, names)
        made = self._marked(e, names)
        if isinstance(made, nodes.Element):
            return replace(made, index=self._element_index(made.index, made.value.type, names))
        if isinstance(made, nodes.Call) and self._is_noting:
            self._note_call(made, names)
        if isinstance(made, nodes.Call | nodes.ForwardDiff):
            return replace(made, function=self._function(made.function))
        return made

    def _choice(self, e: nodes.Conditional, names: _Names) -> Expr:
        """Only the side that is chosen is evaluated."""
        sides = self._sides(e.condition, names)
        condition = self._expression(e.condition, names)
        if_true, if_false = map(self._expression, (e.if_true, e.if_false), sides)
        return replace(e, condition=condition, if_true=if_true, if_false=if_false)

    def _logical(self, e: nodes.Logical, names: _Names) -> Expr:
        """The right side is evaluated where the left one does not decide."""
        inside = dict(names)
        self._assume(e.left, inside, holds=e.is_and)
        left, right = self._expression(e.left, names), self._expression(e.right, inside)
        return replace(e, left=left, right=right)

    def _path(self, t: Type, path: tuple[nodes.Step, ...], names: _Names) -> Iterator[nodes.Step]:
        """The steps into a value of type `t`."""
        for step in path:
            inner = step_type(t, step)
            assert inner is not None
            if isinstance(step, nodes.ElementStep):
                yield nodes.ElementStep(index=self._element_index(step.index, t, names))
            else:
                yield step
            t = inner

    def _element_index(self, index: Expr, container: Type, names: _Names) -> Expr:
        """An index of a value, with a mark where it is inside."""
        if isinstance(index, nodes.Const | nodes.KnownNumber):
            return index
        assert isinstance(container, Vector | Matrix | LocalArray)
        count = container.row_count if isinstance(container, Matrix) else container.count
        if not self._is_below(index, count, names):
            return index
        return nodes.KnownNumber(type=index.type, number=index, span=index.span)

    def are_in_range(self, buffer: str, indices: tuple[Expr, ...], names: _Names) -> bool:
        """Whether all `indices` are in range where the names are what is known of them."""
        if isinstance(indices[0], nodes.PointerIndex | nodes.KnownNumber | InRange):
            return False
        # All of them are asked for, though the first be known to fail.
        extents = (self._extent(buffer, axis) for axis in range(len(indices)))
        found = [self._is_below(e, n, names) for e, n in zip(indices, extents, strict=True)]
        return all(found)

    def _extent(self, buffer: str, axis: int) -> Size:
        return extent_of(self._shaped_as.get(buffer, buffer), axis)

    def _is_below(self, index: Expr, end: Size, names: _Names) -> bool:
        """Whether an index is 0 or more, and less than `end`."""
        found = self._interval(index, names)
        if found is None:
            return False
        last = sizes.subtract(end, 1)
        return self._holds({found.low, sizes.subtract(last, found.high), *found.asked})

    def _holds(self, asked: Iterable[Size]) -> bool:
        """Whether sizes are known to be 0 or more; what only the host can say is noted."""
        open_ones = {size for size in asked if not isinstance(size, int)}
        if any(isinstance(size, int) and size < 0 for size in asked):
            return False
        self.asked |= open_ones
        return open_ones <= self._natural

    # -- whole numbers ----------------------------------------------------------------------------

    def _interval(self, e: Expr, names: _Names) -> Interval | None:
        """Where `e` lies if nothing wraps; modulo 2^32 it is what the machine finds in any case."""
        if e.type not in _ALL:
            return None
        found = None
        if isinstance(e, nodes.Const):
            found = intervals.only(int(e.value))
        elif isinstance(e, nodes.Var):
            found = names.get(e.name)
        elif isinstance(e, nodes.Length):
            found = intervals.only(self._extent(e.buffer, e.axis))
        elif isinstance(e, nodes.Cast):
            found = self._interval(e.value, names)
        elif isinstance(e, nodes.Conditional):
            found = self._combined(intervals.hull, (e.if_true, e.if_false), names)
        elif isinstance(e, nodes.Apply):
            found = self._applied(e, names)
        return None if found is None or found.is_long else found

    def _applied(self, e: nodes.Apply, names: _Names) -> Interval | None:
        if e.op is ops.SELECT:
            return self._combined(intervals.hull, e.args[1:], names)
        if e.op in intervals.OF_EXACT:
            return intervals.OF_EXACT[e.op](*(self._exact(a, names) for a in e.args))
        rule = intervals.MODULAR.get(e.op)
        return None if rule is None else self._combined(rule, e.args, names)

    def _combined(
        self, rule: intervals.Rule, values: Iterable[Expr], names: _Names
    ) -> Interval | None:
        parts = [self._interval(e, names) for e in values]
        known = [p for p in parts if p is not None]
        return rule(*known) if len(known) == len(parts) else None

    def _exact(self, e: Expr, names: _Names) -> Interval:
        """Where the machine's `e` lies: comparisons and divisions see what has wrapped."""
        found = self._interval(e, names)
        all_of = _ALL[e.type]
        return all_of if found is None else intervals.within(found, all_of)


_Access = (
    nodes.Load
    | nodes.Store
    | nodes.Accumulate
    | nodes.AccumulateGradient
    | CheckIndex
    | AlreadyRead
)


def _called_by_derivatives(functions: Iterable[Function]) -> set[Function]:
    """What the users' own derivatives call, wherever they are called from."""
    found: set[Function] = set()
    left = list(functions)
    while left:
        f = left.pop()
        own = [g for g in (f.backward, f.forward) if g is not None]
        new = {h for g in own for h in (g, *reachable(g.body))} - found
        found |= new
        left += new
    return found


def _set(names: _Names, name: str, value: Interval | None) -> None:
    if value is None:
        names.pop(name, None)
    else:
        names[name] = value
