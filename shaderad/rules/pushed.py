"""What `rules/pushing` makes: functions and kernels that carry tangents."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from shaderad.ir import nodes
from shaderad.ir.nodes import Function, Kernel


@dataclass(frozen=True, kw_only=True, eq=False)
class Pushed(Function):
    """``f_push`` of ``f``."""

    shown: Mapping[str, str] = field(default_factory=dict[str, str])
    """The names of tangents: whose they are."""
    temporaries: frozenset[str] = frozenset()
    """Locals that stand for parts of expressions."""


@dataclass(frozen=True, kw_only=True, eq=False)
class PushedKernel(Kernel):
    """A kernel that also gives the tangents of the float arrays that it writes.

    Those of Min and Max are known to its derivatives alone: who wins is found before they run.
    """

    primal_name: str
    dots: Mapping[str, str] = field(default_factory=dict[str, str])
    """The name of the tangent of each array and uniform that has one."""
    shown: Mapping[str, str] = field(default_factory=dict[str, str])
    """The names of all tangents: whose they are."""
    temporaries: frozenset[str] = frozenset()
    """Locals that stand for parts of expressions."""

    @property
    def reported_name(self) -> str:
        return self.primal_name if self.span != nodes.NO_SPAN else ""


def primal_name(kernel: Kernel) -> str:
    """What the user calls a kernel, with tangents or without."""
    return kernel.primal_name if isinstance(kernel, PushedKernel) else kernel.name
