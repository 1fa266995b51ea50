"""Loops whose counts nobody knows, derivatives of any order, and what was reported elsewhere."""

from __future__ import annotations

import pytest

import shaderad as sad
from tests.agreement import check_against_oracle, check_moved
from tests.lower import nested_cases, reported_cases

pytestmark = pytest.mark.gpu

CASES = nested_cases.CASES | reported_cases.CASES


@pytest.mark.parametrize("name", CASES)
def test_first_derivatives_are_those_of_the_oracle(name: str, device: sad.Device) -> None:
    case = CASES[name]
    check_against_oracle(case.kernel, *case.args, **case.call)
    device.synchronize()


@pytest.mark.parametrize("name", CASES)
def test_gradients_move_as_their_differences_say(name: str, device: sad.Device) -> None:
    case = CASES[name]
    check_moved(case.kernel, *case.args, **case.call)
    device.synchronize()
