"""The verifier refuses what breaks an invariant of `nodes`, and says where."""

from __future__ import annotations

from dataclasses import replace

import pytest

import shaderad as sad
from shaderad.ir import ops, verifier
from shaderad.ir.nodes import (
    Apply,
    Break,
    Call,
    Cast,
    Conditional,
    Const,
    Construct,
    Detach,
    Element,
    Expr,
    Field,
    ForwardDiff,
    Function,
    If,
    Kernel,
    Load,
    MakePair,
    PairPart,
    Parameter,
    Return,
    Splat,
    Stmt,
    Store,
    Swizzle,
    SwizzleStep,
    Var,
    While,
)
from shaderad.ir.types import BOOL, FLOAT, INT, UINT, Matrix, Pair, Struct, Tuple, Vector
from shaderad.ir.verifier import MalformedIR, verified
from tests.lower.bodies import kernel_of, number, positive, put, repeat, var

FLOAT2, FLOAT3 = Vector(FLOAT, 2), Vector(FLOAT, 3)
POINT = Struct("Point", (("p", FLOAT3), ("n", INT)))


@sad.kernel
def sound(i: sad.Index, x: sad.In[float], scale: float, y: sad.Out[float], total: sad.Add[float]):
    s = x[i] * scale
    for k in range(3):
        s += float(k)
    y[i] = s
    total[0] += s


@pytest.fixture
def kernel() -> Kernel:
    return kernel_of(sound)


def of_body(kernel: Kernel, *body: Stmt) -> Kernel:
    types = {**kernel.local_types, "v": FLOAT3, "p": POINT, "b": BOOL}
    return replace(kernel, body=body, local_types=types)


def test_it_runs_in_tests_and_takes_what_the_front_end_makes(kernel: Kernel) -> None:
    assert verifier.IS_ON
    verified(kernel)


S, V, P, AT = var("s"), var("v", FLOAT3), var("p", POINT), var("i", INT)
DOUBLED = Function(
    name="doubled",
    parameters=(Parameter(name="v", type=FLOAT),),
    result=FLOAT,
    body=(Return(value=var("v")),),
    local_types={},
)


@pytest.mark.parametrize(
    ("value", "reason"),
    [
        (Var(type=FLOAT, name="nowhere"), "there is no name `nowhere`"),
        (Var(type=INT, name="s"), "s is float, not int"),
        (Const(type=FLOAT, value=True), "True is no float"),
        (Const(type=INT, value=2**31), "is no int"),
        (Const(type=UINT, value=-1), "-1 is no uint"),
        (Const(type=FLOAT2, value=1.0), "it is no scalar"),
        (Apply(type=FLOAT, op=ops.ADD, args=(S, AT)), "`add` of float, int is no float"),
        (Apply(type=FLOAT, op=ops.SIN, args=(S, S)), "`sin` of float, float"),
        (Conditional(type=FLOAT, condition=S, if_true=S, if_false=S), "the condition is float"),
        (Cast(type=FLOAT, value=V), "float3 has another shape than float"),
        (Construct(type=FLOAT3, parts=(S, S)), "float, float make no float3"),
        (Construct(type=Matrix(FLOAT, 2, 2), parts=(S, S)), "make no float2x2"),
        (Splat(type=FLOAT3, value=AT), "int fills no float3"),
        (Field(type=FLOAT, value=P, name="q"), "`q` of Point is None"),
        (Field(type=FLOAT, value=Var(type=Tuple((FLOAT,)), name="s"), name="1"), "float, not"),
        (Swizzle(type=FLOAT, value=V, components="w"), "float3 gives no float"),
        (Element(type=FLOAT, value=V, index=S), "the index is float, not int"),
        (Load(type=FLOAT, buffer="z", indices=(AT,)), "there is no array `z`"),
        (Load(type=FLOAT, buffer="x", indices=(AT, AT)), "`x` of 1 axes is indexed by int, int"),
        (Load(type=INT, buffer="x", indices=(AT,)), "x is float, not int"),
        (Call(type=FLOAT, function=DOUBLED, args=(AT,)), "it takes float, not int"),
        (Call(type=INT, function=DOUBLED, args=(S,)), "the result is float, not int"),
        (ForwardDiff(type=Pair(FLOAT), function=DOUBLED, args=(S,)), "DifferentialPair[float]"),
        (MakePair(type=Pair(FLOAT), primal=S, derivative=V), "the derivative is float3"),
        (PairPart(type=FLOAT, value=S, part="d"), "float is no pair"),
        (Detach(type=INT, value=S), "the value is float, not int"),
    ],
)
def test_expressions_have_the_types_they_say(kernel: Kernel, value: Expr, reason: str) -> None:
    with pytest.raises(MalformedIR) as caught:
        verified(of_body(kernel, put("s", value)))
    assert reason in str(caught.value)


@pytest.mark.parametrize(
    ("statement", "reason"),
    [
        (put("nowhere", S), "there is no name `nowhere`"),
        (put("s", AT), "the value is int, not float"),
        (replace(put("v", S), path=(SwizzleStep(components="xy"),)), "the value is float"),
        (replace(put("s", S), path=(SwizzleStep(components="x"),)), "float has no"),
        (Store(buffer="x", indices=(AT,), value=S), "`x` is read only"),
        (If(condition=S, then=()), "the condition is float, not bool"),
        (repeat("k", 3, put("k", number(1))), "the body writes `k`"),
        (replace(repeat("k", 3), is_unrolled=True, stop=AT), "its bounds are not constant"),
        (While(condition=positive("s"), exits=("s",), body=()), "s is float, not bool"),
        (Break(), "it leaves no loop"),
        (Return(value=S), "the result is float, not None"),
    ],
)
def test_statements_fit_what_they_write(kernel: Kernel, statement: Stmt, reason: str) -> None:
    with pytest.raises(MalformedIR) as caught:
        verified(of_body(kernel, If(condition=positive("s"), then=(statement,))))
    assert reason in str(caught.value)


def test_functions_are_entered(kernel: Kernel) -> None:
    wrong = replace(DOUBLED, body=(Return(value=AT),))
    with pytest.raises(MalformedIR, match="`doubled`"):
        verified(of_body(kernel, put("s", Call(type=FLOAT, function=wrong, args=(S,)))))
    derivative = replace(DOUBLED, backward=wrong)
    with pytest.raises(MalformedIR, match="`doubled`"):
        verified(of_body(kernel, put("s", Call(type=FLOAT, function=derivative, args=(S,)))))
