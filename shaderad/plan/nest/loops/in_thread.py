"""Loops whose body is elementwise in the carries -> kernels with the loop inside.

One kernel for each shape among the results: a thread carries its own element of the carries of
that shape, and all of those of shape (), which every thread computes for itself. Invariant: no
thread reads the carry of another one; a loop whose body would do that repeats a plan instead.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from shaderad.ir import arrays, nodes, sizes
from shaderad.ir import composing as c
from shaderad.ir.arrays import Graph, Node, Value
from shaderad.ir.nodes import Assign, Expr, Stmt
from shaderad.ir.sizes import Shape
from shaderad.ir.types import BOOL, INT, Access
from shaderad.plan.elements import View, base_of
from shaderad.plan.kernels import Bound, Writer, write_kernel
from shaderad.plan.nest.statements import assigned, counted, plus
from shaderad.plan.positions import RANK_LIMIT, Indices, Position, add, constant, times
from shaderad.plan.simplify import exact_products, simplified
from shaderad.plan.steps import RunKernel
from shaderad.plan.storage import is_fused_node, is_reported_gather

COUNTER = "step"
"""The counter of a loop with a number of iterations."""
COUNT = "count"


class _ReadsOthers(Exception):
    """A thread would read the carry of another one, or a row of more axes than arrays have."""


def loop_kernels(
    node: arrays.Loop | arrays.WhileLoop, is_stored: Callable[[Value], bool]
) -> tuple[RunKernel, ...] | None:
    """The kernels of a loop; `None` where its body is not elementwise in the carries."""
    body = exact_products(simplified(node.body))
    graphs = [body]
    condition = None
    if isinstance(node, arrays.WhileLoop):
        condition = exact_products(simplified(node.condition))
        graphs.append(condition)
    if not all(_fits_inside(inner) for graph in graphs for inner in graph.nodes):
        return None
    shapes = dict.fromkeys(_row_shape(node, k) for k in range(len(node.results)))
    try:
        kernels = [_LoopKernel(node, body, condition, shape) for shape in shapes]
        return tuple(kernel.run(is_stored) for kernel in kernels)
    except _ReadsOthers:
        return None


def _fits_inside(inner: Node) -> bool:
    """True if a thread can compute the elements; reported gathers must read inputs of the body."""
    if is_reported_gather(inner):
        return base_of(inner.operands[0]).producer is None
    return is_fused_node(inner)


def iteration_of(node: arrays.Loop, turn: Position) -> Position:
    """The number of the iteration that runs in a turn of a loop."""
    last = constant(sizes.subtract(node.count, 1))
    return add(last, times(turn, -1)) if node.is_reversed else turn


def _row_shape(node: arrays.Loop | arrays.WhileLoop, position: int) -> Shape:
    """The shape of the part of result `position` that one iteration computes."""
    outputs = node.body.outputs
    return outputs[position].shape if position < len(outputs) else ()


@dataclass(frozen=True)
class _Roles:
    """The inputs of a body by their roles."""

    steps: tuple[Value, ...]
    carries: tuple[Value, ...]
    constants: tuple[Value, ...]
    xs: tuple[Value, ...]


def _roles(node: arrays.Loop | arrays.WhileLoop, graph: Graph) -> _Roles:
    count = node.carry_count
    if isinstance(node, arrays.WhileLoop):
        return _Roles((), graph.inputs[:count], graph.inputs[count:], ())
    step, *rest = graph.inputs
    second = count + node.constant_count
    return _Roles((step,), tuple(rest[:count]), tuple(rest[count:second]), tuple(rest[second:]))


class _LoopKernel:
    def __init__(
        self,
        node: arrays.Loop | arrays.WhileLoop,
        body: Graph,
        condition: Graph | None,
        shape: Shape,
    ) -> None:
        self._node = node
        self._body = body
        self._condition = condition
        self._shape = shape
        self._roles = _roles(node, body)
        self._before: list[Stmt] = []
        """The statements before the loop."""
        self._results = [(k, v) for k, v in enumerate(node.results) if _row_shape(node, k) == shape]
        self._needed = self._needed_carries()

    def run(self, is_stored: Callable[[Value], bool]) -> RunKernel:
        outputs = [(f"y{k}", v, Access.OUT) for k, v in self._results]
        name = "while_loop" if self._condition is not None else "loop"
        work = write_kernel(name, self._shape, is_stored, self._statements, outputs)
        return RunKernel(work)

    def _needed_carries(self) -> list[int]:
        """The carries that the results of this shape depend on, in any iteration."""
        position = {v: k for k, v in enumerate(self._roles.carries)}
        carry_count = self._node.carry_count
        needed: dict[int, None] = {}
        roots = [self._body.outputs[k] for k, _ in self._results if k < len(self._body.outputs)]
        if self._condition is not None:
            inputs = dict(zip(self._condition.inputs, self._body.inputs, strict=True))
            roots += [inputs[v] for v in _read_by(self._condition.outputs) if v in inputs]
        pending = [k for k, _ in self._results if k < carry_count]
        pending += [position[v] for v in _read_by(roots) if v in position]
        while pending:
            k = pending.pop()
            if k in needed:
                continue
            needed[k] = None
            if self._roles.carries[k].shape not in (self._shape, ()):
                raise _ReadsOthers
            pending += [position[v] for v in _read_by([self._body.outputs[k]]) if v in position]
        return sorted(needed)

    # -- the kernel's text -----------------------------------------------------------------

    def _statements(self, writer: Writer) -> list[Stmt]:
        self._before = []
        for k in self._needed:
            (first,) = writer.values([self._node.operands[k]], self._own(writer, k))
            carry = writer.local(f"carry{k}", self._roles.carries[k].element)
            self._before.append(assigned(carry, first))
        self._bind_carries(writer, self._roles)
        loop = self._counted(writer) if self._condition is None else self._conditional(writer)
        return [*self._before, *loop, *self._stores(writer)]

    def _counted(self, writer: Writer) -> list[Stmt]:
        node = self._node
        assert isinstance(node, arrays.Loop)
        counter = writer.local(COUNTER, INT)
        step = iteration_of(node, writer.positions.of(counter))
        self._bind_rest(writer, step)
        stop = writer.positions.size(node.count)
        return [counted(counter, c.whole(0), stop, self._iteration(writer, step))]

    def _conditional(self, writer: Writer) -> list[Stmt]:
        node, condition = self._node, self._condition
        assert isinstance(node, arrays.WhileLoop)
        assert condition is not None
        self._bind_rest(writer, Position())
        roles = _roles(node, condition)
        self._bind_carries(writer, roles)
        self._bind_constants(writer, roles)
        goes_on, count = writer.local("goes_on", BOOL), writer.local(COUNT, INT)
        first, again = (
            writer.written(writer.values(condition.outputs, ()), prefix) for prefix in "cd"
        )
        body = (
            *self._iteration(writer, Position()),
            plus(count, c.whole(1)),
            *again.body,
            assigned(goes_on, again.values[0]),
        )
        return [
            *first.body,
            assigned(goes_on, first.values[0]),
            assigned(count, c.whole(0)),
            nodes.While(condition=goes_on, limit=node.limit, body=body, span=node.span),
        ]

    def _iteration(self, writer: Writer, step: Position) -> list[Stmt]:
        """The new carries, all from the old ones, and the stores of the ys of this iteration."""
        carry_count = self._node.carry_count
        ys = [(k, v) for k, v in self._results if carry_count <= k < len(self._body.outputs)]
        outputs = [self._body.outputs[k] for k in (*self._needed, *(k for k, _ in ys))]
        at = (writer.own if v.shape == self._shape else () for v in outputs)
        elements = [writer.values([v], place)[0] for v, place in zip(outputs, at, strict=True)]
        written = writer.written(elements)
        count = len(self._needed)
        carries = list(zip(self._needed, written.values, strict=False))
        body: list[Stmt] = [*written.body]
        for (k, v), value in zip(ys, written.values[count:], strict=True):
            indices = writer.indices_in(v, (step, *writer.own))
            body.append(nodes.Store(buffer=f"y{k}", indices=indices, value=value, is_unique=True))
        following = [(k, value, writer.local(f"next{k}", value.type)) for k, value in carries]
        body += [assigned(new, value) for _, value, new in following]
        return body + [Assign(name=f"carry{k}", value=new) for k, _, new in following]

    def _stores(self, writer: Writer) -> list[Stmt]:
        values = {
            k: c.variable(f"carry{k}", v.element)
            for k, v in self._results
            if k < self._node.carry_count
        }
        if isinstance(self._node, arrays.WhileLoop):
            counts = (k for k, _ in self._results if k >= self._node.carry_count)
            values |= dict.fromkeys(counts, c.variable(COUNT, INT))
        return [
            nodes.Store(buffer=f"y{k}", indices=writer.index(), value=value)
            for k, value in values.items()
        ]

    # -- what the body reads ---------------------------------------------------------------

    def _bind_carries(self, writer: Writer, roles: _Roles) -> None:
        for k in self._needed:
            writer.bind(roles.carries[k], self._carry(writer, k))

    def _carry(self, writer: Writer, k: int) -> Bound:
        carry = self._roles.carries[k]

        def read(at: Indices, view: View | None) -> Expr:
            is_own = at == self._own(writer, k)
            if not is_own or (view is not None and view.shape != carry.shape):
                raise _ReadsOthers
            return c.variable(f"carry{k}", carry.element)

        return read

    def _own(self, writer: Writer, k: int) -> Indices:
        """The position of the thread's element of a carry."""
        return writer.own if self._roles.carries[k].shape else ()

    def _bind_rest(self, writer: Writer, step: Position) -> None:
        roles, operands = self._roles, self._node.operands
        for v in roles.steps:
            writer.bind(v, lambda _, __: writer.positions.expr(step))
        self._bind_constants(writer, roles)
        for v, operand in zip(roles.xs, operands[len(operands) - len(roles.xs) :], strict=True):
            writer.bind(v, _row_reader(writer, operand, step))

    def _bind_constants(self, writer: Writer, roles: _Roles) -> None:
        operands = self._node.operands[self._node.carry_count :]
        for v, operand in zip(roles.constants, operands, strict=False):
            writer.bind(v, self._constant_reader(writer, operand))

    def _constant_reader(self, writer: Writer, operand: Value) -> Bound:
        """Reads the thread's own element of a constant before the loop, other elements inside."""

        def read(at: Indices, view: View | None) -> Expr:
            if view is not None:
                return writer.read(base_of(operand), at, view)
            (element,) = writer.values([operand], at)
            is_own = at == (writer.own if operand.shape == self._shape else ())
            is_alike = operand.shape in (self._shape, ())
            if not (is_alike and is_own and isinstance(element, nodes.Load)):
                return element
            name = f"given{len(self._before)}"
            self._before.append(Assign(name=name, value=element))
            return writer.local(name, operand.element)

        return read


def _row_reader(writer: Writer, xs: Value, step: Position) -> Bound:
    def read(at: Indices, view: View | None) -> Expr:
        if view is None:
            return writer.values([xs], (step, *at))[0]
        if len(view.shape) == RANK_LIMIT:
            raise _ReadsOthers
        whole = View((xs.shape[0], *view.shape), view.span)
        return writer.read(base_of(xs), (step, *at), whole)

    return read


def _read_by(values: Sequence[Value]) -> set[Value]:
    return {*values, *(v for node in arrays.needed_by(values) for v in node.operands)}
