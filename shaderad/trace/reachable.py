"""A Python function and its arguments -> all places that it may read while it is traced.

Functions are followed through closures, globals, defaults and attributes; objects through the
attributes that any reachable code names. Invariant: the search runs no code of the user, because
properties are followed as functions and never called.
"""

from __future__ import annotations

import builtins
import sys
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sized
from dataclasses import dataclass, field
from functools import cached_property, partial, partialmethod
from itertools import chain
from operator import attrgetter, methodcaller
from threading import local
from types import (
    BuiltinMethodType,
    CellType,
    CodeType,
    FunctionType,
    MappingProxyType,
    MemberDescriptorType,
    MethodType,
    ModuleType,
)
from typing import Any, cast
from weakref import ref

import numpy as np

from shaderad.arrays.arrays import Array, is_host_array
from shaderad.arrays.pointers import HostPointer, StructArray
from shaderad.arrays.textures import Texture
from shaderad.language.structs import info_of
from shaderad.trace.code_names import imported_module, names_in
from shaderad.trace.origins import is_fixed, is_opaque, reads_state, top_of

FOLLOWED = "_followed"
"""Class attribute by which a shaderad class lists the attributes that its calls read."""

Fetch = Callable[[], Iterable[object]]

_PLAIN = frozenset(
    {type(None), bool, int, float, complex, str, bytes, range, type(Ellipsis), CodeType}
)
_DESCRIPTORS: dict[type, tuple[str, ...]] = {
    property: ("fget",),
    staticmethod: ("__func__",),
    classmethod: ("__func__",),
    cached_property: ("func",),
    partialmethod: ("func", "args", "keywords"),
    partial: ("func", "args", "keywords"),
    MethodType: ("__func__", "__self__"),
    HostPointer: ("target",),
    StructArray: ("_structs",),
    Texture: ("texels",),
}
"""The attributes to follow in objects whose attributes never change."""
_EMPTY = object()
_INSIDE_FUNCTION = attrgetter("__code__", "__defaults__", "__kwdefaults__")


@dataclass(eq=False, slots=True)
class Names:
    """The entries of a module, class, function or object that the code may name."""

    space: Mapping[str, object]
    path: str
    is_ours: bool = False
    """True for a shaderad object: code that computes names is assumed not to read it."""
    present: list[str] = field(default_factory=list[str])
    absent: set[str] = field(default_factory=set[str])


