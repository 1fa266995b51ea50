"""Arguments of traced functions -> their arrays, and a cache key of everything else."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Sequence
from dataclasses import dataclass, fields, is_dataclass
from typing import Any, cast

from shaderad.arguments.array import seen_as
from shaderad.arguments.kinds import kind_of
from shaderad.arguments.sampler import sampler_array
from shaderad.arrays.arrays import Array, array, is_host_array, uploaded, vector_of
from shaderad.arrays.containers import (
    Structs,
    container_of,
    is_data,
    rebuilt,
    struct_class,
    struct_fields,
)
from shaderad.arrays.numbers import PLAIN_NUMBERS, HostNumber, host_number
from shaderad.arrays.textures import Texture
from shaderad.arrays.trees import Structure
from shaderad.device.devices import Device
from shaderad.device.lines import user_span
from shaderad.diagnostics import Error
from shaderad.frontend.conversions import constant
from shaderad.ir import types
from shaderad.ir.pointers import is_pooled
from shaderad.language.signatures import Launchable
from shaderad.language.structs import info_of
from shaderad.language.values import PythonNumber
from shaderad.runtime import buffers
from shaderad.runtime.textures import SamplerSettings
from shaderad.trace.calls import Placeholder
from shaderad.trace.origins import is_of_user
from shaderad.trace.primitives import NumberInput, as_number

Convert = Callable[[Any], "Array | None"]


@dataclass(slots=True, eq=False)
class Arguments:
    """A tuple of arguments, split into its arrays and the rest."""

    structure: Structure
    leaves: Sequence[Any]
    """The leaves of the tuple, with a `Placeholder` for each array."""
    arrays: tuple[Array, ...]

    @property
    def key(self) -> Hashable:
        """The tuple without the content of its arrays."""
        return self.structure, tuple(map(frozen, self.leaves))

    def each(self) -> Iterator[tuple[Structure, Sequence[Any]]]:
        """The structure and the leaves of each argument."""
        first = 0
        for part in self.structure.parts:
            yield part, self.leaves[first : first + part.leaf_count]
            first += part.leaf_count

    def skeleton(self) -> Any:
        """The tuple with a `Placeholder` for each array."""
        return self.structure.unflatten(self.leaves)

    def filled(self, arrays: Any) -> Any:
        """The tuple with `arrays` at the placeholders."""

        def put(leaf: Any) -> Any:
            if not isinstance(leaf, Placeholder):
                return leaf
            x = arrays[leaf.position]
            return x if leaf.vector is None else x.noted_as(leaf.vector)

        return self.structure.unflatten(map(put, self.leaves))


def taken_apart(leaves: Sequence[Any], structure: Structure, convert: Convert) -> Arguments:
    """Splits off the leaves of a tree that `convert` turns into arrays.

    A field that a struct class annotates as a vector holds a vector, however it was passed.
    """
    arrays: list[Array] = []

    def place(leaf: Any, wanted: types.Type | None) -> Any:
        converted = convert(leaf)
        if converted is None:
            return leaf
        arrays.append(converted if wanted is None else with_vectors(converted, wanted))
        vector = vector_of(leaf) if arrays[-1] is converted else None
        number = converted.kind if isinstance(converted, HostNumber) else None
        return Placeholder(len(arrays) - 1, vector, number)

    placed = list(map(place, leaves, _field_types(structure)))
    return Arguments(structure, placed, tuple(arrays))


def _field_types(structure: Structure, t: types.Type | None = None) -> Iterator[types.Type | None]:
    """For each leaf, the type of the struct field that it is."""
    if structure.kind is None:
        yield t
    is_struct = structure.kind is Structs
    info = info_of(structure.detail[0]) if is_struct else None
    fields = {} if info is None else info.ir_type.type_by_field
    for key, part in zip(structure.keys, structure.parts, strict=True):
        yield from _field_types(part, fields.get(key))


def with_vectors(array: Array, element: types.Type) -> Array:
    """`array` viewed as vectors or matrices, which a trace follows; itself if it does not fit."""
    if not isinstance(element, types.Vector | types.Matrix):
        return array
    axes = buffers.element_axes(element)
    split = len(array.shape) - len(axes)
    if array.element != element.element or split < 0 or array.shape[split:] != axes:
        return array
    return seen_as(array, element, array.shape[:split])


def arrays_like(
    skeleton: Sequence[Any], leaves: Sequence[Any], device: Device
) -> list[Array] | None:
    """The arrays in `leaves` at the placeholders of `skeleton`; `None` if anything else differs.

    Numbers may be others of the same type; they are on `device`. Other leaves are compared by
    identity, because equal values such as 0.0 and -0.0 differ.
    """
    arrays: list[Array] = []
    return arrays if _are_like(skeleton, leaves, _Leaves(device, arrays)) else None


@dataclass(frozen=True, slots=True)
class _Leaves:
    """The arrays of a call so far."""

    device: Device
    arrays: list[Array]

    def add_number(self, kind: type[Any] | types.Type, number: Any) -> bool:
        """Adds a number of the host of the kind `kind`; false for anything else."""
        if isinstance(kind, types.Type):
            t = kind
            if isinstance(number, Array):
                return False
        elif type(number) is kind:
            t = PLAIN_NUMBERS[kind]
        else:
            return False
        try:
            self.arrays.append(host_number(number, t, "a number", self.device))
        except Error:
            return False
        return True


def _are_like(skeletons: Sequence[Any], others: Sequence[Any], leaves: _Leaves) -> bool:
    # This runs on every call, so an array costs no function call.
    if len(skeletons) != len(others):
        return False
    for skeleton, other in zip(skeletons, others, strict=True):
        if type(skeleton) is Placeholder:
            if type(other) is Array and other.given_vector == skeleton.vector:
                leaves.arrays.append(other)
            elif skeleton.number is None or not leaves.add_number(skeleton.number, other):
                return False
        elif skeleton is not other and not _is_like(skeleton, other, leaves):
            return False
    return True


def _is_like(skeleton: Any, tree: Any, leaves: _Leaves) -> bool:
    if type(tree) is not type(skeleton):
        return False
    kind = container_of(skeleton)
    if kind is None or kind is not container_of(tree):
        return False
    (detail, parts), (other_detail, others) = kind.taken_apart(skeleton), kind.taken_apart(tree)
    return detail == other_detail and _are_like(parts, others, leaves)


def typed_arguments(function: Launchable, args: Sequence[Any], device: Device) -> list[Any]:
    """The positional arguments of a kernel, with floats as arrays of the parameter types.

    Raises:
        ShapeError: SR0352 to SR0368, where one does not fit its parameter.
    """
    parameters = [p for p in function.signature.parameters if p.is_given]
    typed = [
        argument if p.is_const else _typed(argument, p.type, p.name, device)
        for p, argument in zip(parameters, args, strict=False)
    ]
    return [*typed, *args[len(typed) :]]


def _typed(argument: Any, t: types.Type, name: str, device: Device) -> Any:
    if isinstance(argument, Array | Texture | SamplerSettings):
        return argument
    if isinstance(t, types.BufferType) and not is_pooled(t):
        return kind_of(t).bound(argument, t, name, device)
    if not types.is_differentiable(t) and not isinstance(t, types.LocalArray):
        return argument
    fields = struct_fields(argument)
    if isinstance(t, types.Struct) and fields is not None:
        parts = {
            field: _typed(fields[field], part, f"{name}.{field}", device)
            for field, part in t.fields
            if field in fields
        }
        return rebuilt(struct_class(argument), {**fields, **parts})
    return uploaded(device, t, *buffers.to_storage(argument, t, name))


def array_of_data(leaf: Any, device: Device) -> Array | None:
    """The device array for an array or array-like; `None` for anything else."""
    if isinstance(leaf, Array):
        return leaf
    is_array = is_host_array(leaf)
    if not is_array and isinstance(leaf, list):
        items = cast("list[Any]", leaf)
        is_array = bool(items) and is_data(items)
    return array(leaf, device=device) if is_array else None


def array_of_captured(data: Any, device: Device) -> Array:
    """The device array for a value that a trace captured as an array."""
    if isinstance(data, NumberInput):
        value = constant(PythonNumber(data.value), data.type, user_span()).value
        return host_number(value, data.type, "a number", device)
    if isinstance(data, SamplerSettings):
        return sampler_array(data, device)
    return data if isinstance(data, Array) else array(data, device=device)


def array_of_number(leaf: Any, device: Device) -> Array | None:
    """Like `array_of_data`, but also converts numbers to arrays without axes."""
    plain = as_number(leaf)
    if plain is None:
        return array_of_data(leaf, device)
    return host_number(plain, PLAIN_NUMBERS[type(plain)], "a number", device)


def _name(thing: object) -> Hashable:
    return type(thing)


def frozen(tree: Any) -> Hashable:
    """A tree as a key: numbers by type and text, because ``1 == 1.0 == True`` and nan is not."""
    if type(tree) is Placeholder:
        return tree
    kind = container_of(tree)
    if kind is not None:
        detail, parts = kind.taken_apart(tree)
        return kind, detail, tuple(map(frozen, parts))
    if as_number(tree) is not None:
        return _name(tree), repr(tree)
    if isinstance(tree, slice):
        whole = cast("slice[Any, Any, Any]", tree)
        return slice, frozen(whole.start), frozen(whole.stop), frozen(whole.step)
    kind = cast("type[object]", type(tree))
    if is_dataclass(tree) and not isinstance(tree, type) and is_of_user(kind):
        # Objects that are equal to Python may hold 1 and 1.0.
        if kind.__eq__ is object.__eq__ or getattr(kind, "__hash__", None) is None:
            return Identity(tree)
        return kind, tuple([(f.name, frozen(getattr(tree, f.name))) for f in fields(tree)])
    if is_of_user(kind) and kind.__eq__ is not object.__eq__:
        return Identity(tree)
    try:
        hash(tree)
    except TypeError:
        return Identity(tree)
    return kind, cast("Hashable", tree)


@dataclass(frozen=True, slots=True, eq=False)
class Identity:
    """A key for an unhashable object. It holds the object so that its id is not reused."""

    thing: Any

    def __hash__(self) -> int:
        return id(self.thing)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Identity) and other.thing is self.thing
