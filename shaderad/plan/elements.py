"""One element of a value, as an expression of the kernel IR over the elements of stored values.

Layout nodes map positions, elementwise nodes substitute expressions, stored values are read.
Invariant: one value at one position is one expression object, so that nothing is computed twice;
and each side of a choice is evaluated on that side alone.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from shaderad.diagnostics import Span
from shaderad.ir import arrays, nodes, ops, sizes
from shaderad.ir import composing as c
from shaderad.ir.arrays import Value, operand_name
from shaderad.ir.dags import substitute
from shaderad.ir.nodes import Expr
from shaderad.ir.sizes import Shape
from shaderad.ir.types import BOOL
from shaderad.plan.positions import (
    RANK_LIMIT,
    Indices,
    Position,
    Positions,
    add,
    constant,
    number,
    times,
)

Test = tuple[ops.Op, Position, Position]
"""A comparison of two positions."""
Request = tuple[Value, Indices]
Steps = Generator[Request, Expr, Expr]
"""A rule as a coroutine: it yields requests, receives their elements, and returns its own."""


@dataclass(frozen=True, slots=True)
class View:
    """The shape in which a checked gather reads a stored value, which may lie behind reshapes."""

    shape: Shape
    span: Span


Read = Callable[[Value, Indices, View | None], Expr]
"""Reads a stored value; under a view the positions are its own, and checked."""


def base_of(value: Value) -> Value:
    """The value that shares its memory with `value`, behind all reshapes: these move nothing."""
    while isinstance(value.producer, arrays.Reshape):
        value = value.producer.operands[0]
    return value


class Elements:
    """The elements that one kernel computes, as expressions."""

    def __init__(
        self, positions: Positions, is_stored: Callable[[Value], bool], read: Read
    ) -> None:
        self.positions = positions
        self._is_stored = is_stored
        self._read = read
        self.guard: tuple[Test, ...] = ()
        """Tests without which the current element is not used: see `nest/guards.py`."""
        self._expr_by_request: dict[tuple[Request, tuple[Test, ...]], Expr] = {}

    def at(self, value: Value, indices: Indices) -> Expr:
        """The element of `value` at `indices`; no recursion, graphs are deep."""
        stack: list[tuple[tuple[Request, tuple[Test, ...]], Steps]] = []
        request: Request | None = (value, indices)
        element: Expr | None = None
        while True:
            if request is not None:
                element = self._available(request)
                if element is None:
                    stack.append(((request, self.guard), self._steps(*request)))
            if not stack:
                assert element is not None
                return element
            own, steps = stack[-1]
            try:
                request = next(steps) if element is None else steps.send(element)
                element = None
            except StopIteration as end:
                element = self._expr_by_request[own] = end.value
                request = None
                stack.pop()

    def _available(self, request: Request) -> Expr | None:
        """The element if it is stored or was computed before."""
        key = request, self.guard
        if key not in self._expr_by_request and self._is_stored(request[0]):
            self._expr_by_request[key] = self._read(*request, None)
        return self._expr_by_request.get(key)

    def _steps(self, value: Value, at: Indices) -> Steps:
        return _RULES[type(value.producer)](self, value.producer, at)

    # -- by element ------------------------------------------------------------------------

    def elementwise(self, node: arrays.Elementwise, at: Indices) -> Steps:
        args: dict[str, Expr] = {}
        for k, operand in enumerate(node.operands):
            args[operand_name(k)] = yield operand, at
        return substitute(node.expr, args)

    def iota(self, node: arrays.Iota, at: Indices) -> Steps:
        yield from ()
        return self.positions.expr(at[node.axis])

    def size_of(self, node: arrays.SizeOf, at: Indices) -> Steps:
        yield from ()
        return self.positions.size(node.size)

    # -- layout ----------------------------------------------------------------------------

    def broadcast(self, node: arrays.Broadcast, at: Indices) -> Steps:
        (x,) = node.operands
        inner = tuple(
            constant(0) if extent == 1 else at[axis]
            for axis, extent in zip(node.axes, x.shape, strict=True)
        )
        return (yield x, inner)

    def reshape(self, node: arrays.Reshape, at: Indices) -> Steps:
        (x,) = node.operands
        return (yield x, self.positions.reshaped(at, node.shape, x.shape))

    def transpose(self, node: arrays.Transpose, at: Indices) -> Steps:
        (x,) = node.operands
        axis_of = {axis: k for k, axis in enumerate(node.permutation)}
        return (yield x, tuple(at[axis_of[axis]] for axis in range(len(at))))

    def slice(self, node: arrays.Slice, at: Indices) -> Steps:
        (x,) = node.operands
        inner = (
            add(constant(start), times(i, step))
            for start, step, i in zip(node.starts, node.steps, at, strict=True)
        )
        return (yield x, tuple(inner))

    def roll(self, node: arrays.Roll, at: Indices) -> Steps:
        (x,) = node.operands
        inner = self._wrapped(add(at[node.axis], constant(node.start)), x.shape[node.axis])
        return (yield x, (*at[: node.axis], inner, *at[node.axis + 1 :]))

    def _wrapped(self, position: Position, count: sizes.Size) -> Position:
        """`position`, from which `count` is taken where that is not more."""
        positions, count = self.positions, self.positions.known(count)
        is_beyond = self.positions.test(ops.GE, position, constant(count))
        decided = c.number_of(is_beyond)
        if decided is not None:
            return add(position, constant(sizes.multiply(-int(decided), count)))
        if not isinstance(count, int):
            turn = positions.of(c.select(is_beyond, positions.size(count), c.whole(0)))
            return add(position, times(turn, -1))
        turn = positions.of(c.select(is_beyond, c.whole(1), c.whole(0)))
        return add(position, times(positions.limit(turn, 0, 1), -count))

    def place(self, node: arrays.Place, at: Indices) -> Steps:
        (x,) = node.operands
        inner: list[Position] = []
        tests: list[Test] = []
        for axis, i in enumerate(at):
            start, step, extent = node.starts[axis], node.steps[axis], x.shape[axis]
            if start == 0 and step == 1 and extent == node.shape[axis]:
                inner.append(i)
                continue
            moved = add(i, constant(sizes.multiply(-1, start)))
            if step < 0:
                moved = times(moved, -1)
            tests.append((ops.GE, moved, constant(0)))
            if abs(step) != 1:
                moved, rest = self.positions.divided(moved, abs(step))
                tests.append((ops.EQ, rest, constant(0)))
            tests.append((ops.LT, moved, constant(extent)))
            inner.append(moved)
        return (yield from self.where(tests, (x, tuple(inner))))

    def concatenate(self, node: arrays.Concatenate, at: Indices) -> Steps:
        axis = node.axis
        parts: list[tuple[Expr | None, Expr]] = []
        start: sizes.Size = 0
        for x in node.operands:
            moved = add(at[axis], constant(sizes.multiply(-1, start)))
            start = sizes.add(start, x.shape[axis])
            test = self.positions.test(ops.LT, at[axis], constant(start))
            if c.number_of(test) == 0 and x is not node.operands[-1]:
                continue
            part = yield x, (*at[:axis], moved, *at[axis + 1 :])
            parts.append((test, part))
            if c.number_of(test) == 1:
                break
        element = parts.pop()[1]
        for test, part in reversed(parts):
            assert test is not None
            element = choice([test], part, element)
        return element

    # -- by index array --------------------------------------------------------------------

    def gather(self, node: arrays.Gather, at: Indices) -> Steps:
        x, *index = node.operands
        rank = len(index[0].shape)
        inner: list[Position] = []
        for positions in index:
            position = yield positions, at[:rank]
            inner.append(self.positions.linear(position))
        rest = at[rank:]
        if node.is_reported:
            return self._checked(node, inner, rest)
        tests = [] if node.is_inside else self._in_range(inner, x.shape)
        return (yield from self.where(tests, (x, (*inner, *rest))))

    def _checked(self, node: arrays.Gather, inner: list[Position], rest: Indices) -> Expr:
        """A read of memory that reports positions out of range."""
        x, at, shape = node.operands[0], (*inner, *rest), node.operands[0].shape
        if len(shape) > RANK_LIMIT:
            # The axes that no index array names need no check of their own.
            last = shape[len(inner) :]
            at, shape = (*inner, number(rest, last)), (*shape[: len(inner)], sizes.product(last))
        if len(shape) > RANK_LIMIT:
            position = self.positions.expr(number(at, shape))
            tests = [self.positions.test(*test) for test in self._in_range(inner, shape)]
            checked = choice(tests, position, c.whole(-1))
            at, shape = (self.positions.of(checked),), (sizes.product(shape),)
        return self._read(base_of(x), at, View(shape, node.span))

    def _in_range(self, inner: Iterable[Position], shape: Shape) -> list[Test]:
        return [
            test
            for i, extent in zip(inner, shape, strict=False)
            for test in ((ops.GE, i, constant(0)), (ops.LT, i, constant(extent)))
        ]

    def where(self, tests: Sequence[Test], request: Request) -> Steps:
        """The element of a request where all tests hold; 0 elsewhere."""
        conditions = [self.positions.test(*test) for test in tests]
        if any(c.number_of(condition) == 0 for condition in conditions):
            return c.zero(request[0].element)
        return choice(conditions, (yield request), c.zero(request[0].element))


def choice(tests: Iterable[Expr], value: Expr, otherwise: Expr) -> Expr:
    """`value` where all tests hold; it is evaluated nowhere else."""
    condition: Expr | None = None
    for test in tests:
        decided = c.number_of(test)
        if decided == 0:
            return otherwise
        if decided == 1:
            continue
        if condition is None:
            condition = test
        else:
            condition = nodes.Logical(type=BOOL, is_and=True, left=condition, right=test)
    if condition is None:
        return value
    return nodes.Conditional(
        type=value.type, condition=condition, if_true=value, if_false=otherwise
    )


_RULES: Mapping[type[Any], Callable[[Elements, Any, Indices], Steps]] = {
    arrays.Elementwise: Elements.elementwise,
    arrays.Iota: Elements.iota,
    arrays.SizeOf: Elements.size_of,
    arrays.Broadcast: Elements.broadcast,
    arrays.Reshape: Elements.reshape,
    arrays.Transpose: Elements.transpose,
    arrays.Slice: Elements.slice,
    arrays.Place: Elements.place,
    arrays.Roll: Elements.roll,
    arrays.Concatenate: Elements.concatenate,
    arrays.Gather: Elements.gather,
}
FUSED = frozenset(_RULES)
"""Types of the nodes whose elements can be computed where they are used."""
