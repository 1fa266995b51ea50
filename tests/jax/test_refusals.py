"""What wrapped functions refuse, by a sentence and while JAX traces or compiles."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import shaderad as sad
from tests.jax.functions import floats
from tests.wrapped import functions
from tests.wrapped.functions import gathered, square

pytestmark = [pytest.mark.gpu, pytest.mark.parametrize("run", [lambda f: f, jax.jit])]
Run = Callable[[Callable[..., Any]], Callable[..., Any]]


@sad.custom_vjp
def cubed(x):
    return x**3


cubed.defvjp(lambda x: (x**3, x), lambda x, bar: (3.0 * x * x * bar,))


@pytest.mark.parametrize("function", [cubed, sad.graph(lambda x: cubed(x)), lambda x: cubed(x)])
def test_forward_mode_through_a_custom_vjp(device: sad.Device, run: Run, function: Any) -> None:
    wrapped, x = sad.jax.wrap(function), floats(3)
    by_x = run(jax.grad(lambda x: wrapped(x).sum()))(x)
    np.testing.assert_allclose(by_x, 3.0 * x * x, rtol=1e-5)
    with pytest.raises(sad.DerivativeError, match="SR0472") as refused:
        run(lambda x: jax.jvp(wrapped, (x,), (x,)))(x)
    assert "site-packages" not in str(refused.value)


@sad.function
def backward_only(x: float) -> float:
    return x * x


@backward_only.backward_derivative
def backward_only_bwd(x: sad.DifferentialPair[float], d_out: float):
    x.d += 2.0 * x.p * d_out


@sad.function
def forward_only(x: float) -> float:
    return x * x


@forward_only.forward_derivative
def forward_only_fwd(x: sad.DifferentialPair[float]) -> sad.DifferentialPair[float]:
    return sad.diff_pair(x.p * x.p, 2.0 * x.p * x.d)


@sad.kernel
def backwards(i: sad.Index, x: sad.In[float], y: sad.Out[float]):
    y[i] = backward_only(x[i])


@sad.kernel
def forwards(i: sad.Index, x: sad.In[float], y: sad.Out[float]):
    y[i] = forward_only(x[i])


def test_kernels_of_one_mode(device: sad.Device, run: Run) -> None:
    x = floats(3)
    back, forth = sad.jax.wrap(backwards), sad.jax.wrap(forwards)
    (by_x,) = run(lambda x: jax.vjp(back, x)[1](x))(x)
    np.testing.assert_allclose(by_x, 2.0 * x * x, rtol=1e-5)
    _, moved = run(lambda x: jax.jvp(forth, (x,), (x,)))(x)
    np.testing.assert_allclose(moved, 2.0 * x * x, rtol=1e-5)
    with pytest.raises(sad.DerivativeError, match="SR0411"):
        run(lambda x: jax.vjp(forth, x)[1](x))(x)
    with pytest.raises(sad.DerivativeError, match="SR0412"):
        run(lambda x: jax.jvp(back, (x,), (x,)))(x)


def test_second_derivatives_of_a_built_graph(device: sad.Device, run: Run, tmp_path: Path) -> None:
    source = Path(functions.__file__)
    sad.build(source, tmp_path, entries="scan_product", targets="wgsl,spirv", validate=False)
    built, x = sad.jax.wrap(sad.load(tmp_path).scan_product), floats(3)
    run(jax.grad(built))(x)
    with pytest.raises(sad.Error, match="SR0733"):
        run(jax.jacrev(jax.grad(built)))(x)


def test_arguments_of_other_shapes_and_types(device: sad.Device, run: Run) -> None:
    wrapped = run(sad.jax.wrap(gathered, shapes={"total": 4}))
    x, to = floats(3), jnp.array([0, 1, 2])
    for args in ((x[None], to), (x, to[:2]), (x + 1j, to), (x, x)):
        with pytest.raises(sad.ShapeError, match=r"SR03\d\d"):
            wrapped(*args)
    with pytest.raises(sad.ShapeError, match="SR0364"):
        wrapped(x)


def test_arguments_that_no_derivative_follows(device: sad.Device, run: Run) -> None:
    x = floats(3)
    with pytest.raises(sad.DerivativeError, match="SR0477"):
        run(lambda w: sad.jax.wrap(square)(sad.zeros(3), w))(1.0)
    with pytest.raises(sad.DerivativeError, match="SR0477"):
        run(lambda w: sad.jax.wrap(square)(jax.random.key(0), w))(1.0)
    with pytest.raises(sad.DerivativeError, match="SR0466"):
        sad.jax.wrap(3)  # pyright: ignore[reportArgumentType]
    with pytest.raises(sad.DerivativeError, match="SR0453"):
        sad.jax.wrap(lambda x, w: x * w, w=np.ones(3))
    with pytest.raises(sad.DerivativeError, match="SR0453"):
        run(jax.grad(lambda w: sad.jax.wrap(square)(x, w=w).sum()))(1.0)


def test_values_that_a_trace_does_not_have(device: sad.Device, run: Run) -> None:
    wrapped, x = sad.jax.wrap(lambda x: x * float(sad.sum(x))), jnp.ones(3)
    np.testing.assert_allclose(wrapped(x), 3.0 * x)
    with pytest.raises(sad.Error, match=r"float\(\)"):
        run(jax.grad(lambda x: wrapped(x).sum()))(x)


def test_what_a_run_finds(device: sad.Device, run: Run) -> None:
    """From compiled code an error of JAX says it, and the next call runs."""
    wrapped, x = run(sad.jax.wrap(gathered, shapes={"total": 3})), floats(3)
    with pytest.raises((sad.BoundsError, jax.errors.JaxRuntimeError), match="SR0660"):
        jax.block_until_ready(wrapped(x, jnp.array([0, 1, 7])))
    np.testing.assert_allclose(wrapped(x, jnp.arange(3)), jnp.sin(x), rtol=1e-5)
