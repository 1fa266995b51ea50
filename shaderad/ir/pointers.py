"""Pointers in the types of a kernel, and the buffer that each one points into.

Every pointer of a kernel has a fixed path, such as ``scene.meshes[...].triangles``. The elements
behind all pointers of one path lie in one array, the pool: a `Buffer` of the kernel, which the
pointer type names (`Pointer.target`). Invariant: a pointer is plain data, a first element and a
count; its pool is read, and receives gradients, like any In array.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace

from shaderad.ir.types import BufferType, Pair, Pointer, Struct, Tuple, Type, is_differentiable

Path = tuple[str, ...]
POINTED = "[]"
"""In a `Buffer.path`: dereferences the pointer at the path so far."""


def holds_pointers(t: Type) -> bool:
    """True if a value of type `t` holds pointers, at any depth."""
    if isinstance(t, Struct):
        return any(holds_pointers(f) for _, f in t.fields)
    if isinstance(t, Tuple):
        return any(map(holds_pointers, t.elements))
    return isinstance(t, Pointer)


def comes_apart(t: Type) -> bool:
    """True if a parameter of type `t` is bound field by field."""
    return isinstance(t, Struct) and (t.holds_buffers or holds_pointers(t))


def is_pooled(t: Type) -> bool:
    """True if the host packs the elements of a parameter of type `t` into a pool."""
    return isinstance(t, Pointer) or (isinstance(t, BufferType) and holds_pointers(t.element))


def reaches_pointers(t: Type) -> bool:
    """True if a parameter of type `t` is or holds pointers, or an array of what does."""
    if isinstance(t, Struct):
        return any(reaches_pointers(f) for _, f in t.fields)
    return is_pooled(t)


def reaches_floats(t: Type) -> bool:
    """True if `t` holds floats, or pointers to floats."""
    if isinstance(t, Pointer | BufferType):
        return reaches_floats(t.element)
    if isinstance(t, Struct):
        return any(reaches_floats(f) for _, f in t.fields)
    return is_differentiable(t)


def with_targets(t: Type, path: Path, name: Callable[[Path], str]) -> Type:
    """`t` at `path`, with `Pointer.target` of every pointer set to the `name` of its path."""
    if isinstance(t, Pointer):
        target = name(path)
        return Pointer(with_targets(t.element, (*path, POINTED), name), target)
    if isinstance(t, Struct) and holds_pointers(t):
        return Struct(t.name, tuple((n, with_targets(f, (*path, n), name)) for n, f in t.fields))
    return t


def pointers_in(t: Type, path: Path) -> Iterator[tuple[Path, Pointer]]:
    """Path and type of every pointer in `t` at `path`, including nested ones; outer ones first."""
    if isinstance(t, Pointer):
        yield path, t
        yield from pointers_in(t.element, (*path, POINTED))
    elif isinstance(t, Struct):
        for name, field in t.fields:
            yield from pointers_in(field, (*path, name))


def without_targets(t: Type) -> Type:
    """`t` without `Pointer.target`, as in annotations."""
    if isinstance(t, Pointer):
        return Pointer(without_targets(t.element))
    if isinstance(t, Pair):
        return Pair(without_targets(t.primal))
    if isinstance(t, BufferType):
        return replace(t, element=without_targets(t.element))
    if isinstance(t, Tuple):
        return Tuple(tuple(map(without_targets, t.elements)))
    if isinstance(t, Struct) and holds_pointers(t):
        return Struct(t.name, tuple((n, without_targets(f)) for n, f in t.fields))
    return t
