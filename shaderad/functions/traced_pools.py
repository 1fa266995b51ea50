"""What the pointers of a traced call lead to: pools that are values of the graph."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, cast

from shaderad.arrays.arrays import Array, array
from shaderad.device.lines import user_span
from shaderad.diagnostics import error
from shaderad.execute.pools import Pool, Pools, region_step
from shaderad.ir import arrays, nodes, sizes
from shaderad.ir.arrays import ArrayType, Value
from shaderad.ir.pointers import holds_pointers
from shaderad.ir.types import INT, UINT, Pointer, Struct, Type
from shaderad.rules import composing as c
from shaderad.rules.arrays import building as b
from shaderad.trace.primitives import known_shape
from shaderad.trace.traced import TracedArray, tracing

if TYPE_CHECKING:
    from collections.abc import Mapping

    from shaderad.device.kernel_facts import KernelFacts
    from shaderad.ir.nodes import Buffer
    from shaderad.ir.sizes import Size

ElementArray = Callable[[Any, Type, str], TracedArray]


class TracedPools(Pools[TracedArray]):
    """The pools of one call of a kernel in a trace."""

    def __init__(
        self, facts: KernelFacts, given: Mapping[str, Any], element_array: ElementArray
    ) -> None:
        self._element_array = element_array
        super().__init__(facts, given)

    def bound(self, target: Any, b: Buffer) -> TracedArray:
        x = self._element_array(target, b.type.element, b.shown_name)
        if len(x.extents) != 1:
            raise error("SR0368", user_span(), name=b.shown_name, type=b.type, rank=1,
                        shape=known_shape(x.extents))  # fmt: skip
        return x

    def length(self, array: TracedArray) -> Size:
        return array.extents[0]

    def value(self, name: str) -> Value:
        """The pool of a buffer as one array."""
        pool = self.by_name[name]
        if holds_pointers(pool.element):
            return self._column(pool.element, pool.structs)
        if len(pool.arrays) == 1:
            return pool.arrays[0].value
        return _joined(pool)

    def pointer(self, t: Pointer) -> Value:
        """A pointer that is a parameter, or a field of one."""
        (region,) = self.by_name[t.target].regions
        return b.reshape(_pointers(t, [region]), ())

    def _column(self, t: Type, values: Sequence[Any]) -> Value:
        """One value, or pointer, for each struct of a pool."""
        if isinstance(t, Pointer):
            return _pointers(t, self.by_name[t.target].regions)
        if isinstance(t, Struct) and holds_pointers(t):
            columns = [
                self._column(field, [getattr(one, name) for one in values])
                for name, field in t.fields
            ]
            return b.struct(t, columns)
        if not any(isinstance(one, Array) for one in values):
            return tracing().value_of(array(list(values), dtype=t))
        parts = [self._element_array(one, t, "field").value for one in values]
        return b.concatenate([b.reshape(one, (1,)) for one in parts], 0)


def _joined(pool: Pool[TracedArray]) -> Value:
    """The arrays of a pool, each at its region."""
    parts: list[Value] = []
    step = region_step(pool.element)
    for x, (_, count) in zip(pool.arrays, pool.regions, strict=True):
        parts.append(x.value)
        gap = sizes.subtract(sizes.multiply(sizes.divide_up(count, step), step), count)
        if gap != 0:
            parts.append(b.zeros(ArrayType(pool.element, (gap,))))
    return b.concatenate(parts, 0) if parts else b.zeros(ArrayType(pool.element, (0,)))


def _pointers(t: Pointer, regions: Sequence[tuple[Size, Size]]) -> Value:
    """An array of pointers."""
    names = ("first", "count")
    columns = {name: _whole_numbers([r[k] for r in regions]) for k, name in enumerate(names)}
    parts = tuple(nodes.Cast(type=UINT, value=c.variable(name, INT)) for name in names)
    return b.elementwise(nodes.Construct(type=t, parts=parts), columns, (len(regions),))


def _whole_numbers(values: Sequence[Size]) -> Value:
    """An int array of sizes."""
    if all(isinstance(one, int) for one in values):
        return tracing().value_of(array(cast("list[int]", list(values)), dtype=INT))
    parts = [arrays.SizeOf(operands=(), size=one).result for one in values]
    return b.concatenate([b.reshape(one, (1,)) for one in parts], 0)
