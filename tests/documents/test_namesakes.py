"""Functions that share a name with NumPy, JAX or PyTorch agree, or docs/coming_from.md says so."""

from __future__ import annotations

import pytest

import shaderad as sad
from tests.documents import namesakes

pytest.importorskip("jax")
pytest.importorskip("torch")


def test_every_function_with_a_namesake_is_compared() -> None:
    assert not namesakes.without_calls()


def test_the_page_lists_the_calls_that_differ(device: sad.Device) -> None:
    assert namesakes.PAGE.read_text() == namesakes.page_with(namesakes.table()), (
        "run `python -m tests.documents.namesakes`, and review docs/coming_from.md"
    )


def test_every_note_is_of_a_call_that_differs(device: sad.Device) -> None:
    calls = [call for call, _ in namesakes.differences()]
    keys = {key for call in calls for key in (call, call.partition("(")[0])}
    assert not namesakes.NOTES.keys() - keys


def test_a_changed_meaning_is_seen(device: sad.Device, monkeypatch: pytest.MonkeyPatch) -> None:
    """The comparison tells results of another order, shape, or kind apart."""
    monkeypatch.setitem(namesakes.CALLS, "sum", "sum(x, 0)")
    before = dict(namesakes.differences())
    monkeypatch.setattr(sad, "sum", lambda x, axis: sad.cast(sad.prod(x, axis), int))
    assert dict(namesakes.differences()).keys() - before.keys() == {"sum(x, 0)"}
