"""Calls -> primitives, conversions, constructors, user functions, derivatives.

The Python object of the callee decides: a primitive of ``sad``, a type, a builtin, a function of
``math``, a user function or method. Other callees are errors that name a replacement.
"""

from __future__ import annotations

import ast
import builtins
from collections.abc import Callable, Mapping
from types import BuiltinFunctionType, MappingProxyType

import numpy as np

from shaderad.diagnostics import Error
from shaderad.diagnostics.foreign_names import IN_KERNELS, remedy_for, remedy_for_array_function
from shaderad.frontend import (
    activations,
    constructors,
    derivatives,
    math_functions,
    textures,
    user_functions,
)
from shaderad.frontend.attributes import length
from shaderad.frontend.body import BodyReader
from shaderad.frontend.conversions import element_count, expr
from shaderad.ir import ops
from shaderad.ir.nodes import Detach, Expr, PointerLength
from shaderad.ir.types import INT, Pointer
from shaderad.language.annotations import AnnotationForm
from shaderad.language.host import DerivativeFunction, UserFunction
from shaderad.language.intrinsics import Intrinsic, KernelForm
from shaderad.language.signatures import Launchable
from shaderad.language.values import (
    ArrayRef,
    BoundMethod,
    Derivative,
    Host,
    PythonNumber,
    Sequence,
    TextureMethod,
    Value,
    describe,
)

_BUILTINS = (builtins.abs, builtins.min, builtins.max, builtins.round, builtins.len)


def call(body: BodyReader, node: ast.Call) -> Value:
    """The value of a call.

    Raises:
        LanguageError: SR0232 for callees that kernels do not have, and the errors of each kind.
    """
    callee = body.value(node.func)
    if isinstance(callee, BoundMethod):
        return user_functions.call(body, callee.function, node, callee.owner)
    if isinstance(callee, TextureMethod):
        return textures.call(body, callee, node)
    if isinstance(callee, Derivative):
        return derivatives.call_forward(body, callee, node)
    if isinstance(callee, Host):
        value = _call_host(body, callee, node)
        if value is not None:
            return value
    raise _uncallable(body, callee, node)


def _call_host(body: BodyReader, callee: Host, node: ast.Call) -> Value | None:
    thing = callee.object
    if isinstance(thing, UserFunction):
        return user_functions.call(body, thing, node, None)
    if isinstance(thing, Intrinsic):
        return _primitive(body, thing.op, node)
    if isinstance(thing, KernelForm):
        return _form(body, thing, node)
    activation = activations.activation_name(thing)
    if activation is not None:
        return activations.call(body, activation, node)
    if isinstance(thing, BuiltinFunctionType):
        if thing in _BUILTINS:
            return _builtin(body, thing.__name__, node)
        if thing in math_functions.KNOWN:
            return math_functions.call_math(thing, arguments(body, node), body.span(node))
    return constructors.call(body, thing, node)


def arguments(body: BodyReader, node: ast.Call) -> tuple[Value, ...]:
    """The arguments of a call that takes no keywords."""
    for keyword in node.keywords:
        raise body.unknown_keyword(keyword)
    for a in node.args:
        if isinstance(a, ast.Starred):
            raise body.error("SR0233", a, found="`*`")
    return tuple(body.value(a) for a in node.args)


def _primitive(body: BodyReader, op: ops.Op, node: ast.Call) -> Value:
    args, span = arguments(body, node), body.span(node)
    if op in (ops.MIN, ops.MAX):
        return math_functions.smallest(op, args, span)
    folded = math_functions.fold(_scalar_function(op), args, span)
    return folded or math_functions.primitive(op, args, span)


def _scalar_function(op: ops.Op) -> Callable[..., object]:
    """The primitive on Python numbers; gives `None` if it takes no floats or is not finite."""

    def function(*values: float) -> object:
        if op.rule is not ops.Rule.FLOATS or len(values) != op.arity:
            return None
        with np.errstate(all="ignore"):
            result = np.asarray(op.numpy(*(np.float64(v) for v in values)))
        return float(result) if result.ndim == 0 and np.isfinite(result) else None

    return function


def _form(body: BodyReader, form: KernelForm, node: ast.Call) -> Value:
    if form.name in ("fwd_diff", "bwd_diff"):
        return derivatives.derivative_of(body, form.name == "fwd_diff", node)
    if form.name == "diff_pair":
        return derivatives.make_pair(body, node)
    if form.name == "bitcast":
        return constructors.call_bitcast(body, node)
    if form.name == "detach":
        span = body.span(node)
        (value,) = math_functions.exactly("detach", arguments(body, node), 1, span)
        if isinstance(value, PythonNumber):
            return value
        value = expr(value, span)
        return Detach(type=value.type, value=value, span=span)
    raise body.error("SR0211", node)


