"""A kernel, a graph, an entry of a build, or a Python function as a function of flat lists."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from shaderad.arrays import trees
from shaderad.arrays.arrays import Array, array, is_host_array
from shaderad.arrays.tape import When
from shaderad.calls.arguments import typed_arguments
from shaderad.calls.bindable_graphs import BindableGraph
from shaderad.calls.call import device_of
from shaderad.calls.graphs import GraphFunction
from shaderad.diagnostics import error, text_of
from shaderad.differentiate.forms import check_keywords
from shaderad.differentiate.kernel_at import kernel_at
from shaderad.differentiate.leaves import Linearised
from shaderad.differentiate.linearised import linearised
from shaderad.ir import types
from shaderad.language.signatures import Launchable
from shaderad.lower.bindings import Mode
from shaderad.wrapped.flat import (
    ArrayPlace,
    Flat,
    FlatAt,
    Typed,
    TypedAt,
    moved_parts,
)
from shaderad.wrapped.parts import ArrayPart, Outline, joined, parts_in, split
from shaderad.wrapped.structures import (
    CallLeaves,
    Leaves,
    Structure,
    derivative_tree,
    structure_of,
    tensor_count,
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

    def called(self, form: int, leaves: CallLeaves) -> Result:
        """The result of a call that is not differentiated."""
        args, keywords = self._arguments(form, leaves)
        return Result(self.function(*args, **keywords))

    @abstractmethod
    def outlined(self, form: int, leaves: CallLeaves) -> tuple[Result, list[Outline]]:
        """The result without computing it, and the shape and dtype of each of its leaves."""

    @abstractmethod
    def at(self, form: int, leaves: CallLeaves) -> PrimalAt:
        """The function at these arguments, with its result."""

    def _arguments(self, form: int, leaves: CallLeaves) -> tuple[tuple[Any, ...], dict[str, Any]]:
        args, keywords = self._tree(form, leaves.tensors, leaves)
        return args, {**self.call, **keywords}

    def _tree(self, form: int, tensors: Sequence[Any], leaves: CallLeaves) -> Any:
        return leaves.tree(self.forms[form], tensors)


class Result:
    """The result of a call, split into its leaves."""

    def __init__(self, out: Any) -> None:
        self.out = out
        self.parts: list[ArrayPart] = []
        self.arrays: list[Array] = []
        self.places: list[ArrayPlace] = []
        """The place of each part in `arrays`."""
        self.numbers = Leaves()
        self.structure = structure_of(out, self._place, "result")

    @property
    def noted(self) -> Noted:
        """The structure and the numbers of the result, without the content of its arrays."""
        return self.structure, tuple(self.numbers.whole), tuple(self.numbers.real)

    def _place(self, leaf: Any) -> Structure | None:
        if not isinstance(leaf, Array):
            return self.numbers.number(leaf.item() if isinstance(leaf, np.generic) else leaf)
        previous_count = len(self.parts)
        structure = split(leaf, self.parts)
        number = len(self.arrays)
        self.arrays.append(leaf)
        self.places += [ArrayPlace(number, part.path) for part in self.parts[previous_count:]]
        return structure


class TreeFunction(Primal):
    """A kernel or a graph, which converts host arrays to its parameter types."""

    def __init__(self, function: Launchable | BindableGraph, call: Mapping[str, Any]) -> None:
        super().__init__(function, call)

    @property
    def is_traced(self) -> bool:
        return isinstance(self.function, GraphFunction)

    def at(self, form: int, leaves: CallLeaves) -> PrimalAt:
        args, keywords = self._arguments(form, leaves)
        primal_run = linearised(self.function, args, keywords, when=When.BEFORE_PULLBACK)
        return TreeAt(primal_run, self._structures(form))

    def outlined(self, form: int, leaves: CallLeaves) -> tuple[Result, list[Outline]]:
        args, keywords = self._arguments(form, leaves)
        primal_run = linearised(self.function, args, keywords, when=When.NEVER)
        result = Result(primal_run.out)
        return result, [part.outline for part in result.parts]

    def check(
        self, form: int, leaves: CallLeaves, mode: Mode = Mode.PRIMAL, moving: Sequence[bool] = ()
    ) -> None:
        if isinstance(self.function, Launchable):
            args, keywords = self._arguments(form, leaves)
            kernel_run = kernel_at(self.function, args, keywords, when=When.NEVER)
            own = _by_argument(self._structures(form), moving) if moving else []
            kernel_run.compile(mode, [k for k, flags in enumerate(own) if any(flags)])

    def typed(self, form: int, leaves: CallLeaves) -> Typed:
        args, keywords = self._arguments(form, leaves)
        trees_on_device = self._on_device(args, keywords)
        parts = [
            part
            for structure, tree in zip(self._structures(form), trees_on_device, strict=True)
            for part in parts_in(structure, tree)
        ]
        floats = [part for part in parts if part is not None and part.is_float]
        arrays = [*{id(part.array): part.array for part in floats}.values()]
        number_by_array = {id(x): k for k, x in enumerate(arrays)}
        is_float = [part is not None and part.is_float for part in parts]
        places = [
            ArrayPlace(number_by_array[id(part.array)], part.path)
            if part and is_part_float
            else None
            for part, is_part_float in zip(parts, is_float, strict=True)
        ]

        def function(*others: Array) -> list[Array]:
            def put(leaf: Any) -> Any:
                number = number_by_array.get(id(leaf))
                return leaf if number is None else others[number]

            out = self.function(*trees.mapped(put, tuple(trees_on_device)), **keywords)
            return [leaf for leaf in trees.leaves(out) if isinstance(leaf, Array)]

        return Typed(function, arrays, places, _split_places)

    def _on_device(self, args: tuple[Any, ...], keywords: Mapping[str, Any]) -> Sequence[Any]:
        """The positional arguments on a device, in the types that the function takes."""
        device = device_of(keywords.get("device"), args)
        if isinstance(self.function, BindableGraph):
            bound = self.function.bound(args, keywords).arguments
            return bound.filled(bound.arrays)[: len(args)]
        assert isinstance(self.function, Launchable)

        def put(leaf: Any) -> Any:
            return array(leaf, device=device) if _is_floats(leaf) else leaf

        # Targets of pointers may still be host arrays.
        return trees.mapped(put, typed_arguments(self.function, args, device))

    def _structures(self, form: int) -> Sequence[Structure]:
        args, _ = self.forms[form].parts
        return args.parts

    def _tree(self, form: int, tensors: Sequence[Any], leaves: CallLeaves) -> Any:
        return leaves.tree(with_dicts(self.forms[form]), tensors)


def _is_floats(leaf: Any) -> bool:
    return is_host_array(leaf) and leaf.dtype.kind == "f"


def _split_places(results: Sequence[Array]) -> list[ArrayPlace]:
    places: list[ArrayPlace] = []
    for number, x in enumerate(results):
        parts: list[ArrayPart] = []
        split(x, parts)
        places += [ArrayPlace(number, part.path) for part in parts]
    return places


class PrimalAt(FlatAt):
    """A function of trees at its arguments."""

    result: Result


class TreeAt(PrimalAt):
    """A kernel or graph at its arguments."""

    def __init__(self, linear: Linearised, structures: Sequence[Structure]) -> None:
        self._linear = linear
        self._structures = structures
        self.result = Result(linear.out)
        self.parts = self.result.parts

    def pull(self, bars: Sequence[Any], wanted: Sequence[bool]) -> list[ArrayPart]:
        own = _by_argument(self._structures, wanted)
        positions = [k for k, flags in enumerate(own) if any(flags)]
        is_positional = sum(map(sum, own)) == sum(wanted)
        if not (is_positional and all(map(self._linear.is_differentiable, positions))):
            raise error("SR0478")
        gradients = self._linear.pull(self._out_bar(bars), positions, None)
        wanted_parts: list[ArrayPart] = []
        for k, gradient in zip(positions, gradients, strict=True):
            pairs = zip(parts_in(self._structures[k], gradient), own[k], strict=True)
            wanted_parts += [_present(part) for part, is_wanted in pairs if is_wanted]
        return wanted_parts

    def push(self, dots: Sequence[Any]) -> list[ArrayPart | None]:
        remaining = iter(dots)
        tangents = [derivative_tree(structure, remaining) for structure in self._structures]
        moving = [k for k, tangent in enumerate(tangents) if tangent is not None]
        if any(leaf is not None for leaf in remaining):
            raise error("SR0478")
        if not all(map(self._linear.is_differentiable, moving)):
            raise error("SR0478")
        result_dots: list[Any] = []

        def collect(leaf: Any, tangent: Any) -> None:
            if isinstance(leaf, Array):
                result_dots.append(tangent)

        trees.mapped(collect, self.result.out, self._linear.push(tangents))
        return moved_parts(self.parts, self.result.places, result_dots)

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
    """A mask of all tensors, split by positional argument."""
    rest = iter(mask)
    return [[next(rest) for _ in range(tensor_count(structure))] for structure in structures]


def _present(part: ArrayPart | None) -> ArrayPart:
    if part is None or not part.is_float:
        raise error("SR0478")
    return part


class PlainFunction(Primal):
    """Any other Python function, which is called with one array for each tensor."""

    def __init__(self, function: Function, call: Mapping[str, Any]) -> None:
        super().__init__(function, call)
        check_keywords(call)

    @property
    def is_traced(self) -> bool:
        return True

    def check(
        self, form: int, leaves: CallLeaves, mode: Mode = Mode.PRIMAL, moving: Sequence[bool] = ()
    ) -> None:
        """Does nothing, because `outlined` already traces the function."""

    def called(self, form: int, leaves: CallLeaves) -> Result:
        return self._result(form, leaves, self._uploaded(leaves))

    def at(self, form: int, leaves: CallLeaves) -> PrimalAt:
        results: list[Result] = []
        return PlainAt(self._typed(form, leaves, results), results)

    def outlined(self, form: int, leaves: CallLeaves) -> tuple[Result, list[Outline]]:
        results: list[Result] = []
        outputs = self._typed(form, leaves, results).outline()
        places = results[-1].places
        return results[-1], [
            ArrayPart(outputs[place.number], place.path).outline for place in places
        ]

    def typed(self, form: int, leaves: CallLeaves) -> Typed:
        return self._typed(form, leaves, [])

    def _typed(self, form: int, leaves: CallLeaves, results: list[Result]) -> Typed:
        arrays = self._uploaded(leaves)
        numbers = [k for k, x in enumerate(arrays) if types.is_float(x.element)]
        places = [ArrayPlace(numbers.index(k), ()) if k in numbers else None
                  for k in range(len(arrays))]  # fmt: skip

        def function(*others: Array) -> list[Array]:
            replaced = list(arrays)
            for k, other in zip(numbers, others, strict=True):
                replaced[k] = other
            results.append(self._result(form, leaves, replaced))
            return results[-1].arrays

        def places_of(outputs: Sequence[Array]) -> list[ArrayPlace]:
            return results[-1].places if results else _split_places(outputs)

        return Typed(function, [arrays[k] for k in numbers], places, places_of)

    def _result(self, form: int, leaves: CallLeaves, arrays: Sequence[Array]) -> Result:
        args, keywords = self._tree(form, arrays, leaves)
        return Result(self.function(*args, **self.call, **keywords))

    def _uploaded(self, leaves: CallLeaves) -> list[Array]:
        device = device_of(self.call.get("device"), leaves.textures)
        return [array(x, device=device) for x in leaves.tensors]


class PlainAt(TypedAt, PrimalAt):
    """A Python function at its arguments, with the structure of its result."""

    def __init__(self, typed: Typed, results: list[Result]) -> None:
        super().__init__(typed)
        self.result = results[-1]


def primal_of(function: Function, call: Mapping[str, Any]) -> Primal:
    """The function of flat lists for a function of trees.

    Raises:
        DerivativeError: SR0466 if `function` is not callable, SR0453 for an array of floats in
            `call`.
    """
    if isinstance(function, Launchable) or (
        isinstance(function, BindableGraph) and not function.is_variadic
    ):
        return TreeFunction(function, call)
    if not callable(function):
        raise error("SR0466", found=text_of(function))
    return PlainFunction(function, call)
