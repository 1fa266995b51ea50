"""Protocols by which the sweeps over a body get the derivatives of called functions.

The bodies of called functions are swept in turn. `rules/transforms.py` and
`rules/pulling/functions.py`, which start the sweeps, implement the protocols.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

from shaderad.ir.nodes import Function, Stmt
from shaderad.ir.types import Type
from shaderad.rules.nodes import Adjoint, Split


class Derivatives(Protocol):
    """The derivatives that one kernel takes in its body."""

    def function(self, f: Function) -> Function:
        """`f` without derivatives and pairs in its body."""
        ...

    def pushed(self, f: Function, active: tuple[int, ...]) -> Function:
        """`f` with tangents of the parameters `active`."""
        ...

    def pulled(self, f: Function, wanted: tuple[int, ...]) -> Function:
        """The function from arguments and cotangent to the cotangents of parameters `wanted`."""
        ...

    def plain(
        self, body: tuple[Stmt, ...], types: Mapping[str, Type], *, adds: bool = False
    ) -> tuple[tuple[Stmt, ...], dict[str, Type]]:
        """`body` without derivatives and pairs, and the types of its names."""
        ...


class CalledAdjoints(Protocol):
    """The adjoints of the functions of one kernel."""

    @property
    def wanted(self) -> frozenset[str]:
        """Arrays whose gradients are wanted."""
        ...

    @property
    def seeds(self) -> frozenset[str]:
        """Written arrays that have cotangents."""
        ...

    @property
    def derivatives(self) -> Derivatives: ...
    def has_cotangents(self, f: Function) -> bool:
        """True if a call of `f` writes an array that has a cotangent."""
        ...

    def adjoint(self, f: Function, wanted: frozenset[int]) -> Adjoint:
        """The adjoint of `f` that adds to the cotangents of the parameters `wanted`."""
        ...

    def split(self, f: Function, wanted: frozenset[int]) -> Split | None:
        """The adjoint of `f` in two parts; `None` unless recomputing `f` would run a loop."""
        ...

    def primal(self, f: Function) -> Function:
        """`f` without writes, as the forward sweep calls it."""
        ...