def _builtin(body: BodyReader, name: str, node: ast.Call) -> Value:
    args, span = arguments(body, node), body.span(node)
    if name == "len":
        return _len(body, args, node)
    if name == "abs":
        folded = math_functions.fold(abs, args, span)
        return folded or math_functions.primitive(ops.ABS, args, span)
    if name == "round":
        if len(args) != 1:
            raise body.error(
                "SR0231", node, name="round", found=len(args), wanted="1: it gives an int"
            )
        folded = math_functions.fold(round, args, span)
        return folded or math_functions.to_int(ops.ROUND_INT, args, span)
    return math_functions.smallest(ops.MIN if name == "min" else ops.MAX, args, span)


def _len(body: BodyReader, args: tuple[Value, ...], node: ast.Call) -> Value:
    span = body.span(node)
    (value,) = math_functions.exactly("len", args, 1, span)
    if isinstance(value, ArrayRef) and value.part != "d":
        return length(value, 0, span)
    if isinstance(value, Sequence):
        return PythonNumber(len(value.parts), span)
    if isinstance(value, Expr) and isinstance(value.type, Pointer):
        return PointerLength(type=INT, pointer=value, span=span)
    count = element_count(value.type) if isinstance(value, Expr) else None
    if count is None:
        help_ = "it takes an array, a pointer, a local array, a vector or a matrix"
        raise body.error("SR0312", node, name="len", found=describe(value), help=help_)
    return PythonNumber(count, span)


NO_COLLECTION = "a fixed-size `sad.LocalArray[float, 8]()` holds several values"
_ADD_UP = "write a loop: `total = 0.0`, then `total += x[j]` in `for j in range(n):`"
_TEST_ALL = "write a loop that sets a `bool`; of a vector of bools `sad.any(v)`, `sad.all(v)`"
_BY_INDEX = "loop over indices, `for j in range(n):`, and read the elements by `j`"

_REFUSED_BUILTINS: Mapping[str, str] = MappingProxyType({
    "sum": _ADD_UP,
    "any": _TEST_ALL,
    "all": _TEST_ALL,
    **dict.fromkeys("enumerate filter iter map next reversed zip".split(), _BY_INDEX),
    **dict.fromkeys("dict frozenset list set sorted tuple".split(), NO_COLLECTION),
    **dict.fromkeys("ascii chr format input open ord repr str".split(),
                    'kernels have no text but that of `print`: write `print(f"{x:.3f}")`'),
    "divmod": "write `x // y` and `x % y`",
    "pow": "write `x ** y`",
    **dict.fromkeys("getattr hasattr isinstance issubclass setattr type".split(),
                    "types are known while compiling: write a function for each of them"),
})  # fmt: skip
"""Replacements for builtins that kernels do not have."""
_KNOWN_BUILTINS = "of Python's builtins, kernels have abs, bool, float, int, len, max, min, round"


def _instead_of_numpy(name: str) -> str:
    remedy = IN_KERNELS.get(name) or remedy_for(name, ops.PUBLIC)
    is_ours = name in {*ops.PUBLIC, *ops.SYNONYMS, *activations.FORMULAS}
    own = f"write `sad.{name}`" if is_ours else remedy
    return f"NumPy does not run in kernels: {own or 'write the `sad.` function that does it'}"


def _uncallable(body: BodyReader, callee: Value, node: ast.Call) -> Error:
    help_ = "decorate it with `@sad.function`"
    if isinstance(callee, Host):
        thing = callee.object
        module = str(getattr(thing, "__module__", "") or "")
        if module.partition(".")[0] == "numpy" or isinstance(thing, np.ufunc):
            help_ = _instead_of_numpy(str(getattr(thing, "__name__", "")))
        elif module.startswith("shaderad.functions."):
            help_ = remedy_for_array_function(str(getattr(thing, "__name__", "")))
        elif module == "math":
            help_ = f"of `math`, kernels have {math_functions.NAMES}"
        elif thing is print:
            help_ = "`print` gives no value: write it as a statement of its own"
        elif module == "builtins":
            help_ = _REFUSED_BUILTINS.get(getattr(thing, "__name__", ""), _KNOWN_BUILTINS)
        elif isinstance(thing, DerivativeFunction):
            help_ = "derivatives are called as `sad.fwd_diff(f)` and `sad.bwd_diff(f)`"
        elif isinstance(thing, Launchable):
            help_ = "a kernel is called from Python only; share code in a `@sad.function`"
        elif isinstance(thing, AnnotationForm):
            help_ = f"write `sad.{thing.name}[float, 8]()`"
    return body.error("SR0232", node.func, found=describe(callee), help=help_)
