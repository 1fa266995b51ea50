"""Positions in arrays, as integer linear combinations of kernel expressions.

A `Position` is ``constant + sum(factor * base)``, with sizes as constant and factors and kernel
expressions as bases. Sums are kept in normal form, so that a reshape of a reshape, or a slice of
a reversal, simplifies to a plain index where it is one.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType

from shaderad.ir import composing as c
from shaderad.ir import nodes, ops, sizes
from shaderad.ir.dags import substitute, variables
from shaderad.ir.nodes import Expr
from shaderad.ir.sizes import Shape, Size
from shaderad.ir.types import BOOL, INT, UINT


@dataclass(frozen=True, slots=True)
class Position:
    """The index of an element along one axis."""

    constant: Size = 0
    terms: tuple[tuple[int, Size], ...] = ()
    """The number of each base in its `Positions`, ascending, and its factor, which is not 0."""


Indices = tuple[Position, ...]
INDEX_NAMES = ("i", "j", "k", "l")
"""The Index names of a kernel's axes."""
RANK_LIMIT = len(INDEX_NAMES)
"""Axes of a kernel's arrays; beyond, elements are numbered in row-major order."""
_SIZE = "size"
_COMPARE: Mapping[ops.Op, Callable[[int, int], bool]] = {
    ops.LT: operator.lt,
    ops.GE: operator.ge,
    ops.EQ: operator.eq,
}
NOTHING_KNOWN: Mapping[str, Size] = MappingProxyType({})


def constant(value: Size) -> Position:
    return Position(value)


def add(a: Position, b: Position) -> Position:
    factors = dict(a.terms)
    for base, factor in b.terms:
        factors[base] = sizes.add(factors.get(base, 0), factor)
    terms = tuple(sorted((base, f) for base, f in factors.items() if f != 0))
    return Position(sizes.add(a.constant, b.constant), terms)


def times(a: Position, factor: Size) -> Position:
    if factor == 0:
        return Position()
    terms = tuple((base, sizes.multiply(f, factor)) for base, f in a.terms)
    return Position(sizes.multiply(a.constant, factor), terms)


