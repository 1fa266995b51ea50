"""slangpy, imported without PyTorch unless the program has imported PyTorch already.

slangpy's native module imports PyTorch wherever it is installed, which takes ten times as long as
the rest of slangpy. Without PyTorch, slangpy refuses tensors in its own calls for the rest of the
process; shaderad never gives it any. Invariant: afterwards the import system is as before, and
other threads can import PyTorch meanwhile.
"""

from __future__ import annotations

import sys
from collections.abc import Generator
from contextlib import contextmanager
from threading import get_ident
from typing import Any

__all__ = ["spy"]

_TORCH = "torch"


class _HidingFinder:
    """An entry of `sys.meta_path` that hides a module which is not imported yet from one thread."""

    def __init__(self, hidden: str) -> None:
        self._hidden = hidden
        self._thread = get_ident()

    def find_spec(self, name: str, path: object = None, target: object = None) -> None:
        """Finds nothing.

        Raises:
            ModuleNotFoundError: This thread looks for the hidden module.
        """
        del path, target
        if name == self._hidden and get_ident() == self._thread:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)


@contextmanager
def hidden(name: str) -> Generator[None]:
    """Hides module `name` from the imports of this thread, unless it is imported already."""
    finder: Any = _HidingFinder(name)
    # Threads walk through the list while they import: one that loses its first entry would make
    # them skip another. So the list is replaced, not changed.
    before = sys.meta_path
    sys.meta_path = [finder, *before]
    try:
        yield
    finally:
        before += [one for one in sys.meta_path if one is not finder and one not in before]
        sys.meta_path = before


with hidden(_TORCH):
    import slangpy as spy
