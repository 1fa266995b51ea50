"""Ctrl-C at any moment leaves a device that computes; see interrupts.py for the full runs."""

from __future__ import annotations

import subprocess
import sys

import pytest

import shaderad as sad

COUNT = 12


def said(device: sad.Device, *arguments: str) -> list[str]:
    """What a process of its own prints that is interrupted on the runtime of `device`."""
    command = [sys.executable, "-m", "tests.stress.interrupts", device.capabilities.runtime]
    run = subprocess.run([*command, *arguments], capture_output=True, text=True, timeout=300)
    assert run.returncode == 0, run.stderr
    return run.stdout.split("\n")[:-1]


@pytest.mark.parametrize("how", ["thread", "line"])
def test_a_device_goes_on_after_each_interrupt(device: sad.Device, how: str) -> None:
    assert said(device, str(COUNT), "3", how) == [f"{COUNT} of {COUNT}"]


@pytest.mark.parametrize("how", ["endless-read", "endless-wait"])
def test_a_kernel_that_never_ends_is_left_at_once_and_its_device_given_up(
    device: sad.Device, how: str
) -> None:
    assert said(device, "1", "0", how) == ["at once SR0604 SR0604 done"]
