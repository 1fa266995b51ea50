"""slangpy, imported without PyTorch unless the program has imported PyTorch already.

slangpy's native module imports PyTorch wherever it is installed, which takes ten times as long as
the rest of slangpy. Without PyTorch, slangpy refuses tensors in its own calls for the rest of the
process; shaderad never passes it any. Invariant: the import system is unchanged afterwards, and
other threads can import PyTorch in the meantime.
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
    """An entry of `sys.meta_path` that hides a module from one thread until it is imported."""

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
    # The list is replaced, not changed: threads iterate over it while they import, and would skip
    # an entry if the first one were removed.
    before = sys.meta_path
    sys.meta_path = [finder, *before]
    try:
        yield
    finally:
        before += [f for f in sys.meta_path if f is not finder and f not in before]
        sys.meta_path = before


with hidden(_TORCH):
    import slangpy as spy