class Positions:
    """The bases of the positions in one kernel, and the uniforms that its sizes become.

    Args:
        known: Symbols of sizes that are numbers in this kernel.
    """

    def __init__(self, known: Mapping[str, Size] = NOTHING_KNOWN) -> None:
        self._known = known
        self._bases: list[Expr] = []
        self._number_by_base: dict[int, int] = {}
        self._moved: dict[tuple[int, tuple[tuple[str, Position], ...]], Position] = {}
        self._quotients: dict[tuple[Position, Size], Position] = {}
        self._expr_by_position: dict[Position, Expr] = {}
        self._name_by_size: dict[Size, str] = {}
        self._size_by_name: dict[str, Size] = {}
        self._asked: set[int] = set()
        self._limits_by_base: dict[int, tuple[int, int]] = {}
        self._expr_by_symbol: dict[str, Expr] = {}

    def define(self, symbol: str, value: Expr) -> None:
        """Lets an expression of the kernel be the value of a symbol in sizes from now on."""
        self._expr_by_symbol[symbol] = value
        # Loops one after the other count with one symbol.
        self._expr_by_position.clear()
        self._quotients.clear()

    @property
    def uniforms(self) -> tuple[tuple[str, Size], ...]:
        """Names of int uniforms, and the sizes they hold."""
        return tuple((name, size) for size, name in self._name_by_size.items())

    def of(self, base: Expr) -> Position:
        """An int expression as a position."""
        value = c.number_of(base)
        if value is not None:
            return Position(int(value))
        number = self._number_by_base.setdefault(id(base), len(self._bases))
        if number == len(self._bases):
            self._bases.append(base)
        return Position(0, ((number, 1),))

    def of_name(self, name: str) -> Position:
        """The position of a variable, an int, whatever its object."""
        for number, base in enumerate(self._bases):
            if isinstance(base, nodes.Var) and base.name == name:
                return Position(0, ((number, 1),))
        return self.of(c.variable(name, INT))

    def linear(self, e: Expr) -> Position:
        """An int expression of sums and multiples as a position of their parts."""
        match e:
            case nodes.Apply(op=ops.ADD, type=t, args=(a, b)) if t == INT:
                return add(self.linear(a), self.linear(b))
            case nodes.Apply(op=ops.SUB, type=t, args=(a, b)) if t == INT:
                return add(self.linear(a), times(self.linear(b), -1))
            case nodes.Apply(op=ops.MUL, type=t, args=(a, nodes.Const(value=int(factor)))) if (
                t == INT
            ):
                return times(self.linear(a), factor)
            case nodes.Var(name=name) if name in self._size_by_name:
                return Position(self._size_by_name[name])
            case _:
                return self.of(e)

    def limit(self, base: Position, low: int, high: int) -> Position:
        """Notes the least and greatest value of a base from now on; returns it."""
        ((number, _),) = base.terms
        self._limits_by_base[number] = low, high
        return base

    def limits(self, position: Position) -> tuple[int, int] | None:
        """The least and greatest value of a position; `None` where they are not known."""
        position = self.at_known(position)
        low = high = position.constant
        for base, factor in position.terms:
            if base not in self._limits_by_base or not isinstance(factor, int):
                return None
            ends = sorted(factor * end for end in self._limits_by_base[base])
            low, high = sizes.add(low, ends[0]), sizes.add(high, ends[1])
        return (low, high) if isinstance(low, int) and isinstance(high, int) else None

    def test(self, op: ops.Op, a: Position, b: Position) -> Expr:
        """A comparison of positions; a constant where their limits decide it."""
        limits = self.limits(add(a, times(b, -1)))
        if limits is not None:
            answers = {_COMPARE[op](end, 0) for end in limits}
            is_equal = op is ops.EQ and limits[0] <= 0 <= limits[1] and limits != (0, 0)
            if len(answers) == 1 and not is_equal:
                return c.truth(BOOL, answers.pop())
        return c.apply(op, self.expr(a), self.expr(b))

    def size(self, size: Size) -> Expr:
        """A size as an int expression: a constant or a uniform."""
        size = self.known(size)
        if isinstance(size, int):
            return c.whole(size)
        if not self._expr_by_symbol.keys().isdisjoint(sizes.symbols(size)):
            return self._expanded(size)
        return self.uniform(size)

    def uniform(self, size: Size) -> Expr:
        """A uniform, also for a number: kernels that differ in it alone are one program."""
        fresh = f"{_SIZE}{len(self._name_by_size)}"
        name = self._name_by_size.setdefault(size, fresh)
        self._size_by_name[name] = size
        return c.variable(name, INT)

    def known(self, size: Size) -> Size:
        """`size` with numbers in place of known symbols."""
        return sizes.substituted(size, self._known) if self._known else size

    def at_known(self, position: Position) -> Position:
        """`position` with numbers in place of known symbols."""
        if not self._known:
            return position
        factors = ((base, self.known(factor)) for base, factor in position.terms)
        terms = tuple((base, factor) for base, factor in factors if factor != 0)
        return Position(self.known(position.constant), terms)

    def _expanded(self, size: sizes.Polynomial) -> Expr:
        """A size that depends on symbols whose values are expressions."""
        added: list[Expr] = []
        for monomial, factor in size.terms:
            rest: Size = factor
            product: Expr | None = None
            for atom in monomial:
                if isinstance(atom, sizes.Symbol) and atom.name in self._expr_by_symbol:
                    value = self._expr_by_symbol[atom.name]
                    product = value if product is None else c.apply(ops.MUL, product, value)
                else:
                    rest = sizes.multiply(rest, sizes.of_atom(atom))
            factor_expr = self.size(rest)
            added.append(factor_expr if product is None else c.apply(ops.MUL, product, factor_expr))
        return c.total(added)

    def expr(self, position: Position) -> Expr:
        """`position` as an int expression; one object for equal positions."""
        position = self.at_known(position)
        if position not in self._expr_by_position:
            self._expr_by_position[position] = self._sum(position)
        return self._expr_by_position[position]

    def is_asked(self, position: Position) -> bool:
        """True if an expression uses one of the bases of `position`."""
        return any(base in self._asked for base, _ in position.terms)

    def _sum(self, position: Position) -> Expr:
        self._asked.update(base for base, _ in position.terms)
        added = [self._product(self._bases[k], f) for k, f in position.terms if not _is_negative(f)]
        if position.constant != 0 and not _is_negative(position.constant):
            added.append(self.size(position.constant))
        result = c.total(added) if added else c.whole(0)
        for k, factor in position.terms:
            if _is_negative(factor):
                taken = self._product(self._bases[k], sizes.multiply(-1, factor))
                result = c.apply(ops.SUB, result, taken)
        if _is_negative(position.constant):
            result = c.apply(ops.SUB, result, self.size(sizes.multiply(-1, position.constant)))
        return result

    def _product(self, base: Expr, factor: Size) -> Expr:
        return base if factor == 1 else c.apply(ops.MUL, base, self.size(factor))

    def moved(self, position: Position, by_name: Mapping[str, Position]) -> Position:
        """`position` with positions in place of variables."""
        result = Position(position.constant)
        for base, factor in position.terms:
            expr = self._bases[base]
            if variables(expr).isdisjoint(by_name):
                moved = Position(0, ((base, 1),))
            elif isinstance(expr, nodes.Var):
                moved = by_name[expr.name]
            else:
                moved = self._moved_base(base, by_name)
            result = add(result, times(moved, factor))
        return result

    def _moved_base(self, base: int, by_name: Mapping[str, Position]) -> Position:
        key = base, tuple(by_name.items())
        if key not in self._moved:
            exprs = {name: self.expr(at) for name, at in by_name.items()}
            self._moved[key] = self.of(substitute(self._bases[base], exprs))
        return self._moved[key]

    def divided(self, position: Position, divisor: Size) -> tuple[Position, Position]:
        """Quotient and remainder of a position that is not negative."""
        position, divisor = self.at_known(position), self.known(divisor)
        if divisor in (0, 1):  # arrays without elements have no position
            return position, Position()
        key = (position, divisor)
        if key not in self._quotients:
            # Unsigned: rounding a signed quotient down costs instructions.
            left = nodes.Cast(type=UINT, value=self.expr(position))
            right = (
                nodes.Const(type=UINT, value=divisor)
                if isinstance(divisor, int)
                else nodes.Cast(type=UINT, value=self.size(divisor))
            )
            quotient = nodes.Apply(type=UINT, op=ops.FLOOR_DIV, args=(left, right))
            self._quotients[key] = self.of(nodes.Cast(type=INT, value=quotient))
        quotient = self._quotients[key]
        return quotient, add(position, times(quotient, sizes.multiply(-1, divisor)))

    # -- several axes ----------------------------------------------------------------------

    def reshaped(self, at: Indices, seen: Shape, held: Shape) -> Indices:
        """The indices in an array of shape `held` of the element `at` of its reshape to `seen`."""
        indices: list[Position] = []
        for left, right in _matched(seen, held):
            inner = at[left.start : left.stop]
            if len(left) == len(right) == 1:
                indices += inner
            else:
                indices += self.unravelled(number(inner, seen[left.start : left.stop]),
                                         held[right.start : right.stop])  # fmt: skip
        return tuple(indices)

    def unravelled(self, position: Position, shape: Shape) -> list[Position]:
        """Indices of the element that has this row-major number."""
        indices: list[Position] = []
        rows = Position()
        for axis, extent in enumerate(shape):
            if extent == 1:
                indices.append(Position())
                continue
            # Quotients of remainders would repeat each other in their expressions.
            outer, (rows, _) = rows, self.divided(position, sizes.product(shape[axis + 1 :]))
            indices.append(add(rows, times(outer, sizes.multiply(-1, extent))))
        return indices


