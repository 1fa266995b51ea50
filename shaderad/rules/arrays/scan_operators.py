"""Operators on structs, with which a scan or reduction carries more than a value.

    affine maps   (A1, b1) then (A2, b2)     =  (A1 A2, b1 A2 + b2)
    products      (a, a_low) (b, b_low)      =  (a b, error(a b) + a b_low + a_low b)
    segments      (f, a) op' (g, b)          =  (f or g, b if g else a op b)

Each is associative; the last one only if op is.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import lru_cache

from shaderad.diagnostics import Span
from shaderad.ir import arrays, nodes, ops, sizes
from shaderad.ir import building as b
from shaderad.ir import composing as c
from shaderad.ir.arrays import Reducer, Value
from shaderad.ir.dags import substitute
from shaderad.ir.nodes import Expr, Function, Parameter
from shaderad.ir.types import (
    BOOL,
    FLOAT,
    INT,
    LocalArray,
    Matrix,
    Scalar,
    Struct,
    Type,
    Vector,
    is_float,
    scalar_of,
    scalars,
)
from shaderad.rules import expressions


def operator(name: str, left: nodes.Var, right: nodes.Var, result: Expr) -> Function:
    """The function ``(left, right) -> result``."""
    parameters = tuple(Parameter(name=v.name, type=v.type) for v in (left, right))
    body = (nodes.Return(value=result),)
    return Function(name=name, parameters=parameters, result=left.type, body=body, local_types={})


# -- compensated products -------------------------------------------------------------------------
# Rounding errors of factors near 1 have the same sign, so those of a million factors add up to some
# thousandths, in any order. The rounding error of a product is itself a float, which corrects the
# following products.


def needs_compensation(op: Reducer, t: Type) -> bool:
    """True if reductions of `t` by `op` need compensation: products of 32-bit floats."""
    is_plain = not isinstance(t, Struct)
    return op == ops.MUL and is_plain and all(s == FLOAT for s in scalars(t))


def compensated(t: Type) -> Struct:
    """The pair of value and rounding error of a product of type `t`."""
    return Struct(f"{b.type_name(t)}_product", (("value", t), ("low", t)))


def product_error(a: Expr, a_low: Expr, b: Expr, b_low: Expr) -> Expr:
    """The rounding error of the product of two pairs."""
    corrections = c.apply(ops.ADD, c.apply(ops.MUL, a, b_low), c.apply(ops.MUL, a_low, b))
    return c.apply(ops.ADD, c.apply(ops.PRODUCT_ERROR, a, b), corrections)


def rounded(value: Expr, low: Expr) -> Expr:
    """The pair, rounded to one float."""
    return c.apply(ops.ADD, value, low)


def rounded_to_finite(value: Expr, low: Expr) -> Expr:
    """The pair, rounded to one float; an infinite value stays infinite."""
    # The error of an infinite value may be the opposite infinity or NaN, so it is clamped.
    most = c.number(low.type, 3e38)
    finite = c.apply(ops.MIN, c.apply(ops.MAX, low, c.apply(ops.NEG, most)), most)
    return rounded(value, finite)


# -- affine maps r -> r A + b, which carry cotangents through a recurrence ------------------------
# For an op by component, A is diagonal and stored by component. For a function, A is a number if
# elements hold 1 float, a matrix if they hold up to 4, and else a local array.


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
            rows += [substitute(s, by_name) for s in row]
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
        """True if products of factors are carried in two floats."""
        is_number = self.is_by_component or isinstance(self.factor.type, Scalar)
        return is_number and needs_compensation(ops.MUL, self.factor.type)

    def _composition(self, pair: Struct) -> Function:
        """The function that composes two maps, the first one applied first."""
        first, second = c.variable("first", pair), c.variable("second", pair)
        if isinstance(self.factor.type, Struct) and not self.is_by_component:
            return _long_composition(pair, first, second)
        is_matrix = not self.is_by_component and isinstance(self.factor.type, Matrix)
        times = ops.MATMUL if is_matrix else ops.MUL
        factor, then = c.field(first, "factor"), c.field(second, "factor")
        parts = [c.apply(times, factor, then)]
        if self._is_compensated:
            low, then_low = c.field(first, "low"), c.field(second, "low")
            parts.append(product_error(factor, low, then, then_low))
            then = rounded(then, then_low)
        mapped = c.apply(times, c.field(first, "offset"), then)
        parts.append(c.apply(ops.ADD, mapped, c.field(second, "offset")))
        return operator("composed", first, second, c.construct(pair, parts))


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
        return c.construct(t, [c.of_parts(_array_in(t), flat)])
    return c.of_components(t, flat)


def _long_composition(pair: Struct, first: nodes.Var, second: nodes.Var) -> Function:
    """The composition by loops over local arrays."""
    factor, offset = pair.type_by_field["factor"], pair.type_by_field["offset"]
    square, line = _array_in(factor), _array_in(offset)
    count = c.whole(line.count)
    row, column, inner = (c.variable(n, INT) for n in ("row", "column", "inner"))
    product, mapped = c.variable("product", square), c.variable("moved", line)

    def entry(pair: Expr, row: Expr, column: Expr) -> Expr:
        return c.element(c.field(c.field(pair, "factor"), "of"), flat_index(row, column))

    def flat_index(row: Expr, column: Expr) -> Expr:
        return c.apply(ops.ADD, c.apply(ops.MUL, row, count), column)

    def grow(array: nodes.Var, index: Expr, left: Expr) -> nodes.Stmt:
        term = c.apply(ops.MUL, left, entry(second, inner, column))
        value = c.apply(ops.ADD, c.element(array, index), term)
        return nodes.Assign(name=array.name, path=(nodes.ElementStep(index=index),), value=value)

    left_offset = c.element(c.field(c.field(first, "offset"), "of"), inner)
    products = _loop(
        row, count, (grow(product, flat_index(row, column), entry(first, row, inner)),)
    )
    body = (
        nodes.Assign(name=product.name, value=c.zero(square)),
        nodes.Assign(name=mapped.name, value=c.field(c.field(second, "offset"), "of")),
        _loop(column, count, (
            _loop(inner, count, (products, grow(mapped, column, left_offset))),)),
    )  # fmt: skip
    parts = (c.construct(factor, [product]), c.construct(offset, [mapped]))
    composed = operator("composed", first, second, c.construct(pair, parts))
    local_types = {v.name: v.type for v in (product, mapped, row, column, inner)}
    return replace(composed, body=(*body, *composed.body), local_types=local_types)


def _array_in(t: Type) -> LocalArray:
    """The local array in a struct that `_long` makes."""
    assert isinstance(t, Struct)
    array = t.type_by_field["of"]
    assert isinstance(array, LocalArray)
    return array


def _loop(variable: nodes.Var, count: Expr, body: tuple[nodes.Stmt, ...]) -> nodes.Stmt:
    return nodes.For(
        variable=variable.name, start=c.whole(0), stop=count, step=c.whole(1), body=body
    )


# -- reduction by bin: a stable sort by bin, then a segmented scan --------------------------------
# Rows keep their order within a bin, so the operator need not be commutative.


def fold_by_bin(
    op: Reducer, init: Value, rows: Value, bin_of_row: Value, span: Span = nodes.NO_SPAN
) -> Value:
    """``result[k] = init[k] op rows[j] op ...``, in row order, over all j of the bin k.

    Args:
        op: Associative.
        init: The result of a bin without rows.
        rows: Elements, or rows with the shape of a row of `init`.
        bin_of_row: The bin of each row; rows whose bin is out of range are ignored.
        span: The Python line.
    """
    count = init.shape[0]
    keys = _sort_keys(bin_of_row, count)
    order = arrays.ArgSort(operands=(keys,), limit=count, span=span).result
    bins = arrays.Gather(operands=(bin_of_row, order), is_reported=False).result
    sorted_rows = arrays.Gather(operands=(rows, order), is_reported=False).result
    starts = b.applied(ops.NE, bins, b.shift_right(bins, c.whole(-1)))
    rank = len(sorted_rows.shape)
    columns = b.transpose(sorted_rows, [*range(1, rank), 0])
    lifted, segment = _segmented(op, rows.element)
    flags = b.broadcast(starts, columns.shape, [rank - 1])
    scanned = b.field(b.scan(lifted, b.struct(segment, [flags, columns])), "value")
    totals = b.transpose(scanned, [rank - 1, *range(rank - 1)])
    ends = arrays.LastWriter(operands=(bins,), count=count).result
    picked = arrays.Gather(operands=(totals, ends), is_reported=False).result
    is_filled = b.applied(ops.GE, ends, b.full((count,), c.whole(0)))
    # init op total for each bin with rows, else init
    first, total = c.variable("init", init.element), c.variable("total", init.element)
    result = c.conditional(c.variable("is_filled", BOOL), combined(op, first, total), first)
    value_by_name = {"init": init, "total": picked}
    value_by_name["is_filled"] = b.broadcast(is_filled, init.shape, [0])
    return b.elementwise(result, value_by_name, init.shape)


def _sort_keys(bin_of_row: Value, count: sizes.Size) -> Value:
    """The bins, with `count` in place of those out of range."""
    bound = b.broadcast(arrays.SizeOf(operands=(), size=count).result, bin_of_row.shape, [])
    is_inside = b.applied(
        ops.BIT_AND,
        b.applied(ops.GE, bin_of_row, b.full(bin_of_row.shape, c.whole(0))),
        b.applied(ops.LT, bin_of_row, bound),
    )
    return b.where(is_inside, bin_of_row, bound)


def combined(op: Reducer, left: Expr, right: Expr) -> Expr:
    """``left op right``; sums of structs and local arrays by part."""
    is_sum_of_parts = op == ops.ADD and scalar_of(left.type) is None
    return c.added(left, right) if is_sum_of_parts else b.combined(op, left, right)


@lru_cache(maxsize=64)
def _segmented(op: Reducer, element: Type) -> tuple[Function, Struct]:
    """`op` lifted to pairs (starts, value), so that a scan restarts at each start."""
    t = Struct(f"{b.type_name(element)}_in_segment", (("starts", BOOL), ("value", element)))
    left, right = c.variable("a", t), c.variable("b", t)
    starts = c.apply(ops.BIT_OR, c.field(left, "starts"), c.field(right, "starts"))
    total = combined(op, c.field(left, "value"), c.field(right, "value"))
    value = c.conditional(c.field(right, "starts"), c.field(right, "value"), total)
    return operator(f"{t.name}_total", left, right, c.construct(t, [starts, value])), t
