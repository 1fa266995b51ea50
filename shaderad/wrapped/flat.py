"""Functions of flat lists of host arrays, at their arguments: results and gradients as parts.

Invariant: the pullback and the pushforward of a function of such lists are two of them, so that
derivatives nest to any order; each call uploads an argument once.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import count
from typing import Any, TypeVar

import numpy as np

from shaderad.arrays.arrays import Array
from shaderad.arrays.tape import When
from shaderad.diagnostics import error
from shaderad.differentiate.forms import derivative_like
from shaderad.differentiate.linearised import Linearised, linearised, linearised_as_graph
from shaderad.differentiate.transforms import jvp, vjp
from shaderad.lower.bindings import Mode
from shaderad.wrapped.parts import ArrayPart, Path
from shaderad.wrapped.structures import Forms

HostArray = np.ndarray[Any, Any]
T = TypeVar("T")


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

    @abstractmethod
    def push(self, dots: Sequence[Any]) -> list[ArrayPart | None]:
        """The tangents of the leaves of the result; `None` for one without floats.

        Args:
            dots: For each tensor of the arguments its tangent, or `None` for zero.

        Raises:
            DerivativeError: SR0478, where a tensor has none; SR0472, where the function has no
                forward mode.
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
        at = linearised_as_graph(self.function, self.arrays, {}, when=When.NEVER)
        return at.out

    def bars(self, results: Sequence[Array], leaves: Sequence[Any]) -> list[Array | None]:
        """Cotangents of the results from those of their leaves."""
        return _derivatives(results, self.result_places(results), leaves, "out_bar")

    def dots(self, leaves: Sequence[Any]) -> list[Array | None]:
        """Tangents of the arrays from those of the tensors."""
        if any(leaf is not None and not at for leaf, at in zip(leaves, self.places, strict=True)):
            raise error("SR0478")
        return _derivatives(self.arrays, self.places, leaves, "tangent")


def _derivatives(
    arrays: Sequence[Array],
    places: Sequence[ArrayPlace | None],
    leaves: Sequence[Any],
    name: str,
) -> list[Array | None]:
    """The cotangent or tangent of each array, from those of its leaves."""
    by_array: list[list[tuple[Path, Any]]] = [[] for _ in arrays]
    for place, leaf in zip(places, leaves, strict=True):
        if place is not None:
            by_array[place.number].append((place.path, leaf))
    return [_derivative(one, own, name) for one, own in zip(arrays, by_array, strict=True)]


def _derivative(like: Array, leaves: list[tuple[Path, Any]], name: str) -> Array | None:
    """The derivative of one array; leaves that are not mentioned are zero."""
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
    return derivative_like(found, like.element, like.shape, like.device, name)


def moved_parts(
    parts: Sequence[ArrayPart], places: Sequence[ArrayPlace], moved: Sequence[Any]
) -> list[ArrayPart | None]:
    """The tangent of each part, from those of the arrays that the parts belong to."""
    return [
        ArrayPart(moved[place.number], place.path) if part.is_float else None
        for part, place in zip(parts, places, strict=True)
    ]


class Flat(ABC):
    """A function of flat lists; which form of arguments a list has, its number says."""

    def __init__(self) -> None:
        self.forms = Forms()

    @property
    @abstractmethod
    def is_traced(self) -> bool:
        """True if derivatives of it are those of a trace of it as a whole."""

    @abstractmethod
    def check(
        self, form: int, given: Given, mode: Mode = Mode.PRIMAL, moving: Sequence[bool] = ()
    ) -> None:
        """Raises what a run at arguments of such shapes would refuse, as far as that is known.

        Nothing runs, so values do not matter.

        Args:
            form: The form of the arguments.
            given: Arguments.
            mode: The mode of a function that is not traced.
            moving: The tensors that derivatives are taken by in it.
        """

    @abstractmethod
    def typed(self, form: int, given: Given) -> Typed:
        """The function over arrays of its own types, with these on a device."""

    def at(self, form: int, given: Given) -> FlatAt:
        """The function at these arguments, ready to be differentiated."""
        return TypedAt(self.typed(form, given))

    @cached_property
    def pulled(self) -> PulledBack:
        """The pullback of this function."""
        return PulledBack(self)

    @cached_property
    def pushed(self) -> PushedForward:
        """The pushforward of this function."""
        return PushedForward(self)


