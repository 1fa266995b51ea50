"""Builds that were spoiled are refused with a code, or give what the sound ones give.

``python -m tests.spoiled_builds --help`` tells how to try more.
"""

from __future__ import annotations

from pathlib import Path

import pytest

import shaderad as sad
from tests.spoiled_builds.__main__ import SEEDS_PER_RUN, fault
from tests.spoiled_builds.trials import Trials, built

pytestmark = pytest.mark.gpu

COUNT = 100
"""Of each runtime, which have different ones."""


@pytest.fixture(scope="module")
def sound(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return built(tmp_path_factory.mktemp("spoiled") / "sound", "spirv,wgsl")


def test_a_spoiled_build_is_refused_or_right(sound: Path, device: sad.Device) -> None:
    runtime = device.capabilities.runtime
    first = SEEDS_PER_RUN + (COUNT if runtime == "slangpy" else 0)
    with Trials(sound, runtime) as trials:
        outcomes = list(trials.outcomes(range(first, first + COUNT)))
    assert [one for one in outcomes if fault(one)] == []
    kinds = {one["outcome"].split(":")[0] for one in outcomes}
    assert {"load", "right"} <= kinds
