"""How the front end's objects know arrays of the dispatch API, which they pass on to it."""

from __future__ import annotations


def is_device_array(x: object) -> bool:
    """Whether `x` is an array on a device, or one that is traced: NumPy is to leave it alone."""
    return getattr(type(x), "__array_ufunc__", False) is None