class TypedAt(FlatAt):
    """A function over arrays at its arguments."""

    def __init__(self, typed: Typed) -> None:
        self._typed = typed
        self._at: Linearised = linearised(
            typed.function, typed.arrays, {}, when=When.BEFORE_PULLBACK
        )
        self._results: list[Array] = self._at.out
        self._places = typed.result_places(self._results)
        self.parts = [ArrayPart(self._results[one.number], one.path) for one in self._places]

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

    def push(self, dots: Sequence[Any]) -> list[ArrayPart | None]:
        moved = self._at.push(self._typed.dots(dots))
        return moved_parts(self.parts, self._places, moved)


@dataclass(frozen=True, slots=True)
class DerivativeForm:
    """The request to a derivative: the form of the primal, and what takes part."""

    form: int
    tensors: tuple[bool, ...]
    """For each tensor of the arguments."""
    leaves: tuple[bool, ...]
    """For each leaf of the result."""


class LinearMap(Flat):
    """A linear map of derivatives: the tensors of a function, then what is mapped."""

    mode: Mode
    """The mode of a kernel that computes it."""

    def __init__(self, primal: Flat) -> None:
        super().__init__()
        self.primal = primal

    @property
    def is_traced(self) -> bool:
        return True

    @property
    @abstractmethod
    def transpose(self) -> LinearMap:
        """The transposed map, whose forms look the same."""

    @abstractmethod
    def narrowed(self, form: int, given: Sequence[int], wanted: Sequence[int]) -> DerivativeForm:
        """The form for some of what is mapped and of the results alone, by their positions."""

    @abstractmethod
    def mapped(self, form: int, at: FlatAt, given: Sequence[HostArray]) -> list[ArrayPart]:
        """The derivatives that are asked for, from those that are given."""

    def primal_at(self, form: int, given: Given) -> FlatAt:
        """The primal at its arguments."""
        return self.primal.at(self.asked(form).form, given)

    def check(
        self, form: int, given: Given, mode: Mode = Mode.PRIMAL, moving: Sequence[bool] = ()
    ) -> None:
        if self.primal.is_traced:
            self.typed(form, given).outline()
            return
        asked = self.asked(form)
        own, _ = self.taken_apart(form, given.tensors)
        known = Given(own, given.whole, given.real)
        self.primal.check(asked.form, known, self.mode, asked.tensors)

    def taken_apart(self, form: int, tensors: Sequence[T]) -> tuple[Sequence[T], Sequence[T]]:
        """The tensors of the primal, and what is mapped."""
        first = len(self.asked(form).tensors)
        return tensors[:first], tensors[first:]

    def asked(self, form: int) -> DerivativeForm:
        """The request of a number."""
        return self.forms[form]

    def _typed_primal(self, form: int, given: Given) -> tuple[Typed, Sequence[HostArray]]:
        own, mapped = self.taken_apart(form, given.tensors)
        known = Given(own, given.whole, given.real)
        return self.primal.typed(self.asked(form).form, known), mapped


