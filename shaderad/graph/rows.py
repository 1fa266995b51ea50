"""Searches and sorts of rows, the plainest way there is."""

from __future__ import annotations

from collections.abc import Callable

from shaderad.graph.kernels import Writer, write_kernel
from shaderad.graph.plan import RunKernel
from shaderad.ir import arrays, nodes, ops, types
from shaderad.ir.arrays import Value
from shaderad.ir.nodes import Expr, Stmt
from shaderad.ir.types import INT, Access
from shaderad.rules import composing as c

IsStored = Callable[[Value], bool]


def _element(writer: Writer, x: Value, at: Expr, name: str) -> tuple[list[Stmt], Expr]:
    own = (*writer.own, writer.positions.of(at))
    written = writer.written(writer.values([x], own), name)
    return list(written.body), written.values[0]


def _both(left: Expr, right: Expr) -> Expr:
    return nodes.Logical(type=types.BOOL, is_and=True, left=left, right=right)


def _either(left: Expr, right: Expr) -> Expr:
    return nodes.Logical(type=types.BOOL, is_and=False, left=left, right=right)


def _loop(writer: Writer, x: Value, start: int, body: list[Stmt], name: str = "step") -> Stmt:
    writer.local_types[name] = INT
    stop = writer.positions.size(x.shape[-1])
    return nodes.For(
        variable=name, start=c.whole(start), stop=stop, step=c.whole(1), body=tuple(body)
    )


def arg_extreme(node: arrays.ArgExtreme, is_stored: IsStored) -> RunKernel:
    (x,) = node.operands

    def body(writer: Writer) -> list[Stmt]:
        t = x.element
        writer.local_types.update(best=t, found=INT, one=t)
        step, best, one = c.variable("step", INT), c.variable("best", t), c.variable("one", t)
        inside, element = _element(writer, x, step, "e")
        inside.append(nodes.Assign(name="one", value=element))
        test = c.apply(ops.LT if node.kind == "min" else ops.GT, one, best)
        if types.is_float(t):
            is_number = c.apply(ops.NOT, c.apply(ops.ISNAN, one))
            test = _both(is_number, _either(c.apply(ops.ISNAN, best), test))
        then = (nodes.Assign(name="best", value=one), nodes.Assign(name="found", value=step))
        inside.append(nodes.If(condition=test, then=then))
        first, start = _element(writer, x, c.whole(0), "f")
        first.append(nodes.Assign(name="best", value=start))
        some = c.apply(ops.GT, writer.positions.size(x.shape[-1]), c.whole(0))
        return [
            nodes.Assign(name="found", value=c.whole(0)),
            nodes.Assign(name="best", value=c.zero(t)),
            nodes.If(condition=some, then=tuple(first)),
            _loop(writer, x, 1, inside),
            nodes.Store(buffer="y0", indices=writer.index(), value=c.variable("found", INT)),
        ]

    work = write_kernel(
        "arg_extreme", node.result.shape, is_stored, body, [("y0", node.result, Access.OUT)]
    )
    return RunKernel(work)


def arg_sort(node: arrays.ArgSort, is_stored: IsStored) -> RunKernel:
    (x,) = node.operands

    def body(writer: Writer) -> list[Stmt]:
        t = x.element
        writer.local_types.update(rank=INT, own_key=t, key=t)
        own = writer.written(writer.values([x]), "f")
        step = c.variable("step", INT)
        at = (*writer.own[:-1], writer.positions.of(step))
        other = writer.written(writer.values([x], at), "e")
        a, b = c.variable("key", t), c.variable("own_key", t)
        place = writer.positions.expr(writer.own[-1])
        less, equal = c.apply(ops.LT, a, b), c.apply(ops.EQ, a, b)
        if types.is_float(t):
            nan_a, nan_b = c.apply(ops.ISNAN, a), c.apply(ops.ISNAN, b)
            both = nodes.Logical(type=types.BOOL, is_and=True, left=nan_a, right=nan_b)
            equal = nodes.Logical(type=types.BOOL, is_and=False, left=equal, right=both)
            last = nodes.Logical(
                type=types.BOOL, is_and=True, left=c.apply(ops.NOT, nan_a), right=nan_b
            )
            less = nodes.Logical(type=types.BOOL, is_and=False, left=less, right=last)
        tie = nodes.Logical(
            type=types.BOOL, is_and=True, left=equal, right=c.apply(ops.LT, step, place)
        )
        before = nodes.Logical(type=types.BOOL, is_and=False, left=less, right=tie)
        rank = c.variable("rank", INT)
        more = nodes.Assign(name="rank", value=c.apply(ops.ADD, rank, c.whole(1)))
        inside = [*other.body, nodes.Assign(name="key", value=other.values[0]),
                  nodes.If(condition=before, then=(more,))]  # fmt: skip
        at_rank = [writer.positions.expr(p) for p in writer.own[:-1]]
        return [
            *own.body,
            nodes.Assign(name="own_key", value=own.values[0]),
            nodes.Assign(name="rank", value=c.whole(0)),
            _loop(writer, x, 0, inside),
            nodes.Store(buffer="y0", indices=(*at_rank, rank), value=place, is_unique=True),
        ]

    outputs = [("y0", node.result, Access.OUT)]
    return RunKernel(write_kernel("arg_sort", x.shape, is_stored, body, outputs))
