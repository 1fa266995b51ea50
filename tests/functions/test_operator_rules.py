"""Operators mean the same at once, in a graph, and under a transform: type, value, or refusal."""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import pytest

import shaderad as sad
from shaderad.arrays.arrays import zeros
from shaderad.calls import run_graph
from shaderad.ir import sizes
from shaderad.ir.arrays import Graph
from shaderad.trace.traced import TracedArray

Operands = tuple[Any, Any]
Rule = Callable[[Any, Any], Any]


@sad.struct
class Particle:
    mass: float
    kind: int


ARITHMETIC: list[Rule] = [
    operator.add, operator.sub, operator.mul, operator.truediv, operator.floordiv, operator.mod,
    operator.pow, operator.matmul,
]  # fmt: skip
BITWISE: list[Rule] = [
    operator.and_, operator.or_, operator.xor, operator.lshift, operator.rshift,
]  # fmt: skip
COMPARISONS: list[Rule] = [
    operator.lt, operator.le, operator.gt, operator.ge, operator.eq, operator.ne,
]  # fmt: skip
UNARY = [operator.neg, operator.pos, operator.abs, operator.invert]

ELEMENTS: dict[str, Any] = {
    "float": float, "half": sad.half, "int": int, "uint": sad.uint, "bool": bool,
    "float2": sad.float2, "float3": sad.float3, "half2": sad.half2, "int2": sad.int2,
    "float2x2": sad.float2x2, "float3x3": sad.float3x3, "Particle": Particle,
}  # fmt: skip
HOST: dict[str, Callable[[], Any]] = {
    "1": lambda: 1,
    "2.5": lambda: 2.5,
    "0": lambda: 0,
    "-1": lambda: -1,
    "True": lambda: True,
    "2**40": lambda: 2**40,
    "np.float32": lambda: np.float32(2.5),
    "np floats": lambda: np.array([1.5, 2.5], np.float32),
    "np ints": lambda: np.array([1, 2]),
    "np bools": lambda: np.array([True, False]),
    "list": lambda: [1.0, 2.0],
    "tuple": lambda: (1.0, 2.0),
    "float2(...)": lambda: sad.float2(1, 2),
    "float3(...)": lambda: sad.float3(1, 2, 3),
    "int2(...)": lambda: sad.int2(1, 2),
    "object": object,
    "None": lambda: None,
}


def array_of(name: str) -> sad.Array:
    """Two elements."""
    dtype = ELEMENTS[name]
    if dtype is Particle:
        return sad.array([Particle(1.0, 2), Particle(3.0, 4)], dtype=Particle)
    axes = sad.zeros((), dtype=dtype).numpy().shape
    data = np.arange(1, 1 + 2 * int(np.prod(axes))).reshape(2, *axes)
    return sad.array(data % 2 == 1 if dtype is bool else data, dtype=dtype)


def operands(device: sad.Device) -> Mapping[str, Any]:
    arrays = {name: array_of(name) for name in ELEMENTS}
    assert all(one.device is device for one in arrays.values())
    return {**arrays, **{name: make() for name, make in HOST.items()}}


def outcome(rule: Callable[[], Any]) -> Any:
    """Element and shape of a result, or the kind of a refusal and its code."""
    try:
        result = rule()
    except sad.Error as failure:
        return type(failure).__name__, failure.code
    except TypeError:
        return TypeError.__name__
    if isinstance(result, bool):  # Python compares identities where neither side knows the other
        return result
    if not isinstance(result, TracedArray):
        return str(result.element), result.shape
    known = result.owner.size_by_name
    return str(result.element), tuple(sizes.evaluate(e, known) for e in result.extents)


def in_graph(rule: Callable[..., Any], *given: Any) -> Any:
    """The outcome inside a graph, to which arrays are arguments."""
    seen: list[Any] = []

    def traced(arrays: list[sad.Array]) -> sad.Array:
        remaining = iter(arrays)
        own = [next(remaining) if isinstance(x, sad.Array) else x for x in given]
        seen.append(outcome(lambda: rule(*own)))
        return sad.zeros(1)

    sad.graph(traced)([x for x in given if isinstance(x, sad.Array)])
    return seen[0]


def under_vjp(rule: Callable[..., Any], *given: Any) -> Any:
    """The outcome while a transform records; floats are followed."""
    seen: list[Any] = []

    def recorded(weight: sad.Array, *arrays: sad.Array) -> sad.Array:
        remaining = iter(arrays)
        own = [next(remaining) if isinstance(x, sad.Array) else x for x in given]
        seen.append(outcome(lambda: rule(*own)))
        return weight

    sad.vjp(recorded, sad.zeros(1), *(x for x in given if isinstance(x, sad.Array)))
    return seen[0]


