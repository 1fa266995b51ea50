"""Every case that a kernel can say: primal, vjp, jvp and Jacobian, on each runtime."""

from __future__ import annotations

import pytest

import shaderad as sad
from tests.conformance import checks

pytestmark = pytest.mark.gpu


@pytest.mark.parametrize("name", checks.programs_with("primal"))
def test_primal(name: str, device: sad.Device) -> None:
    checks.check_primal(name, device)


@pytest.mark.parametrize("name", checks.programs_with("vjp"))
def test_vjp(name: str, device: sad.Device) -> None:
    checks.check_vjp(name, device)


@pytest.mark.parametrize("name", checks.programs_with("jvp"))
def test_jvp(name: str, device: sad.Device) -> None:
    checks.check_jvp(name, device)


@pytest.mark.sample(4)  # Its rows are pullbacks and its columns pushforwards, as tested above.
@pytest.mark.parametrize("mode", ["reverse", "forward"])
@pytest.mark.parametrize("name", checks.programs_with("jacobian"))
def test_jacobian(name: str, mode: str, device: sad.Device) -> None:
    checks.check_jacobian(name, mode, device)
