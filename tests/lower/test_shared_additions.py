"""What the threads of a wave or group add to one element is summed before one of them writes it."""

from __future__ import annotations

import re
from collections.abc import Iterator

import numpy as np
import pytest

import shaderad as sad
from shaderad.decorators import KernelFunction
from tests.agreement import check_against_oracle
from tests.devices import entered
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


@pytest.fixture(scope="module", params=["wgpu", "slangpy"])
def waveless(request: pytest.FixtureRequest) -> Iterator[sad.Device]:
    """A device whose threads run at once and that has no waves, entered."""
    with entered(request.param) as plain:
        features = plain.capabilities.features - {"subgroups"}
    with entered(request.param, {"features": features, "kind": "discrete"}) as opened:
        yield opened


@pytest.mark.gpu
@pytest.mark.parametrize("name", CASES)
def test_groups_sum_where_there_are_no_waves(name: str, waveless: sad.Device) -> None:
    case = CASES[name]
    check_against_oracle(case.kernel, *case.args, **case.call)
    waveless.synchronize()


@pytest.mark.gpu
def test_threads_past_the_end_of_a_launch_do_not_report(waveless: sad.Device) -> None:
    """They run along as the last one, whose `x[i + 2]` is out of range."""
    w, x = np.ones(16, np.float32), np.ones(66, np.float32)
    _, pullback = sad.vjp(shared_cases.windowed, w, x, dim=65)
    pullback(np.ones(65, np.float32))
    with pytest.raises(sad.BoundsError, match="index 66 is out of range for `x`") as caught:
        waveless.synchronize()
    assert "reports since the last synchronisation: 1;" in str(caught.value)


@pytest.mark.gpu
def test_threads_past_the_end_of_a_launch_add_nothing(waveless: sad.Device) -> None:
    """Neither to a uniform, nor to elements of their own, nor to what was there before."""
    w, x = np.arange(16, dtype=np.float32), np.arange(67, dtype=np.float32)
    _, pullback = sad.vjp(shared_cases.windowed, w, x, dim=65)
    sums = np.array([np.sum(x[k : k + 65]) for k in range(3)])
    w_bar, x_bar = (sad.array(np.ones_like(one)) for one in (w, x))
    pullback(np.ones(65, np.float32), accumulate=(w_bar, x_bar))
    np.testing.assert_allclose(w_bar.numpy()[:4], [*(1.0 + sums), 66.0])
    counts = np.convolve(np.ones(65), w[:3])
    np.testing.assert_allclose(x_bar.numpy(), 1.0 + counts)
