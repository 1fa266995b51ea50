"""A call of a ``@sad.function`` from Python on numbers -> the interpreter, in float64.

Invariant: the result is that of a kernel except for rounding: ints wrap, values are copied, and
indices are checked. Vectors and matrices are NumPy arrays; structs are objects.
"""

from __future__ import annotations

import inspect
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from shaderad.arrays import trees
from shaderad.arrays.arrays import Array
from shaderad.arrays.syntax import SYNTAX
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

    On device arrays this is `sad.map`. On NumPy arrays, or if a parameter is an array, the Python
    body runs.

    Raises:
        CallError: SR0291 to SR0294 for arguments that do not match the parameters.
        LanguageError: Any error of the front end, at its Python line.
        ShapeError: SR0352 to SR0356, where an argument does not fit its parameter.
        BoundsError: SR0671 for an index out of range, SR0673 for a failed assertion, SR0674 for a
            division of ints by zero.
        LimitError: SR0672 for a loop that ran past its limit.
    """
    python = function.python
    argument_by_name = bound_arguments(python, inspect.signature(python), args, kwargs).arguments
    parameters = signature_of(function).parameters
    if not all(_is_value(argument_by_name[name], t) for name, t in parameters):
        if is_mapped(parameters, trees.leaves(tuple(argument_by_name.values()))):
            return SYNTAX.functions.called(function, *argument_by_name.values())
        return _by_element(function, args, kwargs)
    constants = {name: argument_by_name[name] for name, t in parameters if isinstance(t, ConstType)}
    program = standalone(function, constants)
    for p in program.function.parameters:
        # Checked like a uniform of a kernel, but the value keeps its double precision.
        buffers.to_storage(argument_by_name[p.name], p.type, p.name)
    values = [argument_by_name[p.name] for p in program.function.parameters]
    result, reports = call_once(program.function, values)
    for line in reports.printed:
        print(line.text, end="")  # noqa: T201
    for report in reports.reports:
        raise _error_of(function.shown_name, report)
    return _to_python(result, program.function.result, program.class_by_struct)


def _by_element(function: UserFunction, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Any:
    """Runs the Python body on whole arrays, where the functions of `sad` work by element."""
    token = by_element.set(True)
    try:
        return function.python(*args, **kwargs)
    finally:
        by_element.reset(token)


def is_mapped(parameters: Sequence[tuple[str, types.Type]], leaves: Sequence[Any]) -> bool:
    """True if a call with these values maps the function over the elements of arrays."""
    takes_values = not any(
        isinstance(t, types.BufferType | ConstType)
        or (isinstance(t, types.Struct) and t.holds_buffers)
        for _, t in parameters
    )
    return takes_values and any(isinstance(leaf, Array) for leaf in leaves)


def _is_value(argument: Any, t: types.Type) -> bool:
    """True if an argument is one value of type `t` rather than an array of such values."""
    if isinstance(t, ConstType):
        return not isinstance(argument, Array)
    if isinstance(t, types.Struct):
        info = info_of(argument)
        check_fields(argument, t, t.name)
        return info is not None and all(_is_value(getattr(argument, n), f) for n, f in t.fields)
    if isinstance(t, types.LocalArray) and isinstance(buffers.base_of(t), types.Struct):
        is_list = isinstance(argument, list | tuple)
        return is_list and all(_is_value(item, t.element) for item in cast("list[Any]", argument))
    if isinstance(t, types.BufferType | types.Pointer | types.Tuple | types.Pair):
        return False
    if any(isinstance(leaf, Array) for leaf in trees.leaves(argument)):
        return False
    kinds: tuple[type, ...] = (bool, int, float, np.generic, np.ndarray, list, tuple)
    try:
        return isinstance(argument, kinds) and np.shape(cast("Any", argument)) == shape_of(t)
    except Error:  # A tuple of arrays, which cannot be read here.
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
    """A result as a Python value: a number, NumPy array, struct, tuple or `None`."""
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
