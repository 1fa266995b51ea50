"""The kinds of kernels of sums over tiles."""

from __future__ import annotations

import pytest

import shaderad as sad
from shaderad.device.stages import WeakKeys
from shaderad.execute.run_graph import GraphRunner
from shaderad.plan.choices import AS_IT_IS, WIDE, PlanChoices

KINDS = {"all sizes": AS_IT_IS, "wide": WIDE, "four": 4, "eight": 8}


@pytest.fixture(params=["wide", "four", "eight"])
def kind(
    request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch, device: sad.Device
) -> int:
    """The best kind of kernel that the device may choose; it plans all graphs anew."""
    best, real = KINDS[request.param], PlanChoices.tiles_kind
    monkeypatch.setattr(PlanChoices, "tiles_kind", lambda *given: min(best, real(*given)))
    monkeypatch.setattr(device.kept(GraphRunner), "_planned", WeakKeys())
    return best