class Reachable:
    """The places that are reachable from a function and its arguments."""

    def __init__(self, roots: Iterable[tuple[str, object]]) -> None:
        self.fetches: list[Fetch] = []
        """Reads of places whose values may change."""
        self.paths: list[list[str]] = []
        """For each read, the names of its values in messages."""
        self.sized: list[Sized] = []
        """Containers of which all items are read."""
        self.fixed: list[tuple[str, object]] = []
        """Arrays in places that never change."""
        self.names: list[Names] = []
        self.awaits_imports = False
        """True if the code imports a module that is not there yet."""
        self.held: list[object] = []
        """The visited objects, kept alive so that their ids are not reused."""
        self._stack: list[tuple[str, object]] = []
        self._seen: set[int] = set()
        self._globals: dict[int, Names] = {}
        self._objects: list[Names] = []
        self._owners: dict[str, list[tuple[str, object]]] = {}
        self._slots: list[tuple[str, object, set[str]]] = []
        self._code_names: set[str] = set()
        self._reads_any = False
        self._follow(roots)
        self._finish()

    # -- the search --------------------------------------------------------------------------------

    def _follow(self, roots: Iterable[tuple[str, object]]) -> None:
        self._stack += [*roots]
        while self._stack:
            while self._stack:
                self._visit(*self._stack.pop())
            for object_ in self._objects:
                reads_any = self._reads_any and not object_.is_ours
                self._extend(object_, _own_names(object_) if reads_any else self._code_names)
            for path, owner, slots in self._slots:
                for name in [*slots] if self._reads_any else slots & self._code_names:
                    self._slot(path, owner, name)
                    slots.discard(name)

    def _slot(self, path: str, owner: object, name: str) -> None:
        self._fetch(partial(_slot_of, owner, name), [f"{path}.{name}"])

    def _extend(self, names: Names, wanted: Iterable[str]) -> None:
        seen = names.absent.union(names.present)
        for name in wanted:
            if name in seen:
                continue
            if name in names.space:
                names.present.append(name)
                path = f"{names.path}.{name}" if names.path else name
                self._stack.append((path, names.space[name]))
            else:
                names.absent.add(name)

    def _attribute(self, path: str, owner: object, name: str, *, is_followed: bool = True) -> None:
        """Adds an attribute whose value may change."""
        try:
            value = getattr(owner, name)
        except (AttributeError, ValueError):
            return  # An empty cell: reading it fails.
        self._owners.setdefault(name, []).append((path, owner))
        if is_followed:
            self._stack.append((path if name == "cell_contents" else f"{path}.{name}", value))

    def _visit(self, path: str, thing: object) -> None:
        kind = type(thing)
        if kind in _PLAIN or isinstance(thing, np.generic) or id(thing) in self._seen:
            return
        self._seen.add(id(thing))
        if is_content(thing):
            self._stack += [(path, inner) for inner in _objects_in(thing)]
            return
        self.held.append(thing)
        if isinstance(thing, FunctionType):
            self._function(path, thing)
        elif isinstance(thing, ModuleType):
            if not is_fixed(thing.__name__):
                self._name(vars(thing), path)
        elif isinstance(thing, type):
            self._class(path, thing)
        elif (leads := _leads(kind)) is not None:
            for name in leads:
                self._fixed(f"{path}.{name}", getattr(thing, name))
        else:
            self._items(path, thing)
            self._instance(path, thing)

    def _items(self, path: str, thing: object) -> None:
        """Follows the items of a container, and the referents of other objects of Python."""
        if isinstance(thing, BuiltinMethodType):
            self._stack.append((path, thing.__self__))
        elif isinstance(thing, attrgetter | methodcaller):
            self._code_names |= _names_of(cast("object", thing))
        elif isinstance(thing, ref):
            reference = cast("ref[object]", thing)
            self._fetch(lambda: (reference(),), [path])
        elif isinstance(thing, tuple):
            items = cast("tuple[object, ...]", thing)
            for k, item in enumerate(items):
                self._fixed(f"{path}[{k}]", item)
        elif isinstance(thing, list | deque | set | frozenset):
            items = cast("list[object]", thing)
            self.sized.append(items)
            self._fetch(partial(iter, items), [f"{path}[{k}]" for k in range(len(items))])
        elif isinstance(thing, dict | MappingProxyType):
            table = cast("dict[object, object]", thing)
            self._table(table, [f"{path}[{key!r}]" for key in table])

    def _fixed(self, path: str, value: object) -> None:
        """Adds a value in a place that never changes."""
        self._stack.append((path, value))
        if is_content(value):
            self.fixed.append((path, value))

    def _table(self, table: Mapping[Any, object], paths: list[str]) -> None:
        """All entries of a table."""
        self.sized.append(table)
        self._fetch(table.values, paths)
        self._fetch(table.keys, paths)

    def _fetch(self, fetch: Fetch, paths: list[str]) -> None:
        self.fetches.append(fetch)
        self.paths.append(paths)
        self._stack += zip(paths, fetch(), strict=True)

    # -- functions ---------------------------------------------------------------------------------

    def _function(self, path: str, function: FunctionType) -> None:
        cells: tuple[CellType, ...] = function.__closure__ or ()
        # From its globals, because `functools.wraps` copies the user's `__module__`.
        module = function.__globals__.get("__name__", "")
        for name, cell in zip(function.__code__.co_freevars, cells, strict=True):
            if top_of(module) == "shaderad":
                self._fixed(name, cell.cell_contents)  # Cells of our functions never change.
            else:
                self._attribute(name, cell, "cell_contents")
        if is_fixed(module):
            return
        self._fetch(partial(_INSIDE_FUNCTION, function), [path] * 3)
        self._name(vars(function), path)
        code = names_in(function.__code__)
        self._code_names |= code.attributes
        self._reads_any |= code.reads_any
        space = function.__globals__
        names = self._globals.setdefault(id(space), Names(space, ""))
        self._extend(
            names, (name for name in code.globals if name in space or hasattr(builtins, name))
        )
        if not code.globals.isdisjoint(("globals", "eval", "exec")):
            self._extend(names, [*space])
        for name, level in code.imports:
            self._imported(imported_module(name, level, space.get("__package__")))

    def _imported(self, name: str | None) -> None:
        if name is None or is_fixed(name):
            return
        while name:
            module = sys.modules.get(name)
            self.awaits_imports |= module is None
            self._stack.append((name, module))
            name = name.rpartition(".")[0]

    # -- objects -----------------------------------------------------------------------------------

    def _name(self, space: Mapping[str, object], path: str) -> None:
        self._objects.append(Names(space, path))

    def _class(self, path: str, cls: type) -> None:
        if is_fixed(cls.__module__):
            return
        if type(cls) is not type:
            self._stack.append((path, type(cls)))
        self._attribute(path, cls, "__mro__")
        self._name(vars(cls), path)
        special = (name for name, value in vars(cls).items() if _is_special(name, value))
        self._extend(self._objects[-1], special)

    def _instance(self, path: str, thing: object) -> None:
        kind = type(thing)
        if top_of(kind.__module__) == "shaderad":
            for name in getattr(kind, FOLLOWED, ()):
                self._attribute(path, thing, name)
            if hasattr(kind, FOLLOWED):
                self._objects.append(Names(vars(thing), path, is_ours=True))
            return
        if is_opaque(kind):
            return
        space = _dict_of(thing)
        is_read_by_others = info_of(thing) is not None or any(map(reads_state, kind.__mro__))
        if space is not None:
            self._attribute(path, thing, "__dict__", is_followed=False)
            if is_read_by_others:
                self._table(space, [f"{path}.{name}" for name in space])
            else:
                self._name(space, path)
        if not is_fixed(kind.__module__):
            self._attribute(path, thing, "__class__")
        slots = {name for cls in kind.__mro__ for name in _slots(cls)}
        if is_read_by_others:
            for name in slots:
                self._slot(path, thing, name)
        else:
            self._slots.append((path, thing, slots))

    # -- the places --------------------------------------------------------------------------------

    def _finish(self) -> None:
        for name, owned in self._owners.items():
            owners = tuple(owner for _, owner in owned)
            self.fetches.append(partial(map, attrgetter(name), owners))
            is_cell = name == "cell_contents"
            self.paths.append([path if is_cell else f"{path}.{name}" for path, _ in owned])
        for names in chain(self._globals.values(), self._objects):
            if names.present:
                present = tuple(names.present)
                self.fetches.append(partial(map, names.space.__getitem__, present))
                stem = f"{names.path}." if names.path else ""
                self.paths.append([f"{stem}{name}" for name in present])
            if not names.space:
                self.sized.append(names.space)
            elif names.absent:
                self.names.append(names)


