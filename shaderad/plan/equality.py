"""Which expressions say the same: equal parts become one object, equal expressions one number."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import fields
from typing import Any, cast

from shaderad.ir.nodes import Expr
from shaderad.ir.walk import map_children
from shaderad.rules.expressions import in_order, operands


class Expressions:
    """Expressions that have been seen, each once; it keeps them, so that no id is given twice."""

    def __init__(self) -> None:
        self._number_by_key: dict[Hashable, int] = {}
        self._first: list[Expr] = []
        self._number_by_id: dict[int, int] = {}
        self._kept: list[Expr] = []

    def number(self, e: Expr) -> int:
        """Equal for expressions that say the same, wherever in the source they stand."""
        self._kept.append(e)
        for part in in_order(e):
            if id(part) not in self._number_by_id:
                self._number_by_id[id(part)] = self._number(part)
        return self._number_by_id[id(e)]

    def shared(self, e: Expr) -> Expr:
        """`e`, with one object for all parts that say the same, in this and in earlier ones."""
        return self._first[self.number(e)]

    def _number(self, part: Expr) -> int:
        key = self._key(part)
        if key not in self._number_by_key:
            self._number_by_key[key] = len(self._first)
            children = self._number_by_id
            self._first.append(map_children(part, lambda child: self._first[children[id(child)]]))
        return self._number_by_key[key]

    def _key(self, part: Expr) -> Hashable:
        found: list[Hashable] = [type(part)]
        found += [self._number_by_id[id(child)] for child in operands(part)]
        for f in fields(part):
            value: Any = getattr(part, f.name)
            if f.name == "span" or isinstance(value, Expr) or _is_exprs(value):
                continue
            # 0, 0.0, -0.0 and False are equal to Python.
            found.append((f.name, repr(value) if f.name == "value" else value))
        return tuple(found)


def _is_exprs(value: Any) -> bool:
    return isinstance(value, tuple) and any(
        isinstance(item, Expr) for item in cast("tuple[Any, ...]", value)
    )
