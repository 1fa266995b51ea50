"""A kernel at its arguments: differentiated by the graph of its call.

The graph has gradients and tangents by buffer and uniform, the caller in the form of the arguments.
Invariant: a gradient has the shape and element type of its argument, trailing axis where it was
given so; a struct comes back as a struct, 0 in fields that hold no float; a pointer as a pointer to
a gradient array, element by element through the pools of the call.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from shaderad.arrays import trees
from shaderad.arrays.arrays import Array, uploaded
from shaderad.arrays.tape import When, trace_of
from shaderad.arrays.textures import Texture
from shaderad.arrays.trees import HostPointer, StructArray, rebuilt, struct_fields, structs_of
from shaderad.diagnostics import error
from shaderad.differentiate.forms import (
    accumulated,
    check_sum,
    cotangents_of,
    derivative_like,
    field_of,
    in_form_given,
    like_on,
    tangents_of,
    texels_from_form,
)
from shaderad.execute.call import CallArguments, bound_call, call_result, on_device
from shaderad.execute.derivative_graphs import pulled, pushed
from shaderad.execute.pools import joined, numbers_of, part_of
from shaderad.execute.run_graph import GraphStep, runs_now
from shaderad.execute.runner import GraphRunner
from shaderad.ir import types
from shaderad.ir.pointers import POINTED, comes_apart, holds_pointers, is_pooled, reaches_floats
from shaderad.language.signatures import Launchable
from shaderad.lower.bindings import Mode
from shaderad.runtime import buffers

if TYPE_CHECKING:
    from shaderad.execute.call import BoundCall
    from shaderad.execute.pools import LaunchPools, Pool
    from shaderad.ir.arrays import Value
    from shaderad.ir.nodes import Kernel


@dataclass(eq=False, slots=True)
class KernelAt:
    """A kernel at its arguments."""

    call: CallArguments
    bound: BoundCall
    run: GraphStep
    out: Any

    @property
    def kernels(self) -> Sequence[Kernel]:
        return self.run.kernels

    def is_differentiable(self, position: int) -> bool:
        return bool(self._names([position]))

    def pull(self, out_bar: Any, positions: Sequence[int], into: Sequence[Any] | None) -> list[Any]:
        bound, call = self.bound, self.call
        bars = cotangents_of(self.out, out_bar)
        arguments = [call.positional[k] for k in positions]
        wanted = bound.form.facts.names_in(tuple(arguments))
        order = [name for name in bound.form.node.names if name in wanted]
        flags = tuple([name in wanted for name in bound.form.node.names])
        totals = self._in_place(positions, into) if into is not None else {}
        if into is not None and totals.keys() == wanted and _are_apart(totals, bars):
            if wanted:
                self.run.gradients(flags, bars, [totals[name] for name in order])
            return list(into)
        gradients = dict(zip(order, self.run.gradients(flags, bars), strict=True)) if wanted else {}
        # Most arguments are arrays that are read as they are.
        formed = [
            gradients[name]
            if name in gradients and call.given[name] is bound.operand(name)
            else gradient_form(call.given[name], self._type(name), (name,), bound, gradients)
            for name in arguments
        ]
        return formed if into is None else accumulated(formed, into)

    def push(self, tangents: Sequence[Any]) -> Any:
        dots = self._tangents(tangents)
        if not dots:
            return tangents_of(self.out, [None] * len(self.run.results))
        moved = self.run.tangents([dots.get(name) for name in self.bound.form.node.names])
        return tangents_of(self.out, moved)

    def compile(self, mode: Mode, positions: Sequence[int]) -> None:
        """Compiles a mode, by the arguments at `positions`, before it is dispatched."""
        bound, run = self.bound, self.run
        names = self._names(positions)
        flags = tuple([name in names for name in bound.form.node.names])
        graph = run.graph
        if mode is Mode.BACKWARD:
            graph = pulled(graph, flags, tuple(map(_is_float, graph.outputs)))
        elif mode is Mode.FORWARD:
            graph = pushed(graph, flags)
        runner = bound.device.kept(GraphRunner)
        runner.compile(graph, bound.operands, bound.form.size_by_name)

    def _names(self, positions: Sequence[int]) -> frozenset[str]:
        """The differentiable arrays and uniforms of the arguments at `positions`."""
        positional = self.call.positional
        return self.bound.form.facts.names_in(tuple([positional[k] for k in positions]))

    def _type(self, name: str) -> types.Type:
        """The type of an argument; constants have no derivative, whatever their type."""
        return self.call.function.signature.variable_types.get(name, types.VOID)

    def _tangents(self, tangents: Sequence[Any]) -> dict[str, Array]:
        collected = Tangents(self.bound)
        for name, tangent in zip(self.call.positional, tangents, strict=True):
            collected.add(self._type(name), (name,), self.call.given[name], tangent)
        return collected.arrays()

    def _in_place(self, positions: Sequence[int], into: Sequence[Any]) -> dict[str, Array]:
        """Sums that the dispatch itself can add to: arrays of 32-bit floats, by name."""
        totals: dict[str, Array] = {}
        facts = self.bound.form.facts
        if facts.is_prebuilt:
            return totals
        for position, total in zip(positions, into, strict=True):
            argument = self.call.positional[position]
            t, name = self._type(argument), facts.name_by_path.get((argument,))
            element = t.element if isinstance(t, types.BufferType) else t
            is_float = {s.kind for s in types.scalars(element)} == {types.Kind.FLOAT}
            is_whole = is_float and not isinstance(t, types.TextureType)
            if isinstance(total, Array) and is_whole and name is not None:
                shape = self.bound.operand(name).shape
                check_sum(total, element, shape, self.bound.device)
                if total.offset == 0 and self._is_apart(total):
                    totals[name] = total.viewed(element, shape)
        return totals

    def _is_apart(self, array: Array) -> bool:
        """True if no input or result lies in the buffer of `array`."""
        known = (x for x in (*self.run.operands, *self.run.results) if not x.is_pending)
        return all(x.buffer is not array.buffer for x in known)


def _is_float(value: Value) -> bool:
    return types.is_differentiable(value.element)


def _are_apart(totals: Mapping[str, Array], bars: Sequence[Array | None]) -> bool:
    """True if no sum shares its buffer with another sum or with a cotangent."""
    buffers_ = [id(x.buffer) for x in totals.values()]
    of_bars = {id(bar.buffer) for bar in bars if bar is not None}
    return len(set(buffers_)) == len(buffers_) and of_bars.isdisjoint(buffers_)


def kernel_at(
    function: Launchable, args: Sequence[Any], keywords: Mapping[str, Any], *, when: When
) -> KernelAt:
    call = bound_call(function, args, keywords)
    if len(call.positional) < len(call.given):
        type_by_name = function.signature.variable_types
        for name in call.given:
            t = type_by_name.get(name)
            if name not in call.positional and t is not None and reaches_floats(t):
                raise error("SR0453", name=name)
    bound = on_device(call)
    if trace_of(bound.operands) is not None:
        raise error("SR0451")
    run = GraphStep(bound.form.graph, bound.operands, bound.form.size_by_name, bound.device, when)
    if when is not When.NOW:
        run.expected = tuple(map(run.is_active, range(len(bound.operands))))
    run.start(is_now=runs_now(when))
    return KernelAt(call, bound, run, call_result(bound.form, run.results))


Path = tuple[str, ...]


def gradient_form(
    given: Any, t: types.Type, path: Path, bound: BoundCall, gradients: Mapping[str, Array]
) -> Any:
    """The gradient of one argument; `None` where it leads to no float."""
    name_by_path = bound.form.facts.name_by_path
    name = name_by_path.get(path)
    if name is not None and not (bound.pools is not None and is_pooled(t)):
        gradient = gradients.get(name)
        if gradient is None or bound.operand(name) is given:  # read in the form given
            return gradient
        return in_form_given(gradient, given, t.element if isinstance(t, types.BufferType) else t)
    if not reaches_floats(t):
        return None
    if isinstance(t, types.Struct) and comes_apart(t):
        fields = struct_fields(given) or {}
        parts = {
            field: gradient_form(fields[field], part, (*path, field), bound, gradients)
            for field, part in t.fields
        }
        return _rebuilt(given, parts)
    assert bound.pools is not None
    behind = _GradientsBehind(bound.pools, gradients)
    if isinstance(t, types.Pointer):
        return behind.pointer(name_by_path[*path, POINTED], 0)
    return behind.pointer(name_by_path[path], 0).target


def _rebuilt(like: Any, parts: dict[str, Any]) -> Any:
    return rebuilt(like, {name: 0 if part is None else part for name, part in parts.items()})


@dataclass
class _GradientsBehind:
    """Gradients of what lies behind pointers."""

    pools: LaunchPools
    gradients: Mapping[str, Array]

    def pointer(self, name: str, number: int) -> HostPointer:
        """The target of pointer `number` of a pool, as gradients."""
        pool = self.pools.by_name[name]
        t = pool.element
        if not holds_pointers(t):
            part = part_of(pool, self.gradients[name], number)
            return HostPointer(in_form_given(part, pool.pointers[number].target, t))
        assert isinstance(t, types.Struct)
        first, count = numbers_of(pool)[number]
        whole = self.gradients.get(name)
        found: list[Any] = []
        for k in range(first, first + count):
            skipped = 0 if whole is None else k * types.byte_count(whole.element)
            own = None if whole is None else whole.viewed(whole.element, (), skipped)
            found.append(self._struct(pool.structs[k], t, k, own))
        return HostPointer(StructArray(found))

    def _struct(self, value: Any, t: types.Struct, number: int, own: Array | None) -> Any:
        """Struct `number` of a pool, whose own floats have the gradient `own`."""
        parts: dict[str, Any] = {}
        for name, field in t.fields:
            part, inner = getattr(value, name), None
            if own is not None and types.is_differentiable(field):
                inner = field_of(own, name)
            parts[name] = None
            if isinstance(field, types.Pointer):
                if reaches_floats(field):
                    parts[name] = self.pointer(field.target, number)
            elif isinstance(field, types.Struct) and holds_pointers(field):
                parts[name] = self._struct(part, field, number, inner)
            elif inner is not None:
                parts[name] = in_form_given(inner, part, inner.element)
        return _rebuilt(value, parts)


class Tangents:
    """Collects the tangents of arguments by name of buffer and uniform."""

    def __init__(self, bound: BoundCall) -> None:
        self._bound = bound
        self._arrays: dict[str, Array] = {}
        self._behind = None if bound.pools is None else _TangentsBehind(bound.pools)

    def add(self, t: types.Type, path: Path, value: Any, tangent: Any) -> None:
        """Notes the tangent of one argument; `None` is zero."""
        if tangent is None or not reaches_floats(t):
            return
        if isinstance(t, types.Struct) and comes_apart(t):
            fields, parts = struct_fields(value) or {}, struct_fields(tangent)
            if parts is None or not set(parts) <= {name for name, _ in t.fields}:
                raise error("SR0452", name=".".join(path), wanted=trees.described(value),
                            found=trees.described(tangent))  # fmt: skip
            for name, field in t.fields:
                self.add(field, (*path, name), fields.get(name), parts.get(name))
            return
        names = self._bound.form.facts.name_by_path
        if self._behind is not None and is_pooled(t):
            if isinstance(t, types.Pointer):
                self._behind.add(names[*path, POINTED], 0, tangent)
            else:
                self._behind.add(names[path], 0, HostPointer(tangent))
            return
        name = names.get(path)
        if name is None:
            return
        if isinstance(value, Texture):
            like = like_on(self._bound.device)
            self._arrays[name] = texels_from_form(tangent, value, ".".join(path), like)
            return
        element = t.element if isinstance(t, types.BufferType) else t
        shape, device = self._bound.operand(name).shape, self._bound.device
        self._arrays[name] = derivative_like(tangent, element, shape, device, ".".join(path))

    def arrays(self) -> dict[str, Array]:
        """The tangents that are not zero throughout."""
        behind = {} if self._behind is None else self._behind.arrays()
        return {**self._arrays, **behind}


class _TangentsBehind:
    """The tangents of what lies behind pointers, pool by pool."""

    def __init__(self, pools: LaunchPools) -> None:
        self._pools = pools
        self._parts: dict[str, list[Array | None]] = {}
        self._structs: dict[str, list[Any]] = {}

    def add(self, name: str, number: int, tangent: Any) -> None:
        """Notes the tangent behind pointer `number` of a pool; 0 and `None` are zero.

        Raises:
            DerivativeError: SR0452, where it is no pointer.
            ShapeError: SR0382, where it leads to more or fewer elements.
        """
        pool = self._pools.by_name[name]
        if tangent is None or isinstance(tangent, int) or not reaches_floats(pool.element):
            return
        if not isinstance(tangent, HostPointer):
            found = trees.described(tangent)
            raise error("SR0452", name="tangent", wanted="sad.pointer(...)", found=found)
        first, count = numbers_of(pool)[number]
        if not holds_pointers(pool.element):
            parts = self._parts.setdefault(name, [None] * len(pool.pointers))
            device = self._pools.device
            parts[number] = derivative_like(tangent.target, pool.element, (count,), device, name)
            return
        items = structs_of(tangent.target) or ()
        if len(items) != count:
            raise error("SR0382", name="tangent", found=(len(items),), shape=(count,))
        assert isinstance(pool.element, types.Struct)
        structs = self._structs.setdefault(name, [None] * len(pool.structs))
        for k, one in enumerate(items, start=first):
            structs[k] = one
            self._add_struct(one, pool.element, k)

    def _add_struct(self, tangent: Any, t: types.Struct, number: int) -> None:
        for name, field in t.fields:
            part = (struct_fields(tangent) or {}).get(name)
            if isinstance(field, types.Pointer):
                self.add(field.target, number, part)
            elif isinstance(field, types.Struct) and holds_pointers(field):
                self._add_struct(part, field, number)

    def arrays(self) -> dict[str, Array]:
        """The tangents of the pools that have any."""
        found = {n: joined(self._pools.by_name[n], p, self._pools.device)
                 for n, p in self._parts.items()}  # fmt: skip
        for name, structs in self._structs.items():
            pool = self._pools.by_name[name]
            if types.is_differentiable(pool.element):
                found[name] = self._packed(pool, structs)
        return found

    def _packed(self, pool: Pool[Array], tangents: list[Any]) -> Array:
        """The tangents of floats that structs with pointers hold on their own."""
        rows = [_row(one, pool.element) for one in tangents]
        storage, shape = buffers.to_storage(rows, pool.element, "tangent")
        return uploaded(self._pools.device, pool.element, storage, shape)


def _row(tangent: Any, t: types.Type) -> Any:
    """`tangent` with zeros for pointers, whole numbers and `None`."""
    if isinstance(t, types.Struct):
        fields = struct_fields(tangent) or {}
        return {name: _row(fields.get(name), field) for name, field in t.fields}
    if tangent is None or not types.is_differentiable(t):
        return np.zeros(buffers.element_axes(t), buffers.host_dtype(t))
    return np.asarray(tangent)
