"""Loops whose counts nobody knows, derivatives of any order, and what was reported elsewhere."""

from __future__ import annotations

import numpy as np
import pytest

import shaderad as sad
from tests.agreement import check_against_oracle, check_moved
from tests.lower import nested_cases, reported_cases
from tests.lower.loop_cases import floats

pytestmark = pytest.mark.gpu

CASES = nested_cases.CASES | reported_cases.CASES


@pytest.mark.sample(2)
@pytest.mark.parametrize("name", CASES)
def test_first_derivatives_are_those_of_the_oracle(name: str, device: sad.Device) -> None:
    case = CASES[name]
    check_against_oracle(case.kernel, *case.args, **case.call)
    device.synchronize()


@pytest.mark.sample(2)
@pytest.mark.parametrize("name", CASES)
def test_gradients_move_as_their_differences_say(name: str, device: sad.Device) -> None:
    case = CASES[name]
    check_moved(case.kernel, *case.args, **case.call)
    device.synchronize()


def test_what_bwd_diff_adds_to_arrays_belongs_to_the_derivative_around_it(
    device: sad.Device,
) -> None:
    w, x = floats(3, seed=3), floats(6)
    out, pullback = sad.vjp(nested_cases.gradients_inside, w, x, dim=6)
    at, held = np.arange(6) % 3, 2.0 * w[np.arange(6) % 3] * x
    np.testing.assert_allclose(out.numpy(), held * x * w[at] * x * x, rtol=1e-5)
    by_w, by_x = (g.numpy() for g in pullback(np.ones(6, np.float32)))
    np.testing.assert_allclose(by_x, held * 3 * w[at] * x * x, rtol=1e-5)
    np.testing.assert_allclose(by_w, np.bincount(at, held * x * x * x), rtol=1e-5)
