"""Symbolic array sizes: integer expressions over the sizes of a graph's arguments.

A `Size` is an int, or a polynomial over symbols and derived sizes. Invariant: every operation
returns the normal form, so sizes that are equal in the ring of polynomials compare equal, and a
constant size is an int.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property, reduce
from math import isqrt, prod
from typing import Literal


@dataclass(frozen=True, slots=True)
class Symbol:
    """An unknown size, by name: a user's ``"n"``, or ``x.shape[0]``."""

    name: str

    def __str__(self) -> str:
        return self.name


@dataclass(frozen=True)
class DerivedSize:
    """A size that is no polynomial.

    ``left // right``, ``max(left, right)``, ``min(left, right)``, or
    ``max(floor(sqrt(left)), right)``.
    """

    kind: Literal["//", "max", "min", "sqrt"]
    left: Size
    right: Size

    def __str__(self) -> str:
        return self._text

    @cached_property
    def _text(self) -> str:
        if self.kind in ("max", "min"):
            return f"{self.kind}({self.left}, {self.right})"
        if self.kind == "sqrt":
            return f"max(sqrt({self.left}), {self.right})"
        return f"({self.left}) // ({self.right})"


Atom = Symbol | DerivedSize
Monomial = tuple[Atom, ...]


@dataclass(frozen=True, slots=True)
class Polynomial:
    """A sum of products; the empty monomial is the constant term. No coefficient is 0."""

    terms: tuple[tuple[Monomial, int], ...]

    def __str__(self) -> str:
        text = ""
        for monomial, factor in self.terms:
            sign = "-" if factor < 0 else "+"
            parts = [*map(str, monomial)]
            if abs(factor) != 1 or not parts:
                parts.insert(0, str(abs(factor)))
            text += f" {sign} {'*'.join(parts)}"
        return text.removeprefix(" + ").strip()


Size = int | Polynomial
Shape = tuple[Size, ...]


def symbol(name: str) -> Size:
    """The unknown size `name`."""
    return of_atom(Symbol(name))


def add(a: Size, b: Size) -> Size:
    """``a + b``."""
    if isinstance(a, int) and isinstance(b, int):
        return a + b
    if b == 0:
        return a
    factors = dict(_terms(a))
    for monomial, factor in _terms(b):
        factors[monomial] = factors.get(monomial, 0) + factor
    return _normal(factors)


def multiply(a: Size, b: Size) -> Size:
    """``a * b``."""
    if isinstance(a, int) and isinstance(b, int):
        return a * b
    if isinstance(a, int):
        a, b = b, a
    if isinstance(b, int):
        return Polynomial(tuple((m, p * b) for m, p in _terms(a))) if b else 0
    factors: dict[Monomial, int] = {}
    for left, p in _terms(a):
        for right, q in _terms(b):
            monomial = tuple(sorted((*left, *right), key=str))
            factors[monomial] = factors.get(monomial, 0) + p * q
    return _normal(factors)


def subtract(a: Size, b: Size) -> Size:
    """``a - b``."""
    return add(a, multiply(-1, b))


