"""Names that a body reads from outside -> compile-time values, and the record of what was read.

Invariant: a compiled kernel is valid exactly while every recorded read still gives the same.
"""

from __future__ import annotations

import builtins
import enum
from collections.abc import Callable, Mapping
from functools import partial
from types import FunctionType
from typing import Generic, TypeVar, cast

import numpy as np

from shaderad.diagnostics import Span, error
from shaderad.frontend.values import Host, Known, Member, Sequence, Value

MISSING = object()
# Captured values that alternate must not compile again each time; values that never return must
# not pile up.
_KEPT_VARIANTS = 8
_T = TypeVar("_T")
_PLAIN: tuple[type, ...] = (int, float, tuple, np.generic)
_NUMPY_NUMBERS: tuple[type, ...] = (np.bool_, np.integer, np.floating)
_MEANINGLESS: tuple[type, ...] = (str, bytes, list, dict, set, complex, type(None))


class Captures:
    """Every read of a captured name or attribute while one kernel was compiled."""

    def __init__(self) -> None:
        self._reads: dict[tuple[int, str], tuple[Callable[[], object], object]] = {}

    def name(self, function: FunctionType, name: str) -> object:
        """What `name` means in `function`: closure, globals, builtins; else `MISSING`."""
        code = function.__code__
        if name in code.co_freevars:
            cell = (function.__closure__ or ())[code.co_freevars.index(name)]
            return self._record((id(cell), name), partial(getattr, cell, "cell_contents", MISSING))
        if name in function.__globals__:
            space = function.__globals__
            return self._record((id(space), name), partial(space.get, name, MISSING))
        return getattr(builtins, name, MISSING)

    def attribute(self, owner: object, name: str) -> object:
        """``owner.name`` of a module, class or enum; else `MISSING`."""
        return self._record((id(owner), name), partial(getattr, owner, name, MISSING))

    def are_current(self) -> bool:
        """Whether every read would give what it gave."""
        return all(_is_same(read(), then) for read, then in self._reads.values())

    def _record(self, key: tuple[int, str], read: Callable[[], object]) -> object:
        found = read()
        if found is not MISSING:
            self._reads[key] = (read, found)
        return found


class Variants(Generic[_T]):
    """What was read of one function, for each set of constants the latest first."""

    def __init__(self) -> None:
        self._known: dict[tuple[str, ...], list[tuple[_T, Captures]]] = {}

    def of(self, constants: Mapping[str, object], fresh: Callable[[], tuple[_T, Captures]]) -> _T:
        """The variant for these constants and the values captured now, `fresh` if need be."""
        key = tuple(f"{n}={type(v).__name__}:{v!r}" for n, v in sorted(constants.items()))
        known = self._known.setdefault(key, [])
        for position, (made, captures) in enumerate(known):
            if captures.are_current():
                if position:
                    known.insert(0, known.pop(position))
                return made
        found = fresh()
        known[:] = [found, *known[: _KEPT_VARIANTS - 1]]
        return found[0]


def _is_same(now: object, then: object) -> bool:
    if now is then:
        return True
    # By text, because 0.0 == -0.0 and nan != nan.
    return isinstance(now, _PLAIN) and type(now) is type(then) and repr(now) == repr(then)


def to_value(found: object, name: str, span: Span) -> Value:
    """A captured object as the kernel language sees it.

    Raises:
        LanguageError: SR0212 for arrays, SR0213 for what has no meaning in kernels.
    """
    known = known_number(found, span)
    if known is not None:
        return known
    if isinstance(found, enum.Enum):
        return to_value(found.value, name, span)
    if isinstance(found, tuple):
        parts = cast("tuple[object, ...]", found)
        return Sequence(tuple(to_value(p, name, span) for p in parts), span)
    if isinstance(found, np.ndarray) or hasattr(type(found), "__array__"):
        raise error("SR0212", span, name=name)
    if isinstance(found, _MEANINGLESS):
        raise error("SR0213", span, name=name, found=f"a {type(found).__name__}")
    return Host(found, name)


def known_number(found: object, span: Span) -> Known | None:
    """A number, or member of an enum of numbers, as the kernel language sees it; else `None`."""
    if isinstance(found, enum.Enum):
        inner = known_number(found.value, span)
        return None if inner is None else Member(inner.value, span, type(found))
    if isinstance(found, bool | int | float):
        return Known(_plain(found), span)
    if isinstance(found, _NUMPY_NUMBERS):
        return Known(cast("np.generic", found).item(), span)
    return None


def _plain(number: float) -> int | float | bool:
    """The number without its subclass (`np.float64` is a `float`)."""
    if isinstance(number, bool):
        return number
    return int(number) if isinstance(number, int) else float(number)