def is_content(thing: object) -> bool:
    """True for arrays, and for other objects that own a buffer of plain numbers."""
    return (
        isinstance(thing, Array | bytearray | memoryview)
        or is_host_array(thing)
        or (type(thing).__module__ == "array")
    )


def _objects_in(content: object) -> list[object]:
    """The items of an array of Python objects."""
    if isinstance(content, np.ndarray) and content.dtype == object:  # pyright: ignore[reportUnknownMemberType]
        return cast("list[object]", content.ravel().tolist())
    return []


def _names_of(getter: object) -> set[str]:
    """The names of the attributes that a getter of `operator` reads."""
    return {part for name in getter.__reduce__()[1] for part in str(name).split(".")}


def _slot_of(owner: object, name: str) -> tuple[object]:
    try:
        return (object.__getattribute__(owner, name),)
    except AttributeError:
        return (_EMPTY,)


def _dict_of(thing: object) -> dict[str, object] | None:
    if isinstance(thing, local):
        return vars(thing)
    try:
        return cast("dict[str, object]", object.__getattribute__(thing, "__dict__"))
    except AttributeError:
        return None


def _own_names(names: Names) -> Iterator[str]:
    """The names that code may compute: all of a namespace but a module's imports from others."""
    module = names.space.get("__name__") if "__spec__" in names.space else None
    for name, value in names.space.items():
        is_imported = module is not None and (
            isinstance(value, ModuleType)
            or (isinstance(value, FunctionType | type) and value.__module__ != module)
        )
        if not is_imported and not name.startswith("__"):
            yield name


def _is_special(name: str, value: object) -> bool:
    """True for a method that Python calls implicitly, so that no code names it."""
    is_called = isinstance(value, FunctionType) or _leads(type(value)) is not None
    return name.startswith("__") and (is_called or not is_fixed(type(value).__module__))


def _leads(kind: type) -> tuple[str, ...] | None:
    return next((_DESCRIPTORS[cls] for cls in kind.__mro__ if cls in _DESCRIPTORS), None)


def _slots(cls: type) -> Iterator[str]:
    if cls.__module__ != "builtins":
        for name, value in vars(cls).items():
            if isinstance(value, MemberDescriptorType) and not name.startswith("__"):
                yield name
