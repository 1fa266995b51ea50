"""Calls of kernels without branches and loops -> elementwise nodes.

``out[i, j] = x[i, (j + 1) % n] + w[k[i]]`` is elementwise in a roll of `x` and a gather of `w`. As
nodes, the kernel takes part in what graphs optimise: fusion, loops in one kernel, and gathers
instead of atomic adds in reverse mode. Invariant: a call that could report stays a call.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Protocol

from shaderad.bodies.outputs import is_own
from shaderad.bodies.ranges import premises_of
from shaderad.ir import arrays, nodes, ops, sizes
from shaderad.ir import building as b
from shaderad.ir import composing as c
from shaderad.ir.arrays import KernelCall, Value
from shaderad.ir.dags import in_order
from shaderad.ir.equality import Expressions
from shaderad.ir.nodes import Expr, Kernel, Stmt
from shaderad.ir.pointers import is_pooled
from shaderad.ir.sizes import Shape, Size
from shaderad.ir.types import INT, Access, ResourceType, Struct, is_integer
from shaderad.ir.walk import map_children

_LARGEST = 1000
"""Parts of the expressions of a kernel that becomes nodes."""


class Decisions(Protocol):
    """Comparisons of the current sizes, whose outcomes a trace records."""

    def are_equal(self, a: Size, b: Size) -> bool: ...
    def is_less(self, a: Size, b: Size) -> bool: ...


class _NotStraight(Exception):
    """Raised for a kernel, or one call of it, that stays a call; the text is the reason."""


def as_nodes(call: KernelCall, decisions: Decisions) -> tuple[Value, ...] | None:
    """The results of a call, computed by elementwise nodes; `None` for other kernels."""
    try:
        return _nodes(call, decisions)
    except _NotStraight:
        return None


def reason_to_stay(call: KernelCall, decisions: Decisions) -> str:
    """The reason why a call is not computed by elementwise nodes; empty if it is."""
    try:
        _nodes(call, decisions)
    except _NotStraight as reason:
        return str(reason)
    return ""


def _nodes(call: KernelCall, decisions: Decisions) -> tuple[Value, ...]:
    if call.checks:
        raise _NotStraight(f"it is called with checks={call.checks!r}")
    straight = _straight(call.kernel)
    if isinstance(straight, str):
        raise _NotStraight(straight)
    if any(t.shape != call.dim for _, t in call.written):
        raise _NotStraight("an array that it writes has another shape than the launch")
    elements = _Elements(call, decisions, straight)
    return tuple(elements.value(straight.outputs[name]) for name, _ in call.written)


# -- the body of a kernel --------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class _Straight:
    """A kernel whose outputs are expressions over elements of its inputs at given indices."""

    outputs: Mapping[str, Expr]
    premises: frozenset[Size]
    """If these sizes are 0 or more, no index is out of range and no divisor is 0."""


@lru_cache(maxsize=256)
def _straight(kernel: Kernel) -> _Straight | str:
    """The expressions of `kernel`; if it has branches, loops, or may report, the reason."""
    try:
        outputs = _Body(kernel).run()
        parts = _parts(outputs.values())
        accesses = [(e.buffer, e.indices) for e in parts if isinstance(e, nodes.Load)]
        divisors = [
            e.args[1]
            for e in parts
            if isinstance(e, nodes.Apply) and e.op in _DIVISIONS and is_integer(e.type)
        ]
        premises = premises_of(kernel, accesses, divisors)
    except _NotStraight as reason:
        return str(reason)
    return _MAY_REPORT if premises is None else _Straight(outputs, premises)


_DIVISIONS = (ops.FLOOR_DIV, ops.MOD)
_MAY_REPORT = "an index may be out of range, or a divisor 0"


def _parts(expressions: Iterable[Expr]) -> list[Expr]:
    """Every part of `expressions` once."""
    return list({id(part): part for e in expressions for part in in_order(e)}.values())


_ACTIONS: Mapping[type[Stmt], str] = {
    nodes.If: "branches",
    nodes.For: "loops",
    nodes.While: "loops",
    nodes.Store: "writes at a computed index, or a part of an element",
    nodes.Assign: "assigns to a part of a variable",
    nodes.Return: "returns early",
    nodes.Assert: "asserts",
    nodes.BackwardDiff: "takes a derivative",
}


class _Body:
    """Runs a body on expressions in place of values."""

    def __init__(self, kernel: Kernel) -> None:
        self._kernel = kernel
        self._access = {b.name: b.access for b in kernel.buffers}
        self._outputs: dict[str, Expr] = {}
        self._expressions = Expressions()
        """Makes equal loads one object."""

    def run(self) -> dict[str, Expr]:
        """The value of each array that the kernel writes."""
        kernel = self._kernel
        if not kernel.has_body:
            raise _NotStraight(
                "it was built ahead of time" if kernel.is_built else "it is in Slang"
            )
        if not set(self._access.values()) <= {Access.IN, Access.OUT}:
            raise _NotStraight("it accumulates into an array")
        if any(b.is_pointed or is_pooled(b.type) for b in kernel.buffers):
            raise _NotStraight("it follows pointers")
        if any(isinstance(b.type, ResourceType) for b in kernel.buffers):
            raise _NotStraight("it reads textures")
        self._block(kernel.body, {})
        written = {name for name, access in self._access.items() if access is Access.OUT}
        if self._outputs.keys() != written:
            raise _NotStraight("it does not write each of its arrays")
        shared = {name: self._expressions.shared(e) for name, e in self._outputs.items()}
        if len(_parts(shared.values())) > _LARGEST:
            raise _NotStraight("it is too long")
        return shared

    def _block(self, body: Sequence[Stmt], names: dict[str, Expr]) -> Expr | None:
        """Runs statements; returns the value that the last one returns."""
        for position, s in enumerate(body):
            match s:
                case nodes.Assign(path=()):
                    names[s.name] = self._value(s.value, names)
                case nodes.Store(path=()) if is_own(s.indices, self._kernel.index_names):
                    self._outputs[s.buffer] = self._value(s.value, names)
                case nodes.Return() if position == len(body) - 1:
                    return None if s.value is None else self._value(s.value, names)
                case _:
                    action = _ACTIONS.get(type(s), "has a statement that is no expression")
                    raise _NotStraight(f"line {s.span.line} {action}")
        return None

    def _value(self, e: Expr, names: Mapping[str, Expr]) -> Expr:
        values: dict[int, Expr] = {}
        for part in in_order(e):
            new = map_children(part, lambda child: values[id(child)])
            values[id(part)] = self._part(new, names)
        return values[id(e)]

    def _part(self, e: Expr, names: Mapping[str, Expr]) -> Expr:
        match e:
            case nodes.Var():
                return names.get(e.name, e)
            case nodes.Load() if self._access[e.buffer] is Access.OUT:
                if e.buffer not in self._outputs:
                    raise _NotStraight(f"line {e.span.line} reads `{e.buffer}` before writing it")
                return self._outputs[e.buffer]
            case nodes.Call():
                return self._called(e)
            case nodes.ForwardDiff():
                raise _NotStraight(f"line {e.span.line} takes a derivative")
            case nodes.PointerIndex() | nodes.PointerLength():
                raise _NotStraight(f"line {e.span.line} follows a pointer")
            case nodes.Element() if not isinstance(e.index, nodes.Const):
                raise _NotStraight(f"line {e.span.line} selects a component by a computed index")
            case nodes.Field(value=nodes.Construct(type=Struct() as struct, parts=parts)):
                return parts[[name for name, _ in struct.fields].index(e.name)]
            case _:
                return e

    def _called(self, e: nodes.Call) -> Expr:
        """The value of a call, which is inlined."""
        f = e.function
        if f.backward is not None or f.forward is not None:
            raise _NotStraight(f"`{f.name}` has a custom derivative")
        names = dict(zip((p.name for p in f.parameters), e.args, strict=True))
        value = self._block(f.body, names)
        if value is None:
            raise _NotStraight(f"`{f.name}` returns nothing")
        return value


# -- a call ----------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Axis:
    """An index that is ``index + shift``, or the same modulo the extent of its axis."""

    index: int | None
    """The number of an Index; `None` for a constant."""
    shift: Size
    is_turned: bool = False


class _Elements:
    """The values of one call."""

    def __init__(self, call: KernelCall, decisions: Decisions, straight: _Straight) -> None:
        self._call = call
        self._decisions = decisions
        self._operand = dict(zip(call.names, call.operands, strict=True))
        self._axis_of = {name: axis for axis, name in enumerate(call.kernel.index_names)}
        self._values: dict[int, Value] = {}
        """The value of each load, by identity."""
        self._shape = {name: x.shape for name, x in self._operand.items()}
        self._shape |= {name: t.shape for name, t in call.written}
        extent_by_name = {str(axis): extent for axis, extent in enumerate(call.dim)}
        for name, shape in self._shape.items():
            extent_by_name |= {f"{name}.{axis}": extent for axis, extent in enumerate(shape)}
        for premise in straight.premises:
            if not sizes.symbols(premise) <= extent_by_name.keys():
                raise _NotStraight(_MAY_REPORT)
            if not self._is_natural(sizes.substituted(premise, extent_by_name)):
                raise _NotStraight(_MAY_REPORT)

    def _is_natural(self, size: Size) -> bool:
        """True if a size is 0 or more in a launch with threads; recorded unless it always is."""
        return _is_always_natural(size, self._call.dim) or self._decisions.is_less(-1, size)

    def value(self, e: Expr) -> Value:
        """An expression as a value with the extents of the launch."""
        new: dict[int, Expr] = {}
        value_by_name: dict[str, Value] = {}
        for part in in_order(e):
            value = self._leaf(part)
            if value is None:
                new[id(part)] = map_children(part, lambda child: new[id(child)])
            else:
                name = f"v{len(value_by_name)}"
                value_by_name[name] = value
                new[id(part)] = c.variable(name, part.type)
        return b.elementwise(new[id(e)], value_by_name, self._call.dim)

    def _leaf(self, e: Expr) -> Value | None:
        """The value of a load, an Index, a uniform or an extent."""
        dim = self._call.dim
        match e:
            case nodes.Load():
                if id(e) not in self._values:
                    self._values[id(e)] = self._loaded(e)
                return self._values[id(e)]
            case nodes.Var() if e.name in self._axis_of:
                return b.iota(dim, self._axis_of[e.name])
            case nodes.Var() if e.name in self._operand:
                return b.broadcast(self._operand[e.name], dim, ())
            case nodes.Var():
                raise _NotStraight(f"`{e.name}` may have no value")
            case nodes.Length():
                extent = self._shape[e.buffer][e.axis]
                return b.broadcast(arrays.SizeOf(operands=(), size=extent).result, dim, ())
            case _:
                return None

    # -- loads -------------------------------------------------------------------------------

    def _loaded(self, e: nodes.Load) -> Value:
        x = self._operand[e.buffer]
        axes = [self._axis(i, extent) for i, extent in zip(e.indices, x.shape, strict=True)]
        moved = [axis for axis in axes if axis is not None]
        used = [axis.index for axis in moved if axis.index is not None]
        if len(moved) < len(axes) or len(set(used)) < len(used):
            index = tuple(map(self.value, e.indices))
            gather = arrays.Gather(
                operands=(x, *index), is_reported=False, is_inside=True, span=e.span
            )
            return gather.result
        return self._moved(x, moved, used)

    def _moved(self, x: Value, axes: Sequence[_Axis], used: Sequence[int]) -> Value:
        """The elements of `x` at shifted indices, by nodes that only move them."""
        dim = self._call.dim
        for position, axis in enumerate(axes):
            if axis.is_turned:
                x = b.roll(x, position, axis.shift)
            elif axis.index is None:
                x = b.piece(x, position, axis.shift, 1)
            elif axis.shift != 0 or not self._decisions.are_equal(
                x.shape[position], dim[axis.index]
            ):
                x = b.piece(x, position, axis.shift, dim[axis.index])
        x = b.reshape(x, tuple(dim[index] for index in used))
        order = sorted(range(len(used)), key=used.__getitem__)
        return b.broadcast(b.transpose(x, order), dim, sorted(used))

    def _axis(self, e: Expr, extent: Size) -> _Axis | None:
        """An index as one Index and a shift; `None` for any other index."""
        if isinstance(e, nodes.Apply) and e.op == ops.MOD:
            inner, divisor = e.args
            axis, size = self._shifted(inner), self._shifted(divisor)
            if axis is None or axis.index is None or size is None or size.index is not None:
                return None
            return self._turned(axis, size.shift, extent)
        return self._shifted(e)

    def _turned(self, axis: _Axis, divisor: Size, extent: Size) -> _Axis | None:
        assert axis.index is not None
        decisions, shift = self._decisions, axis.shift
        launched = self._call.dim[axis.index]
        if not (decisions.are_equal(divisor, extent) and decisions.are_equal(launched, extent)):
            return None
        if not self._is_natural(shift):
            shift = sizes.add(shift, extent)
        is_roll = self._is_natural(shift) and self._is_natural(sizes.subtract(extent, shift))
        return _Axis(axis.index, shift, is_turned=True) if is_roll else None

    def _shifted(self, e: Expr) -> _Axis | None:
        match e:
            case nodes.Const(type=t) if t == INT:
                return _Axis(None, int(e.value))
            case nodes.Length():
                return _Axis(None, self._shape[e.buffer][e.axis])
            case nodes.Var() if e.name in self._axis_of:
                return _Axis(self._axis_of[e.name], 0)
            case nodes.Apply(op=op) if op in (ops.ADD, ops.SUB):
                left, right = map(self._shifted, e.args)
                return None if left is None or right is None else _sum(left, right, op)
            case _:
                return None


def _sum(left: _Axis, right: _Axis, op: ops.Op) -> _Axis | None:
    sign = -1 if op == ops.SUB else 1
    if right.index is not None and (left.index is not None or sign < 0):
        return None
    index = left.index if right.index is None else right.index
    return _Axis(index, sizes.add(left.shift, sizes.multiply(sign, right.shift)))


_LONGEST = 1 << 30
"""No axis has as many elements, because bytes are counted in 32 bits."""


def _is_always_natural(size: Size, dim: Shape) -> bool:
    """True if `size` is 0 or more for all extents of a launch that is not empty."""
    if isinstance(size, int):
        return size >= 0
    lowest = 0
    for monomial, factor in size.terms:
        if not all(isinstance(atom, sizes.Symbol) for atom in monomial):
            return False
        if not monomial:
            lowest += factor
        elif factor > 0:
            lowest += factor if all(sizes.of_atom(atom) in dim for atom in monomial) else 0
        elif len(monomial) == 1:
            lowest += factor * _LONGEST
        else:
            return False
    return lowest >= 0