def floor_divide(a: Size, b: Size) -> Size:
    """``a // b`` for positive `b`."""
    if isinstance(a, int) and isinstance(b, int):
        return a // b
    if b == 1:
        return a
    if isinstance(b, int) and all(factor % b == 0 for _, factor in _terms(a)):
        return _normal({monomial: factor // b for monomial, factor in _terms(a)})
    return of_atom(DerivedSize("//", a, b))


def divide_up(a: Size, b: Size) -> Size:
    """``ceil(a / b)`` for positive `b`."""
    return floor_divide(add(a, subtract(b, 1)), b)


def minimum(a: Size, b: Size) -> Size:
    """``min(a, b)``."""
    difference = subtract(a, b)
    if isinstance(difference, int):
        return b if difference >= 0 else a
    return of_atom(DerivedSize("min", a, b))


def maximum(a: Size, b: Size) -> Size:
    """``max(a, b)``."""
    difference = subtract(a, b)
    if isinstance(difference, int):
        return a if difference >= 0 else b
    return of_atom(DerivedSize("max", a, b))


def square_root(a: Size) -> Size:
    """``max(floor(sqrt(a)), 1)``."""
    return max(isqrt(a), 1) if isinstance(a, int) else of_atom(DerivedSize("sqrt", a, 1))


def product(shape: Shape) -> Size:
    """The element count of an array of `shape`."""
    return reduce(multiply, shape, 1)


def evaluate(size: Size, values: Mapping[str, int]) -> int:
    """The value of `size` for the `values` of its symbols, by name."""
    if isinstance(size, int):
        return size
    return sum(
        factor * prod(_atom_value(atom, values) for atom in monomial)
        for monomial, factor in size.terms
    )


def symbols(size: Size) -> frozenset[str]:
    """Names of the symbols that `size` depends on."""
    if isinstance(size, int):
        return frozenset()
    names: set[str] = set()
    for monomial, _ in size.terms:
        for atom in monomial:
            if isinstance(atom, Symbol):
                names.add(atom.name)
            else:
                names |= symbols(atom.left) | symbols(atom.right)
    return frozenset(names)


def constant_term(size: Size) -> int:
    """The term of `size` without symbols."""
    return dict(_terms(size)).get((), 0)


def is_multiple(size: Size, number: int) -> bool:
    """True if `size` is provably a multiple of `number` for all values of its symbols."""
    return all(factor % number == 0 for _, factor in _terms(size))


def is_natural(size: Size) -> bool:
    """True if `size` is provably at least 0 for all values of its symbols.

    Sufficient: it has neither subtractions nor symbolic divisors.
    """
    if isinstance(size, int):
        return size >= 0
    return all(factor > 0 and all(map(_is_natural, atoms)) for atoms, factor in size.terms)


def _is_natural(atom: Atom) -> bool:
    if isinstance(atom, Symbol):
        return True
    is_divided = atom.kind != "//" or (isinstance(atom.right, int) and atom.right > 0)
    return is_divided and is_natural(atom.left) and is_natural(atom.right)


def substituted(size: Size, size_by_name: Mapping[str, Size]) -> Size:
    """`size` with other sizes in place of the symbols of these names."""
    if isinstance(size, int):
        return size
    total: Size = 0
    for monomial, factor in size.terms:
        factors = (_atom_with(atom, size_by_name) for atom in monomial)
        total = add(total, reduce(multiply, factors, factor))
    return total


def _atom_with(atom: Atom, size_by_name: Mapping[str, Size]) -> Size:
    if isinstance(atom, Symbol):
        return size_by_name.get(atom.name, of_atom(atom))
    left, right = (substituted(s, size_by_name) for s in (atom.left, atom.right))
    if atom.kind == "sqrt":
        return maximum(square_root(left), right)
    combine = {"//": floor_divide, "max": maximum, "min": minimum}
    return combine[atom.kind](left, right)


def of_atom(atom: Atom) -> Polynomial:
    return Polynomial((((atom,), 1),))


def _terms(size: Size) -> tuple[tuple[Monomial, int], ...]:
    if isinstance(size, int):
        return (((), size),) if size else ()
    return size.terms


def _normal(factor_by_monomial: Mapping[Monomial, int]) -> Size:
    kept = {monomial: factor for monomial, factor in factor_by_monomial.items() if factor}
    if not kept:
        return 0
    if tuple(kept) == ((),):
        return kept[()]
    if len(kept) == 1:
        return Polynomial(tuple(kept.items()))
    # A canonical order: highest degree first, then by name.
    ordered = sorted(kept.items(), key=lambda term: (-len(term[0]), [str(a) for a in term[0]]))
    return Polynomial(tuple(ordered))


def _atom_value(atom: Atom, values: Mapping[str, int]) -> int:
    if isinstance(atom, Symbol):
        return values[atom.name]
    left, right = evaluate(atom.left, values), evaluate(atom.right, values)
    if atom.kind == "//":
        return left // right
    if atom.kind == "min":
        return min(left, right)
    return max(isqrt(max(left, 0)) if atom.kind == "sqrt" else left, right)
