"""Code for APIs that have no device here is taken by their compilers, for the whole catalogue."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.conformance.compile_only import DEVICES, compiled


@pytest.mark.slow
@pytest.mark.parametrize("api", DEVICES)
def test_every_program_of_the_catalogue_compiles(
    api: str, record_property: Callable[[str, object], None]
) -> None:
    outcome = compiled(api)
    record_property("summary", outcome.summary)
    assert not outcome.refusals()