class PulledBack(LinearMap):
    """The pullback of a function: its tensors, then the cotangents that are given -> gradients."""

    mode = Mode.BACKWARD

    @property
    def transpose(self) -> LinearMap:
        return self.primal.pushed

    def narrowed(self, form: int, given: Sequence[int], wanted: Sequence[int]) -> DerivativeForm:
        asked = self.asked(form)
        tensors, leaves = _narrowed(asked.tensors, wanted), _narrowed(asked.leaves, given)
        return DerivativeForm(asked.form, tensors, leaves)

    def mapped(self, form: int, at: FlatAt, given: Sequence[HostArray]) -> list[ArrayPart]:
        asked = self.asked(form)
        return at.pull(_in_places(asked.leaves, given), asked.tensors)

    def typed(self, form: int, given: Given) -> Typed:
        asked = self.asked(form)
        primal, bars = self._typed_primal(form, given)
        results = primal.outline()
        cotangents = primal.bars(results, _in_places(asked.leaves, bars))
        wanted = [place for place in _where(asked.tensors, primal.places) if place is not None]
        numbers = sorted({place.number for place in wanted})

        def pulled(*arrays: Array) -> list[Array]:
            rest = iter(arrays[len(primal.arrays) :])
            _, pullback = vjp(primal.function, *arrays[: len(primal.arrays)])
            found = pullback([None if one is None else next(rest) for one in cotangents])
            return [found[number] for number in numbers]

        given_places = _where(asked.leaves, primal.result_places(results))
        return _behind(primal, pulled, cotangents, given_places, _renumbered(wanted, numbers))


class PushedForward(LinearMap):
    """The pushforward of a function: its tensors, then tangents of them -> those of its leaves."""

    mode = Mode.FORWARD

    @property
    def transpose(self) -> LinearMap:
        return self.primal.pulled

    def narrowed(self, form: int, given: Sequence[int], wanted: Sequence[int]) -> DerivativeForm:
        asked = self.asked(form)
        tensors, leaves = _narrowed(asked.tensors, given), _narrowed(asked.leaves, wanted)
        return DerivativeForm(asked.form, tensors, leaves)

    def mapped(self, form: int, at: FlatAt, given: Sequence[HostArray]) -> list[ArrayPart]:
        asked = self.asked(form)
        moved = at.push(_in_places(asked.tensors, given))
        return [one for one in _where(asked.leaves, moved) if one is not None]

    def typed(self, form: int, given: Given) -> Typed:
        asked = self.asked(form)
        primal, dots = self._typed_primal(form, given)
        tangents = primal.dots(_in_places(asked.tensors, dots))
        wanted = _where(asked.leaves, primal.result_places(primal.outline()))
        numbers = sorted({place.number for place in wanted})

        def pushed(*arrays: Array) -> list[Array]:
            rest = iter(arrays[len(primal.arrays) :])
            moving = [None if one is None else next(rest) for one in tangents]
            _, found = jvp(primal.function, arrays[: len(primal.arrays)], moving)
            return [found[number] for number in numbers]

        given_places = [one for one in _where(asked.tensors, primal.places) if one is not None]
        return _behind(primal, pushed, tangents, given_places, _renumbered(wanted, numbers))


def _behind(
    primal: Typed,
    function: Callable[..., list[Array]],
    derivatives: Sequence[Array | None],
    given_places: Sequence[ArrayPlace],
    result_places: list[ArrayPlace],
) -> Typed:
    """A derivative of `primal`: the derivatives that are given stand behind its arrays."""
    numbers = [k for k, one in enumerate(derivatives) if one is not None]
    behind = _renumbered(given_places, numbers, len(primal.arrays))
    return Typed(
        function,
        [*primal.arrays, *(one for one in derivatives if one is not None)],
        [*primal.places, *behind],
        lambda _: result_places,
    )


def _renumbered(
    places: Sequence[ArrayPlace], numbers: Sequence[int], first: int = 0
) -> list[ArrayPlace]:
    """The places among the arrays with these numbers alone, the first of which gets `first`."""
    return [ArrayPlace(first + numbers.index(one.number), one.path) for one in places]


def _in_places(mask: Sequence[bool], given: Sequence[T]) -> list[T | None]:
    """The items at the places that a mask names, `None` elsewhere."""
    rest = iter(given)
    return [next(rest) if one else None for one in mask]


def _where(mask: Sequence[bool], items: Sequence[T]) -> list[T]:
    """The items that a mask names."""
    return [item for item, one in zip(items, mask, strict=True) if one]


def _narrowed(mask: Sequence[bool], positions: Sequence[int]) -> tuple[bool, ...]:
    """A mask of some of the items that `mask` names, by their positions among these."""
    numbers = count()
    return tuple(one and next(numbers) in positions for one in mask)
