"""Which local name holds a value of which type, and on which paths it is assigned.

Invariant: a name has one type; `assigned` holds the names that every path to this point has
assigned, and is `None` where no path comes through.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import reduce

from shaderad.frontend.names import Names
from shaderad.frontend.values import Known, Value
from shaderad.ir.types import Type

Flow = frozenset[str] | None


def join(*flows: Flow) -> Flow:
    """What is assigned where several paths meet."""
    open_flows = [f for f in flows if f is not None]
    return reduce(frozenset[str].intersection, open_flows) if open_flows else None


@dataclass
class LoopFlow:
    """The states in which a loop is left by ``break`` and reaches its end or a ``continue``."""

    breaks: list[Flow] = field(default_factory=list[Flow])
    continues: list[Flow] = field(default_factory=list[Flow])


class Scope:
    """The local names of one function."""

    def __init__(self, names: Names, parameters: dict[str, Value]) -> None:
        self.names = names
        self.parameters = parameters
        self.types: dict[str, Type] = {}
        """Every IR local with its type."""
        self.assigned: Flow = frozenset()
        self.loops: list[LoopFlow] = []
        self.loop_variables: list[str] = []
        """Loop variables of the loops around this point that are IR loop variables."""
        self.numbers: dict[str, Known] = {}
        """Those of repeated bodies, which are numbers known while compiling."""
        self.local_name_by_name: dict[str, str] = {}
        """IR names of Python names that need another one (rebound parameters)."""
        self._taken: set[str] = set(names.mentioned)

    def fresh(self, base: str) -> str:
        """A name that nothing in this function bears."""
        number = 1
        while f"{base}_{number}" in self._taken:
            number += 1
        name = f"{base}_{number}"
        self._taken.add(name)
        return name

    def reserve(self, base: str) -> str:
        """`base` itself where it is free, else a fresh name like it."""
        if base in self._taken:
            return self.fresh(base)
        self._taken.add(base)
        return base

    def assign(self, name: str) -> None:
        if self.assigned is not None:
            self.assigned |= {name}

    def is_assigned(self, name: str) -> bool:
        return self.assigned is None or name in self.assigned
