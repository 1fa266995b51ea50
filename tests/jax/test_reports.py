"""Prints and checks of kernels in wrapped functions, called through JAX."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import shaderad as sad
from tests.wrapped.functions import doubled, printed, root

pytestmark = [pytest.mark.gpu, pytest.mark.parametrize("run", [lambda f: f, jax.jit])]
Run = Callable[[Callable[..., Any]], Callable[..., Any]]
ERRORS = (sad.Error, jax.errors.JaxRuntimeError)
"""Compiled code reports by an error of JAX."""


@pytest.mark.parametrize(
    "function", [printed, sad.graph(lambda x: printed(x)), lambda x: printed(x), doubled]
)
def test_a_call_prints_once_and_its_derivative_nothing(
    device: sad.Device, capfd: pytest.CaptureFixture[str], run: Run, function: Any
) -> None:
    wrapped, x = sad.jax.wrap(function), jnp.array([1.0, 2.0])
    for call in (wrapped, jax.grad(lambda x: wrapped(x).sum())):
        y = jax.block_until_ready(run(call)(x))
        device.synchronize()
        lines = capfd.readouterr().out.splitlines()
        assert [line.split()[-1] for line in lines] == ["1.0", "2.0"]
    np.testing.assert_allclose(y, [2.0, 2.0] if function is doubled else [1.0, 0.5])


def test_checks_report_values_and_gradients(device: sad.Device, run: Run) -> None:
    wrapped = sad.jax.wrap(root, checks="nan")
    with pytest.raises(ERRORS, match="SR0666"):
        jax.block_until_ready(run(wrapped)(jnp.array([-1.0, 2.0])))
    with pytest.raises(ERRORS, match="SR0668"):
        jax.block_until_ready(run(jax.grad(lambda x: wrapped(x).sum()))(jnp.array([0.0, 4.0])))


@pytest.mark.parametrize("function", [doubled, sad.graph(doubled)])
def test_failed_assertions_are_raised(device: sad.Device, run: Run, function: Any) -> None:
    wrapped, x = sad.jax.wrap(function), jnp.array([-1.0, 2.0])
    for call in (wrapped, jax.grad(lambda x: wrapped(x).sum())):
        with pytest.raises(ERRORS, match="SR0662"):
            jax.block_until_ready(run(call)(x))
