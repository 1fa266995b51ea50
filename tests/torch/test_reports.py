"""Prints and checks of kernels in wrapped functions, called through PyTorch."""

from __future__ import annotations

from typing import Any

import pytest
import torch

import shaderad as sad
from tests.wrapped.functions import doubled, printed, root

pytestmark = pytest.mark.gpu


@pytest.mark.parametrize(
    "function", [printed, sad.graph(lambda x: printed(x)), lambda x: printed(x), doubled]
)
def test_a_call_prints_once_and_its_derivative_nothing(
    device: sad.Device, capfd: pytest.CaptureFixture[str], function: Any
) -> None:
    wrapped, x = sad.torch.wrap(function), torch.tensor([1.0, 2.0], requires_grad=True)
    y = wrapped(x)
    lines = capfd.readouterr().out.splitlines()
    assert [line.split()[-1] for line in lines] == ["1.0", "2.0"]
    y.sum().backward()
    device.synchronize()
    assert capfd.readouterr().out == ""
    torch.testing.assert_close(
        x.grad, torch.tensor([2.0, 2.0] if function is doubled else [1, 0.5])
    )


def test_checks_report_values_and_gradients(device: sad.Device) -> None:
    wrapped = sad.torch.wrap(root, checks="nan")
    with pytest.raises(sad.BoundsError, match="SR0666"):
        wrapped(torch.tensor([-1.0, 2.0]))
    x = torch.tensor([0.0, 4.0], requires_grad=True)
    y = wrapped(x)
    with pytest.raises(sad.GradientError, match="SR0668"):
        y.sum().backward()


@pytest.mark.parametrize("function", [doubled, sad.graph(doubled)])
@pytest.mark.parametrize("differentiated", [False, True])
def test_failed_assertions_are_raised(
    device: sad.Device, function: Any, differentiated: bool
) -> None:
    x = torch.tensor([-1.0, 2.0], requires_grad=differentiated)
    with pytest.raises(sad.BoundsError, match="SR0662"):
        sad.torch.wrap(function)(x)
