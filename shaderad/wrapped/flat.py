"""Functions of flat lists of host arrays, at their arguments: results and gradients as parts.

Invariant: a function of such lists has a derivative that is one, too, so that derivatives nest to
any order; each call uploads an argument once.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from shaderad.arrays.arrays import Array
from shaderad.arrays.tape import When
from shaderad.diagnostics import error
from shaderad.differentiate.forms import derivative_like
from shaderad.differentiate.linearised import Linearised, linearised, linearised_as_graph
from shaderad.differentiate.transforms import vjp
from shaderad.wrapped.parts import ArrayPart, Path
from shaderad.wrapped.structures import Forms

HostArray = np.ndarray[Any, Any]


@dataclass(frozen=True, slots=True)
class Given:
    """The leaves of one call."""

    tensors: Sequence[HostArray]
    whole: Sequence[int]
    real: Sequence[float]


@dataclass(frozen=True, slots=True)
class ArrayPlace:
    """The array that a leaf belongs to, by number, and the path to it there."""

    number: int
    path: Path


class FlatAt(ABC):
    """A function at its arguments."""

    parts: list[ArrayPart]
    """The leaves of the result."""

    @abstractmethod
    def pull(self, bars: Sequence[Any], wanted: Sequence[bool]) -> list[ArrayPart]:
        """The gradients of the wanted leaves.

        Args:
            bars: For each leaf of the result its cotangent, or `None` for zero.
            wanted: For each tensor of the arguments.

        Raises:
            DerivativeError: SR0478, where a leaf has none.
        """


@dataclass(slots=True)
class Typed:
    """A function over arrays of the types that it takes, at them: a list gives a list."""

    function: Callable[..., list[Array]]
    arrays: list[Array]
    places: list[ArrayPlace | None]
    """For each tensor its array; `None` for one without floats."""
    result_places: Callable[[Sequence[Array]], list[ArrayPlace]]
    """For each leaf of the result its array, by the arrays that the function gives."""

    def outline(self) -> list[Array]:
        """The results, which are computed where somebody reads them."""
        at = linearised_as_graph(self.function, self.arrays, {}, when=When.IF_NEEDED)
        return at.out

    def bars(self, results: Sequence[Array], leaves: Sequence[Any]) -> list[Array | None]:
        """Cotangents of the results from those of their leaves."""
        by_result: list[list[Any]] = [[] for _ in results]
        for place, leaf in zip(self.result_places(results), leaves, strict=True):
            by_result[place.number].append((place.path, leaf))
        return [_bar(one, own) for one, own in zip(results, by_result, strict=True)]


def _bar(result: Array, leaves: list[tuple[Path, Any]]) -> Array | None:
    """The cotangent of one array; leaves that are not mentioned are zero."""
    found: Any = None
    for path, leaf in leaves:
        if leaf is None or not path:
            found = leaf if found is None else found
            continue
        found = found or {}
        inner = found
        for key in path[:-1]:
            inner = inner.setdefault(key, {})
        inner[path[-1]] = leaf
    if found is None:
        return None
    return derivative_like(found, result.element, result.shape, result.device, "out_bar")


class Flat(ABC):
    """A function of flat lists; which form of arguments a list has, its number says."""

    def __init__(self) -> None:
        self.forms = Forms()

    @abstractmethod
    def typed(self, form: int, given: Given) -> Typed:
        """The function over arrays of its own types, with these on a device."""

    def at(self, form: int, given: Given) -> FlatAt:
        """The function at these arguments, ready to pull cotangents back."""
        return TypedAt(self.typed(form, given))


class TypedAt(FlatAt):
    """A function over arrays at its arguments."""

    def __init__(self, typed: Typed) -> None:
        self._typed = typed
        self._at: Linearised = linearised(
            typed.function, typed.arrays, {}, when=When.BEFORE_PULLBACK
        )
        self._results: list[Array] = self._at.out
        places = typed.result_places(self._results)
        self.parts = [ArrayPart(self._results[one.number], one.path) for one in places]

    def pull(self, bars: Sequence[Any], wanted: Sequence[bool]) -> list[ArrayPart]:
        pairs = zip(self._typed.places, wanted, strict=True)
        places = [place for place, is_wanted in pairs if is_wanted]
        if None in places:
            raise error("SR0478")
        known = [place for place in places if place is not None]
        numbers = sorted({place.number for place in known})
        out_bar = self._typed.bars(self._results, bars)
        gradients = dict(zip(numbers, self._at.pull(out_bar, numbers, None), strict=True))
        return [ArrayPart(gradients[place.number], place.path) for place in known]


@dataclass(frozen=True, slots=True)
class PulledForm:
    """The request to a pullback: the form of the primal, and which leaves take part."""

    form: int
    wanted: tuple[bool, ...]
    """For each tensor of the arguments."""
    given: tuple[bool, ...]
    """For each leaf of the result."""


class Pulled(Flat):
    """The pullback of a function: its tensors, then the cotangents that are given -> gradients."""

    def __init__(self, primal: Flat) -> None:
        super().__init__()
        self.primal = primal

    def primal_at(self, form: int, given: Given) -> FlatAt:
        """The primal at its arguments."""
        asked: PulledForm = self.forms[form]
        return self.primal.at(asked.form, given)

    def gradients(self, form: int, at: FlatAt, bars: Sequence[HostArray]) -> list[ArrayPart]:
        """The gradients that are wanted, for the cotangents that are given."""
        asked: PulledForm = self.forms[form]
        rest = iter(bars)
        return at.pull([next(rest) if one else None for one in asked.given], asked.wanted)

    def wanted(self, form: int) -> tuple[bool, ...]:
        """Finds the tensors among the results that have a gradient."""
        return self.forms[form].wanted

    def typed(self, form: int, given: Given) -> Typed:
        asked: PulledForm = self.forms[form]
        own, bars = self._taken_apart(asked, given)
        primal = self.primal.typed(asked.form, own)
        results = primal.outline()
        cotangents = primal.bars(results, bars)
        pairs = zip(primal.places, asked.wanted, strict=True)
        wanted = [place for place, is_wanted in pairs if is_wanted and place is not None]
        numbers = sorted({place.number for place in wanted})

        def pulled(*arrays: Array) -> list[Array]:
            rest = iter(arrays[len(primal.arrays) :])
            _, pullback = vjp(primal.function, *arrays[: len(primal.arrays)])
            found = pullback([None if one is None else next(rest) for one in cotangents])
            return [found[number] for number in numbers]

        known = [one for one in cotangents if one is not None]
        return Typed(
            pulled,
            [*primal.arrays, *known],
            [*primal.places, *self._bar_places(asked, primal, results, cotangents)],
            lambda _: [ArrayPlace(numbers.index(one.number), one.path) for one in wanted],
        )

    def _taken_apart(self, asked: PulledForm, given: Given) -> tuple[Given, list[Any]]:
        count = len(asked.wanted)
        rest = iter(given.tensors[count:])
        bars = [next(rest) if is_given else None for is_given in asked.given]
        return Given(given.tensors[:count], given.whole, given.real), bars

    def _bar_places(
        self,
        asked: PulledForm,
        primal: Typed,
        results: Sequence[Array],
        cotangents: Sequence[Array | None],
    ) -> list[ArrayPlace]:
        """The place of each cotangent that is given, behind the arrays of the primal."""
        known = [k for k, one in enumerate(cotangents) if one is not None]
        pairs = zip(primal.result_places(results), asked.given, strict=True)
        return [
            ArrayPlace(len(primal.arrays) + known.index(place.number), place.path)
            for place, is_given in pairs
            if is_given
        ]
