"""What the threads of a wave add to one element is summed before one of them writes it."""

from __future__ import annotations

import re

import pytest

import shaderad as sad
from shaderad.frontend.decorators import KernelFunction
from tests.agreement import check_against_oracle
from tests.lower import shared_cases
from tests.lower.golden_kernels import text_of
from tests.lower.shared_cases import CASES


def _additions(kernel: KernelFunction) -> tuple[int, int]:
    """To the gradient of `w`: those that waves sum, and those that threads make."""
    found = re.findall(r"\b(add\w*Gradient)<\w+, w_in>", text_of(kernel))
    return found.count("addUniformGradient"), found.count("addGradient")


@pytest.mark.parametrize(
    ("kernel", "together", "apart"),
    [
        (shared_cases.layer, 1, 0),
        (shared_cases.chosen, 1, 5),
        (shared_cases.called, 1, 0),
        (shared_cases.called_apart, 0, 1),
        (shared_cases.read_at, 2, 1),
        (shared_cases.summed, 1, 0),
        (shared_cases.marched, 0, 1),
    ],
)
def test_additions_are_summed_where_all_threads_make_them_at_one_place(
    kernel: KernelFunction, together: int, apart: int
) -> None:
    assert _additions(kernel) == (together, apart)


@pytest.mark.gpu
@pytest.mark.parametrize("name", CASES)
def test_gradients_are_those_of_the_oracle(name: str, device: sad.Device) -> None:
    case = CASES[name]
    check_against_oracle(case.kernel, *case.args, **case.call)
    device.synchronize()
