"""Steps that run kernels of the user, and graphs that consist of such steps alone.

Apart from what plans functions on arrays, so that whoever only calls kernels need not import it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Generic, TypeVar
from weakref import WeakKeyDictionary

from shaderad.bodies.ranges import conditions, holding
from shaderad.bodies.scattered import GroupCopy, added_at_places, read_at_places
from shaderad.compiler.launch_shapes import LaunchShape
from shaderad.diagnostics import nesting
from shaderad.ir import arrays, sizes
from shaderad.ir.arrays import ArrayType, Graph, Value
from shaderad.ir.nodes import Kernel
from shaderad.ir.sizes import Size
from shaderad.ir.types import INT, UINT
from shaderad.plan.joined_calls import in_order, joined_calls, needs_primal
from shaderad.plan.literals import literal_words
from shaderad.plan.nest.copies import copies_with, rooms_of

T_co = TypeVar("T_co", covariant=True)
AnyCall = arrays.KernelCall | arrays.KernelPull | arrays.KernelPush


@dataclass(frozen=True, eq=False)
class CallKernel:
    """A kernel of the user, in one of its modes."""

    node: AnyCall
    reads: tuple[Value, ...]
    """The stored value of each operand, then of each of `results`."""
    results: tuple[str, ...] = ()
    """Names of the Min and Max arrays whose primal results a derivative reads."""
    stored: tuple[Value, ...] = ()
    """The results of the call, if its pullback stores them."""
    natural: frozenset[Size] = frozenset()
    """Conditions on indices that hold: see `bodies/ranges.py`."""
    is_one_thread: bool = False
    """True for a derivative of a call that is known to have one thread at most."""
    copies: tuple[GroupCopy, ...] = ()
    """Arrays to which threads may add in group memory first."""

    @property
    def writes(self) -> tuple[Value, ...]:
        """Values that get memory of their own."""
        in_place = isinstance(self.node, arrays.KernelPull) and self.node.accumulates
        return self.stored if in_place else (*self.stored, *self.node.results)

    @property
    def call(self) -> arrays.KernelCall:
        return self.node if isinstance(self.node, arrays.KernelCall) else self.node.call


@dataclass(frozen=True, slots=True)
class Decision(Generic[T_co]):
    """The choice of a step or plan by sizes and a device."""

    numbers: tuple[int, ...]
    """For each loop the numbers in its kernel, first that of its threads, 0 if its steps are
    dispatches; for each user kernel the bits of the conditions on its indices, 1 if its
    derivative is one thread, and the elements of its copies in group memory, as for each scatter;
    for each reduction or scan 0 for all its dispatches, else 1 and the
    bits of those that run; for each nest the numbers by which it differs from others of the same
    step; -1 for a step that copies, 0 for one that might."""
    make: Callable[[], T_co]
    """Makes the step or plan."""


def call_decision(
    step: CallKernel,
    known: Mapping[str, int],
    numbers: Mapping[Value, int],
    shape: LaunchShape,
) -> Decision[CallKernel]:
    """The decision which indices of a kernel are in range, if it is one thread, and its copies.

    Args:
        step: What runs the kernel.
        known: The sizes that are known, by name.
        numbers: The whole numbers that are known.
        shape: How work is laid out over threads.
    """
    call = step.call
    asked = () if call.bounds == "unchecked" else conditions_of(call.kernel)
    natural = holding(asked, _extents(call, known) | _numbers(call, step.reads, numbers))
    bits = sum(1 << k for k, size in enumerate(asked) if size in natural)
    is_one = step.node is not call and _is_at_most_one(sizes.product(call.dim), known)
    rooms = rooms_of(_added(step), call.dim, known, shape) if shape.copied_words else {}
    made = replace(step, natural=natural, is_one_thread=is_one, copies=copies_with(rooms))
    return Decision((bits, is_one, *rooms.values()), lambda: made)


def _added(step: CallKernel) -> list[tuple[str, ArrayType]]:
    """The arrays to which threads of a step add at places that they compute."""
    call, node = step.call, step.node
    if isinstance(node, arrays.KernelCall):
        names = added_at_places(call.kernel)
        return [(name, t) for name, t in call.written if name in names]
    if isinstance(node, arrays.KernelPull):
        names = read_at_places(call.kernel).intersection(node.wanted)
        operands = zip(call.names, call.operands, strict=True)
        return [(name, x.type) for name, x in operands if name in names]
    return []


def _is_at_most_one(size: Size, known: Mapping[str, int]) -> bool:
    return sizes.symbols(size) <= known.keys() and sizes.evaluate(size, known) <= 1


def _extents(call: arrays.KernelCall, known: Mapping[str, int]) -> dict[str, int]:
    """The known extents of a launch and its arrays, by the symbols of `bodies/ranges.py`."""
    shapes = {name: x.shape for name, x in zip(call.names, call.operands, strict=True)}
    shapes |= {name: t.shape for name, t in call.written}
    extents = {f"{axis}": extent for axis, extent in enumerate(call.dim)}
    for name, shape in shapes.items():
        extents |= {f"{name}.{axis}": extent for axis, extent in enumerate(shape)}
    return {
        name: sizes.evaluate(extent, known)
        for name, extent in extents.items()
        if sizes.symbols(extent) <= known.keys()
    }


def _numbers(
    call: arrays.KernelCall, reads: Sequence[Value], numbers: Mapping[Value, int]
) -> dict[str, int]:
    """The known numbers of a launch, by the names of its uniforms."""
    uniforms = {u.name for u in call.kernel.uniforms if u.type in (INT, UINT)}
    known: dict[str, int] = {}
    for name, value in zip(call.names, reads, strict=False):
        if name in uniforms:
            literal = literal_words(value)
            if value in numbers:
                known[name] = numbers[value]
            elif literal is not None and isinstance(literal[0], int):
                known[name] = literal[0]
    return known


_conditions: WeakKeyDictionary[Kernel, tuple[Size, ...]] = WeakKeyDictionary()


def conditions_of(kernel: Kernel) -> tuple[Size, ...]:
    """The conditions on the indices of a kernel, in one order."""
    if kernel not in _conditions:
        with nesting(kernel.name, kernel.span):
            _conditions[kernel] = tuple(sorted(conditions(kernel), key=repr))
    return _conditions[kernel]


def deciding_values(steps: Sequence[CallKernel]) -> frozenset[Value]:
    """The whole numbers on which conditions of `steps` depend."""
    deciding: set[Value] = set()
    for step in steps:
        if step.call.bounds != "unchecked":
            asked = frozenset[str]().union(*map(sizes.symbols, conditions_of(step.call.kernel)))
            pairs = zip(step.call.names, step.reads, strict=False)
            deciding.update(value for name, value in pairs if name in asked)
    return frozenset(deciding)


def steps_of_calls(graph: Graph, buffer_limit: int) -> tuple[CallKernel, ...] | None:
    """The steps of a graph of kernel calls; `None` if it computes anything else."""
    for node in graph.nodes:
        if not isinstance(node, AnyCall):
            return None
        if not isinstance(node, arrays.KernelCall) and needs_primal(node):
            return None
    joined = joined_calls(graph, buffer_limit)
    call_by_pull = {pull: call for call, pull in joined.items()}
    steps: list[CallKernel] = []
    for node in in_order(graph, joined):
        assert isinstance(node, AnyCall)
        call = call_by_pull.get(node)
        stored = () if call is None else call.results
        steps.append(CallKernel(node, node.operands, stored=stored))
    return tuple(steps)
