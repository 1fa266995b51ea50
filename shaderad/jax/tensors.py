"""Arrays of JAX <-> host arrays: one copy to the device that holds an array, none on the host."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, cast

import jax
import numpy as np

from shaderad.wrapped.parts import Outline
from shaderad.wrapped.structures import HostArray

_jax = cast("Any", jax)


def outline_of(x: Any) -> Outline:
    """Shape and dtype of an array, traced or not."""
    return Outline(tuple(x.shape), np.dtype(x.dtype))


def on_host(x: Any) -> HostArray:
    """The content of an array, without a copy if it is on the host."""
    content = np.asarray(x)
    # NumPy does not have bfloat16 and similar types.
    return content.astype(np.float32) if content.dtype.kind == "V" else content


def hollow(outline: Outline) -> HostArray:
    """Zeros in the shape of an array that has no content."""
    return on_host(np.zeros(outline.shape, outline.dtype))


def in_form(content: HostArray, outline: Outline) -> HostArray:
    """A result in the shape and dtype that were announced to JAX."""
    return content.reshape(outline.shape).astype(outline.dtype, copy=False)


def canonical(outline: Outline) -> Outline:
    """The outline of an array in JAX, which has no 64-bit types unless they are enabled."""
    dtype: Any = _jax.dtypes.canonicalize_dtype(outline.dtype)
    return Outline(outline.shape, np.dtype(dtype))


def home_of(arrays: Sequence[Any]) -> Any:
    """The device for results: that of the first array; `None` for the default of JAX."""
    for x in arrays:
        homes = x.devices() if isinstance(x, jax.Array) else ()
        if len(homes) == 1:
            (home,) = homes
            return None if home == _jax.devices()[0] else home
    return None


def from_host(content: HostArray, home: Any) -> jax.Array:
    """An array with this content, which it may take over."""
    return _jax.device_put(content, home)
