"""The Python body of a kernel -> a Python function with the results of the kernel.

The body keeps its file and lines, so that ``breakpoint()``, ``print`` and stepping work. Five
things change: assigned and returned values are copied, callees are resolved at the call, shifts and
powers are those of 32-bit numbers, ``while sad.limit(...)`` counts its iterations, and f-strings
format values as a device does.

User functions and methods are rewritten in the same way. Primitives compute in NumPy on vectors,
and constructors copy. ``fwd_diff`` and ``bwd_diff`` run in the interpreter, which differentiates by
the rules.
"""

from __future__ import annotations

import ast
import copy
import math
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from itertools import count, islice
from types import MappingProxyType, MethodType
from typing import Any, cast

import numpy as np

from shaderad.debug.values import (
    LocalArrayValue,
    PairValue,
    Shown,
    copied,
    fitted,
    from_numpy,
    in_kernel_form,
    zero,
)
from shaderad.frontend.activations import FORMULAS, GELUS, activation_name
from shaderad.frontend.kernels import standalone
from shaderad.frontend.math_functions import OP_BY_FUNCTION
from shaderad.interpret import backward_once, forward_once
from shaderad.interpret.expressions import reread
from shaderad.ir import ops, types
from shaderad.ir.saturation import to_integer
from shaderad.ir.types import tangent
from shaderad.language.annotations import (
    BUILTIN_TYPES,
    NUMPY_BY_KIND,
    Subscripted,
    TypeObject,
    resolve,
    value_type,
)
from shaderad.language.host import PythonFunction, UserFunction
from shaderad.language.intrinsics import Intrinsic, KernelForm
from shaderad.language.signatures import signature_of
from shaderad.language.structs import info_of

COPY, CALL, SHIFT, BASE, HEAD, SHOWN = (
    f"__shaderad_{name}__" for name in ("copy", "call", "shift", "base", "head", "shown")
)


def _shift_count(count: Any) -> Any:
    """A shift count modulo 32."""
    return count & 31


def _base(base: Any) -> Any:
    """The base of a power as a float, because NumPy refuses ints with negative exponents."""
    is_integer = np.asarray(base).dtype.kind in "iu"
    return np.float32(base) if is_integer else base


def _called(name: str, argument: ast.expr) -> ast.expr:
    """``name(argument)`` at the source position of `argument`."""
    callee = ast.copy_location(ast.Name(name, ast.Load()), argument)
    return ast.copy_location(ast.Call(callee, [argument], []), argument)


class _BodyToPython(ast.NodeTransformer):
    """Rewrites one body; nodes keep their lines."""

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.AST:
        node.decorator_list, node.returns = [], None
        for argument in (*node.args.posonlyargs, *node.args.args):
            argument.annotation = None
        return self.generic_visit(node)

    def visit_Call(self, node: ast.Call) -> ast.AST:
        self.generic_visit(node)
        node.func = _called(CALL, node.func)
        return node

    def visit_FormattedValue(self, node: ast.FormattedValue) -> ast.AST:
        self.generic_visit(node)
        node.value = _called(SHOWN, node.value)
        return node

    def visit_While(self, node: ast.While) -> ast.AST | list[ast.stmt]:
        """Gives a loop whose condition is a call its own `head` to resolve it."""
        self.generic_visit(node)
        if not isinstance(node.test, ast.Call):
            return node
        name = f"{HEAD}{node.lineno}_{node.col_offset}"
        new_head = ast.Call(ast.Name(HEAD, ast.Load()), [], [])
        start = ast.Assign([ast.Name(name, ast.Store())], new_head)
        assert isinstance(node.test.func, ast.Call)  # made by `visit_Call`
        node.test.func.func = ast.Name(name, ast.Load())
        for new in (start, node.test.func):
            ast.fix_missing_locations(ast.copy_location(new, node))
        return [start, node]

    def visit_Assign(self, node: ast.Assign) -> ast.AST:
        self.generic_visit(node)
        node.value = _called(COPY, node.value)
        return node

    def visit_AnnAssign(self, node: ast.AnnAssign) -> ast.AST:
        if node.value is None:
            return ast.copy_location(ast.Pass(), node)
        plain = ast.Assign([node.target], node.value)
        return self.visit_Assign(ast.copy_location(plain, node))

    def visit_AugAssign(self, node: ast.AugAssign) -> ast.AST:
        """``x += v`` binds a new value, because other names of the same vector must not change."""
        if not isinstance(node.target, ast.Name):
            self.generic_visit(node)
            if isinstance(node.op, ast.LShift | ast.RShift):
                node.value = _called(SHIFT, node.value)
            return node
        read = ast.copy_location(ast.Name(node.target.id, ast.Load()), node.target)
        combined = ast.copy_location(ast.BinOp(read, node.op, node.value), node)
        plain = ast.Assign([node.target], combined)
        return self.visit_Assign(ast.copy_location(plain, node))

    def visit_BinOp(self, node: ast.BinOp) -> ast.AST:
        self.generic_visit(node)
        if isinstance(node.op, ast.LShift | ast.RShift):
            node.right = _called(SHIFT, node.right)
        is_negative = isinstance(node.right, ast.UnaryOp) and isinstance(node.right.op, ast.USub)
        if isinstance(node.op, ast.Pow) and is_negative:
            node.left = _called(BASE, node.left)
        return node

    def visit_Return(self, node: ast.Return) -> ast.AST:
        self.generic_visit(node)
        if node.value is not None:
            node.value = _called(COPY, node.value)
        return node


