"""Tensors <-> host arrays: one copy to the device that holds a tensor, none on the host."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, cast

import numpy as np
import torch

from shaderad.wrapped.parts import Outline

_from_numpy: Callable[[Any], torch.Tensor] = cast("Any", torch).from_numpy
_DTYPES = {
    "float16": torch.float16,
    "float32": torch.float32,
    "float64": torch.float64,
    "int32": torch.int32,
    "uint32": torch.uint32,
    "bool": torch.bool,
}


def on_host(tensor: torch.Tensor) -> np.ndarray[Any, Any]:
    """The content of a tensor, without a copy if it is on the host."""
    plain = tensor.detach()
    if plain.dtype is torch.bfloat16:  # which NumPy does not have
        plain = plain.float()
    return plain.numpy(force=True)


def hollow(tensor: torch.Tensor) -> np.ndarray[Any, Any]:
    """Zeros in the shape of a tensor that has no content."""
    # From NumPy, because zeros of PyTorch have no content either while it traces.
    name = "float32" if tensor.dtype is torch.bfloat16 else str(tensor.dtype).removeprefix("torch.")
    return np.zeros([int(n) for n in tensor.shape], name)


def home_of(tensors: Sequence[torch.Tensor]) -> torch.device:
    """The device for results: that of the first argument that is not a single number."""
    arrays = [tensor for tensor in tensors if tensor.ndim]
    return next((tensor.device for tensor in (*arrays, *tensors)), torch.device("cpu"))


def from_host(content: np.ndarray[Any, Any], home: torch.device) -> torch.Tensor:
    """A tensor with this content, which it may take over."""
    return _from_numpy(content).to(home)


def like(content: np.ndarray[Any, Any], tensor: torch.Tensor) -> torch.Tensor:
    """A gradient in the form of its tensor."""
    return _from_numpy(content).reshape(tensor.shape).to(tensor.device, tensor.dtype)


def empty(outline: Outline, home: torch.device) -> torch.Tensor:
    """An uninitialised tensor, like one from `from_host`."""
    return torch.empty(outline.shape, dtype=_DTYPES[outline.dtype.name], device=home)
