"""Marks the indices that are in range whatever the arrays hold, so that accesses need no check.

An index made of constants, Index names, extents, loop counters and whole-number uniforms lies
between two `Size`s. It is in range if certain sizes, its premises, are 0 or more; the host checks
that before a launch. Invariant: if they are, a marked index is in range wherever it is evaluated.
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
from shaderad.ir.walk import Block, changed, map_children, reachable, step_type

_LIMITS: dict[Type, Interval] = {
    INT: Interval(-(1 << 31), (1 << 31) - 1),
    UINT: Interval(0, (1 << 32) - 1),
}
"""The range of each integer type."""

Node = TypeVar("Node", Expr, Stmt)


@dataclass(frozen=True, kw_only=True)
class InRange(Expr):
    """An index of an array, known to be in range; stands on all axes of an access or on none."""

    value: Expr


def conditions(kernel: Kernel) -> frozenset[Size]:
    """The premises of the indices of `kernel`: sizes that `marked` takes as `natural`.

    Their symbols are ``0`` for an extent of the launch, ``x.0`` for one of an array, and the name
    of a whole-number uniform for its value.
    """
    ranges = IndexRanges(frozenset())
    ranges.kernel_body(kernel.body, known_names(kernel), kernel.local_types)
    return frozenset(ranges.premises)


def holding(premises: Iterable[Size], values: Mapping[str, int]) -> frozenset[Size]:
    """The `conditions` that hold for these values of symbols; those with other symbols do not."""
    return frozenset(
        size
        for size in premises
        if sizes.symbols(size) <= values.keys() and sizes.evaluate(size, values) >= 0
    )


def marked(
    kernel: Kernel,
    body: Block,
    types: Mapping[str, Type],
    natural: frozenset[Size],
    shaped_as: Mapping[str, str],
) -> Block:
    """`body` with `InRange` around the indices that are in range.

    Args:
        kernel: The kernel whose arrays, Index names and uniforms `body` uses.
        body: Statements of any stage before the adjoint is made.
        types: Types of the names that `body` assigns.
        natural: Sizes of `conditions` that are 0 or more in every launch.
        shaped_as: For a tangent array the array whose shape it has; `conditions` names that one.
    """
    return IndexRanges(natural, shaped_as).kernel_body(body, known_names(kernel), types)


def is_in_range(
    kernel: Kernel, buffer: str, indices: tuple[Expr, ...], natural: frozenset[Size]
) -> bool:
    """True if indices made of Index names, uniforms and constants are in range."""
    return IndexRanges(natural).are_in_range(buffer, indices, known_names(kernel))


def premises_of(
    kernel: Kernel, accesses: Iterable[tuple[str, tuple[Expr, ...]]], divisors: Iterable[Expr]
) -> frozenset[Size] | None:
    """Premises: accesses are in range and divisors positive if these sizes are 0 or more.

    `None` if an index or divisor may be any number. Symbols are those of `conditions`.
    """
    ranges, names, premises = IndexRanges(frozenset()), known_names(kernel), set[Size]()
    lowest = [(e, 1, None) for e in divisors]
    lowest += [
        (e, 0, ranges.extent(x, axis)) for x, indices in accesses for axis, e in enumerate(indices)
    ]
    for e, low, end in lowest:
        value = ranges.interval(e, names)
        if value is None:
            return None
        premises |= {sizes.subtract(value.low, low), *value.premises}
        if end is not None:
            premises.add(sizes.subtract(sizes.subtract(end, 1), value.high))
    return frozenset(premises)


Names = dict[str, Interval | None]
"""Intervals of the names of a body; `None` or no entry for a name that may be any number."""


def known_names(kernel: Kernel) -> Names:
    """The intervals of Index names and whole-number uniforms."""
    uniforms = [u.name for u in kernel.uniforms if u.type in (INT, UINT)]
    names: Names = {name: intervals.only(sizes.symbol(name)) for name in uniforms}
    for axis, name in enumerate(kernel.index_names):
        names[name] = Interval(0, sizes.subtract(sizes.symbol(f"{axis}"), 1))
    return names


class IndexRanges:
    """Marks one kernel and the functions that it calls."""

    def __init__(
        self, natural: frozenset[Size], shaped_as: Mapping[str, str] = MappingProxyType({})
    ) -> None:
        self._natural = natural
        self._shaped_as = shaped_as
        self._functions: dict[Function, Function] = {}
        self._arguments: dict[Function, list[Interval | None]] = {}
        """For each function the hull of each argument over all calls."""
        self._called_elsewhere: set[Function] = set()
        """Functions that derivatives call: their arguments are unknown."""
        self._is_collecting_calls = False
        self._types: Mapping[str, Type] = {}
        self._numbers: set[str] = set()
        """Locals that hold the checked number of an element."""
        self.premises: set[Size] = set()
        """Sizes that had to be 0 or more; constants excluded."""

    def kernel_body(self, body: Block, names: Names, types: Mapping[str, Type]) -> Block:
        """`body` with marks; collects the arguments of all calls first, callers before callees."""
        self._is_collecting_calls = True
        self._body(body, names, types)
        functions = reachable(body)
        self._called_elsewhere = _called_by_derivatives(functions)
        for f in reversed(functions):
            self._function_body(f)
        self._is_collecting_calls = False
        return self._body(body, names, types)

    def _body(self, body: Block, names: Names, types: Mapping[str, Type]) -> Block:
        """The body of a kernel or function with marks, given the names known before it."""
        outer = self._types, self._numbers
        self._types, self._numbers = types, set()
        assigned = changed(body)
        marked_body = self._block(body, {n: v for n, v in names.items() if n not in assigned})
        self._types, self._numbers = outer
        return marked_body

    def _function_body(self, f: Function) -> Block:
        types = {p.name: p.type for p in f.parameters} | f.local_types
        values = [] if f in self._called_elsewhere else self._arguments.get(f, [])
        names = [p.name for p in f.parameters]
        return self._body(f.body, dict(zip(names, values, strict=False)), types)

    def _collect_call(self, e: nodes.Call, names: Names) -> None:
        values = [self.interval(a, names) for a in e.args]
        before = self._arguments.get(e.function, values)
        pairs = zip(before, values, strict=True)
        self._arguments[e.function] = [_if_known(intervals.hull, pair) for pair in pairs]

    def _function(self, f: Function) -> Function:
        """`f` with marks."""
        if self._is_collecting_calls:
            return f
        if f not in self._functions:
            self._functions[f] = f  # custom derivatives may call `f` itself
            body = self._function_body(f)
            backward = None if f.backward is None else self._function(f.backward)
            forward = None if f.forward is None else self._function(f.forward)
            if (body, backward, forward) != (f.body, f.backward, f.forward):
                self._functions[f] = replace(f, body=body, backward=backward, forward=forward)
        return self._functions[f]

    # -- statements -------------------------------------------------------------------------------

    def _block(self, body: Block, names: Names) -> Block:
        """`body` with marks; `names` is updated from the names known before to those after."""
        return tuple(self._statement(s, names) for s in body)

    def _statement(self, s: Stmt, names: Names) -> Stmt:
        if isinstance(s, nodes.If):
            return self._branch(s, names)
        if isinstance(s, nodes.For | nodes.While):
            return self._loop(s, names)
        new = self._marked(s, names)
        if isinstance(new, nodes.Assign):
            return self._assigned(new, names)
        if isinstance(new, nodes.BackwardDiff):
            new = replace(new, function=self._function(new.function))
        names.update(dict.fromkeys(changed((s,))))
        return new

    def _assigned(self, s: nodes.Assign, names: Names) -> Stmt:
        names[s.name] = None if s.path else self.interval(s.value, names)
        if isinstance(s.value, CheckIndex) and isinstance(s.value.indices[0], InRange):
            self._numbers.add(s.name)
        return replace(s, path=tuple(self._path(self._types[s.name], s.path, names)))

    def _branch(self, s: nodes.If, names: Names) -> Stmt:
        condition = self._expression(s.condition, names)
        sides = [self._where(s.condition, names, holds=holds) for holds in (True, False)]
        then, otherwise = map(self._block, (s.then, s.otherwise), sides)
        for name in changed((s,)):
            names[name] = _if_known(intervals.hull, [side.get(name) for side in sides])
        return replace(s, condition=condition, then=then, otherwise=otherwise)

    def _loop(self, s: nodes.For | nodes.While, names: Names) -> Stmt:
        """Names that the loop assigns are unknown in it and after it, except for its counter."""
        assigned: Names = dict.fromkeys(changed((s,)))
        if isinstance(s, nodes.While):
            names.update(assigned)
            condition = self._expression(s.condition, names)
            body = self._block(s.body, self._where(s.condition, names))
            return replace(s, condition=condition, body=body)
        counter = self._counter(s, names)
        start, stop, step = (self._expression(e, names) for e in s.bounds)
        names.update(assigned)
        body = self._block(s.body, {**names, s.variable: counter})
        return replace(s, start=start, stop=stop, step=step, body=body)

    def _counter(self, s: nodes.For, names: Names) -> Interval | None:
        start, stop = (self._exact(e, names) for e in (s.start, s.stop))
        if not isinstance(s.step, nodes.Const):
            return None
        premises = start.premises | stop.premises
        if s.step.value > 0:
            return Interval(start.low, sizes.subtract(stop.high, 1), premises)
        return Interval(sizes.add(stop.low, 1), start.high, premises)

    # -- conditions -------------------------------------------------------------------------------

    def _where(self, e: Expr, names: Names, *, holds: bool = True) -> Names:
        """The names known where a condition holds, or where it does not."""
        inside = dict(names)
        self._assume(e, inside, holds=holds)
        return inside

    def _assume(self, e: Expr, names: Names, *, holds: bool) -> None:
        """Narrows the names that a condition compares, given that it `holds` or does not."""
        if isinstance(e, nodes.Logical) and e.is_and == holds:
            self._assume(e.left, names, holds=holds)
            self._assume(e.right, names, holds=holds)
        elif isinstance(e, nodes.Apply) and e.op is ops.NOT:
            self._assume(e.args[0], names, holds=not holds)
        elif isinstance(e, nodes.Apply) and e.args[0].type in _LIMITS:
            left, right = e.args[0], e.args[-1]
            if e.op in (ops.LT, ops.GE):
                self._assume_order(left, right, names, is_less=(e.op is ops.LT) == holds)
            elif e.op in (ops.GT, ops.LE):
                self._assume_order(right, left, names, is_less=(e.op is ops.GT) == holds)

    def _assume_order(self, a: Expr, b: Expr, names: Names, *, is_less: bool) -> None:
        """Narrows names by ``a < b``, or by ``b <= a`` without `is_less`."""
        low, high, gap = (a, b, 1) if is_less else (b, a, 0)
        below, above = self._exact(low, names), self._exact(high, names)
        premises = below.premises | above.premises
        if isinstance(low, nodes.Var):
            end = sizes.minimum(below.high, sizes.subtract(above.high, gap))
            names[low.name] = Interval(below.low, end, premises)
        if isinstance(high, nodes.Var):
            start = sizes.maximum(above.low, sizes.add(below.low, gap))
            names[high.name] = Interval(start, above.high, premises)

    # -- accesses ---------------------------------------------------------------------------------

    def _marked(self, node: Node, names: Names) -> Node:
        """A node with marks at its own indices and in all its operands."""
        new = map_children(node, lambda e: self._expression(e, names))
        if isinstance(new, nodes.KnownNumber) and isinstance(new.number, nodes.Var):
            return replace(new, is_inside=new.is_inside or new.number.name in self._numbers)
        if isinstance(new, _Access) and self.are_in_range(new.buffer, new.indices, names):
            marks = tuple(InRange(type=i.type, value=i, span=i.span) for i in new.indices)
            return replace(new, indices=marks)
        return new

    def _expression(self, e: Expr, names: Names) -> Expr:
        if isinstance(e, nodes.Conditional):
            return self._choice(e, names)
        if isinstance(e, nodes.Logical):
            return self._logical(e, names)
        new = self._marked(e, names)
        if isinstance(new, nodes.Element):
            return replace(new, index=self._element_index(new.index, new.value.type, names))
        if isinstance(new, nodes.Call) and self._is_collecting_calls:
            self._collect_call(new, names)
        if isinstance(new, nodes.Call | nodes.ForwardDiff):
            return replace(new, function=self._function(new.function))
        return new

    def _choice(self, e: nodes.Conditional, names: Names) -> Expr:
        """Only the side that is chosen is evaluated."""
        sides = [self._where(e.condition, names, holds=holds) for holds in (True, False)]
        condition = self._expression(e.condition, names)
        if_true, if_false = map(self._expression, (e.if_true, e.if_false), sides)
        return replace(e, condition=condition, if_true=if_true, if_false=if_false)

    def _logical(self, e: nodes.Logical, names: Names) -> Expr:
        """The right side is evaluated where the left one does not decide."""
        inside = self._where(e.left, names, holds=e.is_and)
        left, right = self._expression(e.left, names), self._expression(e.right, inside)
        return replace(e, left=left, right=right)

    def _path(self, t: Type, path: tuple[nodes.Step, ...], names: Names) -> Iterator[nodes.Step]:
        """The steps into a value of type `t`."""
        for step in path:
            inner = step_type(t, step)
            assert inner is not None
            if isinstance(step, nodes.ElementStep):
                yield nodes.ElementStep(index=self._element_index(step.index, t, names))
            else:
                yield step
            t = inner

    def _element_index(self, index: Expr, container: Type, names: Names) -> Expr:
        """An index into a value, as `KnownNumber` if it is in range."""
        if isinstance(index, nodes.Const | nodes.KnownNumber):
            return index
        assert isinstance(container, Vector | Matrix | LocalArray)
        count = container.row_count if isinstance(container, Matrix) else container.count
        if not self._is_below(index, count, names):
            return index
        return nodes.KnownNumber(type=index.type, number=index, span=index.span)

    def are_in_range(self, buffer: str, indices: tuple[Expr, ...], names: Names) -> bool:
        """True if all `indices` are in range, given the intervals of `names`."""
        if isinstance(indices[0], nodes.PointerIndex | nodes.KnownNumber | InRange):
            return False
        extents = (self.extent(buffer, axis) for axis in range(len(indices)))
        # `all` must not stop early: the premises of all axes are collected.
        in_range = [self._is_below(e, n, names) for e, n in zip(indices, extents, strict=True)]
        return all(in_range)

    def extent(self, buffer: str, axis: int) -> Size:
        """An extent of an array."""
        return sizes.symbol(f"{self._shaped_as.get(buffer, buffer)}.{axis}")

    def _is_below(self, index: Expr, end: Size, names: Names) -> bool:
        """True if an index is 0 or more, and less than `end`."""
        value = self.interval(index, names)
        if value is None:
            return False
        last = sizes.subtract(end, 1)
        return self._holds({value.low, sizes.subtract(last, value.high), *value.premises})

    def _holds(self, premises: Iterable[Size]) -> bool:
        """True if sizes are known to be 0 or more; collects those that only the host knows."""
        if any(isinstance(size, int) and size < 0 for size in premises):
            return False
        unknown = {size for size in premises if not isinstance(size, int)}
        self.premises |= unknown
        return unknown <= self._natural

    # -- whole numbers ----------------------------------------------------------------------------

    def interval(self, e: Expr, names: Names) -> Interval | None:
        """The interval of `e` if nothing wraps; modulo 2^32 it is right in any case."""
        if e.type not in _LIMITS:
            return None
        value = None
        if isinstance(e, nodes.Const):
            value = intervals.only(int(e.value))
        elif isinstance(e, nodes.Var):
            value = names.get(e.name)
        elif isinstance(e, nodes.Length):
            value = intervals.only(self.extent(e.buffer, e.axis))
        elif isinstance(e, nodes.Cast):
            value = self.interval(e.value, names)
        elif isinstance(e, nodes.Conditional):
            value = self._combined(intervals.hull, (e.if_true, e.if_false), names)
        elif isinstance(e, nodes.Apply):
            value = self._applied(e, names)
        return None if value is None or value.is_long else value

    def _applied(self, e: nodes.Apply, names: Names) -> Interval | None:
        if e.op is ops.SELECT:
            return self._combined(intervals.hull, e.args[1:], names)
        if e.op in intervals.EXACT:
            return intervals.EXACT[e.op](*(self._exact(a, names) for a in e.args))
        rule = intervals.MODULAR.get(e.op)
        return None if rule is None else self._combined(rule, e.args, names)

    def _combined(
        self, rule: intervals.Rule, values: Iterable[Expr], names: Names
    ) -> Interval | None:
        return _if_known(rule, [self.interval(e, names) for e in values])

    def _exact(self, e: Expr, names: Names) -> Interval:
        """The interval of `e` as comparisons and divisions see it: after wrapping."""
        value, limits = self.interval(e, names), _LIMITS[e.type]
        return limits if value is None else intervals.within(value, limits)


_Access = (
    nodes.Load
    | nodes.Store
    | nodes.Accumulate
    | nodes.AccumulateGradient
    | CheckIndex
    | AlreadyRead
)


def _called_by_derivatives(functions: Iterable[Function]) -> set[Function]:
    """Custom derivatives of `functions`, and all functions that these reach."""
    result: set[Function] = set()
    pending = list(functions)
    while pending:
        f = pending.pop()
        derivatives = [g for g in (f.backward, f.forward) if g is not None]
        new = {h for g in derivatives for h in (g, *reachable(g.body))} - result
        result |= new
        pending += new
    return result


def _if_known(rule: intervals.Rule, parts: Iterable[Interval | None]) -> Interval | None:
    """``rule(*parts)``; `None` if a part is unknown."""
    values = [*parts]
    operands = [part for part in values if part is not None]
    return rule(*operands) if len(operands) == len(values) else None
