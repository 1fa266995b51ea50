"""Constructors of kernel IR expressions, which infer types and fold zeros.

`Zero` is a structural zero: a product with it is `Zero`, whatever the other factor is. A `Const`
with value 0 is a number, and a product with it follows IEEE. Local arrays are built by synthetic
functions.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from functools import reduce

from shaderad.ir import nodes, ops
from shaderad.ir.nodes import Expr, Parameter, Step
from shaderad.ir.types import (
    BOOL,
    INT,
    UINT,
    LocalArray,
    Matrix,
    Scalar,
    Struct,
    Tuple,
    Type,
    Vector,
    is_differentiable,
    is_float,
    scalar_of,
    with_scalar,
)

_LETTERS = "xyzw"
_RANGE = {INT: (-(2**31), 2**31 - 1), UINT: (0, 2**32 - 1)}
_ALL_ONES: dict[Type, int | bool] = {INT: -1, UINT: 2**32 - 1, BOOL: True}
_ABSORBING = frozenset({ops.MUL, ops.TIMES, ops.DOT, ops.CROSS, ops.MATMUL, ops.NEG, ops.TRANSPOSE})


def variable(name: str, t: Type) -> nodes.Var:
    return nodes.Var(type=t, name=name)


def zero(t: Type) -> Expr:
    """The structural zero of type `t`."""
    return nodes.Zero(type=t)


def is_zero(e: Expr) -> bool:
    """True if `e` is the structural zero."""
    return isinstance(e, nodes.Zero)


def number(t: Type, value: float) -> Expr:
    """A constant of type `t` with `value` in every component."""
    scalar = scalar_of(t)
    assert scalar is not None
    plain = float(value) if is_float(scalar) else int(value)
    return splat(t, nodes.Const(type=scalar, value=plain))


def neutral(op: ops.Op, t: Type) -> Expr:
    """The neutral element of a reduction: ``e`` with ``e op x == x`` for `x` of type `t`."""
    if op in (ops.ADD, ops.BIT_OR):
        return zero(t)
    if op == ops.MUL:
        return number(t, 1)
    scalar = scalar_of(t)
    assert scalar is not None, f"{op} of {t}"
    if op == ops.BIT_AND:
        return splat(t, nodes.Const(type=scalar, value=_ALL_ONES[scalar]))
    low, high = (float("-inf"), float("inf")) if is_float(scalar) else _RANGE[scalar]
    return number(t, {ops.MIN: high, ops.MAX: low}[op])


def whole(value: int) -> Expr:
    return nodes.Const(type=INT, value=value)


def number_of(e: Expr) -> float | int | bool | None:
    """The constant in every component of `e`; `None` if `e` is not constant."""
    if isinstance(e, nodes.Splat):
        e = e.value
    return e.value if isinstance(e, nodes.Const) else None


def splat(t: Type, value: Expr) -> Expr:
    """`value` in every component of `t`."""
    if isinstance(t, Scalar):
        return value
    return zero(t) if is_zero(value) else nodes.Splat(type=t, value=value)


def apply(op: ops.Op, *args: Expr) -> Expr:
    """``op(*args)``, simplified if an operand is neutral or absorbing."""
    t = ops.result_type(op, tuple(a.type for a in args))
    assert t is not None, f"{op} of {[str(a.type) for a in args]}"
    if (op in _ABSORBING and any(map(is_zero, args))) or (op == ops.DIV and is_zero(args[0])):
        return zero(t)
    if op == ops.ISNAN and isinstance(number_of(args[0]), float | int):
        return truth(t, math.isnan(number_of(args[0]) or 0))
    simple = _without_neutral(op, args)
    if simple is not None and simple.type == t:
        return simple
    return nodes.Apply(type=t, op=op, args=args)


def _without_neutral(op: ops.Op, args: Sequence[Expr]) -> Expr | None:
    """The simplified expression if the other operand is neutral: ``x`` for ``1 * x``."""
    if op in (ops.BIT_OR, ops.BIT_AND):
        return _of_truths(op == ops.BIT_AND, args)
    if op == ops.ADD and is_zero(args[0]):
        return args[1]
    if op in (ops.ADD, ops.SUB) and is_zero(args[1]):
        return args[0]
    if op == ops.SUB and is_zero(args[0]):
        return apply(ops.NEG, args[1])
    if op in (ops.MUL, ops.TIMES) and number_of(args[0]) == 1:
        return args[1]
    if op in (ops.MUL, ops.TIMES, ops.DIV) and number_of(args[1]) == 1:
        return args[0]
    return None


def _of_truths(is_and: bool, args: Sequence[Expr]) -> Expr | None:
    """``a & b`` or ``a | b``, simplified if an operand is constant."""
    for operand, other in (args, reversed(args)):
        if number_of(operand) is is_and:
            return other
        if number_of(operand) is (not is_and):
            return operand
    return None


def truth(t: Type, value: bool) -> Expr:
    """A constant of bools of type `t`."""
    return splat(t, nodes.Const(type=BOOL, value=value))


def select(condition: Expr, a: Expr, b: Expr) -> Expr:
    """``a`` where the condition holds, else ``b``, for any value type."""
    if is_zero(a) and is_zero(b):
        return a
    if isinstance(a.type, Scalar | Vector) or (
        scalar_of(a.type) is not None and condition.type == BOOL
    ):
        return nodes.Apply(type=a.type, op=ops.SELECT, args=(condition, a, b))
    return conditional(condition, a, b)


def conditional(condition: Expr, if_true: Expr, if_false: Expr) -> Expr:
    """``if_true if condition else if_false``; only the chosen side is computed."""
    return nodes.Conditional(
        type=if_true.type, condition=condition, if_true=if_true, if_false=if_false
    )


def construct(t: Type, parts: Sequence[Expr]) -> Expr:
    if all(map(is_zero, parts)):
        return zero(t)
    return nodes.Construct(type=t, parts=tuple(parts))


def field(value: Expr, name: str) -> Expr:
    """A field of a struct, or an element of a tuple: ``"0"``, ``"1"``, ..."""
    t = value.type
    if isinstance(t, Tuple):
        position, part = int(name), t.elements[int(name)]
    else:
        assert isinstance(t, Struct)
        position, part = list(t.type_by_field).index(name), t.type_by_field[name]
    if is_zero(value):
        return zero(part)
    if isinstance(value, nodes.Construct):
        return value.parts[position]
    return nodes.Field(type=part, value=value, name=name)


def swizzle(value: Expr, components: str) -> Expr:
    t = value.type
    assert isinstance(t, Vector)
    result = t.element if len(components) == 1 else Vector(t.element, len(components))
    if is_zero(value):
        return zero(result)
    if isinstance(value, nodes.Splat):
        return splat(result, value.value)
    if components == _LETTERS[: t.count]:
        return value
    return nodes.Swizzle(type=result, value=value, components=components)


def component(value: Expr, position: int) -> Expr:
    """One scalar of a vector."""
    assert isinstance(value.type, Vector)
    if isinstance(value, nodes.Construct) and len(value.parts) == value.type.count:
        return value.parts[position]
    return swizzle(value, _LETTERS[position])


def element(value: Expr, index: Expr) -> Expr:
    """``value[index]`` of a vector, matrix or local array."""
    t = value.type
    assert isinstance(t, Vector | Matrix | LocalArray)
    part: Type = t.row if isinstance(t, Matrix) else t.element
    return zero(part) if is_zero(value) else nodes.Element(type=part, value=value, index=index)


def row(value: Expr, position: int) -> Expr:
    """One row of a matrix."""
    if isinstance(value, nodes.Construct) and isinstance(value.parts[0].type, Vector):
        return value.parts[position]
    return element(value, whole(position))


def rows(value: Expr) -> list[Expr]:
    """The rows of a matrix."""
    assert isinstance(value.type, Matrix)
    return [row(value, k) for k in range(value.type.row_count)]


def components(value: Expr) -> list[Expr]:
    """The scalars of a scalar, vector or matrix, in row-major order."""
    if isinstance(value.type, Vector):
        return [component(value, k) for k in range(value.type.count)]
    if isinstance(value.type, Matrix):
        return [scalar for vector in rows(value) for scalar in components(vector)]
    return [value]


def total(terms: Sequence[Expr]) -> Expr:
    """The sum of one or more terms."""
    return reduce(lambda a, b: apply(ops.ADD, a, b), terms)


def all_hold(tests: Sequence[Expr]) -> Expr | None:
    """True if all tests hold; `None` without tests."""
    return reduce(lambda a, b: apply(ops.BIT_AND, a, b), tests) if tests else None


def summed(value: Expr) -> Expr:
    """The sum over the components of a vector or matrix."""
    if isinstance(value.type, Matrix):
        return total(list(map(summed, rows(value))))
    if isinstance(value, nodes.Apply) and value.op == ops.MUL:
        return apply(ops.DOT, *value.args)
    return total(components(value))


def convert(t: Type, value: Expr) -> Expr:
    """`value`, a scalar, vector or matrix, converted to the scalar type of `t`."""
    scalar = scalar_of(t)
    assert scalar is not None
    result = with_scalar(value.type, scalar)
    if result == value.type:
        return value
    return zero(result) if is_zero(value) else nodes.Cast(type=result, value=value)


def named_parts(t: Struct | Tuple) -> list[tuple[str, Type]]:
    """Name and type of each field or element."""
    if isinstance(t, Tuple):
        return [(str(k), part) for k, part in enumerate(t.elements)]
    return list(t.fields)


def of_components(t: Type, scalars: Sequence[Expr]) -> Expr:
    """The scalar, vector or matrix of `scalars`, in row-major order."""
    if isinstance(t, Matrix):
        count = t.column_count
        starts = range(0, len(scalars), count)
        return construct(t, [construct(t.row, scalars[k : k + count]) for k in starts])
    return construct(t, scalars) if isinstance(t, Vector) else scalars[0]


# -- parts, and sums of derivatives of any type ------------------------------------------------


def steps(t: Type) -> list[tuple[Step, Type]]:
    """Step and type of each component, row, element or field of a value of type `t`."""
    if isinstance(t, Struct | Tuple):
        return [(nodes.FieldStep(name=name), part) for name, part in named_parts(t)]
    if isinstance(t, Vector):
        letters = _LETTERS[: t.count]
        return [(nodes.SwizzleStep(components=letter), t.element) for letter in letters]
    if isinstance(t, Matrix):
        return [(nodes.ElementStep(index=whole(k)), t.row) for k in range(t.row_count)]
    if isinstance(t, LocalArray):
        return [(nodes.ElementStep(index=whole(k)), t.element) for k in range(t.count)]
    return []


def parts(value: Expr) -> list[tuple[Step, Expr]]:
    """Step and value of each field of a struct or tuple, or element of a local array."""
    if isinstance(value.type, Struct | Tuple):
        names = [name for name, _ in named_parts(value.type)]
        return [(nodes.FieldStep(name=name), field(value, name)) for name in names]
    assert isinstance(value.type, LocalArray)
    indices = map(whole, range(value.type.count))
    return [(nodes.ElementStep(index=k), element(value, k)) for k in indices]


def of_parts(t: Type, values: Sequence[Expr]) -> Expr:
    """A value of type `t` with the `values` of its parts, in the order of `steps`."""
    if not isinstance(t, LocalArray):
        return construct(t, values)
    elements = [variable(f"e{k}", t.element) for k in range(t.count)]
    return _filled(t, "array_of", elements, _numbered(elements), values)


def holds_array(t: Type) -> bool:
    """True if a value of type `t` holds a local array, at any depth."""
    if isinstance(t, Struct | Tuple):
        return any(holds_array(part) for _, part in named_parts(t))
    return isinstance(t, LocalArray)


def added(a: Expr, b: Expr) -> Expr:
    """The sum of two derivatives of one type."""
    if is_zero(a) or is_zero(b):
        return b if is_zero(a) else a
    t = a.type
    if is_float(t):
        return apply(ops.ADD, a, b)

    def sums(a: Expr, b: Expr) -> list[Expr]:
        pairs = zip(parts(a), parts(b), strict=True)
        return [
            added(x, y) if is_differentiable(x.type) else zero(x.type) for (_, x), (_, y) in pairs
        ]

    if isinstance(t, LocalArray):
        left, right = variable("left", t), variable("right", t)
        return _filled(t, "added_arrays", (left, right), _numbered(sums(left, right)), (a, b))
    return construct(t, sums(a, b))


def placed_in_array(t: LocalArray, index: Expr, value: Expr) -> Expr:
    """A local array that is `value` at `index` and 0 elsewhere."""
    position, new = variable("index", INT), variable("value", t.element)
    return _filled(t, "placed_at", (position, new), [(position, new)], (index, value))


def _numbered(elements: Sequence[Expr]) -> list[tuple[Expr, Expr]]:
    return [(whole(k), value) for k, value in enumerate(elements)]


def _filled(
    t: LocalArray,
    name: str,
    inputs: Sequence[nodes.Var],
    elements: Iterable[tuple[Expr, Expr]],
    args: Sequence[Expr],
) -> Expr:
    """A call of a synthetic function from `inputs` to an array with the index-value `elements`."""
    body = (
        nodes.Assign(name="placed", value=zero(t)),
        *(nodes.Assign(name="placed", path=(nodes.ElementStep(index=index),), value=value)
          for index, value in elements),
        nodes.Return(value=variable("placed", t)),
    )  # fmt: skip
    parameters = tuple(Parameter(name=v.name, type=v.type) for v in inputs)
    function = nodes.Function(name=name, parameters=parameters, result=t, body=body,
                              local_types={"placed": t})  # fmt: skip
    return nodes.Call(type=t, function=function, args=tuple(args))


def with_zeros(t: Type, value: Expr) -> Expr:
    """A value of type ``tangent(t)``, converted to type `t`; parts that are not floats are 0."""
    if value.type == t:
        return value
    kept = iter(parts(value))  # The tangent of a tuple numbers its elements anew.
    return of_parts(t, [
        with_zeros(part, next(kept)[1]) if is_differentiable(part) else zero(part)
        for _, part in steps(t)
    ])  # fmt: skip


def float_scalars(value: Expr) -> list[Expr]:
    """The float scalars of a value, at any depth, in order."""
    if isinstance(value.type, Struct | Tuple | LocalArray):
        return [scalar for _, part in parts(value) for scalar in float_scalars(part)]
    return components(value) if is_float(value.type) else []


def from_float_scalars(t: Type, scalars: Sequence[Expr]) -> Expr:
    """A value of type `t` with the float scalars `scalars`, in order; other parts are 0."""
    remaining = iter(scalars)

    def build(part: Type) -> Expr:
        if isinstance(part, Struct | Tuple | LocalArray):
            return of_parts(part, [build(inner) for _, inner in steps(part)])
        if not is_float(part):
            return zero(part)
        count = len(components(variable("x", part)))
        return of_components(part, [convert(part, next(remaining)) for _ in range(count)])

    return build(t)
