"""slangpy is imported without PyTorch, and the import system is as it was."""

from __future__ import annotations

import importlib
import sys
import threading
from collections.abc import Iterator

import pytest

pytest.importorskip("slangpy")

# A module of the standard library that nothing here needs.
MODULE = "colorsys"


@pytest.fixture(autouse=True)
def no_module(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Without the module; the list of finders is checked at the end."""
    monkeypatch.delitem(sys.modules, MODULE, raising=False)
    finders, content = sys.meta_path, list(sys.meta_path)
    yield
    assert sys.meta_path is finders
    assert sys.meta_path == content


def test_a_hidden_module_is_not_found_by_this_thread_alone() -> None:
    from shaderad.runtime.slangpy_module import hidden

    imported: list[str] = []
    with hidden(MODULE):
        with pytest.raises(ModuleNotFoundError, match=MODULE) as caught:
            importlib.import_module(MODULE)
        assert caught.value.name == MODULE
        assert MODULE not in sys.modules
        importlib.import_module("tabnanny")
        other = threading.Thread(
            target=lambda: imported.append(importlib.import_module(MODULE).__name__)
        )
        other.start()
        other.join()
    assert imported == [MODULE]


def test_a_module_is_imported_as_ever_afterwards() -> None:
    from shaderad.runtime.slangpy_module import hidden

    with pytest.raises(KeyError), hidden(MODULE):
        raise KeyError
    assert importlib.import_module(MODULE).__name__ == MODULE


def test_a_module_that_is_there_is_not_hidden(monkeypatch: pytest.MonkeyPatch) -> None:
    from shaderad.runtime.slangpy_module import hidden

    monkeypatch.setitem(sys.modules, MODULE, sys)
    with hidden(MODULE):
        assert importlib.import_module(MODULE) is sys


def test_a_finder_that_another_import_adds_stays() -> None:
    from shaderad.runtime.slangpy_module import hidden

    class Finder:
        def find_spec(self, *_: object) -> None: ...

    finder = Finder()
    with hidden(MODULE):
        sys.meta_path.append(finder)  # pyright: ignore[reportArgumentType]
    assert sys.meta_path[-1] is finder
    sys.meta_path.pop()
