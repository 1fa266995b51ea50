"""Arguments of traced functions: the arrays in them, and everything else as part of a key."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, fields, is_dataclass
from typing import Any, cast

import numpy as np

from shaderad.arrays import trees
from shaderad.arrays.arguments import bind_array
from shaderad.arrays.arrays import Array, array, is_host_array, uploaded, vector_of
from shaderad.arrays.tape import recorded_view
from shaderad.arrays.trees import rebuilt, struct_fields
from shaderad.device.devices import Device
from shaderad.device.lines import user_span
from shaderad.frontend.conversions import constant
from shaderad.ir import types
from shaderad.ir.pointers import is_pooled
from shaderad.language.signatures import Launchable
from shaderad.language.structs import info_of
from shaderad.language.values import PythonNumber
from shaderad.runtime import buffers
from shaderad.trace.calls import Placeholder
from shaderad.trace.origins import is_of_user
from shaderad.trace.primitives import Number, NumberInput, as_number

_KEPT_NUMBERS = 256
Convert = Callable[[Any], "Array | None"]


@dataclass(slots=True, eq=False)
class Arguments:
    """A tree of arguments taken apart."""

    skeleton: Any
    """The tree with a `Placeholder` for each array."""
    arrays: tuple[Array, ...]

    @property
    def key(self) -> Hashable:
        """The tree without the content of its arrays."""
        return frozen(self.skeleton)

    def filled(self, found: Any) -> Any:
        """The tree with other arrays."""

        def put(leaf: Any) -> Any:
            if not isinstance(leaf, Placeholder):
                return leaf
            x = found[leaf.position]
            return x if leaf.vector is None else x.noted_as(leaf.vector)

        return trees.mapped(put, self.skeleton)


def taken_apart(tree: Any, convert: Convert) -> Arguments:
    """`tree` with those leaves apart that `convert` makes arrays of.

    Fields that a struct class annotates as vectors hold vectors, whatever they were given as.
    """
    found: list[Array] = []

    def place(leaf: Any, wanted: types.Type | None) -> Any:
        made = convert(leaf)
        if made is None:
            return leaf
        found.append(made if wanted is None else with_vectors(made, wanted))
        return Placeholder(len(found) - 1, vector_of(leaf) if found[-1] is made else None)

    return Arguments(_placed(place, tree, None), tuple(found))


def _placed(place: Callable[..., Any], tree: Any, wanted: types.Type | None) -> Any:
    """`tree` with `place` of each leaf and of the type of the field that holds it."""
    parts = trees.children(tree)
    if parts is None:
        return place(tree, wanted)
    info = None if isinstance(tree, type) else info_of(tree)
    fields = {} if info is None else info.ir_type.type_by_field
    inner = {key: _placed(place, part, fields.get(key)) for key, part in parts.items()}
    return trees.built_like(tree, inner)


def with_vectors(array: Array, element: types.Type) -> Array:
    """Trailing axes as vectors or matrices of this type, which a trace follows; or `array`."""
    if not isinstance(element, types.Vector | types.Matrix):
        return array
    axes = buffers.element_axes(element)
    split = len(array.shape) - len(axes)
    if array.element != element.element or split < 0 or array.shape[split:] != axes:
        return array
    seen = array.viewed(element, array.shape[:split])
    return recorded_view(
        array,
        seen,
        lambda bar: bar.viewed(array.element, array.shape),
        lambda dot: dot.viewed(element, seen.shape),
    )


def arrays_like(skeleton: Sequence[Any], given: Sequence[Any]) -> list[Array] | None:
    """The arrays among `given`, where `skeleton` has placeholders; `None` where they differ
    otherwise.

    Leaves must be the very same: what is equal, such as 0.0 and -0.0, may be different.
    """
    found: list[Array] = []
    return found if _are_like(skeleton, given, found) else None


def _are_like(skeletons: Sequence[Any], given: Sequence[Any], found: list[Array]) -> bool:
    # The host's time of a call: no function is called for an array.
    if len(skeletons) != len(given):
        return False
    for one, other in zip(skeletons, given, strict=True):
        if type(one) is Placeholder:
            if type(other) is not Array or other.given_vector != one.vector:
                return False
            found.append(other)
        elif one is not other and not _is_like(one, other, found):
            return False
    return True


def _is_like(skeleton: Any, tree: Any, found: list[Array]) -> bool:
    if type(tree) is not type(skeleton):
        return False
    if isinstance(skeleton, tuple | list):
        return _are_like(cast("Sequence[Any]", skeleton), cast("Sequence[Any]", tree), found)
    parts, others = struct_fields(skeleton), struct_fields(tree)
    if parts is None or others is None:
        return False
    return list(parts) == list(others) and _are_like([*parts.values()], [*others.values()], found)


def typed_arguments(function: Launchable, args: Sequence[Any], device: Device) -> list[Any]:
    """The positional arguments of a kernel, floats as arrays of the types that it takes.

    Raises:
        ShapeError: SR0352 to SR0368, where one does not fit its parameter.
    """
    parameters = [p for p in function.signature.parameters if p.is_given]
    known = [
        given if p.is_const else _typed(given, p.type, p.name, device)
        for p, given in zip(parameters, args, strict=False)
    ]
    return [*known, *args[len(known) :]]


def _typed(given: Any, t: types.Type, name: str, device: Device) -> Any:
    if isinstance(given, Array):
        return given
    if isinstance(t, types.BufferType) and not is_pooled(t):
        return bind_array(given, t, name, device)
    if not types.is_differentiable(t) and not isinstance(t, types.LocalArray):
        return given
    fields = struct_fields(given)
    if isinstance(t, types.Struct) and fields is not None:
        parts = {
            field: _typed(fields[field], part, f"{name}.{field}", device)
            for field, part in t.fields
            if field in fields
        }
        return rebuilt(given, {**fields, **parts})
    return uploaded(device, t, *buffers.to_storage(given, t, name))


def array_of_data(leaf: Any, device: Device) -> Array | None:
    """An array, or one written out on the host, on a device; `None` for anything else."""
    if isinstance(leaf, Array):
        return leaf
    is_array = is_host_array(leaf)
    if not is_array and isinstance(leaf, list):
        items = cast("list[Any]", leaf)
        is_array = bool(items) and trees.is_data(items)
    return array(leaf, device=device) if is_array else None


class Numbers:
    """The numbers that operators and graphs took last, on one device."""

    def __init__(self, device: Device) -> None:
        self._device = device
        self._known: OrderedDict[Hashable, Array] = OrderedDict()

    def array(self, number: Number, t: types.Scalar) -> Array:
        """A number as an array without axes.

        Raises:
            LanguageError: SR0306, where its type does not hold it.
        """
        key = (t, repr(number))
        found = self._known.get(key)
        if found is None:
            value = constant(PythonNumber(number), t, user_span()).value
            found = array(np.asarray(value), dtype=t, device=self._device)
            self._known[key] = found
            if len(self._known) > _KEPT_NUMBERS:
                self._known.popitem(last=False)
        return found


def array_of_captured(data: Any, device: Device) -> Array:
    """Whatever a trace has taken for an array, on a device."""
    if isinstance(data, NumberInput):
        return device.kept(Numbers).array(data.value, data.type)
    return data if isinstance(data, Array) else array(data, device=device)


def array_of_number(leaf: Any, device: Device) -> Array | None:
    """Likewise, and numbers as arrays without axes."""
    plain = as_number(leaf)
    if plain is None:
        return array_of_data(leaf, device)
    kind = types.BOOL if isinstance(plain, bool) else types.INT
    t = types.FLOAT if isinstance(plain, float) else kind
    return array(np.asarray(plain), dtype=t, device=device)


def _name(thing: object) -> Hashable:
    return type(thing)


def frozen(tree: Any) -> Hashable:
    """A tree as a key: numbers by type and text, because ``1 == 1.0 == True`` and nan is not."""
    parts = trees.children(tree)
    if parts is not None:
        return _name(tree), tuple((key, frozen(part)) for key, part in parts.items())
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
    """A key for what has no hash: it is held, so that nothing else gets its identity."""

    thing: Any

    def __hash__(self) -> int:
        return id(self.thing)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Identity) and other.thing is self.thing
