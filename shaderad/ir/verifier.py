"""Checks the invariants of kernel IR: types agree, names are defined, jumps have a target.

Passes call `verified` on their result. It checks only if the environment variable SHADERAD_VERIFY
is set, as in the tests. Nodes that a pass defines itself are not checked.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from shaderad.ir import nodes, ops
from shaderad.ir.nodes import Buffer, Expr, Function, Kernel, Stmt
from shaderad.ir.tables import check_rows
from shaderad.ir.types import (
    BOOL,
    DOUBLE,
    INT,
    OF_OUR_KERNELS,
    UINT,
    VOID,
    Access,
    Kind,
    Matrix,
    Pair,
    Pointer,
    Scalar,
    Struct,
    Tuple,
    Type,
    Vector,
    is_bool,
    is_differentiable,
    is_integer,
    scalar_of,
    tangent,
    with_scalar,
)
from shaderad.ir.walk import blocks, children, step_type, writes

IS_ON = bool(os.environ.get("SHADERAD_VERIFY"))


class MalformedIR(AssertionError):
    """IR that violates an invariant of `nodes`."""


def verified(
    kernel: Kernel, body: tuple[Stmt, ...] | None = None, types: Mapping[str, Type] | None = None
) -> None:
    """Checks `kernel` and every function that it calls.

    Args:
        kernel: To check.
        body: Replaces the body of the kernel.
        types: Replaces the types of its locals.

    Raises:
        MalformedIR: SHADERAD_VERIFY is set, and an invariant does not hold.
    """
    if not IS_ON:
        return
    type_by_name: dict[str, Type] = dict.fromkeys(kernel.index_names, INT)
    type_by_name |= {u.name: u.type for u in kernel.uniforms}
    type_by_name |= kernel.local_types if types is None else types
    buffers = {b.name: b for b in kernel.buffers}
    checker = _Checker(kernel.name, type_by_name, VOID, buffers, set())
    checker.block(kernel.body if body is None else body, loops=0)


@dataclass(frozen=True)
class _Checker:
    """Checks the body of one kernel or function."""

    owner: str
    types: Mapping[str, Type]
    result: Type
    buffers: Mapping[str, Buffer]
    seen: set[Function]
    """Functions that were checked before."""

    # -- statements -------------------------------------------------------------------------------

    def block(self, body: tuple[Stmt, ...], loops: int) -> None:
        """Checks `body`, which lies inside of `loops` loops."""
        for s in body:
            for e in children(s):
                self.expression(e)
            check = _STATEMENTS.get(type(s))
            if check is not None:
                check(self, s)
            if isinstance(s, nodes.Break | nodes.Continue):
                self.hold(loops > 0, s, "it leaves no loop")
            if isinstance(s, nodes.For | nodes.While):
                for name in s.exits:
                    self.equal(s, name, self.type_of(name, s), BOOL)
            inside = loops + isinstance(s, nodes.For | nodes.While)
            for block in blocks(s):
                self.block(block, inside)

    def check_store(self, s: nodes.Store) -> None:
        buffer = self.buffer(s, s.buffer, s.indices)
        self.hold(buffer.access is not Access.IN, s, f"`{s.buffer}` is read only")
        self.place(s, buffer.type.element, s.path, s.value)

    def check_accumulate(self, s: nodes.Accumulate) -> None:
        buffer = self.buffer(s, s.buffer, s.indices)
        allowed = (Access.ADD, Access.MIN, Access.MAX, Access.SCRATCH, Access.GROUP)
        allowed += OF_OUR_KERNELS
        self.hold(buffer.access in allowed, s, f"`{s.buffer}` is added to")
        self.place(s, buffer.type.element, s.path, s.value)

    def check_accumulate_gradient(self, s: nodes.AccumulateGradient) -> None:
        buffer = self.buffer(s, s.buffer, s.indices)
        self.place(s, tangent(buffer.type.element), s.path, s.value)

    def check_backward_diff(self, s: nodes.BackwardDiff) -> None:
        self.pairs(s, s.function, s.args)
        self.equal(s, "the cotangent", s.cotangent.type, tangent(s.function.result))
        for p, a in zip(s.function.parameters, s.args, strict=True):
            if is_differentiable(p.type):
                self.hold(isinstance(a, nodes.Var), s, f"the pair of `{p.name}` is no variable")

    def check_for(self, s: nodes.For) -> None:
        for name, e in zip(("start", "stop", "step"), s.bounds, strict=True):
            self.equal(s, name, e.type, INT)
        self.equal(s, s.variable, self.type_of(s.variable, s), INT)
        self.hold(s.variable not in writes(s.body), s, f"the body writes `{s.variable}`")
        if s.is_unrolled:
            are_known = all(isinstance(e, nodes.Const) for e in s.bounds)
            self.hold(are_known, s, "it is unrolled and its bounds are not constant")

    def check_print(self, s: nodes.Print) -> None:
        types = tuple(e.type for e in s.values)
        self.hold(types == s.form.types, s, f"it prints {_listed(types)} as {s.form.types}")

    def place(self, s: Stmt, root: Type, path: tuple[nodes.Step, ...], value: Expr) -> None:
        reached = root
        for step in path:
            if isinstance(step, nodes.ElementStep):
                self.equal(s, "the index", step.index.type, INT)
            inner = step_type(reached, step)
            self.hold(inner is not None, s, f"{reached} has no {step}")
            assert inner is not None
            reached = inner
        self.equal(s, "the value", value.type, reached)

    # -- expressions ------------------------------------------------------------------------------

    def expression(self, e: Expr) -> None:
        for child in children(e):
            self.expression(child)
        check = _EXPRESSIONS.get(type(e))
        if check is not None:
            check(self, e)

    def check_const(self, e: nodes.Const) -> None:
        scalar = e.type
        self.hold(isinstance(scalar, Scalar), e, "it is no scalar")
        assert isinstance(scalar, Scalar)
        limits = {Kind.INT: (-(2**31), 2**31 - 1), Kind.UINT: (0, 2**32 - 1)}
        if is_bool(scalar):
            fits = isinstance(e.value, bool)
        elif is_integer(scalar):
            low, high = limits[scalar.kind]
            fits = type(e.value) is int and low <= e.value <= high
        else:
            fits = type(e.value) in (float, int)
        self.hold(fits, e, f"{e.value!r} is no {scalar}")

    def check_apply(self, e: nodes.Apply) -> None:
        types = tuple(a.type for a in e.args)
        actual = ops.result_type(e.op, types)
        self.hold(actual == e.type, e, f"`{e.op.name}` of {_listed(types)} is no {e.type}")

    def check_logical(self, e: nodes.Logical) -> None:
        types = (e.left.type, e.right.type, e.type)
        self.hold(types == (BOOL,) * 3, e, f"it joins {_listed(types)}")

    def check_conditional(self, e: nodes.Conditional) -> None:
        self.equal(e, "the condition", e.condition.type, BOOL)
        self.equal(e, "the first side", e.if_true.type, e.type)
        self.equal(e, "the other side", e.if_false.type, e.type)

    def check_cast(self, e: nodes.Cast | nodes.Bitcast) -> None:
        scalar, of_value = scalar_of(e.type), scalar_of(e.value.type)
        fits = scalar and of_value and with_scalar(e.value.type, scalar) == e.type
        self.hold(bool(fits), e, f"{e.value.type} has another shape than {e.type}")

    def check_bitcast(self, e: nodes.Bitcast) -> None:
        if e.value.type == DOUBLE:
            self.equal(e, "the words of a double", e.type, Vector(UINT, 2))
        else:
            self.check_cast(e)

    def check_construct(self, e: nodes.Construct) -> None:
        types = [p.type for p in e.parts]
        if isinstance(e.type, Struct | Tuple):
            fits = types == [*e.type.type_by_field.values()]
        elif isinstance(e.type, Matrix):
            rows = [e.type.row] * e.type.row_count
            fits = types in (rows, [e.type.element] * e.type.row_count * e.type.column_count)
        elif isinstance(e.type, Vector):
            counts = [t.count if isinstance(t, Vector) else 1 for t in types]
            scalars = {scalar_of(t) for t in types if not isinstance(t, Matrix)}
            fits = sum(counts) == e.type.count and scalars == {e.type.element}
        else:
            fits = isinstance(e.type, Pointer) and types == [UINT, UINT]
        self.hold(fits, e, f"{_listed(types)} make no {e.type}")

    def check_splat(self, e: nodes.Splat) -> None:
        fits = isinstance(e.type, Vector | Matrix) and e.value.type == e.type.element
        self.hold(fits, e, f"{e.value.type} fills no {e.type}")

    def check_field(self, e: nodes.Field) -> None:
        t = e.value.type
        actual = step_type(t, nodes.FieldStep(name=e.name))
        self.hold(actual == e.type, e, f"`{e.name}` of {t} is {actual}, not {e.type}")

    def check_swizzle(self, e: nodes.Swizzle) -> None:
        step = nodes.SwizzleStep(components=e.components)
        t = e.value.type
        is_inside = isinstance(t, Vector) and set(e.components) <= set("xyzw"[: t.count])
        self.hold(is_inside and step_type(t, step) == e.type, e, f"{t} gives no {e.type}")

    def check_element(self, e: nodes.Element) -> None:
        actual = step_type(e.value.type, nodes.ElementStep(index=e.index))
        self.hold(actual == e.type, e, f"elements of {e.value.type} are {actual}, not {e.type}")
        self.equal(e, "the index", e.index.type, INT)

    def check_pointer(self, e: nodes.PointerIndex | nodes.PointerLength) -> None:
        self.hold(isinstance(e.pointer.type, Pointer), e, f"{e.pointer.type} is no pointer")
        if isinstance(e, nodes.PointerIndex):
            self.equal(e, "the index", e.index.type, INT)

    def check_length(self, e: nodes.Length) -> None:
        rank = self.named_buffer(e, e.buffer).type.rank
        self.hold(0 <= e.axis < rank, e, f"`{e.buffer}` has {rank} axes")

    def check_look_back(self, e: nodes.LookBack) -> None:
        access = self.named_buffer(e, e.buffer).access
        self.hold(access is Access.STATES, e, f"`{e.buffer}` holds no states")
        for name, number in (("the first", e.first), ("the part", e.part), ("the goal", e.goal)):
            self.equal(e, name, number.type, INT)
        self.hold(e.total.type in (INT, UINT), e, "the total is no int")
        self.equal(e, "the result", Vector(INT, 2), e.type)

    def check_call(self, e: nodes.Call) -> None:
        expected = [p.type for p in e.function.parameters]
        actual = [a.type for a in e.args]
        self.hold(actual == expected, e, f"it takes {_listed(expected)}, not {_listed(actual)}")
        self.equal(e, "the result", e.function.result, e.type)
        self.function(e.function)

    def check_forward_diff(self, e: nodes.ForwardDiff) -> None:
        self.pairs(e, e.function, e.args)
        self.equal(e, "the result", Pair(e.function.result), e.type)

    def check_make_pair(self, e: nodes.MakePair) -> None:
        self.equal(e, "the pair", Pair(e.primal.type), e.type)
        self.equal(e, "the derivative", e.derivative.type, tangent(e.primal.type))

    def check_pair_part(self, e: nodes.PairPart) -> None:
        t = e.value.type
        self.hold(isinstance(t, Pair), e, f"{t} is no pair")
        assert isinstance(t, Pair)
        self.equal(e, e.part, t.primal if e.part == "p" else tangent(t.primal), e.type)

    # -- functions --------------------------------------------------------------------------------

    def pairs(self, node: Expr | Stmt, f: Function, args: tuple[Expr, ...]) -> None:
        expected = [Pair(p.type) if is_differentiable(p.type) else p.type for p in f.parameters]
        actual = [a.type for a in args]
        self.hold(actual == expected, node, f"it takes {_listed(expected)}, not {_listed(actual)}")
        self.function(f)

    def function(self, f: Function) -> None:
        if f in self.seen:
            return
        self.seen.add(f)
        types = {**f.local_types, **{p.name: p.type for p in f.parameters}}
        _Checker(f.name, types, f.result, self.buffers, self.seen).block(f.body, loops=0)
        for derivative in (f.backward, f.forward):
            if derivative is not None:
                self.function(derivative)

    # -- shared checks ----------------------------------------------------------------------------

    def type_of(self, name: str, node: Expr | Stmt) -> Type:
        self.hold(name in self.types, node, f"there is no name `{name}`")
        return self.types[name]

    def named_buffer(self, node: Expr | Stmt, name: str) -> Buffer:
        self.hold(name in self.buffers, node, f"there is no array `{name}`")
        return self.buffers[name]

    def buffer(self, node: Expr | Stmt, name: str, indices: tuple[Expr, ...]) -> Buffer:
        buffer = self.named_buffer(node, name)
        types, rank = [e.type for e in indices], buffer.type.rank
        is_known = len(indices) == 1 and isinstance(indices[0], nodes.KnownNumber)
        fits = is_known or types == [INT] * rank
        self.hold(fits, node, f"`{name}` of {rank} axes is indexed by {_listed(types)}")
        return buffer

    def equal(self, node: Expr | Stmt, what: str, actual: Type, expected: Type) -> None:
        self.hold(actual == expected, node, f"{what} is {actual}, not {expected}")

    def hold(self, holds: bool, node: Expr | Stmt, reason: str) -> None:
        if not holds:
            raise MalformedIR(f"`{self.owner}`, {node.span.place}, {type(node).__name__}: {reason}")


def _listed(types: Iterable[Type]) -> str:
    return ", ".join(map(str, types)) or "nothing"


_Check = Callable[[_Checker, Any], None]
_STATEMENTS: dict[type[Stmt], _Check] = {
    nodes.Assign: lambda c, s: c.place(s, c.type_of(s.name, s), s.path, s.value),
    nodes.Store: _Checker.check_store,
    nodes.Accumulate: _Checker.check_accumulate,
    nodes.AccumulateGradient: _Checker.check_accumulate_gradient,
    nodes.BackwardDiff: _Checker.check_backward_diff,
    nodes.If: lambda c, s: c.equal(s, "the condition", s.condition.type, BOOL),
    nodes.For: _Checker.check_for,
    nodes.While: lambda c, s: c.equal(s, "the condition", s.condition.type, BOOL),
    nodes.Return: lambda c, s: c.equal(
        s, "the result", s.value.type if s.value else VOID, c.result
    ),
    nodes.Assert: lambda c, s: c.equal(s, "the condition", s.condition.type, BOOL),
    nodes.Print: _Checker.check_print,
}
check_rows(_STATEMENTS, nodes.STATEMENTS, but=(
    nodes.Evaluate, nodes.Break, nodes.Continue, nodes.Barrier,
))  # fmt: skip
_EXPRESSIONS: dict[type[Expr], _Check] = {
    nodes.Const: _Checker.check_const,
    nodes.Var: lambda c, e: c.equal(e, e.name, c.type_of(e.name, e), e.type),
    nodes.Apply: _Checker.check_apply,
    nodes.Logical: _Checker.check_logical,
    nodes.Conditional: _Checker.check_conditional,
    nodes.Cast: _Checker.check_cast,
    nodes.Bitcast: _Checker.check_bitcast,
    nodes.Construct: _Checker.check_construct,
    nodes.Splat: _Checker.check_splat,
    nodes.Field: _Checker.check_field,
    nodes.Swizzle: _Checker.check_swizzle,
    nodes.Element: _Checker.check_element,
    nodes.Load: lambda c, e: c.equal(
        e, e.buffer, c.buffer(e, e.buffer, e.indices).type.element, e.type
    ),
    nodes.PointerIndex: _Checker.check_pointer,
    nodes.PointerLength: _Checker.check_pointer,
    nodes.Length: _Checker.check_length,
    nodes.OfTeam: lambda c, e: c.equal(e, "the value", e.value.type, e.type),
    nodes.OfLane: lambda c, e: c.equal(e, "the value", e.value.type, e.type),
    nodes.OfLaneBelow: lambda c, e: c.equal(e, "the value", e.value.type, e.type),
    nodes.LookBack: _Checker.check_look_back,
    nodes.Call: _Checker.check_call,
    nodes.TextureCall: _Checker.check_call,
    nodes.ForwardDiff: _Checker.check_forward_diff,
    nodes.MakePair: _Checker.check_make_pair,
    nodes.PairPart: _Checker.check_pair_part,
    nodes.Detach: lambda c, e: c.equal(e, "the value", e.value.type, e.type),
}
check_rows(_EXPRESSIONS, nodes.EXPRESSIONS, but=(nodes.Zero, nodes.KnownNumber, nodes.TeamLane))
