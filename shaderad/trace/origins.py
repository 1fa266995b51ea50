"""The origin of functions and objects: the user, Python, or a library that is not followed."""

from __future__ import annotations

import sys
from threading import local

_LIBRARIES = frozenset({
    "jax", "jaxlib", "matplotlib", "numpy", "pandas", "PIL", "scipy", "shaderad", "slangpy",
    "torch", "wgpu",
})  # fmt: skip
"""Libraries whose functions are not followed."""
_FIXED = _LIBRARIES | sys.stdlib_module_names
_OPAQUE = frozenset({
    "_thread", "asyncio", "concurrent", "io", "_io", "logging", "multiprocessing", "queue",
    "random", "_random", "select", "selectors", "socket", "subprocess", "tempfile", "threading",
    "unittest",
})  # fmt: skip
"""Modules of the standard library whose objects hold no settings, but work in progress."""
_WITHOUT_STATE = frozenset({"abc", "builtins", "typing"})
"""Modules whose classes read no attributes of their own subclasses."""


def is_of_user(cls: type) -> bool:
    """True if the user, or a library that is followed, defines a class."""
    return not is_fixed(cls.__module__)


def is_fixed(module: str) -> bool:
    """True if a module is Python's, ours, or of a library that is not followed."""
    return top_of(module) in _FIXED


def top_of(module: str) -> str:
    return module.partition(".")[0]


def is_opaque(kind: type) -> bool:
    """True for classes of Python and of libraries whose objects are compared by identity."""
    top = top_of(kind.__module__)
    return kind is not local and (top in _LIBRARIES or top in _OPAQUE)


def reads_state(cls: type) -> bool:
    """True if a class is of a library, whose code may read any attribute of its objects."""
    top = top_of(cls.__module__)
    return top in _FIXED and top not in _WITHOUT_STATE
