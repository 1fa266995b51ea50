"""The names of a body during both sweeps: which are active, their versions and cotangents.

A name is active if it depends on a wanted input and influences a result.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace

from shaderad.ir import composing as c
from shaderad.ir import nodes
from shaderad.ir.body import Body
from shaderad.ir.dags import in_order
from shaderad.ir.nodes import Expr, Stmt
from shaderad.ir.types import Type, is_differentiable
from shaderad.ir.walk import all_expressions, children, map_children, statements, writes_to
from shaderad.rules.expressions import active_parts


def is_active_expr(e: Expr, varies: Callable[[str], bool], wanted: frozenset[str]) -> bool:
    """True if `e` depends differentiably on a name that `varies`, or on a buffer in `wanted`."""
    return id(e) in active_parts(in_order(e), varies, wanted)


def reached_from(e: Expr, active: set[int]) -> set[int]:
    """Ids of the active nodes whose derivatives flow into `e` through active nodes."""
    reached: set[int] = set()
    stack = [e]
    while stack:
        node = stack.pop()
        if id(node) in active and id(node) not in reached:
            reached.add(id(node))
            stack += children(node)
    return reached


def activity(
    body: tuple[Stmt, ...],
    parameters: Iterable[str],
    results: Iterable[str],
    wanted: frozenset[str],
    seeds: frozenset[str],
) -> frozenset[str]:
    """The names in `body` that vary with an input and influence a result: they have cotangents.

    Inputs are the names `parameters` and the arrays `wanted`; results are the names `results` and
    the values written to the arrays `seeds`.
    """
    assigned = [s for s in statements(body) if isinstance(s, nodes.Assign)]
    varied = _closed(
        parameters,
        lambda s, names: {s.name} if is_active_expr(s.value, names.__contains__, wanted) else set(),
        assigned,
    )
    useful = _closed(
        {*results, *_results(body, seeds)},
        lambda s, names: floats_in(s.value) if s.name in names else set(),
        assigned,
    )
    return frozenset(varied & useful)


def _closed(
    start: Iterable[str],
    more: Callable[[nodes.Assign, set[str]], set[str]],
    assigned: list[nodes.Assign],
) -> set[str]:
    """The least fixed point of `more` over the assignments that contains `start`."""
    names = set(start)
    while True:
        count = len(names)
        for s in assigned:
            names |= more(s, names)
        if len(names) == count:
            return names


def _results(body: tuple[Stmt, ...], seeds: frozenset[str]) -> set[str]:
    """Names that influence the return value, or a value written to a buffer in `seeds`."""
    values: list[Expr] = []
    for s in statements(body):
        if isinstance(s, nodes.Store | nodes.Accumulate) and s.buffer in seeds:
            values.append(s.value)
        if isinstance(s, nodes.Accumulate) and s.buffer in seeds and s.tangent is not None:
            values.append(s.tangent)
        if isinstance(s, nodes.Return) and s.value is not None:
            values.append(s.value)
    calls = (e for e in all_expressions(body) if isinstance(e, nodes.Call))
    values += [e for e in calls if writes_to(e.function, seeds)]
    return {name for value in values for name in floats_in(value)}


def floats_in(e: Expr) -> set[str]:
    """Names through which a derivative may flow into `e`."""
    names: set[str] = set()
    seen: set[int] = set()
    stack = [e]
    while stack:
        part = stack.pop()
        if id(part) in seen or isinstance(part, nodes.Detach | nodes.Bitcast):
            continue
        seen.add(id(part))
        if isinstance(part, nodes.Var) and is_differentiable(part.type):
            names.add(part.name)
        stack += children(part)
    return names


class VersionedNames:
    """Each name has one version per value that the reverse sweep may need, and one cotangent."""

    def __init__(
        self,
        body: Body,
        types: Mapping[str, Type],
        active: Iterable[str],
        wanted: frozenset[str],
        initial_names: Iterable[str],
        bars: Mapping[str, str],
    ) -> None:
        """See `Sweeps`."""
        self._body = body
        self._types = types
        self.active = set(active)
        """The names with cotangents."""
        self.wanted = wanted
        """Arrays whose gradients are wanted."""
        self.versions = {name: name for name in initial_names}
        """Names -> their current versions."""
        self._used = set(self.versions)
        self._base: dict[str, str] = {}
        """Versions -> their names."""
        self.bars = dict(bars)
        """Names -> names of their cotangents."""
        self.boundary = frozenset(bars)
        """Names whose cotangents the caller passes or wants."""

    def now(self, e: Expr) -> Expr:
        """`e` with the current versions of its names."""
        new: dict[int, Expr] = {}
        for node in in_order(e):
            new[id(node)] = self.renamed(map_children(node, lambda child: new[id(child)]))
        return new[id(e)]

    def renamed(self, e: Expr) -> Expr:
        if isinstance(e, nodes.Var):
            version = self.read(e.name)
            return e if version == e.name else replace(e, name=version)
        return e

    def read(self, name: str) -> str:
        """The current version of a name, which is marked as read."""
        # A name that is read before it is assigned is 0; later assignments get a new version.
        version = self.versions.setdefault(name, name)
        self._used.add(version)
        return version

    def new_version(self, name: str, targets: Mapping[str, str]) -> str:
        if name in targets:
            return targets[name]
        version = name if name not in self._used else self._body.fresh(name)
        self._used.add(version)
        self._base[version] = name
        self._body.local_types[version] = self.type_of(name)
        return version

    def local(self, stem: str, t: Type) -> nodes.Var:
        """A new active local for a part of an expression."""
        name = self._body.local(stem, t)
        self.active.add(name.name)
        return name

    def base_of(self, version: str) -> str:
        return self._base.get(version, version)

    def is_active(self, version: str) -> bool:
        return self.base_of(version) in self.active

    def bar(self, version: str) -> nodes.Var:
        """The cotangent of the name of a version."""
        base = self.base_of(version)
        t = self.type_of(base)
        if base not in self.bars:
            self.bars[base] = self._body.local(f"{base}_bar", t).name
        return nodes.Var(type=t, name=self.bars[base])

    def varies(self, name: str) -> bool:
        """True if the current version of a name is active."""
        return self.is_active(self.versions.get(name, name))

    def is_active_expr(self, e: Expr) -> bool:
        """True if `e`, in current versions, is active."""
        return is_active_expr(e, self.is_active, self.wanted)

    def current(self, name: str) -> nodes.Var:
        """The current version of a name, which has one."""
        return nodes.Var(type=self.type_of(name), name=self.versions[name])

    def type_of(self, name: str) -> Type:
        return self._types[name] if name in self._types else self._body.local_types[name]

    def is_array(self, name: str) -> bool:
        return c.holds_array(self.type_of(name))

    def are_settled(self, values: Iterable[Expr]) -> bool:
        """True if no value reads a local array, which may be overwritten in place."""
        parts = (part for e in values for part in in_order(e))
        return not any(isinstance(part, nodes.Var) and c.holds_array(part.type) for part in parts)

    def fresh_version(self, name: str) -> str:
        self._used.add(name)
        return self.new_version(name, {})
