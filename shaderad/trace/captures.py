"""The values that a Python function read while it was traced, and whether it would read them again.

Invariant: a trace is used again only where every read would give what it gave: the same object, or
an equal number, text or tuple of those, or host array of the same content. Arrays on a device may
be others of the same type and shape, because a graph reads them when it runs.
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
from shaderad.language.values import is_same_constant
from shaderad.rules.equality import EqualGraphs
from shaderad.runtime.foreign_arrays import to_numpy
from shaderad.trace.calls import Form, TracedFunction, traced_variant
from shaderad.trace.reachable import Names, Reachable, is_content
from shaderad.trace.varying import VaryingNumbers

CONTENT_LIMIT = 1 << 24
"""Bytes of host arrays that one trace may depend on: each call compares them."""

_KEPT_TRACES = 8
"""Traces kept for one form of arguments: of captured values and of sizes that decide something."""
_KEPT_GRAPHS = 16
"""Graphs of these, and of traces that are gone: a value may come back."""
Getter = Callable[[], Any]


@dataclass(frozen=True, slots=True)
class _Content:
    """A host array as it was when the function was traced."""

    get: Getter
    form: object
    content: bytes


class Reads:
    """Every read that a function may make, and what it gave."""

    def __init__(self, name: str, roots: Iterable[tuple[str, object]]) -> None:
        """`name` is the function's in messages, `roots` are values by the names that it has.

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
        """True if every read gives what it gave."""
        # The host's time of a call: nothing is called for a single value that is the same.
        if self._sized and [*map(len, self._sized)] != self._lengths:
            return False
        try:
            now = self._fetched()
        except (AttributeError, KeyError, ValueError):
            return False  # It is there no more.
        then = self._then
        if not all(map(is_, now, then)):
            if not all(a is b or _is_same(a, b) for a, b in zip(now, then, strict=True)):
                return False
            self._then = now
        for lacks, names in self._absent:
            if not lacks(names):
                return False
        for one in self._contents:
            array = one.get()
            if _form(array) != one.form or _bytes(array) != one.content:
                return False
        return True

    def getter_of(self, array: object) -> Getter | None:
        """The read that gives this array or NumPy array."""
        return self._getters.get(id(array))

    def note_content(self, array: Array) -> None:
        """Adds the content of an array on a device, which the function looked at.

        Raises:
            LanguageError: SR0338, where nothing leads to the array.
        """
        get = self.getter_of(array)
        if get is None:
            raise error("SR0338", user_span(), name=self._name, found=array)
        self._contents.append(_Content(get, _form(array), _bytes(array)))

    def _fetched(self) -> list[object]:
        found: list[object] = []
        for fetch in self._fetches:
            found += fetch()
        return found

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
    """A trace with what it depends on beside its arguments."""

    variant: TracedFunction
    reads: Reads
    captured: tuple[Getter, ...]
    """Getters of the arrays that the function captured."""


class KeptTraces:
    """The latest traces of one function for arguments of one form."""

    def __init__(self) -> None:
        self._known: list[Traced] = []
        self._varying = VaryingNumbers()
        self._graphs = EqualGraphs(_KEPT_GRAPHS)

    def current(self, size_by_name: Mapping[str, int]) -> Traced | None:
        """The trace that serves these sizes, and would read the same again."""
        for position, traced in enumerate(self._known):
            if traced.variant.serves(size_by_name) and traced.reads.are_current():
                if position:
                    self._known.insert(0, self._known.pop(position))
                return traced
        return None

    def trace(
        self,
        name: str,
        roots: Sequence[tuple[str, object]],
        called: Callable[..., Any],
        form: Form,
    ) -> Traced:
        """The trace of `called`, which reads what `roots` lead to; its graph is that of an earlier
        trace if they are equal.

        Raises:
            LanguageError: SR0338 for an array that was there before, and that nothing leads to;
                SR0339, where host arrays are too large to be compared at each call.
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
        self._known[:] = [traced, *self._known[: _KEPT_TRACES - 1]]
        return traced


def _getter(captured: Any, name: str, reads: Reads, variant: TracedFunction) -> Getter:
    """A getter of a captured value for later calls."""
    found = reads.getter_of(captured)
    if found is not None:
        return found
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
