"""A call of a ``@sad.function`` from Python on numbers -> the interpreter, in float64.

Invariant: what the function gives here is what it gives in a kernel, but for rounding: ints wrap,
values are copied, indices are checked. Vectors and matrices are NumPy arrays, structs objects.
"""

from __future__ import annotations

import inspect
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from shaderad.arrays import trees
from shaderad.arrays.arrays import Array
from shaderad.diagnostics import Error, error
from shaderad.diagnostics.call_errors import bound_arguments
from shaderad.frontend.kernels import standalone
from shaderad.interpret import ReportKind, RunReport, call_once
from shaderad.ir import types
from shaderad.ir.shown import row_of
from shaderad.language.annotations import ConstType, shape_of
from shaderad.language.intrinsics import by_element
from shaderad.language.signatures import signature_of
from shaderad.language.structs import check_fields, info_of
from shaderad.runtime import buffers

if TYPE_CHECKING:
    from shaderad.language.host import UserFunction


def call_function(function: UserFunction, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Any:
    """The function on numbers, vectors, matrices and structs.

    On device arrays it is `sad.map`; on NumPy's, or where it takes arrays itself, its Python body.

    Raises:
        CallError: SR0291 to SR0294 for arguments that the function has no parameters for.
        LanguageError: Whatever the front end refuses, at its Python line.
        ShapeError: SR0352 to SR0356, where an argument does not fit its parameter.
        BoundsError: SR0671 for an index out of range, SR0673 for a failed assertion, SR0674 for a
            division of ints by zero.
        LimitError: SR0672 for a loop that ran past its limit.
    """
    python = function.python
    given = bound_arguments(python, inspect.signature(python), args, kwargs).arguments
    parameters = signature_of(function).parameters
    if not all(_is_value(given[name], t) for name, t in parameters):
        if is_mapped(parameters, trees.leaves(tuple(given.values()))):
            from shaderad.functions.mapping import map as map_over

            return map_over(function, *given.values())
        return _by_element(function, args, kwargs)
    constants = {name: given[name] for name, t in parameters if isinstance(t, ConstType)}
    made = standalone(function, constants)
    for p in made.function.parameters:
        # The check is that of a kernel's uniforms; the value itself keeps its double precision.
        buffers.to_storage(given[p.name], p.type, p.name)
    values = [given[p.name] for p in made.function.parameters]
    result, reports = call_once(made.function, values)
    for line in reports.printed:
        print(line.text, end="")  # noqa: T201
    for report in reports.reports:
        raise _error_of(function.shown_name, report)
    return _to_python(result, made.function.result, made.class_by_struct)


def _by_element(function: UserFunction, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Any:
    """The Python body on whole arrays, whose names mean what they mean for an element."""
    token = by_element.set(True)
    try:
        return function.python(*args, **kwargs)
    finally:
        by_element.reset(token)


def is_mapped(parameters: Sequence[tuple[str, types.Type]], leaves: Sequence[Any]) -> bool:
    """True if a call on these values is one for each element of arrays."""
    takes_values = not any(
        isinstance(t, types.BufferType | ConstType)
        or (isinstance(t, types.Struct) and t.holds_buffers)
        for _, t in parameters
    )
    return takes_values and any(isinstance(one, Array) for one in leaves)


def _is_value(given: Any, t: types.Type) -> bool:
    """True if an argument has the form of one value of type `t`, and so is no array of them."""
    if isinstance(t, ConstType):
        return not isinstance(given, Array)
    if isinstance(t, types.Struct):
        info = info_of(given)
        check_fields(given, t, t.name)
        return info is not None and all(_is_value(getattr(given, n), f) for n, f in t.fields)
    if isinstance(t, types.LocalArray) and isinstance(buffers.base_of(t), types.Struct):
        is_list = isinstance(given, list | tuple)
        return is_list and all(_is_value(one, t.element) for one in cast("list[Any]", given))
    if isinstance(t, types.BufferType | types.Pointer | types.Tuple | types.Pair):
        return False
    if any(isinstance(one, Array) for one in trees.leaves(given)):
        return False
    kinds: tuple[type, ...] = (bool, int, float, np.generic, np.ndarray, list, tuple)
    try:
        return isinstance(given, kinds) and np.shape(cast("Any", given)) == shape_of(t)
    except Error:  # A tuple that holds arrays which cannot be read now.
        return False


def _error_of(name: str, report: RunReport) -> Error:
    code = _CODES[report.kind]
    return error(code, report.span, function=name, text=report.name, index=report.index,
                 length=report.length)  # fmt: skip


_CODES = {
    ReportKind.BOUNDS: "SR0671",
    ReportKind.LIMIT: "SR0672",
    ReportKind.ASSERT: "SR0673",
    ReportKind.DIVISION: "SR0674",
}


def _to_python(value: Any, t: types.Type, classes: Mapping[types.Struct, type]) -> Any:
    """A result as Python has it: numbers, NumPy arrays, structs, tuples, `None`."""
    if isinstance(t, types.Void):
        return None
    if isinstance(t, types.Tuple):
        parts = enumerate(t.elements)
        return tuple(_to_python(value[str(k)], element, classes) for k, element in parts)
    if isinstance(t, types.Struct):
        fields = {name: _to_python(value[name], f, classes) for name, f in t.fields}
        return classes[t](**fields)
    if isinstance(t, types.LocalArray) and isinstance(buffers.base_of(t), types.Struct):
        return [_to_python(row_of(value, k), t.element, classes) for k in range(t.count)]
    return value.item() if isinstance(t, types.Scalar) else value.copy()
