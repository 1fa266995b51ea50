"""What a body calls -> what is called in its place while debugging.

User functions and methods run as Python bodies too; primitives compute in NumPy on vectors;
constructors copy. ``fwd_diff`` and ``bwd_diff`` ask the interpreter, whose derivatives are those of
the rules.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from itertools import count, islice
from types import MappingProxyType, MethodType
from typing import Any

import numpy as np

from shaderad.debug.bodies import python_body
from shaderad.debug.values import (
    LocalArray,
    Pair,
    Shown,
    copied,
    fitted,
    from_numpy,
    in_kernel_form,
    zero,
)
from shaderad.frontend.annotations import (
    BUILTIN_TYPES,
    NUMPY_BY_KIND,
    Subscripted,
    TypeObject,
    resolve,
    value_type,
)
from shaderad.frontend.host import PythonFunction, UserFunction
from shaderad.frontend.intrinsics import Intrinsic, KernelForm
from shaderad.frontend.math_functions import OP_BY_FUNCTION
from shaderad.frontend.signatures import signature_of
from shaderad.frontend.standalone import standalone
from shaderad.frontend.structs import info_of
from shaderad.interpret import backward_once, forward_once
from shaderad.interpret.primitives import reread, to_integer
from shaderad.ir import ops, types
from shaderad.ir.types import tangent


class Calls:
    """Resolves the calls of one debugged thread; each function is rewritten once."""

    def __init__(self) -> None:
        self._python_by_function: dict[PythonFunction, Callable[..., Any]] = {}
        self._forms: dict[str, Callable[..., Any]] = {
            "range": _range,
            "static_range": range,
            "limit": _first,
            "unique": _first,
            "detach": _first,
            "diff_pair": _pair,
            "bitcast": _bitcast,
            "fwd_diff": self._forward,
            "bwd_diff": self._backward,
        }

    def resolve(self, callee: Any) -> Any:
        """What to call where a body calls `callee`."""
        if isinstance(callee, UserFunction):
            return self._function(callee)
        if isinstance(callee, MethodType) and isinstance(callee.__func__, UserFunction):
            return MethodType(self._function(callee.__func__), callee.__self__)
        if isinstance(callee, KernelForm):
            return self._forms[callee.name]
        if isinstance(callee, Intrinsic):
            return _primitive(callee.op)
        if isinstance(callee, TypeObject):
            return _made(callee)
        if isinstance(callee, Subscripted):
            return lambda: _local_array(callee)
        if isinstance(callee, type):
            return _constructor(callee)
        if callee is print:
            return _print
        op = _op_of(callee)
        if op is not None:
            return _primitive(op)
        is_math = getattr(callee, "__module__", "") == math.__name__
        return _of_floats(callee) if is_math else callee

    def body(self, function: PythonFunction) -> Callable[..., Any]:
        """The Python body of a function or kernel."""
        known = self._python_by_function.get(function)
        if known is None:
            known = python_body(function, self.resolve, self._head)
            self._python_by_function[function] = known
        return known

    def _head(self) -> Callable[[Any], Any]:
        """Resolves the condition of one run of a loop; ``sad.limit`` counts how often it is met."""
        turns = count()

        def limited(condition: Any, limit: int) -> Any:
            return condition and next(turns) < limit

        def resolve(callee: Any) -> Any:
            is_limit = isinstance(callee, KernelForm) and callee.name == "limit"
            return limited if is_limit else self.resolve(callee)

        return resolve

    def _function(self, function: UserFunction) -> Callable[..., Any]:
        body, parameters = self.body(function), signature_of(function).parameters

        def call(*args: Any, **kwargs: Any) -> Any:
            names = [name for name, _ in parameters]
            given = dict(zip(names, args, strict=False)) | kwargs
            fitting = {n: _passed(given[n], t) for n, t in parameters if n in given}
            return body(**fitting)

        return call

    def _forward(self, function: UserFunction) -> Callable[..., Any]:
        def call(*args: Any) -> Any:
            made = standalone(function, {})
            found = forward_once(made.function, args)
            t = made.function.result
            classes = made.class_by_struct
            d = from_numpy(found["d"], tangent(t), classes)
            return Pair(from_numpy(found["p"], t, classes), d)

        return call

    def _backward(self, function: UserFunction) -> Callable[..., Any]:
        def call(*args: Any) -> None:
            made = standalone(function, {})
            parameters = made.function.parameters
            cotangent = args[-1] if len(args) > len(parameters) else None
            found = backward_once(made.function, args[: len(parameters)], cotangent)
            for p, pair, bar in zip(parameters, args, found, strict=False):
                if bar is not None:
                    pair.d = from_numpy(bar, tangent(p.type), made.class_by_struct)

        return call


def _passed(value: Any, t: types.Type) -> Any:
    """An argument as the parameter holds it; arrays are passed as they are."""
    return fitted(value, t) if types.scalar_of(t) is not None else copied(value)


def _first(value: Any, *_: Any) -> Any:
    """Forms that say something of a value and leave it as it is."""
    return value


def _made(make: Callable[..., Any]) -> Callable[..., Any]:
    """``float3(..)``, ``float(x)``: what NumPy or Python makes, in the kernel language's form."""

    def call(*args: Any) -> Any:
        return in_kernel_form(make(*args))

    return call


