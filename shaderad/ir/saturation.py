"""Conversions of floats to integers on the host, as kernels make them (`IReal.toInt`)."""

from __future__ import annotations

from typing import Any

import numpy as np


def to_integer(data: np.ndarray[Any, Any], dtype: np.dtype[Any]) -> np.ndarray[Any, Any]:
    """Floats truncated and clamped to the range of `dtype`; NaN gives 0."""
    limits = np.iinfo(dtype)
    with np.errstate(invalid="ignore"):
        whole = np.clip(np.trunc(data.astype(np.float64)), limits.min, limits.max)
    return np.where(np.isnan(whole), 0, whole).astype(dtype)
