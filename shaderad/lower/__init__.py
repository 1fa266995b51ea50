"""Typed IR -> Slang text -> compiled programs."""

from __future__ import annotations

from typing import Any

# Loaded when first asked for: the worker process and the runtimes import this package for less.
_HOMES = {"lower_kernel": "shaderad.lower.kernels"}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module(_HOMES[name]), name)