def _of_floats(function: Callable[..., Any]) -> Callable[..., Any]:
    """A function of Python's ``math`` on Python's numbers."""

    def call(*args: Any) -> Any:
        return in_kernel_form(function(*map(float, args)))

    return call


def _range(*bounds: Any, limit: int | None = None) -> Iterable[Any]:
    return islice(range(*bounds), limit)


def _pair(primal: Any, derivative: Any = None) -> Pair:
    return Pair(copied(primal), _zero_like(primal) if derivative is None else copied(derivative))


def _zero_like(value: Any) -> Any:
    """The zero derivative of a value that holds floats."""
    info = info_of(value)
    if info is not None:
        return zero(tangent(info.ir_type), {info.ir_type: info.cls, **info.nested})
    if isinstance(value, LocalArray):
        return LocalArray([_zero_like(one) for one in value], tangent(value.element))
    return in_kernel_form(np.zeros_like(np.asarray(value)))


def _bitcast(wanted: Any, value: Any) -> Any:
    scalar = types.scalar_of(value_type(wanted) or types.FLOAT)
    assert scalar is not None
    bits = reread(np.asarray(value), np.dtype(NUMPY_BY_KIND[scalar.kind]))
    return in_kernel_form(bits.reshape(np.shape(value)))


def _print(*args: Any, **options: Any) -> None:
    print(*map(Shown, args), **options)  # noqa: T201


def _local_array(annotation: Subscripted) -> Any:
    """``sad.LocalArray[T, N]()``: zeros."""
    classes: dict[types.Struct, type] = {}
    return zero(resolve(annotation, {}, None, classes), classes)


def _constructor(cls: type) -> Callable[..., Any]:
    """A struct's class, or ``float(x)``, ``int(x)``, ``bool(x)``."""
    scalar = BUILTIN_TYPES.get(cls)
    if scalar is not None:
        return _made(cls)
    info = info_of(cls)
    if info is None:
        return cls

    def construct(*args: Any, **kwargs: Any) -> Any:
        made = cls(*args, **kwargs)
        for name, t in info.ir_type.fields:
            setattr(made, name, _passed(getattr(made, name), t))
        return made

    return construct


_BUILTINS: Mapping[Any, ops.Op] = MappingProxyType(
    {min: ops.MIN, max: ops.MAX, abs: ops.ABS, round: ops.ROUND_INT}
)


def _op_of(callee: Any) -> ops.Op | None:
    """The primitive that a function of Python stands for."""
    try:
        return _BUILTINS.get(callee) or OP_BY_FUNCTION.get(callee)
    except TypeError:  # not hashable
        return None


def _primitive(op: ops.Op) -> Callable[..., Any]:
    """An op on scalars, vectors and matrices."""

    def call(*args: Any) -> Any:
        if op.arity == 2 and len(args) > 2:  # min and max of several
            return call(call(*args[:2]), *args[2:])
        with np.errstate(all="ignore"):
            found = np.asarray(op.numpy(*map(np.asarray, args)))
        if op.rule is ops.Rule.TO_INT:
            found = to_integer(found, np.dtype(np.int32))
        return in_kernel_form(found)

    return call
