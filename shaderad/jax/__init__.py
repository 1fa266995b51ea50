"""`sad.jax.wrap`: kernels, graphs and functions on arrays as functions of JAX's arrays."""

# ruff: noqa: F403
from __future__ import annotations

from importlib.util import find_spec

from shaderad.diagnostics import error

if find_spec("jax") is None:
    raise error("SR0624", name="jax", library="JAX")

from shaderad.jax.functions import *
from shaderad.jax.functions import __all__ as __all__
