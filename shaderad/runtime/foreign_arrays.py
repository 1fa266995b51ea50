"""Arrays of other libraries -> NumPy: tensors of PyTorch, JAX and CuPy, columns of tables.

No library is imported: arrays are recognised by their methods and attributes.
"""

from __future__ import annotations

import sys
from typing import Any, cast

import numpy as np

from shaderad.diagnostics import error

_CPU = 1
"""The DLPack number of the host's memory."""
_BFLOAT16 = "bfloat16"


def is_foreign_array(x: Any) -> bool:
    """True if `x` is an array of a library other than NumPy."""
    t = cast("type[object]", type(x))
    if hasattr(t, "__dlpack__"):
        return not issubclass(t, np.ndarray)
    return hasattr(t, "__array__") and hasattr(t, "shape") and not issubclass(t, np.generic)


def is_bfloat16(x: Any) -> bool:
    """True for bfloat16, which NumPy does not have."""
    return str(getattr(x, "dtype", "")).endswith(_BFLOAT16)


def dtype_of(data: Any, converted: np.ndarray[Any, Any]) -> str:
    """The name of the dtype of `data` in its own library."""
    return _BFLOAT16 if is_bfloat16(data) else str(converted.dtype)


def _has_tangent(data: Any) -> bool:
    """True for a tensor that PyTorch differentiates in forward mode."""
    torch: Any = sys.modules.get("torch")
    if torch is None or not isinstance(data, torch.Tensor):
        return False
    return torch.autograd.forward_ad.unpack_dual(data).tangent is not None


def to_numpy(data: Any, name: str) -> np.ndarray[Any, Any]:
    """`np.asarray` that also copies from other devices and widens bfloat16 to float32.

    Raises:
        DerivativeError: SR0476 for a tensor that PyTorch differentiates.
    """
    if getattr(data, "requires_grad", False) is True or _has_tangent(data):
        raise error("SR0476", name=name)
    if is_bfloat16(data):
        data = data.float() if hasattr(data, "float") else data.astype(np.float32)
    where = getattr(data, "__dlpack_device__", None)
    if where is not None and where()[0] != _CPU:
        return np.from_dlpack(data, device="cpu")
    return np.asarray(data)
