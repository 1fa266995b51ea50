"""Arguments, results and gradients of a call <-> vectors of their floats.

Integers and booleans are unchanged; structs are read field by field.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from shaderad.arrays import trees
from shaderad.arrays.arrays import Array, array, is_host_array
from shaderad.arrays.containers import rebuilt, struct_class, struct_fields
from shaderad.arrays.pointers import is_pointer_structs
from shaderad.arrays.textures import ByLevels, Texture, kind_but_textures
from shaderad.diagnostics import error
from shaderad.ir import types
from shaderad.language.signatures import Launchable
from shaderad.language.structs import info_of
from shaderad.runtime.textures import SamplerSettings

Vector = NDArray[np.float64]


@dataclass
class Slot:
    """One differentiable leaf of the arguments as a vector of floats."""

    name: str
    like: Any
    data: NDArray[Any]
    values: Vector
    is_half: bool
    """True if a kernel may hold the leaf in 16 bits, even if the argument has another type."""

    def rounded(self, values: Vector) -> Vector:
        """`values` as the device will hold them."""
        held = _floats_of(_filled(self.data, values))
        return _as_half(held) if self.is_half else held

    def leaf(self, values: Vector) -> Any:
        """The argument with its floats replaced by `values`."""
        data, like = _filled(self.data, values), self.like
        if isinstance(like, Array):
            return array(data, dtype=like.element, device=like.device)
        if isinstance(like, Texture):
            return like.with_texels(data)
        return self._like_argument(data)

    def element_text(self, number: int) -> str:
        """A float by its number, and by its position in an array of several axes."""
        text = f"float {number}"
        if self.data.ndim < 2 or self.data.size != self.values.size:
            return text
        position = ", ".join(str(int(k)) for k in np.unravel_index(number, self.data.shape))
        return f"{text}, which is [{position}]"

    def tangent(self, values: Vector) -> Any:
        """A tangent of the argument with the floats `values`; its integers are 0."""
        return self._like_argument(_filled(np.zeros_like(self.data), values))

    def _like_argument(self, data: NDArray[Any]) -> Any:
        is_array = isinstance(self.like, Array | Texture | np.generic | list | tuple)
        is_array = is_array or is_host_array(self.like)
        return data if is_array else float(data)


def as_data(function: Callable[..., Any], value: Any) -> Any:
    """The argument `value` in the form whose leaves are differentiated.

    To a kernel, a tuple of numbers is a vector and a list of structs is an array. To a Python
    function, both are containers of arguments.
    """
    items = _struct_array(value)
    if isinstance(function, Launchable) and items:
        return _columns(items)
    fields = struct_fields(value)
    if fields is not None and info_of(value) is not None:
        return rebuilt(
            struct_class(value), {n: as_data(function, field) for n, field in fields.items()}
        )
    if isinstance(function, Launchable) and _is_sequence_of_floats(value):
        return np.asarray(value, np.float32)
    return value


def _struct_array(value: Any) -> list[Any]:
    """The items of a list of structs of one class without pointers; ``[]`` for other values."""
    items = cast("list[Any]", value) if isinstance(value, list) else []
    infos = {id(info_of(item)) for item in items}
    is_array = len(infos) == 1 and info_of(items[0]) is not None
    return items if is_array and not is_pointer_structs(items) else []


def _columns(items: list[Any]) -> Any:
    """A list of structs as a dict of columns, nested structs as nested dicts."""
    if info_of(items[0]) is None:
        return np.asarray([np.asarray(item) for item in items])
    rows = [struct_fields(item) or {} for item in items]
    return {name: _columns([row[name] for row in rows]) for name in rows[0]}


def _is_sequence_of_floats(value: Any) -> bool:
    if not isinstance(value, tuple | list):
        return False
    try:
        return np.asarray(cast("Any", value)).dtype.kind == "f"
    except ValueError:
        return False


def slots_of(function: Callable[..., Any], args: Sequence[Any], *, is_half: bool) -> list[Slot]:
    """The differentiable leaves of `args`, in order."""
    slots: list[Slot] = []
    for name, arg in zip(_names(function, args), args, strict=True):
        for path, leaf in _leaf_paths(arg):
            if _is_differentiable(leaf):
                data = _content(leaf, name + path)
                slots.append(Slot(name + path, leaf, data, _floats_of(data), is_half))
    return slots


def _content(leaf: Any, name: str) -> NDArray[Any]:
    """The numbers of a leaf.

    Raises:
        DerivativeError: SR0479, for a texture that cannot be recreated with other floats.
    """
    if isinstance(leaf, Texture):
        is_one = leaf.level_count == 1 or leaf.mips_are_made
        if not (is_one and leaf.format.endswith("32float")):
            raise error("SR0479", name=name, found=leaf)
        return leaf.numpy()
    return leaf.numpy() if isinstance(leaf, Array) else np.asarray(leaf)


def _is_differentiable(leaf: Any) -> bool:
    if isinstance(leaf, Array):
        return types.is_differentiable(leaf.element)
    if isinstance(leaf, Texture):
        return True
    if isinstance(leaf, SamplerSettings):
        return False
    return not isinstance(leaf, int) and _has_floats(np.asarray(leaf))


def _leaf_paths(tree: Any) -> Iterator[tuple[str, Any]]:
    """The text behind the name of an argument that leads to each leaf, and the leaf."""
    leaves, structure = trees.flatten(tree, kind_but_textures)
    for leaf, path in zip(leaves, structure.spelled(), strict=True):
        yield path, leaf


def _names(function: Callable[..., Any], args: Sequence[Any]) -> list[str]:
    if isinstance(function, Launchable):
        return [p.name for p in function.signature.parameters if p.is_given][: len(args)]
    try:
        names = list(inspect.signature(function).parameters)
    except (TypeError, ValueError):
        names = []
    return [names[k] if k < len(names) else f"argument {k}" for k in range(len(args))]


def with_leaves(
    args: Sequence[Any], leaves: Sequence[Any], *, keeps_others: bool = True
) -> list[Any]:
    """`args` with the differentiable leaves replaced by `leaves`, in order.

    The other leaves are kept, or become `None` without `keeps_others`.
    """
    remaining = iter(leaves)

    def replaced(leaf: Any) -> Any:
        return next(remaining) if _is_differentiable(leaf) else leaf if keeps_others else None

    flat = [trees.flatten(arg, kind_but_textures) for arg in args]
    return [structure.unflatten(map(replaced, own)) for own, structure in flat]


def gradient_vectors(
    slots: Sequence[Slot], args: Sequence[Any], gradients: Sequence[Any]
) -> list[Vector]:
    """The floats of `gradients`, one vector per slot."""
    vectors: list[Vector] = []
    for arg, gradient in zip(args, gradients, strict=True):
        if isinstance(arg, Mapping) and isinstance(gradient, Array):
            vectors += _column_vectors(arg, gradient.numpy())
        else:
            vectors += _part_vectors(arg, gradient)
    if [vector.size for vector in vectors] != [slot.values.size for slot in slots]:
        raise RuntimeError("gradients do not match the arguments they belong to")
    return vectors


def _column_vectors(columns: Any, gradient: Any) -> list[Vector]:
    """The vectors of a dict of columns, whose gradient is an array of structs like the argument."""
    if isinstance(columns, Mapping):
        fields = cast("Mapping[str, Any]", columns).items()
        return [v for name, column in fields for v in _column_vectors(column, gradient[name])]
    return [_floats_of(gradient)] if _has_floats(np.asarray(columns)) else []


def _part_vectors(tree: Any, derivative: Any) -> list[Vector]:
    """The floats of each array in `derivative`, which has the structure of `tree`."""
    vectors: list[Vector] = []

    def collect(_: Any, part: Any) -> None:
        content = part.content if isinstance(part, ByLevels) else part
        if isinstance(content, Array):
            vectors.append(_floats_of(content.numpy()))

    trees.mapped(collect, tree, derivative)
    return vectors


def result_floats(out: Any) -> Vector:
    """The floats of all results as one vector."""
    leaves = (leaf for leaf in trees.leaves(out) if isinstance(leaf, Array))
    return _joined([_floats_of(x.numpy()) for x in leaves if types.is_differentiable(x.element)])


def tangent_floats(out: Any, tangents: Any) -> Vector:
    """The floats of the tangents of the results `out` as one vector."""
    return _joined(_part_vectors(out, tangents))


def cotangent_tree(out: Any, cotangent: Vector) -> Any:
    """A tree like `out` whose arrays hold the floats of `cotangent`."""
    offset = 0

    def part(leaf: Any) -> Any:
        nonlocal offset
        if not isinstance(leaf, Array) or not types.is_differentiable(leaf.element):
            return None
        blank = np.zeros_like(leaf.numpy())
        count = _floats_of(blank).size
        offset += count
        return _filled(blank, cotangent[offset - count : offset])

    return trees.mapped(part, out)


# -- vectors ---------------------------------------------------------------------------------------


def _float_parts(data: NDArray[Any]) -> Iterator[NDArray[Any]]:
    """Views of the floats in `data`, one for each field of a struct that has floats."""
    if data.dtype.names is not None:
        for name in data.dtype.names:
            yield from _float_parts(data[name])
    elif data.dtype.kind == "f":
        yield data


def _has_floats(data: NDArray[Any]) -> bool:
    return any(True for _ in _float_parts(data))


def _floats_of(data: NDArray[Any]) -> Vector:
    return _joined([part.astype(np.float64).ravel() for part in _float_parts(data)])


def _joined(parts: Sequence[Vector]) -> Vector:
    return np.concatenate(parts) if parts else np.zeros(0)


def _filled(data: NDArray[Any], values: Vector) -> NDArray[Any]:
    """A copy of `data` whose floats are `values`, rounded to the types of a device."""
    copy = data.copy()
    start = 0
    for part in _float_parts(copy):
        narrow = np.float16 if part.dtype == np.float16 else np.float32
        part[...] = values[start : start + part.size].reshape(part.shape).astype(narrow)
        start += part.size
    return copy


def as_float32(values: Vector) -> Vector:
    """`values` rounded to float32."""
    return values.astype(np.float32).astype(np.float64)


def _as_half(values: Vector) -> Vector:
    """`values` rounded to 16 bits; values beyond the range of half are unchanged."""
    with np.errstate(over="ignore"):
        narrow = values.astype(np.float16).astype(np.float64)
    return np.where(np.isfinite(narrow), narrow, values)
