"""The values that a Python function read while it was traced -> whether they are still current.

Invariant: a trace is reused only if every read returns the same object, an equal number, text or
tuple of those, or a host array of the same content. A device array may be replaced by one of the
same type and shape, because a graph reads it when it runs.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import chain
from operator import is_
from typing import Any, cast

from shaderad.arrays.arrays import Array, is_host_array
from shaderad.device.lines import user_span
from shaderad.diagnostics import error
from shaderad.ir.equality import EqualGraphs
from shaderad.language.values import is_same_constant
from shaderad.runtime.foreign_arrays import to_numpy
from shaderad.trace.calls import Form, TracedFunction, traced_variant
from shaderad.trace.reachable import Names, Reachable, is_content
from shaderad.trace.varying import VaryingNumbers

CONTENT_LIMIT = 1 << 24
"""Most bytes of host arrays that one trace may depend on, because each call compares them."""

_KEPT_TRACES = 8
"""Most traces kept for one form of arguments; they differ in captured values or in sizes."""
_KEPT_GRAPHS = 16
"""Most graphs kept per form, evicted traces included, because a captured value may come back."""
Getter = Callable[[], Any]


@dataclass(frozen=True, slots=True)
class _Content:
    """A host array as it was when the function was traced."""

    get: Getter
    form: object
    content: bytes


class Reads:
    """Every read that a function may make, and its result."""

    def __init__(self, name: str, roots: Iterable[tuple[str, object]]) -> None:
        """`name` names the function in messages; `roots` are (name, value) pairs to search from.

        Raises:
            LanguageError: SR0339, where it captures host arrays of more than `CONTENT_LIMIT` bytes.
        """
        places = Reachable(roots)
        self._name = name
        self._held = places.held
        self._fetches = tuple(places.fetches)
        self._absent = tuple(map(_absent, places.names))
        self.awaits_imports = places.awaits_imports
        """True if the function imports a module that is not there yet."""
        self._sized = places.sized
        self._lengths = [*map(len, self._sized)]
        self._then = self._fetched()
        self._getters: dict[int, Getter] = {}
        self._contents: list[_Content] = []
        self._byte_count = 0
        for position, path in enumerate(chain.from_iterable(places.paths)):
            self._note(path, self._then[position], partial(self._value, position))
        for path, array in places.fixed:
            self._note(path, array, lambda array=array: array)

    def are_current(self) -> bool:
        """True if every read still returns its recorded result."""
        # This runs on every call, so an unchanged single value costs no function call.
        if self._sized and [*map(len, self._sized)] != self._lengths:
            return False
        try:
            now = self._fetched()
        except (AttributeError, KeyError, ValueError):
            return False  # The attribute or item was deleted.
        then = self._then
        if not all(map(is_, now, then)):
            if not all(a is b or _is_same(a, b) for a, b in zip(now, then, strict=True)):
                return False
            self._then = now
        for lacks, names in self._absent:
            if not lacks(names):
                return False
        for content in self._contents:
            array = content.get()
            if _form(array) != content.form or _bytes(array) != content.content:
                return False
        return True

    def getter_of(self, array: object) -> Getter | None:
        """The read that returns this array or NumPy array."""
        return self._getters.get(id(array))

    def note_content(self, array: Array) -> None:
        """Adds the content of a device array that the function read on the host.

        Raises:
            LanguageError: SR0338 if the array cannot be reached from the function.
        """
        get = self.getter_of(array)
        if get is None:
            raise error("SR0338", user_span(), name=self._name, found=array)
        self._contents.append(_Content(get, _form(array), _bytes(array)))

    def _fetched(self) -> list[object]:
        fetched: list[object] = []
        for fetch in self._fetches:
            fetched += fetch()
        return fetched

    def _value(self, position: int) -> object:
        return self._then[position]

    def _note(self, path: str, value: object, get: Getter) -> None:
        if not is_content(value):
            return
        if id(value) in self._getters:
            return
        self._getters[id(value)] = get
        if isinstance(value, Array):
            return
        content = _bytes(value)
        self._byte_count += len(content)
        if self._byte_count > CONTENT_LIMIT:
            raise error("SR0339", user_span(), name=self._name, array=path,
                        size=f"{len(content):,}", limit=f"{CONTENT_LIMIT:,}")  # fmt: skip
        self._contents.append(_Content(get, _form(value), content))


@dataclass(frozen=True, slots=True)
class Traced:
    """A trace, with its dependencies other than arguments."""

    variant: TracedFunction
    reads: Reads
    captured: tuple[Getter, ...]
    """Getters of the arrays that the function captured."""


class KeptTraces:
    """The latest traces of one function for arguments of one form."""

    def __init__(self) -> None:
        self._traces: list[Traced] = []
        self._varying = VaryingNumbers()
        self._graphs = EqualGraphs(_KEPT_GRAPHS)

    def current(self, size_by_name: Mapping[str, int]) -> Traced | None:
        """The trace that serves these sizes and whose reads are current; `None` to retrace."""
        for position, traced in enumerate(self._traces):
            if traced.variant.serves(size_by_name) and traced.reads.are_current():
                if position:
                    self._traces.insert(0, self._traces.pop(position))
                return traced
        return None

    def trace(
        self,
        name: str,
        roots: Sequence[tuple[str, object]],
        called: Callable[..., Any],
        form: Form,
    ) -> Traced:
        """Traces `called`, which reads values reachable from `roots`. Equal graphs are shared
        between traces.

        Raises:
            LanguageError: SR0338 for an array that existed before but cannot be reached from
                `roots`; SR0339 if host arrays are too large to be compared at each call.
        """
        reads = Reads(name, roots)
        variant = self._varying.traced(partial(traced_variant, called, form))
        if reads.awaits_imports:
            reads = Reads(name, roots)
        variant = replace(variant, graph=self._graphs.shared(variant.graph))
        for array in variant.looked_at:
            if not any(array is x for x in variant.constants):
                reads.note_content(array)
        getters = tuple(_getter(x, name, reads, variant) for x in variant.captured)
        traced = Traced(variant, reads, getters)
        self._traces[:] = [traced, *self._traces[: _KEPT_TRACES - 1]]
        return traced


def _getter(captured: Any, name: str, reads: Reads, variant: TracedFunction) -> Getter:
    """The getter that fetches a captured value in later calls."""
    getter = reads.getter_of(captured)
    if getter is not None:
        return getter
    is_made = any(captured is x for x in variant.constants)
    if isinstance(captured, Array) and not is_made:
        raise error("SR0338", user_span(), name=name, found=captured)
    return lambda: captured


def _absent(names: Names) -> tuple[Callable[[frozenset[str]], bool], frozenset[str]]:
    return names.space.keys().isdisjoint, frozenset(names.absent)


def _is_same(now: object, then: object) -> bool:
    if is_content(now):
        return is_content(then) and _form(now) == _form(then)
    return is_same_constant(now, then)


def _form(array: Any) -> object:
    shape: object = array.shape if hasattr(array, "shape") else len(array)
    if isinstance(array, Array):
        return "device", array.element, shape
    return "host", str(getattr(array, "dtype", "")), shape


def _bytes(array: Any) -> bytes:
    if isinstance(array, Array):
        return array.numpy().tobytes()
    if not is_host_array(array):
        return bytes(cast("memoryview", array))
    if hasattr(array, "detach"):
        array = array.detach()
    return to_numpy(array, "array").tobytes()
