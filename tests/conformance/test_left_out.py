"""No case is missing without a reason, and what is refused is refused in so many words."""

from __future__ import annotations

import pytest

import shaderad as sad
from tests.conformance.cases import all_cases
from tests.conformance.left_out import LEFT_OUT, REFUSED_AS_WRITTEN, REFUSED_FORWARD, Refusal
from tests.conformance.programs import PROGRAMS


def test_every_case_is_a_program_or_is_left_out_with_a_reason() -> None:
    said = {name.partition("/")[0] for name in PROGRAMS}
    assert said.isdisjoint(LEFT_OUT)
    assert said | set(LEFT_OUT) == set(all_cases())


@pytest.mark.gpu
@pytest.mark.parametrize("name", REFUSED_AS_WRITTEN)
def test_a_case_that_shares_memory_is_refused_as_it_stands(name: str, device: sad.Device) -> None:
    check(REFUSED_AS_WRITTEN[name])


@pytest.mark.gpu
@pytest.mark.parametrize("name", REFUSED_FORWARD)
def test_jvp_through_only_a_custom_backward_is_refused(name: str, device: sad.Device) -> None:
    check(REFUSED_FORWARD[name])


def check(refusal: Refusal) -> None:
    with pytest.raises(sad.Error) as caught:
        refusal.attempt()
    assert caught.value.code == refusal.code
    assert refusal.sentence in str(caught.value)
