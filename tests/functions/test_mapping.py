"""`sad.map` of Python functions, held against one NumPy call for each element."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import shaderad as sad

pytestmark = pytest.mark.gpu

RNG = np.random.default_rng(17)
TOLERANCE = 5e-5
"""Sums of a few float32 products near 1, in another order."""
STEP = 1e-6
"""Central differences of float64 functions near 1 are good to about 1e-9."""
W = RNG.normal(size=(4, 3))
V = RNG.normal(size=4)
AT = np.int32([2, 0, 2, 1])


@sad.kernel
def scaled(i: sad.Index, x: sad.In[float], scale: float, y: sad.Out[float]):
    y[i] = scale * x[i] * x[i]


@sad.kernel
def summed(i: sad.Index, x: sad.In[float], scale: float, total: sad.Add[float]):
    total[0] += scale * scale * x[i]


@sad.function
def saturated(a: float, b: float) -> float:
    return sad.tanh(a) * b


@sad.custom_vjp
def cubed(a: Any) -> Any:
    return a * a * a


cubed.defvjp(lambda a: (a * a * a, a), lambda a, bar: (3.0 * bar * a * a,))


def halved(a: Any) -> Any:
    return sad.while_loop(lambda c: c > 0.1, lambda c: 0.5 * c, a * a + 0.05, 40)


def halved_by_hand(a: Any) -> Any:
    value = a * a + 0.05
    while value > 0.1:
        value = 0.5 * value
    return value


def powers(a: Any) -> Any:
    return sad.loop(lambda c, row: (c * a + row, c), 0.0, V)[1]


def powers_by_hand(a: Any) -> Any:
    carries = [0.0]
    for row in V[:-1]:
        carries.append(carries[-1] * a + row)
    return np.stack(carries)


Case = tuple[Callable[[Any, Any], Any], Callable[[Any, Any], Any]]
CASES: dict[str, Case] = {
    "arithmetic": (lambda a, b: sad.sin(a) * b + 1.0, lambda a, b: np.sin(a) * b + 1.0),
    "one only": (lambda a, b: sad.exp(b), lambda a, b: np.exp(b)),
    "none": (lambda a, b: sad.full(2, 3.0), lambda a, b: np.full(2, 3.0)),
    "captured sums": (lambda a, b: sad.sum(a * W), lambda a, b: (a * W).sum()),
    "rows": (lambda a, b: sad.sum(a * W, axis=1) + b, lambda a, b: (a * W).sum(1) + b),
    "maxima": (lambda a, b: sad.max(a * W, axis=0), lambda a, b: (a * W).max(0)),
    "products": (lambda a, b: sad.prod(V + a), lambda a, b: np.prod(V + a)),
    "matrices": (lambda a, b: (a * W) @ (W.T * b), lambda a, b: (a * W) @ (W.T * b)),
    "einsum": (lambda a, b: sad.einsum("ij,i->j", a * W, V), lambda a, b: (a * W).T @ V),
    "softmax": (
        lambda a, b: sad.softmax(a * V),
        lambda a, b: np.exp(a * V) / np.exp(a * V).sum(),
    ),
    "scan": (lambda a, b: sad.scan(sad.add, V * a, b), lambda a, b: b + np.cumsum(V * a)),
    "scan of products": (lambda a, b: sad.cumprod(V + a), lambda a, b: np.cumprod(V + a)),
    "sort": (lambda a, b: sad.sort(V * a + b), lambda a, b: np.sort(V * a + b)),
    "gather": (lambda a, b: (a * W)[AT], lambda a, b: (a * W)[AT % 4]),
    "slices": (lambda a, b: (a * V)[::-1][1:], lambda a, b: (a * V)[::-1][1:]),
    "stack": (lambda a, b: sad.stack([a, b, a * b]), lambda a, b: np.stack([a, b, a * b])),
    "concatenate": (
        lambda a, b: sad.concatenate([V * a, V]),
        lambda a, b: np.concatenate([V * a, V]),
    ),
    "roll": (lambda a, b: sad.roll(V * a, 1), lambda a, b: np.roll(V * a, 1)),
    "triangle": (lambda a, b: sad.tril(W * a), lambda a, b: np.tril(W * a)),
    "where": (lambda a, b: sad.where(a > b, a * b, b), lambda a, b: np.where(a > b, a * b, b)),
    "compact": (
        lambda a, b: sad.compact(V * a, V * b > 0.0)[0],
        lambda a, b: np.pad((V * a)[V * b > 0.0], (0, 4 - (V * b > 0.0).sum())),
    ),
    "counts": (
        lambda a, b: b * sad.cast(sad.compact(V, V * a > 0.0)[1], float),
        lambda a, b: b * (V * a > 0.0).sum(),
    ),
    "scatter": (
        lambda a, b: sad.scatter(V * a, AT, V * b),
        lambda a, b: np.stack([V[1] * b, V[3] * b, V[2] * b, V[3] * a]),
    ),
    "scatter_add": (
        lambda a, b: sad.scatter_add(V * a, AT, V * b),
        lambda a, b: V * a + np.stack([V[1] * b, V[3] * b, V[0] * b + V[2] * b, 0.0 * b]),
    ),
    "segments": (
        lambda a, b: sad.segment_reduce(sad.mul, b, 3, AT, V * a),
        lambda a, b: b * np.stack([V[1] * a, V[3] * a, V[0] * a * V[2] * a]),
    ),
    "kernel": (lambda a, b: scaled(V, a, dim=4), lambda a, b: a * V * V),
    "kernel of mapped arrays": (
        lambda a, b: scaled(V * b, a, dim=4),
        lambda a, b: a * (V * b) ** 2,
    ),
    "adding kernel": (
        lambda a, b: summed(V * b, a, dim=4, shapes={"total": 1})[0],
        lambda a, b: a * a * (V * b).sum(),
    ),
    "fori_loop": (
        lambda a, b: sad.fori_loop(3, lambda k, c: c * a + b, 1.0),
        lambda a, b: ((a + b) * a + b) * a + b,
    ),
    "loop": (lambda a, b: powers(a), lambda a, b: powers_by_hand(a)),
    "while_loop": (lambda a, b: halved(a) * b, lambda a, b: halved_by_hand(a) * b),
    "checkpoint": (
        lambda a, b: sad.checkpoint(lambda c: sad.sin(c) * b)(a),
        lambda a, b: np.sin(a) * b,
    ),
    "custom_vjp": (lambda a, b: cubed(a * b), lambda a, b: (a * b) ** 3),
    "nested map": (
        lambda a, b: sad.map(lambda v: v * a + b, V),
        lambda a, b: V * a + b,
    ),
    "vmap": (
        lambda a, b: sad.vmap(lambda row: sad.sum(row * a), 0)(W),
        lambda a, b: (W * a).sum(1),
    ),
    "function of kernels": (
        lambda a, b: sad.map(saturated, V * a, b),
        lambda a, b: np.tanh(V * a) * b,
    ),
    "grad": (sad.grad(lambda a, b: a**3 * b), lambda a, b: 3 * a * a * b),
    "jvp": (
        lambda a, b: sad.jvp(lambda c: sad.sin(c) * V, (a,), (b,))[1],
        lambda a, b: np.cos(a) * V * b,
    ),
    "jacobian": (
        lambda a, b: sad.jacobian(lambda c: c * c * V)(a) * b,
        lambda a, b: 2 * a * V * b,
    ),
    "convolution": (
        lambda a, b: sad.conv((W.T * a)[None, 0], W[None, None, :3, 0] * b, padding=1)[0],
        lambda a, b: np.convolve(W[:, 0] * a, W[2::-1, 0] * b, "same"),
    ),
}
"""Functions of two elements, and the same functions in NumPy."""
# float32 inputs that lie far from ties of the functions above.
X, Y = np.float32([0.7, -1.2, 1.6]), np.float32([[0.4], [-0.9]])
SHAPES: dict[str, tuple[Any, Any]] = {
    "one axis": (X, Y[0] * X),
    "two axes": (X, Y),
    "no axis": (X[0], Y[0, 0]),
    "no elements": (X[:0], Y),
}


def apart(function: Callable[[Any, Any], Any], x: Any, y: Any) -> Any:
    """One call of a NumPy function for each element."""
    x, y = np.broadcast_arrays(np.float64(x), np.float64(y))
    like = np.shape(function(0.3, 0.8))
    rows = [function(a, b) for a, b in zip(x.flat, y.flat, strict=True)]
    return np.reshape(rows, (*x.shape, *like))


def differences(loss: Callable[..., Any], args: list[Any], position: int) -> Any:
    """Central differences of a NumPy function by one of its arguments."""
    gradient = np.zeros(np.shape(args[position]))
    for index in np.ndindex(gradient.shape):
        sides = []
        for step in (STEP, -STEP):
            moved = [np.float64(x).copy() for x in args]
            moved[position][index] += step
            sides.append(loss(*moved))
        gradient[index] = (sides[0] - sides[1]) / (2 * STEP)
    return gradient


def groups() -> list[list[str]]:
    names = list(CASES)
    return [names[k : k + 5] for k in range(0, len(names), 5)]


@pytest.mark.sample(4)
@pytest.mark.parametrize("names", groups(), ids=" ".join)
@pytest.mark.parametrize("shape", SHAPES)
def test_elements_are_those_of_numpy(names: list[str], shape: str, device: sad.Device) -> None:
    x, y = SHAPES[shape]

    @sad.graph
    def whole(x: Any, y: Any) -> Any:
        return sad.map(lambda a, b: {name: CASES[name][0](a, b) for name in names}, x, y)

    found = whole(x, y)
    for name in names:
        expected = apart(CASES[name][1], x, y)
        assert found[name].shape == expected.shape, name
        np.testing.assert_allclose(
            found[name].numpy(), expected, rtol=TOLERANCE, atol=TOLERANCE, err_msg=name
        )


@pytest.mark.sample(4)
@pytest.mark.parametrize("names", groups(), ids=" ".join)
@pytest.mark.parametrize("shape", ["one axis", "two axes"])
def test_gradients_are_those_of_numpy(names: list[str], shape: str, device: sad.Device) -> None:
    x, y = SHAPES[shape]
    results = {name: apart(CASES[name][1], x, y) for name in names}
    weight = {name: RNG.normal(size=result.shape) for name, result in results.items()}

    @sad.graph
    def whole(x: Any, y: Any) -> Any:
        return sad.map(lambda a, b: {name: CASES[name][0](a, b) for name in names}, x, y)

    for name in names:
        bars = {other: weight[name] if other == name else None for other in names}
        found = sad.vjp(whole, x, y)[1](bars)
        for position in (0, 1):

            def loss(*args: Any, name: str = name) -> Any:
                return (apart(CASES[name][1], *args) * weight[name]).sum()

            expected = differences(loss, [x, y], position)
            np.testing.assert_allclose(
                found[position].numpy(), expected, rtol=1e-3, atol=1e-3, err_msg=name
            )


def test_axes_of_one_share_what_they_do_not_need(device: sad.Device) -> None:
    rows, columns = sad.array(W, dtype=float), sad.array(W.T, dtype=float)

    def products(i: Any, k: Any) -> Any:
        return sad.sum(rows[i] * columns[:, k])

    graph = sad.graph(lambda: sad.map(products, sad.iota(4)[:, None], sad.iota(4)))
    np.testing.assert_allclose(graph().numpy(), W @ W.T, rtol=TOLERANCE, atol=TOLERANCE)
    gradient = sad.grad(lambda x: sad.sum(sad.map(lambda i, k: sad.sum(x[i] * x[k]) ** 2,
                                                  sad.iota(4)[:, None], sad.iota(4))))  # fmt: skip
    np.testing.assert_allclose(
        gradient(np.float32(W)).numpy(), 4 * W @ W.T @ W, rtol=1e-4, atol=1e-4
    )


def test_custom_rules_of_a_mapped_function_capture_arrays(device: sad.Device) -> None:
    weights = sad.array(V, dtype=float)

    @sad.custom_vjp
    def weighted(a: Any) -> Any:
        return a * sad.sum(weights)

    weighted.defvjp(lambda a: (a * sad.sum(weights), ()), lambda _, bar: (7.0 * bar,))
    np.testing.assert_allclose(sad.map(weighted, X).numpy(), X * V.sum(), rtol=TOLERANCE)
    gradient = sad.grad(lambda x: sad.sum(sad.map(weighted, x)))(X)
    np.testing.assert_allclose(gradient.numpy(), np.full(3, 7.0))
    with pytest.raises(sad.DerivativeError, match="SR0474"):
        sad.grad(lambda x: sad.sum(sad.map(lambda a: _capturing(a)(2.0 * a), x)))(X)


def _capturing(captured: Any) -> Any:
    rule = sad.custom_vjp(lambda a: a * captured)
    rule.defvjp(lambda a: (a * captured, ()), lambda _, bar: (bar,))
    return rule


def test_errors_of_a_mapped_function_name_its_line(device: sad.Device) -> None:
    def wrong(a: Any) -> Any:
        return a + sad.zeros(3) @ sad.zeros(4)  # here

    with pytest.raises(sad.ShapeError, match=r"sad.zeros\(3\) @ sad.zeros\(4\)  # here"):
        sad.map(wrong, X)
    with pytest.raises(sad.LanguageError, match="SR0332"):
        sad.map(lambda a: {"value": a, "nothing": None}, X)
