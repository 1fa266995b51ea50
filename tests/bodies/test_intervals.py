"""Indices that are proved to be in range are, for every thread and whatever wraps."""

from __future__ import annotations

from hypothesis import example, given, settings
from hypothesis import strategies as st

import shaderad as sad
from shaderad.bodies.ranges import conditions, is_in_range
from shaderad.ir import nodes, ops
from shaderad.ir.nodes import Expr
from shaderad.ir.ops import Op
from shaderad.ir.types import FLOAT, INT
from tests.bodies.natural import natural_of


@sad.kernel
def scope(i: sad.Index, j: sad.Index, n: int, x: sad.In[float, 2], y: sad.Out[float, 2]):
    y[i, j] = x[i, 0]


KERNEL = scope.specialise({})
_MASK = (1 << 32) - 1


def _machine(value: int) -> int:
    """What is left of a whole number in an int of the machine."""
    return (value & _MASK) - ((value & _MASK) >> 31 << 32)


def _apply(op: Op, *args: Expr) -> Expr:
    return nodes.Apply(type=INT, op=op, args=args)


_LEAVES = st.one_of(
    st.sampled_from([nodes.Var(type=INT, name=name) for name in ("i", "j", "n")]),
    st.integers(-8, 8).map(lambda k: nodes.Const(type=INT, value=k)),
    st.sampled_from([1 << 16, 1 << 30, 715827883]).map(lambda k: nodes.Const(type=INT, value=k)),
    st.sampled_from([nodes.Length(type=INT, buffer="x", axis=axis) for axis in (0, 1)]),
)
_BINARY = (ops.ADD, ops.SUB, ops.MUL, ops.MIN, ops.MAX, ops.FLOOR_DIV, ops.MOD, ops.BIT_AND)


def _larger(inner: st.SearchStrategy[Expr]) -> st.SearchStrategy[Expr]:
    return st.one_of(
        st.builds(lambda op, a, b: _apply(op, a, b), st.sampled_from(_BINARY), inner, inner),
        st.builds(lambda a: _apply(ops.NEG, a), inner),
        st.builds(lambda x, a, b: _apply(ops.CLAMP, x, a, b), inner, inner, inner),
    )


_EXPRESSIONS = st.recursive(_LEAVES, _larger, max_leaves=6)


def _value(e: Expr, at: dict[str, int], shape: tuple[int, int]) -> int:
    """What a machine of 32 bits finds."""
    if isinstance(e, nodes.Const):
        return int(e.value)
    if isinstance(e, nodes.Var):
        return at[e.name]
    if isinstance(e, nodes.Length):
        return shape[e.axis]
    assert isinstance(e, nodes.Apply)
    args = [_value(a, at, shape) for a in e.args]
    if e.op in (ops.FLOOR_DIV, ops.MOD) and args[1] == 0:
        return 0
    rules = {
        ops.ADD: lambda a, b: a + b,
        ops.SUB: lambda a, b: a - b,
        ops.MUL: lambda a, b: a * b,
        ops.MIN: min,
        ops.MAX: max,
        ops.FLOOR_DIV: lambda a, b: a // b,
        ops.MOD: lambda a, b: a % b,
        ops.BIT_AND: lambda a, b: a & b,
        ops.NEG: lambda a: -a,
        ops.CLAMP: lambda x, a, b: min(max(x, a), b),
    }
    return _machine(rules[e.op](*args))


def _is_proved(e: Expr, dim: tuple[int, int], shape: tuple[int, int], n: int) -> bool:
    """Whether ``x[e, 0]`` is known to be there."""
    zero = nodes.Const(type=INT, value=0)
    load = nodes.Load(type=FLOAT, buffer="x", indices=(e, zero))
    kernel = nodes.Kernel(
        name="asks",
        index_names=KERNEL.index_names,
        parameters=KERNEL.parameters,
        buffers=KERNEL.buffers,
        uniforms=KERNEL.uniforms,
        body=(nodes.Assign(name="v", value=load),),
        local_types={"v": load.type},
    )
    natural = natural_of(kernel, dim, {"x": shape, "y": dim}, {"n": n})
    assert natural <= conditions(kernel)
    return is_in_range(kernel, "x", load.indices, natural)


_EXTENTS = st.integers(1, 5)


@settings(max_examples=600, deadline=None)
@given(
    e=_EXPRESSIONS,
    dim=st.tuples(_EXTENTS, _EXTENTS),
    shape=st.tuples(st.integers(0, 30), st.integers(1, 4)),
    n=st.one_of(st.integers(-6, 6), st.sampled_from([(1 << 31) - 1, -(1 << 31), 1 << 30])),
)
@example(
    e=_apply(ops.MIN, _apply(ops.ADD, nodes.Var(type=INT, name="n"), nodes.Var(type=INT, name="i")),
             nodes.Const(type=INT, value=0)),
    dim=(2, 1), shape=(1, 1), n=(1 << 31) - 1,
)  # fmt: skip
@example(
    e=_apply(ops.BIT_AND, nodes.Var(type=INT, name="i"),
             _apply(ops.MOD, nodes.Var(type=INT, name="i"), nodes.Const(type=INT, value=-3))),
    dim=(5, 1), shape=(2, 1), n=0,
)  # fmt: skip
def test_no_thread_leaves_what_was_proved(
    e: Expr, dim: tuple[int, int], shape: tuple[int, int], n: int
) -> None:
    if not _is_proved(e, dim, shape, n):
        return
    for i in range(dim[0]):
        for j in range(dim[1]):
            assert 0 <= _value(e, {"i": i, "j": j, "n": n}, shape) < shape[0]


def _named(name: str) -> Expr:
    return nodes.Var(type=INT, name=name)


def _number(value: int) -> Expr:
    return nodes.Const(type=INT, value=value)


def test_what_fits_is_proved() -> None:
    i, j, n = map(_named, "ijn")
    rows = nodes.Length(type=INT, buffer="x", axis=0)
    last = _apply(ops.SUB, rows, _number(1))
    for e in (
        i,
        n,
        _number(11),
        _apply(ops.ADD, _apply(ops.MUL, _number(4), i), j),
        _apply(ops.ADD, _apply(ops.MUL, i, n), j),
        _apply(ops.SUB, _number(2), i),
        _apply(ops.MOD, n, rows),
        _apply(ops.CLAMP, _apply(ops.SUB, i, n), _number(0), last),
        _apply(ops.MIN, _apply(ops.MAX, _apply(ops.MUL, n, n), _number(0)), last),
        _apply(ops.FLOOR_DIV, _apply(ops.ADD, i, j), _number(2)),
        _apply(ops.BIT_AND, n, _number(7)),
        _apply(ops.MAD, i, _number(4), j),
    ):
        assert _is_proved(e, (3, 4), (12, 1), 4), e


def test_what_does_not_fit_is_not() -> None:
    i, n = _named("i"), _named("n")
    for e in (
        _number(12),
        _number(-1),
        _apply(ops.SUB, i, _number(1)),
        _apply(ops.ADD, i, _number(10)),
        _apply(ops.MUL, i, _number(6)),
        _apply(ops.MOD, i, n),
        _apply(ops.FLOOR_DIV, i, n),
        _apply(ops.BIT_XOR, i, _number(1)),
    ):
        assert not _is_proved(e, (3, 4), (12, 1), 0), e
