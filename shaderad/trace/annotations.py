"""``x: sad.Array[float3, "n"]`` of graph functions: what arguments must be, and names of sizes."""

from __future__ import annotations

import ast
import inspect
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import FunctionType, MethodType
from typing import Any, ForwardRef, cast

from shaderad.arrays.arguments import as_element, composed
from shaderad.arrays.arrays import Array, array_called
from shaderad.arrays.dtypes import ArrayAnnotation, element_type
from shaderad.arrays.syntax import SYNTAX
from shaderad.arrays.tape import recorded_view
from shaderad.device.devices import Device
from shaderad.diagnostics import Span, error
from shaderad.ir import sizes
from shaderad.ir.arrays import ArrayType
from shaderad.ir.types import FLOAT, Scalar, Type
from shaderad.language.annotations import TypeObject
from shaderad.trace.arguments import Arguments
from shaderad.trace.calls import Form, Placeholder, form_of


@dataclass(frozen=True, slots=True)
class Wanted:
    """The rule that an annotation states for one argument."""

    element: Type
    extents: tuple[str | int, ...] | None
    """A name or number an axis; `None` where any shape will do."""


class Annotations:
    """The annotations of a graph function, resolved when it is first called."""

    def __init__(self, function: FunctionType | MethodType, locals_: Mapping[str, object]) -> None:
        self._function = cast("FunctionType", getattr(function, "__func__", function))
        self._locals = dict(locals_)
        self._wanted: dict[str, Wanted] | None = None
        self._parameters = list(inspect.signature(function).parameters)

    def _resolved(self) -> dict[str, Wanted]:
        if self._wanted is None:
            found = inspect.get_annotations(self._function)
            self._wanted = {
                name: wanted
                for name, text in found.items()
                if name != "return" and (wanted := self._wanted_by(text)) is not None
            }
        return self._wanted

    def _wanted_by(self, annotation: object) -> Wanted | None:
        """The array that an annotation asks for; `None` where it states none."""
        found = self.evaluated(annotation)
        if isinstance(found, ArrayAnnotation):
            self._check_names(found.extents or ())
            return Wanted(element_type(found.element), found.extents)
        if isinstance(found, TypeObject):
            return Wanted(found.ir_type, ())
        return Wanted(FLOAT, ()) if found is float else None

    def _check_names(self, extents: Sequence[object]) -> None:
        for extent in extents:
            if isinstance(extent, str) and extent.startswith("$"):
                code = self._function.__code__
                raise error("SR0348", Span(code.co_filename, code.co_firstlineno), found=extent)

    def evaluated(self, annotation: object, space: Mapping[str, Any] | None = None) -> object:
        """The meaning of an annotation; `None` for those of other libraries.

        Formatters take the quotes off ``"n"`` where annotations are text anyway: a size that is
        no name known here is the name of a size.

        Args:
            annotation: As Python keeps it: a value, or its text.
            space: The names it may use; those of the function where nothing is given.

        Raises:
            LanguageError: SR0301 for an array of what is not known.
        """
        if isinstance(annotation, ForwardRef):
            annotation = annotation.__forward_arg__
        if not isinstance(annotation, str):
            return annotation
        known = {**self._function.__globals__, **self._locals} if space is None else dict(space)
        try:
            return eval(annotation, known)
        except NameError as failure:
            tree = ast.parse(annotation, mode="eval")
            naming = _SizeNames(known)
            text = ast.unparse(naming.visit(tree))
            try:
                return eval(text, known) if naming.has_found else None
            except NameError:
                code = self._function.__code__
                span = Span(code.co_filename, code.co_firstlineno)
                raise error("SR0301", span, found=annotation, why=failure) from None

    def applied(self, given: Mapping[str, Any], device: Device) -> tuple[Any, ...]:
        """The arguments, those that are annotated as arrays of their type.

        Raises:
            ShapeError: SR0345 for the number of axes, SR0346 for a size, SR0350 to SR0367 for the
                elements.
        """
        wanted = self._resolved()
        return tuple(
            converted(name, x, wanted[name], device) if name in wanted else x
            for name, x in given.items()
        )

    def conformed(self, given: inspect.BoundArguments) -> inspect.BoundArguments:
        """The arguments of a call in a trace; those annotated as vectors in any of their spellings.

        Raises:
            ShapeError: SR0330, where one holds something else.
        """
        for name, wanted in self._resolved().items():
            x = given.arguments.get(name)
            is_known = isinstance(x, Array) and x.element == wanted.element
            if not is_known and not isinstance(wanted.element, Scalar):
                given.arguments[name] = SYNTAX.functions.composed(x, wanted.element, name)
        return given

    def form(self, values: tuple[Any, ...], arguments: Arguments) -> Form:
        """The form of the arguments, with the user's names for sizes.

        Raises:
            ShapeError: SR0347, where two arguments disagree on a named size.
        """
        named = self._named_extents(values, arguments)
        names = frozenset(name for _, name, _ in named)
        plain = form_of([(x.element, x.shape) for x in arguments.arrays], names)
        numbers = self._numbers(arguments)
        if not named and not numbers:
            return plain
        symbol_by_name: dict[str, sizes.Size] = {}
        number_by_name: dict[str, tuple[int, str]] = {}
        for argument, name, number in named:
            known = number_by_name.setdefault(name, (number, argument))
            if known[0] != number:
                raise error("SR0347", name=name, left=known[1], first=known[0], right=argument,
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

    def _numbers(self, arguments: Arguments) -> set[tuple[int, int]]:
        """Array and axis of each extent that is a number by its annotation."""
        return {
            (leaf.position, axis)
            for name, leaf in zip(self._parameters, arguments.skeleton, strict=True)
            if isinstance(leaf, Placeholder) and name in self._resolved()
            for axis, extent in enumerate(self._resolved()[name].extents or ())
            if isinstance(extent, int)
        }

    def _named_extents(
        self, values: tuple[Any, ...], arguments: Arguments
    ) -> list[tuple[str, str, int]]:
        """Argument, name and number of each size that has a name."""
        found: list[tuple[str, str, int]] = []
        for name, leaf in zip(self._parameters, arguments.skeleton, strict=True):
            wanted = self._resolved().get(name)
            if wanted is None or not isinstance(leaf, Placeholder):
                continue
            shape = arguments.arrays[leaf.position].shape
            pairs = zip(wanted.extents or (), shape, strict=wanted.extents is not None)
            found += [(name, str(extent), n) for extent, n in pairs if not isinstance(extent, int)]
        return found


class _SizeNames(ast.NodeTransformer):
    """Puts bare names of sizes, which nobody knows, in quotes."""

    def __init__(self, space: Mapping[str, Any]) -> None:
        self.has_found = False
        """True if there is an array at all."""
        self._space = space

    def visit_Subscript(self, node: ast.Subscript) -> ast.AST:
        if not self._is_array(node.value):
            return self.generic_visit(node)
        self.has_found = True
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
        seen = as_element(x, wanted.element, name)
        found = recorded_view(
            x,
            seen,
            lambda bar: bar.viewed(x.element, x.shape),
            lambda dot: dot.viewed(seen.element, seen.shape),
        )
    else:
        found = array_called(name, x, wanted.element, device)
    if wanted.extents is None:
        return found
    if len(found.shape) != len(wanted.extents):
        raise error("SR0345", name=name, rank=len(wanted.extents), shape=found.shape)
    for extent, number in zip(wanted.extents, found.shape, strict=True):
        if isinstance(extent, int) and extent != number:
            raise error("SR0346", name=name, wanted=extent, shape=found.shape)
    return found
