"""The types of local names, and the paths on which they are assigned.

Invariant: a name has one type; `assigned` holds the names that every path to the current point
assigns, and is `None` where no path leads to it.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import reduce

from shaderad.ir.types import Type
from shaderad.language.names import BoundNames
from shaderad.language.values import PythonNumber, Value

Flow = frozenset[str] | None
"""The names assigned on every path to a point; `None` if it is unreachable."""


def join(*flows: Flow) -> Flow:
    """The names assigned where several paths meet."""
    reachable = [f for f in flows if f is not None]
    return reduce(frozenset[str].intersection, reachable) if reachable else None


@dataclass
class LoopFlow:
    """The names assigned at each ``break`` and ``continue`` of a loop."""

    breaks: list[Flow] = field(default_factory=list[Flow])
    continues: list[Flow] = field(default_factory=list[Flow])


class Scope:
    """The local names of one function."""

    def __init__(self, names: BoundNames, parameters: dict[str, Value]) -> None:
        self.names = names
        self.parameters = parameters
        self.types: dict[str, Type] = {}
        """Type of every IR local."""
        self.assigned: Flow = frozenset()
        self.loops: list[LoopFlow] = []
        self.loop_variables: list[str] = []
        """Variables of the enclosing loops that are IR loop variables."""
        self.numbers: dict[str, PythonNumber] = {}
        """Variables of the enclosing loops that are repeated, with their current number."""
        self.local_name_by_name: dict[str, str] = {}
        """IR name of each rebound parameter."""
        self._taken: set[str] = set(names.mentioned)

    def fresh(self, base: str) -> str:
        """A name like `base` that the function does not use."""
        number = 1
        while f"{base}_{number}" in self._taken:
            number += 1
        name = f"{base}_{number}"
        self._taken.add(name)
        return name

    def reserve(self, base: str) -> str:
        """`base` if it is free, else a fresh name like it."""
        if base in self._taken:
            return self.fresh(base)
        self._taken.add(base)
        return base

    def assign(self, name: str) -> None:
        if self.assigned is not None:
            self.assigned |= {name}

    def is_assigned(self, name: str) -> bool:
        return self.assigned is None or name in self.assigned
