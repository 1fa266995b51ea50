"""Errors as Python objects; their texts are tested where they are raised."""

from __future__ import annotations

import pickle

import pytest

import shaderad as sad
from shaderad.diagnostics import Error, Span, error


def test_an_error_survives_the_way_to_another_process() -> None:
    raised = error("SR0203", Span("kernels.py", 3, 4, 9), name="speed", remedy="")
    copy = pickle.loads(pickle.dumps(raised))
    assert type(copy) is type(raised)
    assert (copy.code, copy.span, copy.help, str(copy)) == (
        raised.code,
        raised.span,
        raised.help,
        str(raised),
    )


@pytest.mark.parametrize("kind", [Error, *Error.__subclasses__()], ids=lambda kind: kind.__name__)
def test_an_error_class_calls_itself_by_its_public_name(kind: type[Error]) -> None:
    assert kind.__module__ == "shaderad"
    assert getattr(sad, kind.__qualname__) is kind
