"""A scan whose end reads one that runs from the other end -> one pass, from both ends.

So the gradient of a scan is computed: from what the scan holds before an element, and from what
flows back to it from all after. The latter then has no memory: it is found twice, the second time
a few elements at once on the way from the start. Invariant: what is stored is the same.
"""

from __future__ import annotations

from shaderad.graph.elements import View
from shaderad.graph.epilogues import as_function
from shaderad.graph.kernels import IsStored, Work, Writer, row_writer, write_kernel
from shaderad.graph.plan import BothWays, RunPass
from shaderad.graph.positions import Indices, add, constant
from shaderad.ir import nodes
from shaderad.ir.arrays import ArrayType, Value
from shaderad.ir.nodes import Construct, Expr, Field, Function, Parameter, Return, Stmt, Var
from shaderad.ir.types import INT, Access, Struct
from shaderad.ir.walk import expressions
from shaderad.rules import composing as c
from shaderad.rules.arrays import products


def both_ways(
    first: RunPass, second: RunPass, is_stored: IsStored, read_limit: int
) -> BothWays | None:
    """Both as one.

    Args:
        first: Runs from the end of what the other runs through; only the other reads it.
        second: Has an end that reads it.
        is_stored: Which values have memory.
        read_limit: Values that a step may read.
    """
    kept = _kept_field(first)
    if kept is None or not _is_end_of_product(second) or first.result.type != second.result.type:
        return None
    producer = _elements_from_end(first, is_stored)
    found = _end(first, second, producer, is_stored)
    if found is None:
        return None
    function, work = found
    pass_ = BothWays((first, second), producer, function, _restored(first, kept), work)
    return pass_ if len(pass_.reads) <= read_limit else None


def _kept_field(scan: RunPass) -> str | None:
    """The field of a scan's values that is all that is asked for, and that follows from itself and
    the next element: what stands in a result's place is enough to go on from there.
    """
    expr = None if scan.finish is None else scan.finish.expr
    op = scan.node.op
    if scan.epilogue is not None or not isinstance(expr, Field) or not isinstance(op, Function):
        return None
    state, value = op.result, op.body[-1]
    if not isinstance(state, Struct) or not isinstance(expr.value, Var) or len(op.body) != 1:
        return None
    if not isinstance(value, Return) or not isinstance(value.value, Construct):
        return None
    place = [name for name, _ in state.fields].index(expr.name)
    parts = list(expressions(value.value.parts[place]))
    total = op.parameters[0].name
    own = [e for e in parts if isinstance(e, Field) and e.name == expr.name and _is(e.value, total)]
    return expr.name if len(own) == sum(_is(e, total) for e in parts) else None


def _is(e: Expr, name: str) -> bool:
    return isinstance(e, Var) and e.name == name


def _is_end_of_product(scan: RunPass) -> bool:
    """Whether results are made of products before each element, which lose nothing in a row."""
    end = scan.epilogue
    if end is None or not end.ending.is_exclusive or end.ending.is_mirrored:
        return False
    if scan.finish is None:
        return False
    return products.is_in_two(scan.node.operands[0].element)


def _elements_from_end(scan: RunPass, is_stored: IsStored) -> Work:
    (x,) = scan.node.operands

    def body(writer: Writer) -> list[Stmt]:
        written = writer.written(writer.values([x], writer.mirrored))
        store = nodes.Store(buffer="y0", indices=writer.index(), value=written.values[0])
        return [*written.body, store]

    outputs = [("y0", Value(ArrayType(x.element, x.shape)), Access.OUT)]
    return write_kernel(scan.producer.kernel.name, x.shape, is_stored, body, outputs)


def _end(
    first: RunPass, second: RunPass, producer: Work, is_stored: IsStored
) -> tuple[Function, Work] | None:
    """The result and the second scan's element, from what lies around the element."""
    value = second.result
    writer = row_writer(value.shape, lambda v: v is not value and is_stored(v), producer)
    befores: set[Indices] = set()
    afters: set[Indices] = set()
    total = c.variable("total", second.scanned.element)
    after = c.variable("after", first.result.element)

    def before_at(at: Indices, _: View | None) -> Expr:
        befores.add(at)
        return total

    def after_at(at: Indices, _: View | None) -> Expr:
        afters.add(at)
        return after

    writer.bind(second.scanned, before_at)
    writer.bind(first.result, after_at)
    written = writer.written(writer.values([value, *second.node.operands]))
    (own,), (mirrored,) = writer.own, writer.mirrored
    # Along the other way, the one before is the one after.
    if befores != {(add(own, constant(-1)),)} or afters != {(add(mirrored, constant(-1)),)}:
        return None
    work = writer.finish("finished", written.body, ())
    known = {u.name: u for u in (*producer.kernel.uniforms, *work.kernel.uniforms)}
    given = {"total": total.type, writer.index_names[0]: INT, "after": after.type}
    return as_function(written, given, known), work


def _restored(scan: RunPass, name: str) -> Function:
    """A value of the scan, as far as it matters, from what was kept of it."""
    state = scan.node.operands[0].element
    assert isinstance(state, Struct), "it has a field"
    parts = [c.variable("kept", t) if n == name else c.zero(t) for n, t in state.fields]
    kept = state.type_by_field[name]
    return Function(
        name="restored",
        parameters=(Parameter(name="kept", type=kept),),
        result=state,
        body=(Return(value=c.construct(state, parts)),),
        local_types={},
    )
