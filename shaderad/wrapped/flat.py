"""Functions of flat lists of host arrays -> their results and derivatives, as parts of arrays.

Invariant: the pullback and the pushforward of a function of such lists are again functions of such
lists, so that derivatives nest to any order. Each call uploads an argument once.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import count
from typing import Any, TypeVar

from shaderad.arrays.arrays import Array
from shaderad.arrays.tape import When
from shaderad.diagnostics import error
from shaderad.differentiate.forms import derivative_like
from shaderad.differentiate.linearised import linearised, linearised_as_graph
from shaderad.differentiate.transforms import jvp, vjp
from shaderad.lower.bindings import Mode
from shaderad.wrapped.parts import ArrayPart, Path
from shaderad.wrapped.structures import CallLeaves, Forms, HostArray

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class ArrayPlace:
    """The number of the array that holds a leaf, and the path of the leaf in it."""

    number: int
    path: Path


class FlatAt(ABC):
    """A function at its arguments, ready to be differentiated."""

    parts: list[ArrayPart]
    """The leaves of the result."""

    @abstractmethod
    def pull(self, bars: Sequence[Any], wanted: Sequence[bool]) -> list[ArrayPart]:
        """The gradients of the wanted leaves.

        Args:
            bars: The cotangent of each leaf of the result, or `None` for zero.
            wanted: For each tensor of the arguments, True if its gradient is wanted.

        Raises:
            DerivativeError: SR0478 if a wanted leaf has no gradient.
        """

    @abstractmethod
    def push(self, dots: Sequence[Any]) -> list[ArrayPart | None]:
        """The tangents of the leaves of the result; `None` for one without floats.

        Args:
            dots: The tangent of each tensor of the arguments, or `None` for zero.

        Raises:
            DerivativeError: SR0478 if a tensor cannot have a tangent; SR0472 if the function has no
                forward mode.
        """


@dataclass(slots=True)
class Typed:
    """A function from a list of arrays to a list of arrays, with its arguments."""

    function: Callable[..., list[Array]]
    arrays: list[Array]
    places: list[ArrayPlace | None]
    """The place of each tensor in `arrays`; `None` for one without floats."""
    result_places: Callable[[Sequence[Array]], list[ArrayPlace]]
    """The arrays that the function returned -> the place of each leaf of the result in them."""

    def outline(self) -> list[Array]:
        """The results, which are computed only if they are read."""
        return linearised_as_graph(self.function, self.arrays, {}, when=When.NEVER).out

    def bars(self, results: Sequence[Array], leaves: Sequence[Any]) -> list[Array | None]:
        """Cotangents of the results from those of their leaves."""
        return _derivatives(results, self.result_places(results), leaves, "out_bar")

    def dots(self, leaves: Sequence[Any]) -> list[Array | None]:
        """Tangents of the arrays from those of the tensors."""
        pairs = zip(leaves, self.places, strict=True)
        if any(leaf is not None and place is None for leaf, place in pairs):
            raise error("SR0478")
        return _derivatives(self.arrays, self.places, leaves, "tangent")


def _derivatives(
    arrays: Sequence[Array],
    places: Sequence[ArrayPlace | None],
    leaves: Sequence[Any],
    name: str,
) -> list[Array | None]:
    """The cotangent or tangent of each array, assembled from those of its leaves."""
    by_array: list[list[tuple[Path, Any]]] = [[] for _ in arrays]
    for place, leaf in zip(places, leaves, strict=True):
        if place is not None:
            by_array[place.number].append((place.path, leaf))
    return [_derivative(array, own, name) for array, own in zip(arrays, by_array, strict=True)]


def _derivative(like: Array, leaves: list[tuple[Path, Any]], name: str) -> Array | None:
    """The derivative of one array; missing leaves are zero."""
    tree: Any = None
    for path, leaf in leaves:
        if leaf is None or not path:
            tree = leaf if tree is None else tree
            continue
        tree = tree or {}
        inner = tree
        for key in path[:-1]:
            inner = inner.setdefault(key, {})
        inner[path[-1]] = leaf
    if tree is None:
        return None
    return derivative_like(tree, like.element, like.shape, like.device, name)


def moved_parts(
    parts: Sequence[ArrayPart], places: Sequence[ArrayPlace], moved: Sequence[Any]
) -> list[ArrayPart | None]:
    """The tangent of each part, taken from the tangent of its array."""
    return [
        ArrayPart(moved[place.number], place.path) if part.is_float else None
        for part, place in zip(parts, places, strict=True)
    ]


class Flat(ABC):
    """A function of flat lists. A number identifies the form of the arguments in a list."""

    def __init__(self) -> None:
        self.forms = Forms()

    @property
    @abstractmethod
    def is_traced(self) -> bool:
        """True if the function is differentiated by tracing it as a whole."""

    @abstractmethod
    def check(
        self, form: int, leaves: CallLeaves, mode: Mode = Mode.PRIMAL, moving: Sequence[bool] = ()
    ) -> None:
        """Raises the errors of a run that follow from the shapes of the arguments.

        Nothing runs, so values do not matter.

        Args:
            form: The form of the arguments.
            leaves: The arguments.
            mode: The mode in which the kernel would run, if the function is not traced.
            moving: The tensors with respect to which that mode differentiates.
        """

    @abstractmethod
    def typed(self, form: int, leaves: CallLeaves) -> Typed:
        """The function over device arrays of the types that it takes, with these arguments."""

    def at(self, form: int, leaves: CallLeaves) -> FlatAt:
        """The function at these arguments, ready to be differentiated."""
        return TypedAt(self.typed(form, leaves))

    @cached_property
    def pulled(self) -> PulledBack:
        """The pullback of this function."""
        return PulledBack(self)

    @cached_property
    def pushed(self) -> PushedForward:
        """The pushforward of this function."""
        return PushedForward(self)


class TypedAt(FlatAt):
    """A `Typed` function, ready to be differentiated."""

    def __init__(self, typed: Typed) -> None:
        self._typed = typed
        self._at = linearised(typed.function, typed.arrays, {}, when=When.BEFORE_PULLBACK)
        self._results: list[Array] = self._at.out
        self._places = typed.result_places(self._results)
        self.parts = [ArrayPart(self._results[place.number], place.path) for place in self._places]

    def pull(self, bars: Sequence[Any], wanted: Sequence[bool]) -> list[ArrayPart]:
        pairs = zip(self._typed.places, wanted, strict=True)
        places = [place for place, is_wanted in pairs if is_wanted]
        if None in places:
            raise error("SR0478")
        array_places = [place for place in places if place is not None]
        numbers = sorted({place.number for place in array_places})
        out_bar = self._typed.bars(self._results, bars)
        gradients = dict(zip(numbers, self._at.pull(out_bar, numbers, None), strict=True))
        return [ArrayPart(gradients[place.number], place.path) for place in array_places]

    def push(self, dots: Sequence[Any]) -> list[ArrayPart | None]:
        moved = self._at.push(self._typed.dots(dots))
        return moved_parts(self.parts, self._places, moved)


@dataclass(frozen=True, slots=True)
class DerivativeForm:
    """The form of a derivative: that of the primal, and which tensors and leaves take part."""

    form: int
    tensors: tuple[bool, ...]
    """For each tensor of the arguments, True if it takes part."""
    leaves: tuple[bool, ...]
    """For each leaf of the result, True if it takes part."""


class LinearMap(Flat):
    """A linear map of derivatives: takes the tensors of the primal, then the mapped inputs."""

    mode: Mode
    """The mode in which a kernel computes the map."""

    def __init__(self, primal: Flat) -> None:
        super().__init__()
        self.primal = primal

    @property
    def is_traced(self) -> bool:
        return True

    @property
    @abstractmethod
    def transpose(self) -> LinearMap:
        """The transposed map, which has the same forms."""

    @abstractmethod
    def narrowed(self, form: int, inputs: Sequence[int], wanted: Sequence[int]) -> DerivativeForm:
        """The form restricted to these positions among the mapped inputs and the results."""

    @abstractmethod
    def mapped(self, form: int, primal: FlatAt, inputs: Sequence[HostArray]) -> list[ArrayPart]:
        """The requested derivatives, from the mapped inputs."""

    def primal_at(self, form: int, leaves: CallLeaves) -> FlatAt:
        """The primal at its arguments."""
        return self.primal.at(self.asked(form).form, leaves)

    def check(
        self, form: int, leaves: CallLeaves, mode: Mode = Mode.PRIMAL, moving: Sequence[bool] = ()
    ) -> None:
        if self.primal.is_traced:
            self.typed(form, leaves).outline()
            return
        asked = self.asked(form)
        own, _ = self.taken_apart(form, leaves.tensors)
        self.primal.check(asked.form, leaves.with_tensors(own), self.mode, asked.tensors)

    def taken_apart(self, form: int, tensors: Sequence[T]) -> tuple[Sequence[T], Sequence[T]]:
        """The tensors of the primal, and the mapped inputs."""
        first = len(self.asked(form).tensors)
        return tensors[:first], tensors[first:]

    def asked(self, form: int) -> DerivativeForm:
        """The form with this number."""
        return self.forms[form]

    def _typed_primal(self, form: int, leaves: CallLeaves) -> tuple[Typed, Sequence[HostArray]]:
        own, mapped = self.taken_apart(form, leaves.tensors)
        return self.primal.typed(self.asked(form).form, leaves.with_tensors(own)), mapped


class PulledBack(LinearMap):
    """The pullback of a function: its tensors, then cotangents of its leaves -> gradients."""

    mode = Mode.BACKWARD

    @property
    def transpose(self) -> LinearMap:
        return self.primal.pushed

    def narrowed(self, form: int, inputs: Sequence[int], wanted: Sequence[int]) -> DerivativeForm:
        asked = self.asked(form)
        tensors, leaves = _narrowed(asked.tensors, wanted), _narrowed(asked.leaves, inputs)
        return DerivativeForm(asked.form, tensors, leaves)

    def mapped(self, form: int, primal: FlatAt, inputs: Sequence[HostArray]) -> list[ArrayPart]:
        asked = self.asked(form)
        return primal.pull(_in_places(asked.leaves, inputs), asked.tensors)

    def typed(self, form: int, leaves: CallLeaves) -> Typed:
        asked = self.asked(form)
        primal, bars = self._typed_primal(form, leaves)
        results = primal.outline()
        cotangents = primal.bars(results, _in_places(asked.leaves, bars))
        wanted = [place for place in _where(asked.tensors, primal.places) if place is not None]
        numbers = sorted({place.number for place in wanted})

        def pulled(*arrays: Array) -> list[Array]:
            rest = iter(arrays[len(primal.arrays) :])
            _, pullback = vjp(primal.function, *arrays[: len(primal.arrays)])
            gradients = pullback([None if bar is None else next(rest) for bar in cotangents])
            return [gradients[number] for number in numbers]

        given_places = _where(asked.leaves, primal.result_places(results))
        return _behind(primal, pulled, cotangents, given_places, _renumbered(wanted, numbers))


class PushedForward(LinearMap):
    """The pushforward of a function: its tensors, then their tangents -> tangents of its leaves."""

    mode = Mode.FORWARD

    @property
    def transpose(self) -> LinearMap:
        return self.primal.pulled

    def narrowed(self, form: int, inputs: Sequence[int], wanted: Sequence[int]) -> DerivativeForm:
        asked = self.asked(form)
        tensors, leaves = _narrowed(asked.tensors, inputs), _narrowed(asked.leaves, wanted)
        return DerivativeForm(asked.form, tensors, leaves)

    def mapped(self, form: int, primal: FlatAt, inputs: Sequence[HostArray]) -> list[ArrayPart]:
        asked = self.asked(form)
        moved = primal.push(_in_places(asked.tensors, inputs))
        return [part for part in _where(asked.leaves, moved) if part is not None]

    def typed(self, form: int, leaves: CallLeaves) -> Typed:
        asked = self.asked(form)
        primal, dots = self._typed_primal(form, leaves)
        tangents = primal.dots(_in_places(asked.tensors, dots))
        wanted = _where(asked.leaves, primal.result_places(primal.outline()))
        numbers = sorted({place.number for place in wanted})

        def pushed(*arrays: Array) -> list[Array]:
            rest = iter(arrays[len(primal.arrays) :])
            moving = [None if tangent is None else next(rest) for tangent in tangents]
            _, out_dots = jvp(primal.function, arrays[: len(primal.arrays)], moving)
            return [out_dots[number] for number in numbers]

        given_places = [p for p in _where(asked.tensors, primal.places) if p is not None]
        return _behind(primal, pushed, tangents, given_places, _renumbered(wanted, numbers))


def _behind(
    primal: Typed,
    function: Callable[..., list[Array]],
    derivatives: Sequence[Array | None],
    given_places: Sequence[ArrayPlace],
    result_places: list[ArrayPlace],
) -> Typed:
    """A derivative of `primal`, which takes the input derivatives after the arrays of `primal`."""
    numbers = [k for k, derivative in enumerate(derivatives) if derivative is not None]
    behind = _renumbered(given_places, numbers, len(primal.arrays))
    return Typed(
        function,
        [*primal.arrays, *(derivative for derivative in derivatives if derivative is not None)],
        [*primal.places, *behind],
        lambda _: result_places,
    )


def _renumbered(
    places: Sequence[ArrayPlace], numbers: Sequence[int], first: int = 0
) -> list[ArrayPlace]:
    """The places, with array ``numbers[k]`` renumbered to ``first + k``."""
    return [ArrayPlace(first + numbers.index(place.number), place.path) for place in places]


def _in_places(mask: Sequence[bool], items: Sequence[T]) -> list[T | None]:
    """The items at the positions where `mask` is true, and `None` elsewhere."""
    rest = iter(items)
    return [next(rest) if is_present else None for is_present in mask]


def _where(mask: Sequence[bool], items: Sequence[T]) -> list[T]:
    """The items where `mask` is true."""
    return [item for item, is_set in zip(items, mask, strict=True) if is_set]


def _narrowed(mask: Sequence[bool], positions: Sequence[int]) -> tuple[bool, ...]:
    """`mask`, restricted to these positions among its true entries."""
    numbers = count()
    return tuple(is_set and next(numbers) in positions for is_set in mask)
