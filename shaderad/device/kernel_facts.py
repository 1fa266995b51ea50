"""What launches keep asking of a kernel, worked out once."""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING

from shaderad.bodies.outputs import are_local, axes_of_launch
from shaderad.bodies.ranges import conditions
from shaderad.device.prebuilt import PrebuiltKernel
from shaderad.diagnostics import nesting
from shaderad.ir import sizes, types
from shaderad.ir.pointers import is_pooled
from shaderad.ir.prints import prints
from shaderad.ir.types import Access

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import Any

    from shaderad.bodies.outputs import Axis
    from shaderad.ir import nodes
    from shaderad.ir.sizes import Size

    _Known = tuple[tuple[int, ...], Mapping[str, tuple[int, ...]], Mapping[str, Any]]
    """Extents of a launch, shapes of arrays, words of uniforms."""


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
        self._ranges: KernelRanges | None = None
        self._axes: tuple[tuple[Axis, ...], ...] | None = None
        self._are_local: dict[frozenset[str], bool] = {}
        self.name_by_path = {one.path: one.name for one in (*kernel.buffers, *kernel.uniforms)}
        """Where the host finds the value of each array and uniform."""

    def ranges(self, kernel: nodes.Kernel) -> KernelRanges:
        """What a launch of `kernel` says of its indices."""
        if self._ranges is None:
            self._ranges = KernelRanges(kernel)
        return self._ranges

    def axes_of_launch(self, kernel: nodes.Kernel) -> tuple[tuple[Axis, ...], ...]:
        """For each Index the axes of arrays that are as long as the launch."""
        if self._axes is None:
            is_built = isinstance(kernel, PrebuiltKernel)
            self._axes = kernel.axes if is_built else axes_of_launch(kernel)
        return self._axes

    def are_results_local(self, kernel: nodes.Kernel, launch_shaped: frozenset[str]) -> bool:
        """Whether a backward dispatch of `kernel` can compute its results, too.

        Its threads hold them until they end: elements of their own, and sums.
        """
        if launch_shaped not in self._are_local:
            self._are_local[launch_shaped] = not self.is_prebuilt and are_local(
                kernel, launch_shaped
            )
        return self._are_local[launch_shaped]

    def names_under(self, path: tuple[str, ...]) -> frozenset[str]:
        """The differentiable arrays and uniforms of one argument."""
        depth = len(path)
        return frozenset(
            name
            for at, name in self.name_by_path.items()
            if name in self.differentiable and at[:depth] == path
        )


class KernelRanges:
    """What the extents and whole-number uniforms of a launch say of a kernel's indices."""

    def __init__(self, kernel: nodes.Kernel) -> None:
        with nesting(kernel.name, kernel.span):
            self._conditions = conditions(kernel)
        names = sorted(frozenset[str]().union(*map(sizes.symbols, self._conditions)))
        signed = {u.name: u.type == types.INT for u in kernel.uniforms}
        self._readers = {name: _reader(name, signed) for name in names}
        self._found = lru_cache(maxsize=64)(self._natural_where)

    def natural(
        self,
        dim: tuple[int, ...],
        shapes: Mapping[str, tuple[int, ...]],
        uniforms: Mapping[str, Any],
    ) -> frozenset[Size]:
        """The conditions that hold: see `bodies/ranges.py`."""
        if not self._conditions:
            return self._conditions
        known = (dim, shapes, uniforms)
        return self._found(tuple(read(known) for read in self._readers.values()))

    def _natural_where(self, numbers: tuple[int | None, ...]) -> frozenset[Size]:
        values = {name: n for name, n in zip(self._readers, numbers, strict=True) if n is not None}
        return frozenset(
            size
            for size in self._conditions
            if sizes.symbols(size) <= values.keys() and sizes.evaluate(size, values) >= 0
        )


def _reader(name: str, signed: Mapping[str, bool]) -> Callable[[_Known], int | None]:
    """What finds a symbol of `bodies/ranges.py`; `None` where only the device knows it."""
    if name in signed:
        return lambda known: _whole(known[2][name], is_signed=signed[name])
    buffer, _, axis = name.rpartition(".")
    if buffer:
        return lambda known: known[1][buffer][int(axis)] if buffer in known[1] else None
    return lambda known: known[0][int(axis)]


def _whole(words: Any, *, is_signed: bool) -> int | None:
    return int.from_bytes(words, "little", signed=is_signed) if isinstance(words, bytes) else None
