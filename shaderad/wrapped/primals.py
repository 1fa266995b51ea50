"""A kernel, a graph, an entry of a build, or a Python function as a function of flat lists."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from shaderad.arrays import trees
from shaderad.arrays.arrays import Array, array, is_host_array
from shaderad.arrays.tape import When
from shaderad.diagnostics import error
from shaderad.differentiate.forms import check_keywords
from shaderad.differentiate.kernel_at import kernel_at
from shaderad.differentiate.linearised import Linearised, linearised
from shaderad.execute.bindable_graphs import BindableGraph
from shaderad.execute.call import device_of
from shaderad.execute.graphs import GraphFunction
from shaderad.ir import types
from shaderad.language.signatures import Launchable
from shaderad.lower.bindings import Mode
from shaderad.trace.arguments import typed_arguments
from shaderad.wrapped.flat import ArrayPlace, Flat, FlatAt, Given, Typed, TypedAt, moved_parts
from shaderad.wrapped.parts import ArrayPart, Outline, joined, parts_in, split
from shaderad.wrapped.structures import (
    Leaves,
    Structure,
    derivative_tree,
    structure_of,
    tensor_count,
    tree_of,
    with_dicts,
)

Function = Callable[..., Any]
Noted = tuple[Structure, tuple[int, ...], tuple[float, ...]]
"""The structure of a result, and the numbers in it."""


class Primal(Flat):
    """A function of trees of arrays.

    A form is the structure of its positional arguments and call keywords.
    """

    def __init__(self, function: Function, call: Mapping[str, Any]) -> None:
        super().__init__()
        self.function = function
        self.call = dict(call)

    def called(self, form: int, given: Given) -> Result:
        """The result, of a call that is not differentiated."""
        args, keywords = self._arguments(form, given)
        return Result(self.function(*args, **keywords))

    @abstractmethod
    def outlined(self, form: int, given: Given) -> tuple[Result, list[Outline]]:
        """The result, which is not computed, and shape and dtype of each leaf of it."""

    @abstractmethod
    def at(self, form: int, given: Given) -> PrimalAt:
        """The function at these arguments, with its result."""

    def _arguments(self, form: int, given: Given) -> tuple[tuple[Any, ...], dict[str, Any]]:
        args, keywords = self._tree(form, given.tensors, given)
        return args, {**self.call, **keywords}

    def _tree(self, form: int, tensors: Sequence[Any], given: Given) -> Any:
        return tree_of(self.forms[form], iter(tensors), iter(given.whole), iter(given.real))


class Result:
    """The result of a call, taken apart."""

    def __init__(self, out: Any) -> None:
        self.out = out
        self.parts: list[ArrayPart] = []
        self.arrays: list[Array] = []
        self.places: list[ArrayPlace] = []
        """The array of each part."""
        self.numbers = Leaves()
        self.structure = structure_of(out, self._place, "result")

    @property
    def noted(self) -> Noted:
        """All of it but the content of its arrays."""
        return self.structure, tuple(self.numbers.whole), tuple(self.numbers.real)

    def _place(self, leaf: Any) -> Structure | None:
        if not isinstance(leaf, Array):
            return self.numbers.number(leaf.item() if isinstance(leaf, np.generic) else leaf)
        known = len(self.parts)
        structure = split(leaf, self.parts)
        number = len(self.arrays)
        self.arrays.append(leaf)
        self.places += [ArrayPlace(number, part.path) for part in self.parts[known:]]
        return structure


class TreeFunction(Primal):
    """A kernel or a graph, which converts host arrays to what it takes."""

    def __init__(self, function: Launchable | BindableGraph, call: Mapping[str, Any]) -> None:
        super().__init__(function, call)

    @property
    def is_traced(self) -> bool:
        return isinstance(self.function, GraphFunction)

    def at(self, form: int, given: Given) -> PrimalAt:
        args, keywords = self._arguments(form, given)
        at = linearised(self.function, args, keywords, when=When.BEFORE_PULLBACK)
        return TreeAt(at, self._structures(form))

    def outlined(self, form: int, given: Given) -> tuple[Result, list[Outline]]:
        args, keywords = self._arguments(form, given)
        at = linearised(self.function, args, keywords, when=When.NEVER)
        result = Result(at.out)
        return result, [part.outline for part in result.parts]

    def check(
        self, form: int, given: Given, mode: Mode = Mode.PRIMAL, moving: Sequence[bool] = ()
    ) -> None:
        if isinstance(self.function, Launchable):
            args, keywords = self._arguments(form, given)
            at = kernel_at(self.function, args, keywords, when=When.NEVER)
            own = _by_argument(self._structures(form), moving) if moving else []
            at.prepare(mode, [k for k, one in enumerate(own) if any(one)])

    def typed(self, form: int, given: Given) -> Typed:
        args, keywords = self._arguments(form, given)
        known = self._on_device(args, keywords)
        parts = [
            part
            for one, tree in zip(self._structures(form), known, strict=True)
            for part in parts_in(one, tree)
        ]
        floats = [part for part in parts if part is not None and part.is_float]
        arrays = [*{id(part.array): part.array for part in floats}.values()]
        number_by_array = {id(x): k for k, x in enumerate(arrays)}
        is_float = [part is not None and part.is_float for part in parts]
        places = [
            ArrayPlace(number_by_array[id(part.array)], part.path) if part and one else None
            for part, one in zip(parts, is_float, strict=True)
        ]

        def function(*others: Array) -> list[Array]:
            def put(leaf: Any) -> Any:
                number = number_by_array.get(id(leaf))
                return leaf if number is None else others[number]

            out = self.function(*trees.mapped(put, tuple(known)), **keywords)
            return [leaf for leaf in trees.leaves(out) if isinstance(leaf, Array)]

        return Typed(function, arrays, places, _split_places)

    def _on_device(self, args: tuple[Any, ...], keywords: Mapping[str, Any]) -> Sequence[Any]:
        """The positional arguments, on a device in the types that the function takes."""
        device = device_of(keywords.get("device"), args)
        if isinstance(self.function, BindableGraph):
            bound = self.function.bound(args, keywords).arguments
            return bound.filled(bound.arrays)[: len(args)]
        assert isinstance(self.function, Launchable)

        def put(leaf: Any) -> Any:
            return array(leaf, device=device) if _is_floats(leaf) else leaf

        # Behind pointers there may be host arrays left.
        return trees.mapped(put, typed_arguments(self.function, args, device))

    def _structures(self, form: int) -> Sequence[Structure]:
        _, _, (args, _) = self.forms[form]
        return args[2]

    def _tree(self, form: int, tensors: Sequence[Any], given: Given) -> Any:
        structure = with_dicts(self.forms[form])
        return tree_of(structure, iter(tensors), iter(given.whole), iter(given.real))


def _is_floats(leaf: Any) -> bool:
    return is_host_array(leaf) and leaf.dtype.kind == "f"


def _split_places(results: Sequence[Array]) -> list[ArrayPlace]:
    found: list[ArrayPlace] = []
    for number, x in enumerate(results):
        parts: list[ArrayPart] = []
        split(x, parts)
        found += [ArrayPlace(number, part.path) for part in parts]
    return found


class PrimalAt(FlatAt):
    """A function of trees at its arguments."""

    result: Result


class TreeAt(PrimalAt):
    """A kernel or graph at its arguments."""

    def __init__(self, at: Linearised, structures: Sequence[Structure]) -> None:
        self._at = at
        self._structures = structures
        self.result = Result(at.out)
        self.parts = self.result.parts

    def pull(self, bars: Sequence[Any], wanted: Sequence[bool]) -> list[ArrayPart]:
        own = _by_argument(self._structures, wanted)
        positions = [k for k, one in enumerate(own) if any(one)]
        is_positional = sum(map(sum, own)) == sum(wanted)
        if not (is_positional and all(map(self._at.is_differentiable, positions))):
            raise error("SR0478")
        gradients = self._at.pull(self._out_bar(bars), positions, None)
        found: list[ArrayPart] = []
        for k, gradient in zip(positions, gradients, strict=True):
            pairs = zip(parts_in(self._structures[k], gradient), own[k], strict=True)
            found += [_known(part) for part, is_wanted in pairs if is_wanted]
        return found

    def push(self, dots: Sequence[Any]) -> list[ArrayPart | None]:
        remaining = iter(dots)
        tangents = [derivative_tree(one, remaining) for one in self._structures]
        moving = [k for k, one in enumerate(tangents) if one is not None]
        if any(one is not None for one in remaining):
            raise error("SR0478")
        if not all(map(self._at.is_differentiable, moving)):
            raise error("SR0478")
        found: list[Any] = []

        def collect(leaf: Any, tangent: Any) -> None:
            if isinstance(leaf, Array):
                found.append(tangent)

        trees.mapped(collect, self.result.out, self._at.push(tangents))
        return moved_parts(self.parts, self.result.places, found)

    def _out_bar(self, bars: Sequence[Any]) -> Any:
        remaining = iter(bars)

        def bar(leaf: Any) -> Any:
            if not isinstance(leaf, Array):
                return None
            parts: list[ArrayPart] = []
            split(leaf, parts)
            return joined(leaf, [next(remaining) for _ in parts])

        return trees.mapped(bar, self.result.out)


def _by_argument(structures: Sequence[Structure], mask: Sequence[bool]) -> list[list[bool]]:
    """A mask of all tensors, by positional argument."""
    rest = iter(mask)
    return [[next(rest) for _ in range(tensor_count(one))] for one in structures]


def _known(part: ArrayPart | None) -> ArrayPart:
    if part is None or not part.is_float:
        raise error("SR0478")
    return part


class PlainFunction(Primal):
    """Any other Python function, over arrays with the leaves of its arguments."""

    def __init__(self, function: Function, call: Mapping[str, Any]) -> None:
        super().__init__(function, call)
        check_keywords(call)

    @property
    def is_traced(self) -> bool:
        return True

    def check(
        self, form: int, given: Given, mode: Mode = Mode.PRIMAL, moving: Sequence[bool] = ()
    ) -> None:
        """Nothing: its outline is a trace."""

    def called(self, form: int, given: Given) -> Result:
        return self._result(form, given, self._uploaded(given))

    def at(self, form: int, given: Given) -> PrimalAt:
        results: list[Result] = []
        return PlainAt(self._typed(form, given, results), results)

    def outlined(self, form: int, given: Given) -> tuple[Result, list[Outline]]:
        results: list[Result] = []
        found = self._typed(form, given, results).outline()
        places = results[-1].places
        return results[-1], [ArrayPart(found[one.number], one.path).outline for one in places]

    def typed(self, form: int, given: Given) -> Typed:
        return self._typed(form, given, [])

    def _typed(self, form: int, given: Given, results: list[Result]) -> Typed:
        arrays = self._uploaded(given)
        numbers = [k for k, x in enumerate(arrays) if types.is_float(x.element)]
        places = [ArrayPlace(numbers.index(k), ()) if k in numbers else None
                  for k in range(len(arrays))]  # fmt: skip

        def function(*others: Array) -> list[Array]:
            known = list(arrays)
            for k, other in zip(numbers, others, strict=True):
                known[k] = other
            results.append(self._result(form, given, known))
            return results[-1].arrays

        def places_of(found: Sequence[Array]) -> list[ArrayPlace]:
            return results[-1].places if results else _split_places(found)

        return Typed(function, [arrays[k] for k in numbers], places, places_of)

    def _result(self, form: int, given: Given, arrays: Sequence[Array]) -> Result:
        args, keywords = self._tree(form, arrays, given)
        return Result(self.function(*args, **self.call, **keywords))

    def _uploaded(self, given: Given) -> list[Array]:
        device = device_of(self.call.get("device"), ())
        return [array(x, device=device) for x in given.tensors]


class PlainAt(TypedAt, PrimalAt):
    """A Python function at its arguments, with the structure of its result."""

    def __init__(self, typed: Typed, results: list[Result]) -> None:
        super().__init__(typed)
        self.result = results[-1]


def primal_of(function: Function, call: Mapping[str, Any]) -> Primal:
    """The function of flat lists for a function of trees.

    Raises:
        DerivativeError: SR0466 for what cannot be called, SR0453 for an array of floats that is
            given by keyword.
    """
    if isinstance(function, Launchable) or (
        isinstance(function, BindableGraph) and not function.is_variadic
    ):
        return TreeFunction(function, call)
    if not callable(function):
        raise error("SR0466", found=repr(function))
    return PlainFunction(function, call)
