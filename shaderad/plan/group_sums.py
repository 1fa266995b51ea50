"""Sums at indices, as steps of a kernel that one workgroup runs."""

from __future__ import annotations

from shaderad.ir import arrays, nodes, sizes
from shaderad.ir.arrays import Value
from shaderad.ir.nodes import Stmt
from shaderad.ir.types import FLOAT, scalars
from shaderad.plan.group_arrays import NoGroup
from shaderad.plan.group_writer import GroupWriter
from shaderad.plan.positions import Indices
from shaderad.plan.scatters import guarded
from shaderad.rules import composing as c
from shaderad.rules.arrays import building as b


def add_at_indices(writer: GroupWriter, result: Value) -> None:
    """Adds floats by index array, atomically, to an array that was filled before."""
    positions, node = writer.positions, result.producer
    is_float = all(s == FLOAT for s in scalars(result.element))
    if not isinstance(node, arrays.ScatterAdd) or not is_float:
        raise NoGroup
    base = node.operands[0]
    sums = writer.arrays.scratch(result.element, sizes.product(base.shape))

    def fill(at: Indices) -> list[Stmt]:
        places = {base: [sums]}
        if b.is_zero(base):
            return writer.stored_at(places, at, [c.zero(base.element)])
        return writer.stores(places, at, is_copy=True)

    def add_values(at: Indices) -> list[Stmt]:
        count, width = len(node.operands[2].shape), len(node.parts[0])
        written = writer.written(
            [(v, at if k == 0 else at[:count]) for part in node.parts for k, v in enumerate(part)]
        )
        body: list[Stmt] = [*written.body]
        for start in range(0, len(written.values), width):
            value, *found = written.values[start : start + width]
            inner = (*map(positions.of, found), *at[count:])
            place = writer.arrays.sum_index(sums, base.shape, inner)
            adding = nodes.Accumulate(buffer=sums.array, indices=(place,), value=value)
            body.append(guarded(positions.size, found, base.shape, adding))
        return body

    writer.each(base.shape, fill)
    writer.each(node.operands[1].shape, add_values)
    targets = [*writer.rows.get(result, ())]
    if result in writer.place_of:
        targets.append(writer.place_of[result])
    writer.place_of[result] = sums
    for target in targets:
        writer.copy(result, target)
