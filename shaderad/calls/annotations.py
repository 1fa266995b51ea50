"""``x: sad.Array[float3, "n"]`` in graph functions -> argument types, and names of sizes."""

from __future__ import annotations

import ast
import inspect
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from types import FunctionType, MethodType
from typing import Any, ForwardRef, cast

from shaderad.arguments.array import as_element
from shaderad.arguments.number import composed
from shaderad.arrays import trees
from shaderad.arrays.arrays import Array, array_called
from shaderad.arrays.dtypes import ArrayAnnotation, element_type
from shaderad.arrays.numbers import HostNumber
from shaderad.arrays.syntax import SYNTAX
from shaderad.calls.arguments import Arguments
from shaderad.device.devices import Device
from shaderad.device.words import words_of
from shaderad.diagnostics import Span, error
from shaderad.ir import sizes
from shaderad.ir.arrays import ArrayType
from shaderad.ir.types import FLOAT, ResourceType, Scalar, Type
from shaderad.language.annotations import TypeObject
from shaderad.runtime import buffers
from shaderad.trace.calls import Form, Placeholder, form_of


@dataclass(frozen=True, slots=True)
class Wanted:
    """The rule that an annotation states for one argument."""

    element: Type
    extents: tuple[str | int, ...] | None
    """A name or number for each axis; `None` if any shape is accepted."""
    resource: ResourceType | None = None
    """The type of a texture or sampler, in the signature of a build."""


class Annotations:
    """The annotations of a graph function, resolved when it is first called."""

    def __init__(self, function: FunctionType | MethodType, locals_: Mapping[str, object]) -> None:
        self._function = cast("FunctionType", getattr(function, "__func__", function))
        self._locals = dict(locals_)
        self._wanted: dict[str, Wanted] | None = None

    def _resolved(self) -> dict[str, Wanted]:
        if self._wanted is None:
            annotation_by_name = inspect.get_annotations(self._function)
            self._wanted = {
                name: wanted
                for name, text in annotation_by_name.items()
                if name != "return" and (wanted := self._wanted_by(text)) is not None
            }
        return self._wanted

    def _wanted_by(self, annotation: object) -> Wanted | None:
        """The array that an annotation requires; `None` if it does not describe an array."""
        meaning = self.evaluated(annotation)
        if isinstance(meaning, ArrayAnnotation):
            self._check_names(meaning.extents or ())
            return Wanted(element_type(meaning.element), meaning.extents)
        if isinstance(meaning, TypeObject):
            return Wanted(meaning.ir_type, ())
        return Wanted(FLOAT, ()) if meaning is float else None

    def _check_names(self, extents: Sequence[object]) -> None:
        for extent in extents:
            is_name = isinstance(extent, str) and not extent.startswith("$")
            is_count = type(extent) is int and extent >= 0
            if not is_name and not is_count:
                code = self._function.__code__
                raise error("SR0348", Span(code.co_filename, code.co_firstlineno), found=extent)

    def evaluated(self, annotation: object, space: Mapping[str, Any] | None = None) -> object:
        """The value of an annotation; `None` if it belongs to another library.

        Formatters remove the quotes from ``"n"`` when annotations are text anyway, so an undefined
        name in the place of a size is taken as the name of that size.

        Args:
            annotation: A value, or its text if Python keeps it as text.
            space: The names it may use; by default those of the function.

        Raises:
            LanguageError: SR0301 for an array whose element type is undefined.
        """
        if isinstance(annotation, ForwardRef):
            annotation = annotation.__forward_arg__
        if not isinstance(annotation, str):
            return annotation
        names = {**self._function.__globals__, **self._locals} if space is None else dict(space)
        try:
            return eval(annotation, names)
        except NameError as failure:
            tree = ast.parse(annotation, mode="eval")
            naming = _SizeNames(names)
            text = ast.unparse(naming.visit(tree))
            try:
                return eval(text, names) if naming.has_array else None
            except NameError:
                code = self._function.__code__
                span = Span(code.co_filename, code.co_firstlineno)
                raise error("SR0301", span, found=annotation, why=failure) from None

    def with_defaults(self, bound: inspect.BoundArguments) -> inspect.BoundArguments:
        """The arguments, with the defaults of omitted parameters that are annotated as arrays.

        All other defaults stay Python values in the function.
        """
        for name, wanted in self._resolved().items():
            default = bound.signature.parameters[name].default
            is_omitted = name not in bound.arguments and default is not inspect.Parameter.empty
            if is_omitted and not (isinstance(wanted.element, Scalar) and wanted.extents == ()):
                bound.arguments[name] = default
        return bound

    def applied(self, argument_by_name: Mapping[str, Any], device: Device) -> tuple[Any, ...]:
        """The arguments; those annotated as arrays are converted to arrays of that type.

        Raises:
            ShapeError: SR0345 for the number of axes, SR0346 for a size, SR0350 to SR0367 for the
                elements.
        """
        wanted = self._resolved()
        return tuple(
            converted(name, x, wanted[name], device) if name in wanted else x
            for name, x in argument_by_name.items()
        )

    def conformed(self, bound: inspect.BoundArguments) -> inspect.BoundArguments:
        """The arguments of a call in a trace; those annotated as vectors become one array each.

        Raises:
            ShapeError: SR0330, where one holds something else.
        """
        for name, wanted in self._resolved().items():
            if name not in bound.arguments:
                continue
            x = bound.arguments[name]
            is_known = isinstance(x, Array) and x.element == wanted.element
            if not is_known and not isinstance(wanted.element, Scalar):
                bound.arguments[name] = SYNTAX.functions.composed(x, wanted.element, name)
        return bound

    def form(self, parameters: Sequence[str], arguments: Arguments) -> Form:
        """The form of the arguments of these parameters, with the user's names for sizes.

        Raises:
            ShapeError: SR0347, where two arguments disagree on a named size.
        """
        named = self._named_extents(parameters, arguments)
        names = frozenset(name for _, name, _ in named)
        plain = form_of([(x.element, x.shape) for x in arguments.arrays], names)
        numbers = self._numbers(parameters, arguments)
        if not named and not numbers:
            return plain
        symbol_by_name: dict[str, sizes.Size] = {}
        number_by_name: dict[str, tuple[int, str]] = {}
        for argument, name, number in named:
            first, left = number_by_name.setdefault(name, (number, argument))
            if first != number:
                raise error("SR0347", name=name, left=left, first=first, right=argument,
                            second=number)  # fmt: skip
            symbol_by_name[name] = 1 if number == 1 else sizes.symbol(name)
        by_number = {number: symbol_by_name[name] for name, (number, _) in number_by_name.items()}
        types = tuple(
            ArrayType(x.element, tuple(n if (k, axis) in numbers else by_number.get(n, p)
                                       for axis, (n, p) in enumerate(zip(x.shape, t.shape,
                                                                         strict=True))))
            for k, (x, t) in enumerate(zip(arguments.arrays, plain.types, strict=True))
        )  # fmt: skip
        values_ = {name: number for name, (number, _) in number_by_name.items() if number != 1}
        return Form(types, {**plain.size_by_name, **values_})

    def _annotated(
        self, parameters: Sequence[str], arguments: Arguments
    ) -> Iterator[tuple[str, Placeholder]]:
        """The arguments that are annotated as arrays."""
        for name, (structure, leaves) in zip(parameters, arguments.each(), strict=True):
            is_array = name in self._resolved() and structure is trees.LEAF
            if is_array and isinstance(leaves[0], Placeholder):
                yield name, leaves[0]

    def _numbers(self, parameters: Sequence[str], arguments: Arguments) -> set[tuple[int, int]]:
        """The (array, axis) pairs whose extent is fixed to a number by the annotation."""
        return {
            (leaf.position, axis)
            for name, leaf in self._annotated(parameters, arguments)
            for axis, extent in enumerate(self._resolved()[name].extents or ())
            if isinstance(extent, int)
        }

    def _named_extents(
        self, parameters: Sequence[str], arguments: Arguments
    ) -> list[tuple[str, str, int]]:
        """Argument, name and number of each size that has a name."""
        named: list[tuple[str, str, int]] = []
        for name, leaf in self._annotated(parameters, arguments):
            wanted = self._resolved()[name]
            shape = arguments.arrays[leaf.position].shape
            pairs = zip(wanted.extents or (), shape, strict=wanted.extents is not None)
            named += [(name, str(extent), n) for extent, n in pairs if not isinstance(extent, int)]
        return named