# -- calls -----------------------------------------------------------------------------------------


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
        """The Python function to call in place of `callee`."""
        if isinstance(callee, UserFunction):
            return self._function(callee)
        if isinstance(callee, MethodType) and isinstance(callee.__func__, UserFunction):
            return MethodType(self._function(callee.__func__), callee.__self__)
        if isinstance(callee, KernelForm):
            return self._forms[callee.name]
        if isinstance(callee, Intrinsic):
            return _primitive(callee.op)
        if isinstance(callee, TypeObject):
            return _in_kernel_form(callee)
        if isinstance(callee, Subscripted):
            return lambda: _local_array(callee)
        if isinstance(callee, type):
            return _constructor(callee)
        if callee is print:
            return _print
        counterpart = _counterpart(callee)
        if counterpart is not None:
            return counterpart
        is_math = getattr(callee, "__module__", "") == math.__name__
        return _in_kernel_form(lambda *args: callee(*map(float, args))) if is_math else callee

    def body(self, function: PythonFunction) -> Callable[..., Any]:
        """The Python body of a function or kernel."""
        if function not in self._python_by_function:
            tree = _BodyToPython().visit(copy.deepcopy(function.tree))
            code = compile(ast.Module([tree], []), function.source.file, "exec")
            space = function.namespace() | {
                COPY: copied,
                CALL: self.resolve,
                SHIFT: _shift_count,
                BASE: _base,
                HEAD: self._head,
                SHOWN: Shown,
            }
            exec(code, space)
            self._python_by_function[function] = space[function.tree.name]  # pyright: ignore[reportArgumentType]
        return self._python_by_function[function]

    def _head(self) -> Callable[[Any], Any]:
        """A `resolve` for the condition of one run of a loop, in which ``sad.limit`` counts."""
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
            values = dict(zip(names, args, strict=False)) | kwargs
            return body(**{n: _passed(values[n], t) for n, t in parameters if n in values})

        return call

    def _forward(self, function: UserFunction) -> Callable[..., Any]:
        def call(*args: Any) -> Any:
            ir = standalone(function, {})
            pair = forward_once(ir.function, args)
            t, classes = ir.function.result, ir.class_by_struct
            d = from_numpy(pair["d"], tangent(t), classes)
            return PairValue(from_numpy(pair["p"], t, classes), d)

        return call

    def _backward(self, function: UserFunction) -> Callable[..., Any]:
        def call(*args: Any) -> None:
            ir = standalone(function, {})
            parameters = ir.function.parameters
            cotangent = args[-1] if len(args) > len(parameters) else None
            cotangents = backward_once(ir.function, args[: len(parameters)], cotangent)
            for p, pair, x_bar in zip(parameters, args, cotangents, strict=False):
                if x_bar is not None:
                    pair.d = from_numpy(x_bar, tangent(p.type), ir.class_by_struct)

        return call


