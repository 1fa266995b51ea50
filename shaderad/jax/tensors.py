"""Arrays of JAX <-> host arrays: one copy to the device that holds an array, none on the host."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, cast

import jax
import numpy as np

from shaderad.wrapped.parts import Outline

HostArray = np.ndarray[Any, Any]
_jax = cast("Any", jax)


def outline_of(x: Any) -> Outline:
    """Shape and dtype of an array, traced or not."""
    return Outline(tuple(x.shape), np.dtype(x.dtype))


def on_host(x: Any) -> HostArray:
    """The content of an array: its own memory where that is the host's."""
    content = np.asarray(x)
    # bfloat16 and its like, which NumPy does not have.
    return content.astype(np.float32) if content.dtype.kind == "V" else content


def hollow(outline: Outline) -> HostArray:
    """Zeros in place of an array that has a shape and no content."""
    return on_host(np.zeros(outline.shape, outline.dtype))


def in_form(content: HostArray, outline: Outline) -> HostArray:
    """A result in the shape and dtype that JAX was told of it."""
    return content.reshape(outline.shape).astype(outline.dtype, copy=False)


def canonical(outline: Outline) -> Outline:
    """The outline of an array once it is JAX's: without 64 bits, unless JAX has them."""
    dtype: Any = _jax.dtypes.canonicalize_dtype(outline.dtype)
    return Outline(outline.shape, np.dtype(dtype))


def home_of(arrays: Sequence[Any]) -> Any:
    """Where results belong: on the device of the first array, `None` for JAX's default."""
    for x in arrays:
        homes = x.devices() if isinstance(x, jax.Array) else ()
        if len(homes) == 1:
            (home,) = homes
            return None if home == _jax.devices()[0] else home
    return None


def from_host(content: HostArray, home: Any) -> jax.Array:
    """An array of what nobody else holds."""
    return _jax.device_put(content, home)
