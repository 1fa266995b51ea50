"""Pushed functions and kernels: those with tangents, from `rules/pushing`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from shaderad.ir import nodes
from shaderad.ir.nodes import Function, Kernel


@dataclass(frozen=True, kw_only=True, eq=False)
class Pushed(Function):
    """``f_push`` of ``f``."""

    shown: Mapping[str, str] = field(default_factory=dict[str, str])
    """Names of tangents -> names of their primals."""
    temporaries: frozenset[str] = frozenset()
    """Locals that hold parts of expressions."""


@dataclass(frozen=True, kw_only=True, eq=False)
class PushedKernel(Kernel):
    """A kernel that also computes the tangents of the float arrays that it writes.

    Tangents of Min and Max arrays exist only in its derivatives, which run after the argmin index
    of each element is known.
    """

    primal_name: str
    dots: Mapping[str, str] = field(default_factory=dict[str, str])
    """Names of arrays and uniforms -> names of their tangents."""
    shown: Mapping[str, str] = field(default_factory=dict[str, str])
    """Names of all tangents -> names of their primals."""
    temporaries: frozenset[str] = frozenset()
    """Locals that hold parts of expressions."""

    @property
    def reported_name(self) -> str:
        return self.primal_name if self.span != nodes.NO_SPAN else ""


def primal_name(kernel: Kernel) -> str:
    """The name of the user's kernel, also for a pushed kernel."""
    return kernel.primal_name if isinstance(kernel, PushedKernel) else kernel.name
