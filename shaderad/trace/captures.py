"""The values that a Python function captures: numbers, arrays, functions, and their owners.

Invariant: a trace is used again only where every read would give what it gave; arrays may be
others of the same type and shape, because a graph reads them when it runs.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from types import CodeType, FunctionType, MethodType, ModuleType
from typing import Any, cast

import numpy as np

from shaderad.arrays.arrays import Array, is_host_array
from shaderad.language.host import PythonFunction

_MISSING = object()
_PLAIN = (type(None), bool, int, float, complex, str, bytes, np.generic)
_OWN = frozenset({"shaderad", "numpy", *sys.stdlib_module_names})
_DEEPEST = 8
"""The depth to which attributes and items of objects are followed."""

Getter = Callable[[], Any]


class Reads:
    """Every read that a function may make, and what it gave."""

    def __init__(self, function: Callable[..., Any], arguments: Sequence[Any] = ()) -> None:
        self._reads: list[tuple[Getter, object]] = []
        self._arrays: dict[int, Getter] = {}
        self._seen: set[int] = set()
        self._held: list[object] = []
        self._walk(function, 0)
        for one in arguments:
            self._walk(one, 0)

    def are_current(self) -> bool:
        """True if every read gives what it gave, arrays of the same type and shape."""
        for get, then in self._reads:
            now = get()
            if now is not then and not _is_same(now, then):
                return False
        return True

    def getter_of(self, array: object) -> Getter | None:
        """The read that gives this array or NumPy array."""
        return self._arrays.get(id(array))

    def _read(self, get: Getter, depth: int, *, is_fixed: bool) -> None:
        found = get()
        if found is _MISSING:
            return
        is_shaped_in_place = _is_array(found) and not isinstance(found, Array)
        if is_shaped_in_place or not is_fixed:
            self._reads.append((get, _form(found) if _is_array(found) else found))
        if _is_array(found):
            self._held.append(found)
            self._arrays.setdefault(id(found), get)
            return
        if not isinstance(found, _PLAIN) and depth < _DEEPEST:
            self._walk(found, depth + 1)

    def _walk(self, thing: object, depth: int) -> None:
        if id(thing) in self._seen:
            return
        self._seen.add(id(thing))
        self._held.append(thing)  # its identity must not become another's
        for get in _parts(thing):
            self._read(get, depth, is_fixed=_is_fixed(thing))


def _is_fixed(thing: object) -> bool:
    """True if the reads that a thing leads to always give the same: tuples, our functions."""
    return isinstance(thing, tuple) or (
        isinstance(thing, FunctionType) and _is_of_ours(thing.__module__)
    )


def _parts(thing: object) -> Iterator[Getter]:
    """The reads that a thing leads to."""
    if isinstance(thing, FunctionType):
        yield from _of_function(thing)
    elif isinstance(thing, PythonFunction):
        yield partial(getattr, thing, "python")
    elif isinstance(thing, MethodType):
        yield partial(getattr, thing, "__func__")
        yield partial(getattr, thing, "__self__")
    elif isinstance(thing, partial):
        yield from (partial(getattr, thing, name) for name in ("func", "args", "keywords"))
    elif isinstance(thing, tuple | list):
        items = cast("Sequence[object]", thing)
        yield partial(len, items)
        yield from (partial(_item, items, k) for k in range(len(items)))
    elif isinstance(thing, dict):
        table = cast("Mapping[object, object]", thing)
        yield lambda: tuple(table)
        yield from (partial(table.get, key, _MISSING) for key in table)
    elif not isinstance(thing, type | ModuleType) and not _is_own(type(thing)):
        yield from (partial(getattr, thing, name, _MISSING) for name in _attributes(thing))


def _of_function(function: FunctionType) -> Iterator[Getter]:
    for cell in function.__closure__ or ():
        yield partial(getattr, cell, "cell_contents", _MISSING)
    if _is_of_ours(function.__module__):
        return
    yield partial(getattr, function, "__defaults__")
    yield partial(getattr, function, "__kwdefaults__")
    names = frozenset(_names(function.__code__))
    for name in names & function.__globals__.keys():
        found = function.__globals__[name]
        yield partial(function.__globals__.get, name, _MISSING)
        if isinstance(found, ModuleType | type) and not _is_own(found):
            present = (one for one in names if hasattr(found, one))
            yield from (partial(getattr, found, one, _MISSING) for one in present)


def _names(code: CodeType) -> Iterator[str]:
    yield from code.co_names
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _names(constant)


def _attributes(thing: object) -> list[str]:
    own = list(getattr(thing, "__dict__", {}))
    slots = [name for cls in type(thing).__mro__ for name in getattr(cls, "__slots__", ())]
    return [name for name in (*own, *slots) if name not in ("__dict__", "__weakref__")]


def _item(items: Sequence[object], position: int) -> object:
    return items[position] if position < len(items) else _MISSING


def _is_own(thing: type | ModuleType) -> bool:
    """True if a module, or the module of a class, is ours, NumPy's or Python's."""
    return _is_of_ours(thing.__name__ if isinstance(thing, ModuleType) else thing.__module__)


def _is_of_ours(module: str | None) -> bool:
    return module is not None and module.partition(".")[0] in _OWN


def _form(array: Any) -> object:
    return isinstance(array, Array), getattr(array, "element", None) or array.dtype, array.shape


def _is_same(now: object, then: object) -> bool:
    if _is_array(now):
        return _form(now) == then
    # By text, because 0.0 == -0.0 and nan != nan.
    return _is_plain(now) and _text(now) == _text(then)


def _is_plain(thing: object) -> bool:
    return isinstance(thing, (*_PLAIN, tuple))


def _is_array(thing: object) -> bool:
    return isinstance(thing, Array) or is_host_array(thing)


def _text(thing: object) -> str:
    return f"{type(thing)}{thing!r}"