def number(at: Sequence[Position], shape: Shape) -> Position:
    """The row-major number of an element."""
    result = Position()
    for position, extent in zip(at, shape, strict=True):
        result = add(times(result, extent), position)
    return result


def is_size_name(name: str) -> bool:
    """True if `Positions` gives this name to the uniform of a size."""
    return name.removeprefix(_SIZE).isdigit() and name.startswith(_SIZE)


def _is_negative(size: Size) -> bool:
    return size < 0 if isinstance(size, int) else size.terms[0][1] < 0


def _matched(seen: Shape, held: Shape) -> list[tuple[range, range]]:
    """Runs of axes of both shapes that hold the same number of elements, shortest first."""
    runs: list[tuple[range, range]] = []
    start, left, right = (0, 0), 0, 0
    while left < len(seen) or right < len(held):
        if left < len(seen):
            left += 1
        if right < len(held):
            right += 1
        stop = _end_of_run(seen, held, start, (left, right))
        runs.append((range(start[0], stop[0]), range(start[1], stop[1])))
        start, (left, right) = stop, stop
    return runs


def _end_of_run(
    seen: Shape, held: Shape, start: tuple[int, int], first: tuple[int, int]
) -> tuple[int, int]:
    """The first ends, from `first` on, at which both runs have equally many elements."""
    for total in range(sum(first), len(seen) + len(held) + 1):
        for left in range(first[0], len(seen) + 1):
            right = total - left
            if not first[1] <= right <= len(held):
                continue
            if sizes.product(seen[start[0] : left]) == sizes.product(held[start[1] : right]):
                return left, right
    return len(seen), len(held)
