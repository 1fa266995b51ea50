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
