"""Pointers among the types of a kernel: which there are, and which array each one leads into.

Every pointer of a kernel has a fixed path, such as ``scene.meshes[..].triangles``. The elements
that all pointers of one path lead to lie in one array, a `Buffer` of the kernel, and the path is
part of the pointer's type (`Pointer.target`). Invariant: a pointer is plain data, a first element
and a count; what it leads to is read, and its gradient added to, like any In array.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from shaderad.ir.types import BufferType, Pair, Pointer, Struct, Tuple, Type, is_differentiable

Path = tuple[str, ...]
POINTED = "[]"
"""In a `Buffer.path`: what the pointer at the path so far leads to."""


def holds_pointers(t: Type) -> bool:
    """Whether a value of type `t` holds pointers, at any depth."""
    if isinstance(t, Struct):
        return any(holds_pointers(f) for _, f in t.fields)
    if isinstance(t, Tuple):
        return any(map(holds_pointers, t.elements))
    return isinstance(t, Pointer)


def comes_apart(t: Type) -> bool:
    """Whether a kernel takes the fields of a parameter of type `t` one by one."""
    return isinstance(t, Struct) and (t.holds_buffers or holds_pointers(t))


def is_pooled(t: Type) -> bool:
    """Whether the host lays the elements of such a parameter out: it leads to pointers."""
    return isinstance(t, Pointer) or (isinstance(t, BufferType) and holds_pointers(t.element))


def reaches_floats(t: Type) -> bool:
    """Whether `t` holds floats, or pointers that lead to some."""
    if isinstance(t, Pointer | BufferType):
        return reaches_floats(t.element)
    if isinstance(t, Struct):
        return any(reaches_floats(f) for _, f in t.fields)
    return is_differentiable(t)


def with_targets(t: Type, path: Path, name: Callable[[Path], str]) -> Type:
    """`t`, found at `path`, with every pointer told the name of the array that it leads into."""
    if isinstance(t, Pointer):
        target = name(path)
        return Pointer(with_targets(t.element, (*path, POINTED), name), target)
    if isinstance(t, Struct) and holds_pointers(t):
        return Struct(t.name, tuple((n, with_targets(f, (*path, n), name)) for n, f in t.fields))
    return t


def pointers_in(t: Type, path: Path) -> Iterator[tuple[Path, Pointer]]:
    """The pointers in `t`, found at `path`, and those that they lead to; outer ones first."""
    if isinstance(t, Pointer):
        yield path, t
        yield from pointers_in(t.element, (*path, POINTED))
    elif isinstance(t, Struct):
        for name, field in t.fields:
            yield from pointers_in(field, (*path, name))


def without_targets(t: Type) -> Type:
    """`t` as it is annotated."""
    if isinstance(t, Pointer):
        return Pointer(without_targets(t.element))
    if isinstance(t, Pair):
        return Pair(without_targets(t.primal))
    if isinstance(t, BufferType):
        return BufferType(t.access, without_targets(t.element), t.rank)
    if isinstance(t, Tuple):
        return Tuple(tuple(map(without_targets, t.elements)))
    if isinstance(t, Struct) and holds_pointers(t):
        return Struct(t.name, tuple((n, without_targets(f)) for n, f in t.fields))
    return t
