"""Affine maps r -> r A + b, which carry cotangents through a recurrence, and their composition.

    (A1, b1) then (A2, b2)  =  (A1 A2, b1 A2 + b2)

For an op by component, A is diagonal and stored by component. For a function, A is a number, a
matrix or a local array, if elements hold 1, up to 4, or more floats.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from shaderad.ir import nodes, ops
from shaderad.ir.arrays import Value
from shaderad.ir.nodes import Expr, Function, Parameter
from shaderad.ir.types import (
    FLOAT,
    INT,
    LocalArray,
    Matrix,
    Scalar,
    Struct,
    Type,
    Vector,
    is_float,
    scalars,
)
from shaderad.rules import composing as c
from shaderad.rules import expressions
from shaderad.rules.arrays import building as b
from shaderad.rules.arrays import products


@dataclass(frozen=True, slots=True)
class AffineMaps:
    """The maps of one recurrence, as expressions over its values."""

    factor: Expr
    """A, as an expression over the variables of the recurrence."""
    element: Type
    """The element type of primals and cotangents."""
    is_by_component: bool

    @staticmethod
    def of(step: Expr, name: str, t: Type, *, is_by_component: bool) -> AffineMaps:
        """The maps whose A is the Jacobian of `step`, of type `t`, by the variable `name`."""
        if is_by_component:
            ones = c.number(t, 1.0)
            factor = expressions.pull(step, ones, (name,)).get(name, c.zero(t))
            return AffineMaps(factor, t, is_by_component)
        # Row j of A is the cotangent of the variable for the j-th unit cotangent of the result.
        count = len(c.float_scalars(c.variable(name, t)))
        scalar = _scalar_of(t)
        bar = expressions.pull(step, c.variable("basis", t), (name,)).get(name, c.zero(t))
        row = [c.convert(scalar, s) for s in c.float_scalars(bar)]
        rows: list[Expr] = []
        for j in range(count):
            basis = [c.number(scalar, 1.0 if k == j else 0.0) for k in range(count)]
            by_name = {"basis": c.from_float_scalars(t, basis)}
            rows += [expressions.substitute(s, by_name) for s in row]
        return AffineMaps(_packed(_matrix_type(scalar, count), rows), t, is_by_component)

    def flow(self, value_by_name: Mapping[str, Value], bar: Value) -> Value:
        """The total cotangent of each element: ``r[i] = bar[i] + r[i+1] A[i+1]``."""
        factor, offset = ("factor", self.factor.type), ("offset", self._offset.type)
        low = (("low", self.factor.type),) if self._is_compensated else ()
        pair = Struct(f"{b.type_name(self.element)}_affine_map", (factor, *low, offset))
        factors = b.elementwise(self.factor, value_by_name, bar.shape)
        lows = [b.zeros(factors.type) for _ in low]
        flat = c.field(c.variable("x", pair), "offset")

        def scanned(factors: Value, offsets: Value, result: Expr) -> Value:
            maps = b.reverse(b.struct(pair, [factors, *lows, offsets]))
            total = b.scan(self._composition(pair), maps)
            # Reversed last, so that the scan stores only the part of the map that is used.
            return b.reverse(b.elementwise(result, {"x": total}, bar.shape))

        if self.is_by_component:
            # With s[i] = r[i] A[i], no map needs the factor of its neighbour:
            # s[i] = bar[i] A[i] + s[i+1] A[i], r[i] = bar[i] + s[i+1].
            s = scanned(factors, b.applied(ops.MUL, bar, factors), flat)
            return b.applied(ops.ADD, bar, b.shift_left(s, c.zero(self.element)))
        offsets = b.elementwise(self._offset, {"bar": bar}, bar.shape)
        after = b.shift_left(factors, c.zero(self.factor.type))
        return scanned(after, offsets, c.from_float_scalars(self.element, c.float_scalars(flat)))

    @property
    def _offset(self) -> Expr:
        """The cotangent ``bar``, flattened to the row vector that A multiplies."""
        bar = c.variable("bar", self.element)
        if self.is_by_component:
            return bar
        scalar = _scalar_of(self.element)
        flat = [c.convert(scalar, s) for s in c.float_scalars(bar)]
        return _packed(_vector_type(scalar, len(flat)), flat)

    @property
    def _is_compensated(self) -> bool:
        """True if products of factors are carried in two floats (products.py)."""
        is_number = self.is_by_component or isinstance(self.factor.type, Scalar)
        return is_number and products.loses(ops.MUL, self.factor.type)

    def _composition(self, pair: Struct) -> Function:
        """The function that composes two maps, the first one applied first."""
        first, second = c.variable("first", pair), c.variable("second", pair)
        body: tuple[nodes.Stmt, ...] = ()
        local_types: dict[str, Type] = {}
        if self._is_compensated:
            parts = _compensated_parts(first, second)
        elif isinstance(self.factor.type, Struct) and not self.is_by_component:
            body, local_types, parts = _long_products(pair)
        else:
            is_matrix = not self.is_by_component and isinstance(self.factor.type, Matrix)
            times = ops.MATMUL if is_matrix else ops.MUL
            factor = c.field(second, "factor")
            mapped = c.apply(times, c.field(first, "offset"), factor)
            parts = (
                c.apply(times, c.field(first, "factor"), factor),
                c.apply(ops.ADD, mapped, c.field(second, "offset")),
            )
        return Function(
            name="composed",
            parameters=(Parameter(name="first", type=pair), Parameter(name="second", type=pair)),
            result=pair,
            body=(*body, nodes.Return(value=c.construct(pair, parts))),
            local_types=local_types,
        )


def _compensated_parts(first: Expr, second: Expr) -> tuple[Expr, ...]:
    """Factor, its rounding error, and offset of the composition."""
    a, a_low = c.field(first, "factor"), c.field(first, "low")
    then, then_low = c.field(second, "factor"), c.field(second, "low")
    mapped = c.apply(ops.MUL, c.field(first, "offset"), products.whole(then, then_low))
    return (
        c.apply(ops.MUL, a, then),
        products.lost(a, a_low, then, then_low),
        c.apply(ops.ADD, mapped, c.field(second, "offset")),
    )


def _scalar_of(t: Type) -> Scalar:
    """The type of all floats in `t`; `float` if they differ."""
    kinds = {s for s in scalars(t) if is_float(s)}
    return kinds.pop() if len(kinds) == 1 else FLOAT


def _matrix_type(scalar: Scalar, count: int) -> Type:
    if count == 1:
        return scalar
    return Matrix(scalar, count, count) if count <= 4 else _long(scalar, count * count)


def _vector_type(scalar: Scalar, count: int) -> Type:
    if count == 1:
        return scalar
    return Vector(scalar, count) if count <= 4 else _long(scalar, count)


def _long(scalar: Scalar, count: int) -> Struct:
    """A struct around a local array, because array elements cannot be local arrays."""
    return Struct(f"{scalar}_{count}", (("of", LocalArray(scalar, count)),))


def _packed(t: Type, flat: list[Expr]) -> Expr:
    """`flat` as a value of type `t`, row by row."""
    if isinstance(t, Struct):
        inner = t.type_by_field["of"]
        assert isinstance(inner, LocalArray)
        return c.construct(t, [c.of_parts(inner, flat)])
    return c.of_components(t, flat)


def _long_products(
    pair: Struct,
) -> tuple[tuple[nodes.Stmt, ...], dict[str, Type], tuple[Expr, Expr]]:
    """Body, local types and result parts of a composition by loops over local arrays."""
    factor, offset = pair.type_by_field["factor"], pair.type_by_field["offset"]
    assert isinstance(factor, Struct)
    assert isinstance(offset, Struct)
    square, line = factor.type_by_field["of"], offset.type_by_field["of"]
    assert isinstance(square, LocalArray)
    assert isinstance(line, LocalArray)
    count = c.whole(line.count)
    row, column, inner = (c.variable(n, INT) for n in ("row", "column", "inner"))
    first, second = c.variable("first", pair), c.variable("second", pair)
    product, mapped = c.variable("product", square), c.variable("moved", line)

    def at(i: Expr, j: Expr) -> Expr:
        return c.apply(ops.ADD, c.apply(ops.MUL, i, count), j)

    def grow(name: Expr, index: Expr, left: Expr) -> nodes.Stmt:
        right = c.element(c.field(c.field(second, "factor"), "of"), at(inner, column))
        value = c.apply(ops.ADD, c.element(name, index), c.apply(ops.MUL, left, right))
        assert isinstance(name, nodes.Var)
        return nodes.Assign(name=name.name, path=(nodes.ElementStep(index=index),), value=value)

    left_factor = c.element(c.field(c.field(first, "factor"), "of"), at(row, inner))
    left_offset = c.element(c.field(c.field(first, "offset"), "of"), inner)
    products = _loop("row", count, (grow(product, at(row, column), left_factor),))
    body = (
        nodes.Assign(name="product", value=c.zero(square)),
        nodes.Assign(name="moved", value=c.field(c.field(second, "offset"), "of")),
        _loop("column", count, (
            _loop("inner", count, (products, grow(mapped, column, left_offset))),)),
    )  # fmt: skip
    local_types: dict[str, Type] = {
        "product": square,
        "moved": line,
        "row": INT,
        "column": INT,
        "inner": INT,
    }
    parts = (c.construct(factor, [product]), c.construct(offset, [mapped]))
    return body, local_types, parts


def _loop(name: str, count: Expr, body: tuple[nodes.Stmt, ...]) -> nodes.Stmt:
    return nodes.For(variable=name, start=c.whole(0), stop=count, step=c.whole(1), body=body)