@pytest.fixture
def not_run(monkeypatch: pytest.MonkeyPatch) -> None:
    """Graphs give zeros, of the right types and shapes: nothing is compiled."""

    def evaluate(
        graph: Graph, _: Sequence[sad.Array], size_by_name: Mapping[str, int], device: sad.Device
    ) -> list[sad.Array]:
        return [
            zeros(device, v.element, tuple(sizes.evaluate(e, size_by_name) for e in v.shape))
            for v in graph.outputs
        ]

    monkeypatch.setattr(run_graph, "evaluate", evaluate)


@pytest.mark.sample(2)
@pytest.mark.usefixtures("not_run")
@pytest.mark.parametrize("rule", [*ARITHMETIC, *BITWISE, *COMPARISONS], ids=lambda f: f.__name__)
def test_types_and_refusals_agree(device: sad.Device, rule: Rule) -> None:
    known = operands(device)
    pairs = [(a, b) for a in known for b in known if {a, b} & ELEMENTS.keys()]
    different = {}
    for a, b in pairs:
        given = (known[a], known[b])
        found = [
            outcome(lambda given=given: rule(*given)),
            in_graph(rule, *given),
            under_vjp(rule, *given),
        ]
        if len(set(found)) != 1:
            different[a, b] = found
    assert not different


@pytest.mark.usefixtures("not_run")
@pytest.mark.parametrize("rule", UNARY, ids=lambda f: f.__name__)
@pytest.mark.parametrize("name", ELEMENTS)
def test_types_and_refusals_of_one_operand_agree(
    device: sad.Device, rule: Callable[[Any], Any], name: str
) -> None:
    x = array_of(name)
    found = [outcome(lambda: rule(x)), in_graph(rule, x), under_vjp(rule, x)]
    assert len(set(found)) == 1, found


VALUES: list[tuple[Rule, str, str]] = [
    (operator.add, "int", "2.5"),
    (operator.mul, "half", "int"),
    (operator.mul, "int2", "2.5"),
    (operator.mul, "float", "float3(...)"),
    (operator.sub, "float2", "float2(...)"),
    (operator.sub, "np floats", "float"),
    (operator.truediv, "int", "uint"),
    (operator.truediv, "1", "float"),
    (operator.floordiv, "int", "2.5"),
    (operator.mod, "float", "-1"),
    (operator.pow, "int", "-1"),
    (operator.pow, "2.5", "float"),
    (operator.matmul, "float3x3", "float3"),
    (operator.matmul, "float", "np floats"),
    (operator.xor, "bool", "True"),
    (operator.lshift, "int", "1"),
    (operator.le, "float2", "float"),
    (operator.eq, "uint", "1"),
]


@pytest.mark.parametrize(("rule", "a", "b"), VALUES, ids=str)
def test_values_agree(device: sad.Device, rule: Rule, a: str, b: str) -> None:
    known = operands(device)
    left, right = known[a], known[b]
    if outcome(lambda: rule(left, right))[0] == "LanguageError":
        with pytest.raises(sad.Error):
            rule(left, right)
        return
    arrays = [x for x in (left, right) if isinstance(x, sad.Array)]

    def computed(*own: Any) -> Any:
        remaining = iter(own)
        return rule(*(next(remaining) if isinstance(x, sad.Array) else x for x in (left, right)))

    at_once = rule(left, right).numpy()
    np.testing.assert_array_equal(sad.graph(computed)(*arrays).numpy(), at_once)
    y, _ = sad.vjp(lambda *own: (computed(*own), own[0]), *arrays)
    np.testing.assert_array_equal(y[0].numpy(), at_once)


def test_a_number_may_change_from_call_to_call(device: sad.Device) -> None:
    x = sad.array([1.0, 2.0])
    for number in (0.5, -0.0, 0.0, 3, np.float32(2.5), float("nan")):
        expected = np.float32([1.0, 2.0])
        np.testing.assert_array_equal((x * number).numpy(), expected * np.float32(number))
        np.testing.assert_array_equal((number - x).numpy(), np.float32(number) - expected)
        np.testing.assert_array_equal(
            np.signbit((x * number).numpy()), np.signbit(expected * np.float32(number))
        )
    with pytest.raises(sad.LanguageError, match="SR0314"):
        x / 0
    np.testing.assert_array_equal((x / 2).numpy(), [0.5, 1.0])
    k = sad.array([1, 2])
    np.testing.assert_array_equal((k + 1).numpy(), [2, 3])
    with pytest.raises(sad.LanguageError, match="SR0306"):
        k + 2**40
    np.testing.assert_array_equal((k + 7).numpy(), [8, 9])
