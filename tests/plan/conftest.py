"""The kinds of kernels of sums over tiles."""

from __future__ import annotations

import pytest

import shaderad as sad
from shaderad.device.stages import WeakKeys
from shaderad.execute.runner import GraphRunner
from shaderad.plan.choices import PlanChoices
from shaderad.plan.steps import AS_IT_IS, GROUPED, WIDE, WideTiles
from shaderad.plan.wide_tiles import GROUP_TEAM

KINDS = {"all sizes": AS_IT_IS, "wide": WIDE, "grouped": GROUPED, "four": 4, "eight": 8}


@pytest.fixture(params=["wide", "grouped", "four", "eight"])
def kind(
    request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch, device: sad.Device
) -> int:
    """The best kind of kernel that the device may choose; it plans all graphs anew."""
    best, real = KINDS[request.param], PlanChoices.tiles_kind

    def at_best(choices: PlanChoices, wide: WideTiles) -> int:
        found = real(choices, wide)
        if best == GROUPED:  # as teams of eight are chosen
            return GROUPED if found == GROUP_TEAM else min(WIDE, found)
        return min(best, found)

    monkeypatch.setattr(PlanChoices, "tiles_kind", at_best)
    monkeypatch.setattr(device.kept(GraphRunner), "_planned", WeakKeys())
    return best
