"""The user's operator of a reduction, scan or segment_reduce -> the `Reducer` of the graph."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

from shaderad.device.lines import user_span
from shaderad.diagnostics import error, text_of
from shaderad.frontend.kernels import standalone
from shaderad.ir import nodes, ops
from shaderad.ir.arrays import Reducer
from shaderad.ir.prints import prints
from shaderad.ir.types import BufferType, Struct, Type, is_bool, scalar_of
from shaderad.language.annotations import ConstType
from shaderad.language.host import UserFunction
from shaderad.language.intrinsics import Intrinsic
from shaderad.language.signatures import signature_of

Operator = Intrinsic | UserFunction
"""`sad.add`, `mul`, `min`, `max`, `any`, `all`, `matmul`, or an associative ``@sad.function``."""

_REDUCERS = {
    ops.ADD: ops.ADD,
    ops.MUL: ops.MUL,
    ops.MIN: ops.MIN,
    ops.MAX: ops.MAX,
    ops.ANY_OF: ops.BIT_OR,
    ops.ALL_OF: ops.BIT_AND,
}


def reducer_of(op: Any, element: Type) -> Reducer:
    """The operator on elements of this type.

    Raises:
        LanguageError: SR0325 for an invalid operator, SR0326 for one of other elements.
    """
    if isinstance(op, Intrinsic) and op.op == ops.MATMUL:
        return _matrix_product(element)
    if isinstance(op, Intrinsic) and op.op in _REDUCERS:
        reducer = _REDUCERS[op.op]
        wants_bools = reducer in (ops.BIT_OR, ops.BIT_AND)
        if scalar_of(element) is None or is_bool(element) != wants_bools:
            raise _unsuited(op.op.name, "numbers or bools", element)
        return reducer
    if not isinstance(op, UserFunction):
        raise error("SR0325", user_span(), found=getattr(op, "__name__", text_of(op)))
    return function_on(op, element)


def function_on(op: UserFunction, element: Type) -> nodes.Function:
    """The IR of a ``@sad.function`` from two elements to one."""
    function = value_function(op)
    types = [p.type for p in function.parameters]
    if types != [element, element] or function.result != element:
        shown = ", ".join(map(str, types))
        raise _unsuited(op.shown_name, f"({shown}) and gives {function.result}", element)
    return function


def value_function(function: UserFunction) -> nodes.Function:
    """The IR of a ``@sad.function`` whose parameters must all be values.

    Raises:
        LanguageError: SR0331 if a parameter is an array or a constant, SR0265 if it prints.
    """
    for name, t in signature_of(function).parameters:
        is_array = isinstance(t, BufferType) or (isinstance(t, Struct) and t.holds_buffers)
        if is_array or isinstance(t, ConstType):
            raise error("SR0331", user_span(), function=function.shown_name, name=name, type=t)
    ir_function = standalone(function, {}).function
    for s in prints(ir_function.body):
        raise error("SR0265", s.span, function=function.shown_name)
    return ir_function


@lru_cache(maxsize=16)
def _matrix_product(element: Type) -> nodes.Function:
    if ops.result_type(ops.MATMUL, (element, element)) != element:
        raise _unsuited("matmul", "square matrices", element)
    parameters = tuple(nodes.Parameter(name=name, type=element) for name in ("a", "b"))
    args = tuple(nodes.Var(type=element, name=p.name) for p in parameters)
    product = nodes.Apply(type=element, op=ops.MATMUL, args=args)
    return nodes.Function(name="matrix_product", parameters=parameters, result=element,
                          body=(nodes.Return(value=product),), local_types={})  # fmt: skip


def _unsuited(name: str, takes: str, element: Type) -> Exception:
    return error("SR0326", user_span(), name=name, takes=takes, element=element)