class _SizeNames(ast.NodeTransformer):
    """Puts quotes around undefined names that stand where ``sad.Array`` expects a size."""

    def __init__(self, space: Mapping[str, Any]) -> None:
        self.has_array = False
        """True if the annotation contains an array."""
        self._space = space

    def visit_Subscript(self, node: ast.Subscript) -> ast.AST:
        if not self._is_array(node.value):
            return self.generic_visit(node)
        self.has_array = True
        if isinstance(node.slice, ast.Tuple):
            element, *extents = node.slice.elts
            node.slice.elts = [element, *map(self._named, extents)]
        return node

    def _is_array(self, node: ast.expr) -> bool:
        try:
            return eval(ast.unparse(node), dict(self._space)) is Array
        except (NameError, AttributeError):
            return False

    def _named(self, extent: ast.expr) -> ast.expr:
        if isinstance(extent, ast.Name) and extent.id not in self._space:
            return ast.Constant(extent.id)
        return extent


def converted(name: str, x: Any, wanted: Wanted, device: Device) -> Array:
    x = composed(x, wanted.element, name)
    if isinstance(x, Array):
        array = as_element(x, wanted.element, name)
    elif wanted.extents == ():
        array = _number(name, x, wanted.element, device)
    else:
        array = array_called(name, x, wanted.element, device)
    if wanted.extents is None:
        return array
    if len(array.shape) != len(wanted.extents):
        raise error("SR0345", name=name, rank=len(wanted.extents), shape=array.shape)
    for extent, number in zip(wanted.extents, array.shape, strict=True):
        if isinstance(extent, int) and extent != number:
            raise error("SR0346", name=name, wanted=extent, shape=array.shape)
    return array


def _number(name: str, x: Any, element: Type, device: Device) -> Array:
    """An argument without axes, which stays on the host."""
    storage, shape = buffers.to_storage(x, element, name)
    if shape:
        raise error("SR0345", name=name, rank=0, shape=shape)
    return HostNumber(device, element, words_of(storage, element), element)
