"""Loops, checkpoints and derivatives of the user's own, traced."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import shaderad as sad
from shaderad.functions.custom import CustomVjp
from tests.tracing import check_derivatives, run, trace

X = np.array([0.5, -0.25, 1.5])


def test_a_loop_carries_trees_and_reads_what_it_captures() -> None:
    def f(x: Any) -> Any:
        def step(k: Any, carry: Any) -> Any:
            total, (last,) = carry
            return total + x * last, (last * 0.5 + k,)

        return sad.fori_loop(4, step, (x * 0.0, (1,)))

    total, last = np.zeros(3), 1.0
    for k in range(4):
        total, last = total + X * last, last * 0.5 + k
    found, (other,) = run(f, X)
    np.testing.assert_allclose(found, total)
    assert other == last


@pytest.mark.parametrize("checkpoint", ["sqrt", "all"])
@pytest.mark.parametrize("count", [0, 1, 5])
def test_derivatives_of_loops(count: int, checkpoint: str) -> None:
    check_derivatives(
        lambda x: sad.fori_loop(count, lambda k, c: sad.sin(c) * x + k, x * x, checkpoint),
        X,
    )


def test_a_size_is_a_count() -> None:
    assert run(lambda x: sad.fori_loop(x.shape[0], lambda k, c: c + k, 0), X) == 3


@pytest.mark.parametrize("length", [0, 1, 4])
def test_a_loop_without_arrays_has_a_length(length: int) -> None:
    def powers(x: Any) -> Any:
        def step(carry: Any, row: Any) -> Any:
            assert row is None
            return carry * x, carry

        return sad.loop(step, sad.ones(3), length=length)

    last, kept = run(powers, X)
    np.testing.assert_allclose(last, X**length, rtol=1e-6)
    np.testing.assert_allclose(kept, [X**k for k in range(length)] or np.zeros((0, 3)), rtol=1e-6)
    check_derivatives(powers, X)


@pytest.mark.parametrize(
    ("call", "code"),
    [
        (lambda f, x: sad.loop(f, 0.0), "SR0336"),
        (lambda f, x: sad.loop(f, 0.0, x, length=4), "SR0336"),
        (lambda f, x: sad.loop(f, 0.0, None, 2.5), "SR0370"),
        (lambda f, x: sad.loop(f, 0.0, length=-1), "SR0371"),
    ],
)
def test_a_wrong_length_of_a_loop_is_refused(call: Any, code: str) -> None:
    with pytest.raises(sad.Error, match=code):
        run(lambda x: call(lambda carry, row: (carry, None), x), X)


@pytest.mark.parametrize(("lower", "upper"), [(0, 4), (2, 5), (-3, 2), (3, 3), (5, 2)])
def test_a_loop_runs_from_its_lower_to_before_its_upper_bound(lower: int, upper: int) -> None:
    def step(k: Any, carry: Any) -> Any:
        return carry * 2 + k

    wanted = 1
    for k in range(lower, upper):
        wanted = step(k, wanted)
    assert run(lambda _: sad.fori_loop(lower, upper, step, 1), X) == wanted
    named = run(lambda _: sad.fori_loop(lower=lower, upper=upper, body=step, init=1), X)
    assert named == wanted
    check_derivatives(
        lambda x: sad.fori_loop(lower, upper, lambda k, c: sad.sin(c) * x + k, x * x, "all"), X
    )


def test_bounds_may_be_sizes() -> None:
    def f(x: Any) -> Any:
        n = x.shape[0]
        return sad.fori_loop(n - 2, n, lambda k, c: c + x[k] * k, 0.0)

    np.testing.assert_allclose(run(f, X), X[1] + 2.0 * X[2])


def test_rows_go_in_and_come_out() -> None:
    rows = np.arange(6.0).reshape(3, 2)

    def g(r: Any, x: Any) -> Any:
        return sad.loop(lambda c, row: (c + row["r"], c * row["x"]), r[0] * 0.0, {"r": r, "x": x})

    last, ys = run(g, rows, X)
    np.testing.assert_allclose(last, rows.sum(0))
    before = np.cumsum(rows, 0) - rows
    np.testing.assert_allclose(ys, before * X[:, None])
    check_derivatives(g, rows, X)


@pytest.mark.parametrize("numbers", [0.5, (0.5,), (0.5, 2.0)])
def test_a_carry_of_numbers_may_become_other_numbers(numbers: Any) -> None:
    def f(x: Any) -> Any:
        return sad.loop(lambda _, row: (numbers, 2.0 * row), numbers, x)

    carry, ys = run(f, X)
    np.testing.assert_array_equal(np.ravel(carry), np.ravel(numbers))
    np.testing.assert_array_equal(ys, 2.0 * X)


def test_while_stops_at_its_condition() -> None:
    def f(x: Any) -> Any:
        return sad.while_loop(lambda c: c[1] < 3, lambda c: (c[0] * x, c[1] + 1), (x, 0), 10)[0]

    np.testing.assert_allclose(run(f, X), X**4)
    check_derivatives(f, X)


def test_loops_run_for_each_element_of_a_mapped_function() -> None:
    def f(x: Any) -> Any:
        return sad.map(lambda a: sad.loop(lambda c, row: (c * a + row, c), 0.0, x)[1], x)

    expected = []
    for a in X:
        c, ys = 0.0, []
        for row in X:
            ys.append(c)
            c = c * a + row
        expected.append(ys)
    np.testing.assert_allclose(run(f, X), expected)
    check_derivatives(f, X)


# -- steps ------------------------------------------------------------------------------------


def test_a_checkpointed_function_gives_what_it_gives() -> None:
    def f(x: Any) -> Any:
        return sad.checkpoint(lambda y, s: {"a": y * x, "b": y * s})(x * 2.0, 3.0)

    found = run(f, X)
    np.testing.assert_allclose(found["a"], 2 * X * X)
    np.testing.assert_allclose(found["b"], 6 * X)
    check_derivatives(lambda x: f(x)["a"], X)


def clipped(bound: Any) -> CustomVjp:
    made = sad.custom_vjp(lambda x, k: x * 2.0)
    made.defvjp(
        lambda x, k: (x * 2.0, (x, 3)),
        lambda kept, bar: (sad.where(bar > bound, bound, bar) * kept[1], None),
    )
    return made


def test_a_pullback_of_the_users_own_is_followed() -> None:
    variant, form = trace(lambda x: clipped(0.5)(x, 1), X)
    from tests.array_check import gradients

    (found,) = gradients(variant.graph, [X], [np.array([0.25, 4.0, -1.0])], **form.size_by_name)
    np.testing.assert_allclose(found, [0.75, 1.5, -3.0])


def calls_itself(where: str) -> CustomVjp:
    """The exponential, which one of its three functions calls by the decorated name."""

    def exponential(name: str, x: Any) -> Any:
        return made(x) if name == where else sad.exp(x)

    made = sad.custom_vjp(lambda x: exponential("function", x))
    made.defvjp(
        lambda x: (exponential("forward", x), x),
        lambda x, bar: (bar * exponential("backward", x),),
    )
    return made


def test_a_forward_function_may_call_the_undecorated_one() -> None:
    squared = sad.custom_vjp(lambda x: x * x)
    squared.defvjp(lambda x: (squared.function(x), x), lambda x, bar: (bar * x * 3.0,))
    variant, form = trace(squared, X)
    from tests.array_check import gradients

    (found,) = gradients(variant.graph, [X], [np.ones(3)], **form.size_by_name)
    np.testing.assert_allclose(found, 3.0 * X, rtol=1e-6)


REFUSED: list[tuple[Callable[..., Any], str]] = [
    (lambda x: sad.fori_loop(3, lambda k, c: c, x, checkpoint="some"), "SR0335"),
    (lambda x: sad.fori_loop(x, lambda k, c: c, x), "SR0370"),
    (lambda x: sad.fori_loop(3, lambda k, c: (c, c), x), "SR0333"),
    (lambda x: sad.fori_loop(0, 2.5, lambda k, c: c, x), "SR0370"),
    (lambda x: sad.fori_loop(x, 3, lambda k, c: c, x), "SR0370"),
    (lambda x: sad.fori_loop(0, 3, lambda k, c: c), "SR0293"),
    (lambda x: sad.fori_loop(3, lambda k, c: c), "SR0293"),
    (lambda x: sad.fori_loop(0, 3, body_fun=lambda k, c: c, init=x), "SR0292"),
    (lambda x: sad.fori_loop(3, lambda k, c: None, x), "SR0333"),
    (lambda x: sad.fori_loop(3, lambda k, c: x, 0.0), "SR0334"),
    (lambda x: sad.fori_loop(3, lambda k, c: c > 0.0, x), "SR0330"),
    (lambda x: sad.loop(lambda c, r: (c, r), x, ()), "SR0336"),
    (lambda x: sad.loop(lambda c, r: (c, r), x, (x, x[:2])), "SR0336"),
    (lambda x: sad.loop(lambda c, r: c, x, x), "SR0333"),
    (lambda x: sad.while_loop(lambda c: c > 0.0, lambda c: c, x, 3), "SR0337"),
    (lambda x: sad.while_loop(lambda c: True, lambda c: c, x, -3), "SR0371"),
    (lambda x: sad.while_loop(lambda c: True, lambda c: c, x, x.shape[0]), "SR0320"),
    (lambda x: sad.custom_vjp(lambda y: y)(x), "SR0473"),
    (lambda x: clipped(x * x)(x, 1), "SR0474"),
    (lambda x: clipped(0.5)(x), "SR0293"),
    (lambda x: calls_itself("function")(x), "SR0475"),
    (lambda x: calls_itself("forward")(x), "SR0475"),
    (lambda x: calls_itself("backward")(x), "SR0475"),
]


@pytest.mark.parametrize(("function", "code"), REFUSED)
def test_what_does_not_fit_is_refused(function: Callable[..., Any], code: str) -> None:
    with pytest.raises(sad.Error) as raised:
        trace(function, X)
    assert raised.value.code == code


def test_sums_inside_of_loops_see_whole_rows() -> None:
    found = run(lambda x: sad.fori_loop(2, lambda k, c: c - sad.mean(c) + k, x), X)
    np.testing.assert_allclose(found, X - X.mean() + 1 - np.mean(X - X.mean()))


def recurrence(w: Any, b: Any, xs: Any) -> Any:
    def step(h: Any, x: Any) -> Any:
        return sad.tanh(h @ w + b * x), h

    h, hs = sad.loop(step, sad.zeros(w.shape[0]), xs)
    return sad.sum(h * h) + sad.sum(hs)


def test_cotangents_of_weights_are_summed_after_the_loop() -> None:
    rng = np.random.default_rng(5)
    w, b, xs = rng.normal(size=(3, 3)), rng.normal(size=3), rng.normal(size=7)
    graph = sad.graph(sad.grad(recurrence, argnums=(0, 1, 2)))
    args = [sad.array(x.astype(np.float32)) for x in (w, b, xs)]
    gradients = [g.numpy() for g in graph(*args)]
    h, hs = [np.zeros(3)], []
    for x in xs:
        hs.append(h[-1])
        h.append(np.tanh(h[-1] @ w + b * x))
    h_bar, w_bar, b_bar, xs_bar = 2 * h[-1], np.zeros((3, 3)), np.zeros(3), np.zeros(7)
    for k in reversed(range(7)):
        z_bar = h_bar * (1 - h[k + 1] ** 2)
        w_bar += np.outer(h[k], z_bar)
        b_bar += z_bar * xs[k]
        xs_bar[k] = z_bar @ b
        h_bar = z_bar @ w.T + 1
    for found, expected in zip(gradients, (w_bar, b_bar, xs_bar), strict=True):
        np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-5)


def test_a_loop_that_is_linear_keeps_nothing_for_its_reverse() -> None:
    def f(x: Any) -> Any:
        return sad.sum(sad.fori_loop(50, lambda _, p: sad.roll(p, 1) * 0.5 + x, x) ** 2)

    x = sad.array(np.arange(6, dtype=np.float32))
    text = sad.graph(sad.value_and_grad(f)).explain(x)
    assert text.count("loop_in_group") == 2
    assert "float[50, 6]" not in text
