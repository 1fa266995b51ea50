"""Functions and objects -> their origin: the user, Python, or a library that is not followed."""

from __future__ import annotations

import sys
import sysconfig
from functools import lru_cache
from pathlib import Path
from threading import local

_LIBRARIES = frozenset({
    "_pytest", "jax", "jaxlib", "matplotlib", "numpy", "pandas", "PIL", "scipy", "shaderad",
    "slangpy", "torch", "wgpu",
})  # fmt: skip
"""Libraries whose functions are not followed. pytest rewrites `assert` into calls of its own."""
_OPAQUE = frozenset({
    "_thread", "asyncio", "concurrent", "io", "_io", "logging", "multiprocessing", "queue",
    "random", "_random", "select", "selectors", "socket", "subprocess", "tempfile", "threading",
    "unittest",
})  # fmt: skip
"""Modules of the standard library whose objects hold running work rather than settings."""
_WITHOUT_STATE = frozenset({"abc", "builtins", "typing"})
"""Modules whose classes read no attributes of their own subclasses."""


def is_of_user(cls: type) -> bool:
    """True if a class is defined by the user or by a library that is followed."""
    return not is_fixed(cls.__module__)


def is_fixed(module: str) -> bool:
    """True if a module belongs to Python, to shaderad, or to a library that is not followed."""
    top = top_of(module)
    return top in _LIBRARIES or _is_of_python(top)


def top_of(module: str) -> str:
    return module.partition(".")[0]


def is_opaque(kind: type) -> bool:
    """True for classes of Python and of libraries whose objects are compared by identity."""
    top = top_of(kind.__module__)
    return kind is not local and (top in _LIBRARIES or (top in _OPAQUE and _is_of_python(top)))


def reads_state(cls: type) -> bool:
    """True if a class comes from a library, whose code may read any attribute of its objects."""
    return is_fixed(cls.__module__) and top_of(cls.__module__) not in _WITHOUT_STATE


def _is_of_python(top: str) -> bool:
    """True for a module of the standard library, unless a module of the user shadows it."""
    if top not in sys.stdlib_module_names:
        return False
    spec = getattr(sys.modules.get(top), "__spec__", None)
    return _lies_in_python(getattr(spec, "origin", None))


@lru_cache
def _lies_in_python(origin: str | None) -> bool:
    """True for a file of the standard library, and for a module without a file."""
    if origin in (None, "built-in", "frozen"):
        return True
    path = Path(origin)
    folders = {sysconfig.get_path(name) for name in ("stdlib", "platstdlib")}
    installed = {"site-packages", "dist-packages"}
    return any(map(path.is_relative_to, folders)) and installed.isdisjoint(path.parts)