def _passed(value: Any, t: types.Type) -> Any:
    """An argument converted to the type `t` of its parameter."""
    return fitted(value, t) if types.scalar_of(t) is not None else copied(value)


def _first(value: Any, *_: Any) -> Any:
    """Implements the forms that return their first argument."""
    return value


def _in_kernel_form(function: Callable[..., Any]) -> Callable[..., Any]:
    """`function` with its result as a value of the kernel language."""

    def call(*args: Any) -> Any:
        return in_kernel_form(function(*args))

    return call


def _range(*bounds: Any, limit: int | None = None) -> Iterable[Any]:
    return islice(range(*bounds), limit)


def _pair(primal: Any, derivative: Any = None) -> PairValue:
    d = _zero_like(primal) if derivative is None else copied(derivative)
    return PairValue(copied(primal), d)


def _zero_like(value: Any) -> Any:
    """The zero derivative of a value that holds floats."""
    info = info_of(value)
    if info is not None:
        return zero(tangent(info.ir_type), {info.ir_type: info.cls, **info.nested})
    if isinstance(value, LocalArrayValue):
        return LocalArrayValue([_zero_like(item) for item in value], tangent(value.element))
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
    if cls is int:
        return _in_kernel_form(_as_int)
    if cls in BUILTIN_TYPES:
        return _in_kernel_form(cls)
    info = info_of(cls)
    if info is None:
        return cls

    def construct(*args: Any, **kwargs: Any) -> Any:
        struct = cls(*args, **kwargs)
        for name, t in info.ir_type.fields:
            setattr(struct, name, _passed(getattr(struct, name), t))
        return struct

    return construct


def _as_int(x: Any) -> int:
    """``int(x)`` as in kernels, where it saturates."""
    is_float = isinstance(x, float | np.floating)
    return int(to_integer(np.asarray(cast("Any", x)), np.dtype(np.int32)) if is_float else x)


_BUILTINS: Mapping[Any, ops.Op] = MappingProxyType(
    {min: ops.MIN, max: ops.MAX, abs: ops.ABS, round: ops.ROUND_INT}
)


def _counterpart(callee: Any) -> Callable[..., Any] | None:
    """The counterpart of a function such as `abs`, `math.sin` or `sad.sigmoid`."""
    activation = activation_name(callee)
    if activation is not None:
        return partial(_activated, activation)
    try:
        op = _BUILTINS.get(callee) or OP_BY_FUNCTION.get(callee)
    except TypeError:  # not hashable
        return None
    return None if op is None else _primitive(op)


class _InNumPy:
    """Arithmetic on scalars, vectors and matrices."""

    def binary(self, name: str, left: Any, right: Any) -> Any:
        return _primitive(ops.TABLE[name])(left, right)

    def unary(self, name: str, x: Any) -> Any:
        return _primitive(ops.TABLE[name])(x)

    def primitive(self, op: ops.Op, *operands: Any) -> Any:
        return _primitive(op)(*operands)

    def kept(self, x: Any) -> Any:
        return x


def _activated(name: str, x: Any, approximate: str = "none") -> Any:
    """An activation of a scalar, vector or matrix; computes halves in float and rounds once."""
    data = np.asarray(x)
    if name == "relu":
        return FORMULAS[name](_InNumPy(), x)
    formula = GELUS[approximate] if name == "gelu" else FORMULAS[name]
    is_double = data.dtype == np.float64
    result = formula(_InNumPy(), in_kernel_form(data if is_double else data.astype(np.float32)))
    is_half = data.dtype == np.float16
    return in_kernel_form(np.asarray(result).astype(np.float16)) if is_half else result


def _primitive(op: ops.Op) -> Callable[..., Any]:
    """An op on scalars, vectors and matrices."""

    def call(*args: Any) -> Any:
        if op.arity == 2 and len(args) > 2:  # min and max of several arguments
            return call(call(*args[:2]), *args[2:])
        with np.errstate(all="ignore"):
            result = np.asarray(op.numpy(*map(np.asarray, args)))
        if op.rule is ops.Rule.TO_INT:
            result = to_integer(result, np.dtype(np.int32))
        return in_kernel_form(result)

    return call
