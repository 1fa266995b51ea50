"""What launches keep asking of a kernel, worked out once."""

from __future__ import annotations

from typing import TYPE_CHECKING

from shaderad.ir import types
from shaderad.ir.pointers import is_pooled
from shaderad.ir.prints import prints
from shaderad.ir.types import Access

if TYPE_CHECKING:
    from shaderad.ir import nodes


class KernelFacts:
    """The arrays and uniforms of one kernel, sorted the ways a launch needs them.

    Holds no reference to the kernel: a device forgets the facts together with it.
    """

    def __init__(self, kernel: nodes.Kernel) -> None:
        self.read = tuple(b for b in kernel.buffers if b.access is Access.IN)
        self.written = tuple(b for b in kernel.buffers if b.access is not Access.IN)
        self.uniforms = kernel.uniforms
        self.pooled = tuple(b for b in self.read if b.is_pointed or is_pooled(b.type))
        """Arrays behind pointers, and arrays of structs that hold pointers; outer ones first."""
        self.element_types: dict[str, types.Type] = {b.name: b.type.element for b in kernel.buffers}
        self.element_types.update((u.name, u.type) for u in kernel.uniforms)
        self.differentiable = frozenset(
            one.name for one in (*self.read, *kernel.uniforms) if types.is_differentiable(one.type)
        )
        """Inputs and uniforms that hold floats."""
        self.differentiable_results = frozenset(
            b.name for b in self.written if types.is_differentiable(b.type)
        )
        self.is_prebuilt = kernel.is_built
        self.has_prints = bool(prints(kernel.body))
        self.name_by_path = {one.path: one.name for one in (*kernel.buffers, *kernel.uniforms)}
        """Where the host finds the value of each array and uniform."""

    def names_under(self, path: tuple[str, ...]) -> frozenset[str]:
        """The differentiable arrays and uniforms of one argument."""
        depth = len(path)
        return frozenset(
            name
            for at, name in self.name_by_path.items()
            if name in self.differentiable and at[:depth] == path
        )
