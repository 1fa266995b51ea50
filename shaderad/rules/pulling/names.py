"""The names of a body during both sweeps: their versions, and the names of their cotangents."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace

from shaderad.ir import nodes
from shaderad.ir.nodes import Expr
from shaderad.ir.types import Type
from shaderad.ir.walk import map_children
from shaderad.rules.body import Body
from shaderad.rules.expressions import in_order
from shaderad.rules.local_arrays import holds_array
from shaderad.rules.pulling.activity import Activity, is_active_expr
from shaderad.rules.pulling.expressions import Additions, additions


class VersionedNames:
    """Each name has one version per value that the reverse sweep may need, and one cotangent."""

    def __init__(
        self,
        body: Body,
        types: Mapping[str, Type],
        activity: Activity,
        given: Iterable[str],
        bars: Mapping[str, str],
    ) -> None:
        """See `Sweeps`."""
        self._body = body
        self._types = types
        self.active = set(activity.names)
        """The names with cotangents."""
        self.wanted = activity.wanted
        self.versions = {name: name for name in given}
        """Names -> their current versions."""
        self._used = set(self.versions)
        self._base: dict[str, str] = {}
        """Versions -> their names."""
        self.bars = dict(bars)
        """Names -> names of their cotangents."""

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
        t = self._types[base] if base in self._types else self._body.local_types[base]
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

    def additions(self, e: Expr, bar: Expr) -> Additions:
        return additions(e, bar, self.is_active, self.wanted)

    def is_array(self, name: str) -> bool:
        return holds_array(self.type_of(name))

    def are_settled(self, values: Iterable[Expr]) -> bool:
        """True if no value reads a local array, which may be overwritten in place."""
        return not any(
            isinstance(part, nodes.Var) and holds_array(part.type)
            for e in values
            for part in in_order(e)
        )

    def fresh_version(self, name: str) -> str:
        self._used.add(name)
        return self.new_version(name, {})
