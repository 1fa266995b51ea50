"""The functions of ``sad.*`` that kernels call: one object each, from the table of primitives."""

from __future__ import annotations

from contextvars import ContextVar
from dataclasses import dataclass

from shaderad.ir import ops

by_element: ContextVar[bool] = ContextVar("shaderad_by_element", default=False)
"""True while the Python body of a ``@sad.function`` runs elementwise on NumPy arrays."""


def is_device_array(x: object) -> bool:
    """True if `x` is an array on a device or a traced one: it turns NumPy's ufuncs off."""
    return getattr(type(x), "__array_ufunc__", False) is None


def is_traced_size(x: object) -> bool:
    """True if `x` is a symbolic size, ``x.shape[0]`` of a traced array."""
    return getattr(type(x), "is_symbolic_size", False)


@dataclass(frozen=True)
class Intrinsic:
    """A primitive: ``sad.sin``."""

    op: ops.Op

    @property
    def __name__(self) -> str:
        return self.op.name

    def __repr__(self) -> str:
        return f"shaderad.{self.op.name}"


@dataclass(frozen=True)
class KernelForm:
    """A name with a meaning of its own in kernels: ``sad.range``, ``sad.detach``."""

    name: str

    def __repr__(self) -> str:
        return f"shaderad.{self.name}"


def is_form(thing: object, name: str) -> bool:
    """True if `thing` is the form ``sad.<name>``."""
    return isinstance(thing, KernelForm) and thing.name == name
