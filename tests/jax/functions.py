"""The functions to wrap, with arguments of JAX."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

import shaderad as sad
from tests.wrapped.functions import Case, arrays_in, cases, with_arrays


def floats(*shape: int) -> jax.Array:
    """Numbers from 0.3 to 1.3."""
    return jnp.asarray(np.random.default_rng(sum(shape)).uniform(0.3, 1.3, shape), jnp.float32)


def whole(content: list[int]) -> jax.Array:
    return jnp.array(content, jnp.int32)


CASES = cases(floats, whole)


def floats_in(tree: Any) -> list[jax.Array]:
    return [x for x in arrays_in(tree) if x.dtype.kind == "f"]


def flat(case: Case) -> tuple[Callable[..., list[jax.Array]], list[jax.Array]]:
    """A wrapped function of its arrays of floats alone, which gives those of its result."""
    wrapped, args = sad.jax.wrap(case.function, **case.call), case.args()

    def called(*leaves: Any) -> list[jax.Array]:
        rest = iter(leaves)
        mixed = [next(rest) if x.dtype.kind == "f" else x for x in arrays_in(args)]
        return floats_in(wrapped(*with_arrays(args, mixed)))

    return called, floats_in(args)
