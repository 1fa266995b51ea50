"""Wrapped functions against JAX's own checks, finite differences, and what they wrap."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.test_util import check_grads

import shaderad as sad
from shaderad import float2
from tests.jax.functions import CASES, flat, floats, floats_in
from tests.wrapped.functions import (
    Case,
    Pair,
    arrays_in,
    both,
    gathered,
    looked_up,
    mixed,
    moved,
    scan_product,
    second_use,
    spots,
    square,
)

STEP = 1e-2
"""Of finite differences: a float32 of 1 is exact to 6e-8, so they are to 1e-5."""
CLOSE = {"eps": STEP, "atol": 5e-3, "rtol": 5e-3}
"""Second order terms of a step are below 1e-3 here."""
EXACT = {"rtol": 1e-5, "atol": 1e-6}
"""Some roundings of float32."""

pytestmark = pytest.mark.gpu


def assert_same(found: Any, wanted: Any) -> None:
    """All leaves of two results."""
    pairs = zip(jax.tree.leaves(found), jax.tree.leaves(wanted), strict=True)
    for one, other in pairs:
        assert one.dtype == other.dtype
        np.testing.assert_allclose(one, other, **EXACT)


@pytest.mark.sample(2)
@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_derivatives_are_those_of_finite_differences(device: sad.Device, case: Case) -> None:
    called, leaves = flat(case)
    check_grads(called, leaves, order=1, modes=("fwd", "rev"), **CLOSE)


# The last is a gradient itself: its second derivatives take Slang long.
@pytest.mark.sample(3)
@pytest.mark.parametrize("case", CASES[:-1], ids=lambda case: case.name)
def test_second_derivatives_are_those_of_finite_differences(device: sad.Device, case: Case) -> None:
    called, leaves = flat(case)
    check_grads(jax.jit(called), leaves, order=2, modes=("fwd", "rev"), **CLOSE)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_compiled_is_what_runs_at_once(device: sad.Device, case: Case) -> None:
    called, leaves = flat(case)

    def both_modes(*leaves: Any) -> Any:
        out, pullback = jax.vjp(called, *leaves)
        return out, pullback(out), jax.jvp(called, leaves, leaves)

    assert_same(jax.jit(both_modes)(*leaves), both_modes(*leaves))


def test_gradients_are_those_of_the_kernel(device: sad.Device) -> None:
    x, to = floats(7), jnp.array([0, 2, 0, 1, 2, 2, 0])
    out, pullback = jax.vjp(lambda x: sad.jax.wrap(gathered, shapes={"total": 4})(x, to), x)
    total, own_pullback = sad.vjp(gathered, np.asarray(x), np.asarray(to), shapes={"total": 4})
    np.testing.assert_allclose(out, total.numpy(), **EXACT)
    np.testing.assert_allclose(pullback(out)[0], own_pullback(out)[0].numpy(), **EXACT)


@pytest.mark.parametrize("count", [0, 1, 257])
def test_sizes_may_be_odd_or_nothing(device: sad.Device, count: int) -> None:
    x = floats(count)
    for wrapped in (sad.jax.wrap(square), sad.jax.wrap(lambda x, w: w * x * x)):
        y, pullback = jax.vjp(jax.jit(wrapped), x, jnp.float32(2.0))
        by_x, by_w = pullback(jnp.ones(count))
        np.testing.assert_allclose(y, 2.0 * x * x, **EXACT)
        np.testing.assert_allclose(by_x, 4.0 * x, **EXACT)
        np.testing.assert_allclose(by_w, (x * x).sum(), rtol=1e-5)


@pytest.mark.parametrize("compiled", [False, True])
def test_results_and_gradients_have_the_types_of_their_arrays(
    device: sad.Device, compiled: bool
) -> None:
    wrapped = sad.jax.wrap(both)

    def loss(p: Any) -> Any:
        long, big, back = wrapped(p, 2)
        assert (long.dtype, big.dtype, back.dtype) == (jnp.float32, jnp.int32, jnp.float32)
        return long.sum() + back.sum()

    gradient = jax.jit(jax.grad(loss)) if compiled else jax.grad(loss)
    p = floats(4, 3)
    for dtype in (jnp.float32, jnp.bfloat16, jnp.float16):
        found = gradient(p.astype(dtype))
        assert found.dtype == dtype
        x = p.astype(dtype).astype(jnp.float32)
        first = x.sum(axis=1) + x[:, 0]
        wanted = 4.0 * x + jnp.stack([first, x[:, 0], x[:, 0]], axis=1)
        np.testing.assert_allclose(found.astype(jnp.float32), wanted, rtol=2e-2)


@pytest.mark.parametrize("compiled", [False, True])
def test_arrays_of_64_bits(device: sad.Device, compiled: bool) -> None:
    wrapped, doubled = sad.jax.wrap(square), sad.jax.wrap(lambda x: sad.array(np.arange(3)) * x)

    def loss(x: Any) -> Any:
        return wrapped(x, 2.0).sum()

    gradient = jax.jit(jax.grad(loss)) if compiled else jax.grad(loss)
    with jax.enable_x64(True):
        found = gradient(jnp.arange(3.0))
        assert found.dtype == jnp.float64
        np.testing.assert_allclose(found, 4.0 * np.arange(3.0), **EXACT)
        assert wrapped(jnp.arange(3.0), 2.0).dtype == jnp.float32
        whole = doubled(jnp.arange(3))
        assert whole.dtype == jnp.int32
        np.testing.assert_array_equal(whole, np.arange(3) ** 2)


@sad.kernel
def doubles(i: sad.Index, x: sad.In[float], y: sad.Out[sad.double]):
    y[i] = sad.double(x[i]) * sad.double(x[i])


def test_results_of_64_bits_are_what_jax_has(device: sad.Device) -> None:
    if "double" not in device.capabilities.features:
        pytest.skip(f"{device} has no double")
    wrapped, x = sad.jax.wrap(doubles), floats(3)
    for is_wide in (False, True):
        with jax.enable_x64(is_wide):
            wanted = jnp.float64 if is_wide else jnp.float32
            y, pullback = jax.vjp(jax.jit(wrapped), x)
            assert wrapped(x).dtype == y.dtype == wanted
            (by_x,) = pullback(jnp.ones(3, wanted))
            assert by_x.dtype == jnp.float32
            np.testing.assert_allclose(by_x, 2.0 * x, **EXACT)


def test_numbers_of_python_and_numpy(device: sad.Device) -> None:
    wrapped, x = sad.jax.wrap(square), floats(3)
    for w in (2, 2.0, np.float32(2.0), np.float64(2.0), np.int64(2), jnp.float32(2.0)):
        np.testing.assert_allclose(wrapped(x, w), 2.0 * x * x, **EXACT)
        np.testing.assert_allclose(jax.jit(wrapped)(x, w), 2.0 * x * x, **EXACT)
        np.testing.assert_allclose(jax.jit(lambda x, w=w: wrapped(x, w))(x), 2.0 * x * x, **EXACT)
    by_w = jax.grad(lambda w: wrapped(x, w).sum())(2.0)
    np.testing.assert_allclose(by_w, (x * x).sum(), **EXACT)
    assert by_w.dtype == jnp.float32


def test_whole_numbers_have_no_derivative(device: sad.Device) -> None:
    wrapped, x, to = sad.jax.wrap(gathered, shapes={"total": 3}), floats(3), jnp.array([0, 2, 2])
    _, pullback = jax.vjp(wrapped, x, to)
    by_x, by_to = pullback(jnp.ones(3))
    np.testing.assert_allclose(by_x, jnp.cos(x), **EXACT)
    assert by_to.dtype == jax.dtypes.float0
    p, nothing = floats(2, 3), np.zeros((), jax.dtypes.float0)
    out, moved = jax.jvp(sad.jax.wrap(both), (p, 3), (p, nothing))
    assert out[1].dtype == jnp.int32
    assert moved[1].dtype == jax.dtypes.float0


def test_hessians_in_all_modes(device: sad.Device) -> None:
    wrapped, x = sad.jax.wrap(scan_product), floats(4)

    def plain(x: Any) -> Any:
        return jnp.sum(jnp.cumprod(x) * x)

    wanted = jax.hessian(plain)(x)
    for outer in (jax.jacfwd, jax.jacrev):
        for inner in (jax.jacfwd, jax.jacrev):
            assert_same(outer(inner(wrapped))(x), wanted)
            assert_same(jax.jit(outer(inner(wrapped)))(x), wanted)


def test_third_derivatives(device: sad.Device) -> None:
    wrapped = sad.jax.wrap(lambda x: x * x * x * x)
    found = jax.jit(jax.grad(jax.grad(jax.grad(wrapped))))(jnp.float32(0.5))
    np.testing.assert_allclose(found, 12.0, **EXACT)


@pytest.mark.parametrize("compiled", [False, True])
def test_batches_are_calls_for_each_element(device: sad.Device, compiled: bool) -> None:
    wrapped = sad.jax.wrap(square)
    x, w = floats(3, 5), floats(3)

    def plain(x: Any, w: Any) -> Any:
        return w * x * x

    def derivatives(f: Any, x: Any, w: Any) -> Any:
        out, pullback = jax.vjp(f, x, w)
        return out, pullback(out), jax.jvp(f, (x, w), (x, w))

    def check(transformed: Any, *args: Any) -> None:
        run = jax.jit(transformed, static_argnums=0) if compiled else transformed
        assert_same(run(wrapped, *args), run(plain, *args))

    for axes in ((0, 0), (0, None), (1, None), (None, 0)):
        args = (x if axes[0] is not None else x[0], w if axes[1] is not None else w[0])

        def batched(f: Any, x: Any, w: Any, axes: Any = axes) -> Any:
            return jax.vmap(f, axes)(x, w)

        check(batched, *args)
        check(lambda f, x, w, axes=axes: jax.vmap(lambda x, w: derivatives(f, x, w), axes)(x, w),
              *args)  # fmt: skip
        check(lambda f, x, w: derivatives(lambda x, w: batched(f, x, w), x, w), *args)
    check(lambda f, x, w: jax.vmap(jax.vmap(f, (None, 0)), (0, None))(x, w), x, w)
    check(lambda f, x, w: jax.vmap(jax.hessian(lambda x, w: f(x, w).sum(), (0, 1)), (0, 0))(x, w),
          x, w)  # fmt: skip
    check(lambda f, x, w: jax.vmap(f)(x, w), x[:0], w[:0])
    check(lambda f, x, w: jax.jacrev(f)(x, w), x[0], w[0])


def test_loops_branches_and_checkpoints(device: sad.Device) -> None:
    wrapped, x = sad.jax.wrap(square), floats(4)

    def step(f: Any, x: Any, w: Any) -> tuple[Any, Any]:
        y = jax.lax.cond(w > 0.5, lambda: f(x, w), lambda: x)
        return y, y.sum()

    def looped(f: Any, x: Any, w: Any) -> Any:
        y, sums = jax.lax.scan(lambda x, w: step(f, x, w), x, w)
        return y.sum() + sums.sum()

    def plain(x: Any, w: Any) -> Any:
        return w * x * x

    # More steps than runs that are kept.
    w = jnp.linspace(0.3, 1.0, 50)
    for around in (lambda f: f, jax.checkpoint):
        found = jax.jit(jax.value_and_grad(lambda x, w, a=around: looped(a(wrapped), x, w), (0, 1)))
        wanted = jax.value_and_grad(lambda x, w, a=around: looped(a(plain), x, w), (0, 1))
        assert_same(found(x, w), wanted(x, w))


def test_linear_maps_are_transposed_again(device: sad.Device) -> None:
    wrapped, x = sad.jax.wrap(square), floats(4)

    def f(x: Any) -> Any:
        return wrapped(x, 3.0)

    y, moved = jax.linearize(f, x)
    np.testing.assert_allclose(moved(x), 2.0 * y, **EXACT)
    np.testing.assert_allclose(moved(2.0 * x), 4.0 * y, **EXACT)
    _, pullback = jax.vjp(f, x)
    for again in (jax.linear_transpose(moved, x), pullback):
        np.testing.assert_allclose(again(x)[0], 2.0 * y, **EXACT)
        np.testing.assert_allclose(again(x)[0], 2.0 * y, **EXACT)
    (there,) = jax.linear_transpose(lambda bar: pullback(bar)[0], x)(x)
    np.testing.assert_allclose(there, 2.0 * y, **EXACT)


def test_structures_go_in_and_come_out(device: sad.Device) -> None:
    out = sad.jax.wrap(mixed)(Pair(jnp.ones(3), jnp.zeros(2)), [2.0, jnp.ones(2)], 2)
    assert isinstance(out, Pair)
    assert float(out.left) == 12.0
    seen, word, power = out.right
    assert (seen.tolist(), word, power) == ([1.0, 1.0], "seen", 2)
    given = spots(floats, jnp.array)
    for run in (lambda f: f, jax.jit):
        moved_spots = run(sad.jax.wrap(moved))(given, jnp.array([2.0, 3.0]))
        assert sorted(moved_spots) == ["center", "color", "number"]
        assert_same(moved_spots["number"], given["number"] + 1)
        assert_same(moved_spots["center"], given["center"] * jnp.array([2.0, 3.0]))
    assert_same(sad.jax.wrap(moved)(given, float2(1, 1))["center"], given["center"])


def test_one_array_may_be_several_results(device: sad.Device) -> None:
    x = floats(3)
    first, (second, third) = sad.jax.wrap(second_use)(x)
    assert_same([first, second, third], [x * x, x * x, x])
    by_x = jax.grad(lambda x: sum(y.sum() for y in arrays_in(sad.jax.wrap(second_use)(x))))(x)
    assert_same(by_x, 4.0 * x + 1.0)


def test_keywords_of_a_call_may_differ(device: sad.Device) -> None:
    wrapped = sad.jax.wrap(looked_up)
    mesh = {"points": floats(4, 3), "index": jnp.array([0, 1, 2, 3])}
    for dim in (2, 4):
        assert wrapped(mesh, dim=dim).shape == (dim,)
        assert jax.jit(lambda mesh, dim=dim: wrapped(mesh, dim=dim))(mesh).shape == (dim,)


def test_only_what_moves_is_differentiated(
    device: sad.Device, monkeypatch: pytest.MonkeyPatch
) -> None:
    from shaderad.calls.run_graph import GraphStep

    asked: list[tuple[bool, ...]] = []
    original = GraphStep.gradients

    def noted(self: Any, wanted: tuple[bool, ...], *rest: Any) -> Any:
        asked.append(wanted)
        return original(self, wanted, *rest)

    monkeypatch.setattr(GraphStep, "gradients", noted)
    wrapped, x = sad.jax.wrap(square), floats(3)
    jax.grad(lambda x: wrapped(x, jnp.float32(2.0)).sum())(x)
    jax.jit(jax.grad(lambda w: wrapped(x, w).sum()))(2.0).block_until_ready()
    assert asked == [(True, False), (False, True)]


def test_all_floats_of_a_case_are_found() -> None:
    assert len(floats_in(CASES[3].args())) == 2


def test_results_whose_form_a_setting_decides_follow_it(device: sad.Device) -> None:
    state = {"count": 2, "rate": 1.5}

    def function(x: Any) -> Any:
        return [x * state["rate"]] * state["count"], state["rate"]

    wrapped = sad.jax.wrap(function)

    def loss(x: Any) -> Any:
        parts, rate = wrapped(x)
        return sum(jnp.sum(part) for part in parts) * rate

    x = jnp.float32([1.0, 2.0])
    for state["count"], state["rate"] in ((2, 1.5), (3, 1.5), (3, 2.0)):
        expected = state["count"] * state["rate"] ** 2
        np.testing.assert_allclose(jax.grad(loss)(x), [expected, expected], rtol=1e-6)
