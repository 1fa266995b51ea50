"""Sizes <-> their form in a manifest: an integer, or an expression as text.

    expression = ["-"] term {("+" | "-") term}
    term       = factor {("*" | "//") factor}
    factor     = number | name | "(" expression ")"
               | ("max" | "min") "(" expression "," expression ")" | "sqrt" "(" expression ")"

``//`` and ``sqrt`` round down, and ``sqrt`` is at least 1; operators are left-associative. Names
are those of sizes: ``x.0`` is an extent of a kernel's array, and names that begin with ``$`` are
set by a plan or its host. Invariant: a size that is written and read again is the same, and sizes
that are read have few terms.
"""

from __future__ import annotations

import re
from functools import lru_cache

from shaderad.bundle.format.description import SizeText
from shaderad.ir import sizes
from shaderad.ir.sizes import Atom, Polynomial, Size, Symbol

DEPTH_LIMIT = 32
"""The maximum nesting of parentheses."""
TERM_LIMIT = 1000
"""Maximum terms of a sum after products of sums are expanded."""
DIGIT_LIMIT = 18
DEGREE_LIMIT = 64
"""Maximum factors of a term."""

_TOKEN = re.compile(r"\s*(\d+|\$?[^\W\d]\w*(?:\.\d+)?|//|[-+*(),])")


def spelled(size: Size) -> SizeText:
    """`size` as a number or expression."""
    return size if isinstance(size, int) else _sum(size)


def parsed(text: SizeText) -> Size:
    """The size that `text` denotes.

    Raises:
        ValueError: `text` is not an expression.
    """
    return text if isinstance(text, int) else _parsed(text)


@lru_cache(maxsize=1024)
def _parsed(text: str) -> Size:
    """Parses with a cache, because the plans of a graph repeat for each mode and target."""
    return _Parser(text).whole()


def _sum(size: Polynomial) -> str:
    text = ""
    for monomial, factor in size.terms:
        parts = [*map(_atom, monomial)]
        if abs(factor) != 1 or not parts:
            parts.insert(0, str(abs(factor)))
        text += f" {'-' if factor < 0 else '+'} {'*'.join(parts)}"
    return text.removeprefix(" + ").strip()


def _atom(atom: Atom) -> str:
    if isinstance(atom, Symbol):
        return atom.name
    left, right = str(spelled(atom.left)), str(spelled(atom.right))
    if atom.kind == "//":
        return f"({_operand(left)} // {_operand(right)})"
    return f"sqrt({left})" if atom.kind == "sqrt" else f"{atom.kind}({left}, {right})"


def _operand(text: str) -> str:
    """Adds parentheses unless `text` is a name or number."""
    return text if re.fullmatch(r"[$.\w]+", text) else f"({text})"


class _Parser:
    def __init__(self, text: str) -> None:
        self._text = text
        self._tokens: list[str] = []
        position = 0
        while position < len(text.rstrip()):
            token = _TOKEN.match(text, position)
            if token is None:
                raise self._failure()
            self._tokens.append(token[1])
            position = token.end()
        self._next = 0
        self._depth = 0

    def whole(self) -> Size:
        size = self._expression()
        if self._peek():
            raise self._failure()
        return size

    def _expression(self) -> Size:
        size = sizes.multiply(-1, self._term()) if self._takes("-") else self._term()
        while self._peek() in ("+", "-"):
            is_sum = self._take() == "+"
            size = (sizes.add if is_sum else sizes.subtract)(size, self._term())
        return size

    def _term(self) -> Size:
        size = self._factor()
        while self._peek() in ("*", "//"):
            is_product = self._take() == "*"
            right = self._factor()
            if right == 0 and not is_product:
                raise self._failure()
            if is_product:
                self._check_product(size, right)
            size = (sizes.multiply if is_product else sizes.floor_divide)(size, right)
        return size

    def _check_product(self, left: Size, right: Size) -> None:
        (terms, degree), (more_terms, more) = _extent(left), _extent(right)
        if terms * more_terms > TERM_LIMIT or degree + more > DEGREE_LIMIT:
            raise ValueError(
                f"a product of more than {TERM_LIMIT} terms, or {DEGREE_LIMIT} factors"
            )

    def _factor(self) -> Size:
        self._depth += 1
        if self._depth > DEPTH_LIMIT:
            raise ValueError(f"a size of more than {DEPTH_LIMIT} parentheses in each other")
        size = self._factor_within()
        self._depth -= 1
        return size

    def _factor_within(self) -> Size:
        token = self._take()
        if token.isdecimal():
            return self._number(token)
        if token == "(":
            size = self._expression()
            self._expect(")")
            return size
        if token in ("max", "min", "sqrt") and self._takes("("):
            return self._call(token)
        if not token or token in "+-*//(),":
            raise self._failure()
        return sizes.symbol(token)

    def _number(self, token: str) -> int:
        if len(token) > DIGIT_LIMIT:
            raise self._failure()
        return int(token)

    def _call(self, name: str) -> Size:
        first = self._expression()
        if name == "sqrt":
            self._expect(")")
            return sizes.square_root(first)
        self._expect(",")
        second = self._expression()
        self._expect(")")
        return (sizes.maximum if name == "max" else sizes.minimum)(first, second)

    def _peek(self) -> str:
        return self._tokens[self._next] if self._next < len(self._tokens) else ""

    def _take(self) -> str:
        token = self._peek()
        self._next += 1
        return token

    def _takes(self, wanted: str) -> bool:
        is_next = self._peek() == wanted
        self._next += is_next
        return is_next

    def _expect(self, wanted: str) -> None:
        if not self._takes(wanted):
            raise self._failure()

    def _failure(self) -> ValueError:
        return ValueError(f"a size `{self._text[:80]}`, which is no expression")


def _extent(size: Size) -> tuple[int, int]:
    """The number of terms, and the maximum number of factors; 64 bits of a number are a factor."""
    terms = (((), size),) if isinstance(size, int) else size.terms
    return len(terms), max(len(atoms) + number.bit_length() // 64 for atoms, number in terms)
