"""The ways in which threads compute sums over tiles."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

import shaderad as sad
from shaderad.device.stages import WeakKeys
from shaderad.execute.runner import GraphRunner
from shaderad.plan.call_kernels import Decision
from shaderad.plan.nest.sums import kernels, tiles
from shaderad.plan.nest.sums.choices import SumChoices
from shaderad.plan.nest.sums.tiles import SumTiles
from shaderad.plan.steps import RunTiles, Step

TEAMS = {"alone": (), "grouped": (), "four": (4,), "eight": (8,)}


@pytest.fixture(params=TEAMS)
def kind(
    request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch, device: sad.Device
) -> str:
    """How threads may share loads, or "all sizes"; the device plans all graphs anew."""
    kind: str = request.param
    if kind == "all sizes":

        def as_it_is(_: SumChoices, step: RunTiles) -> Decision[Step]:
            return Decision((0,), lambda: step)

        monkeypatch.setattr(SumChoices, "of_tiles", as_it_is)
    else:

        def tiles_of(work: Any, known: Any, shape: Any) -> SumTiles:
            teams = tuple(t for t in TEAMS[kind] if t in shape.lane_teams)
            is_grouped = kind == "grouped"
            return SumTiles(
                work, known, replace(shape, lane_teams=teams, shares_in_groups=is_grouped)
            )

        monkeypatch.setattr(kernels, "SumTiles", tiles_of)
        if kind == "grouped":
            # Blocks that are mostly empty have rows and columns beyond the last ones.
            monkeypatch.setattr(tiles, "_FULL", 0.0)
            monkeypatch.setattr(tiles, "_MANY_BLOCKS", 2)
    monkeypatch.setattr(device.kept(GraphRunner), "_planned", WeakKeys[Any, Any]())
    return kind
