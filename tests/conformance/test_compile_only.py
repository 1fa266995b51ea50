"""Code for APIs that have no device here is taken by their compilers.

These take minutes over the whole catalogue, so here they get a part; ``scripts/run gpu`` gives them
all of it.
"""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.conformance.compile_only import DEVICES, compiled

EVERY = {"cuda": 5, "d3d12": 4, "metal": 4}
"""Of so many programs, one."""


@pytest.mark.slow
@pytest.mark.parametrize("api", DEVICES)
def test_programs_of_the_catalogue_compile(
    api: str, record_property: Callable[[str, object], None]
) -> None:
    outcome = compiled(api, EVERY[api])
    record_property("summary", outcome.summary)
    assert not outcome.refusals()
