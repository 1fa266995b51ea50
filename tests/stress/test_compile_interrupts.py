"""Ctrl-C while a device compiles costs that compile and nothing else."""

from __future__ import annotations

import signal
from dataclasses import replace

import pytest

import shaderad as sad
from shaderad.compiler import compile as compiling
from shaderad.compiler.child import Child
from tests.compiler.misbehaving_worker import MODULE
from tests.stress.compile_interrupts import (
    compiled_under_interrupts,
    is_interrupted,
    is_right,
    times,
    uncached,
)

pytestmark = [
    pytest.mark.gpu,
    pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="needs setitimer"),
]


def test_the_compile_after_an_interrupted_one_is_right(device: sad.Device) -> None:
    assert compiled_under_interrupts(device, 2, seed=7) == [True] * 2


def test_an_interrupt_does_not_wait_for_the_compiler(
    device: sad.Device, monkeypatch: pytest.MonkeyPatch
) -> None:
    ours = Child(MODULE)
    monkeypatch.setattr(compiling, "children", lambda: ours)
    endless = replace(times(2), slang="stand_still")  # Only an interrupt ends the call.
    with uncached():
        assert is_interrupted(lambda: device.runtime.pipeline(endless), 0.5)
    monkeypatch.undo()
    ours.close()
    assert is_right(device, 98)
