"""The share of the views that one process renders, as a module of PyTorch.

The fit finds the positions of a mesh whose colours are known. They are a smooth function of the
parameters, so that no vertex moves alone: see `position_steps.smoothed`.
"""

# Names of sizes stand in quotes.
# ruff: noqa: UP037, F821

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import torch

import scene
import shaderad as sad
from kernels import Camera
from position_steps import adjacent, seen, smoothed, watched
from shaderad import float3, int3

VIEWS, LIFTS = 8, (0.7, -0.4)
"""Cameras around the model, alternately above and below the horizon, in radians."""
STIFFNESS = 8.0
"""The smoothing of moves, which reaches about as many edges of the mesh as its square root."""
FARTHEST, NEAREST = 0.15, 0.02
"""Pixels with larger errors weigh less: the threshold at the first step and at the last."""


@sad.custom_vjp
def smooth(moves: Any, neighbours: Any) -> Any:
    """`moves` smoothed over the mesh, without differences between neighbouring vertices."""
    return smoothed(moves, neighbours, STIFFNESS)


# Smoothing is linear and symmetric, so it is its own pullback.
smooth.defvjp(
    lambda moves, neighbours: (smoothed(moves, neighbours, STIFFNESS), neighbours),
    lambda neighbours, bar: (smoothed(bar, neighbours, STIFFNESS), None),
)


@sad.graph
def placed(
    neighbours: sad.Array[int, "vertices", "most"],
    start: sad.Array[float3, "vertices"],
    moves: sad.Array[float3, "vertices"],
) -> Any:
    """The positions for given parameters."""
    return start + smooth(moves, neighbours)


@sad.graph
def errors(
    corners: sad.Array[int3, "faces"],
    adjacency: sad.Array[int3, "faces"],
    neighbours: sad.Array[int, "vertices", "most"],
    start: sad.Array[float3, "vertices"],
    moves: sad.Array[float3, "vertices"],
    colors: sad.Array[float3, "vertices"],
    cameras: sad.Array[Camera, "views"],
    targets: sad.Array[float3, "views", "size", "size"],
    outlier: float,
) -> Any:
    """The error to descend, and the mean square of a channel, as means over all pixels.

    The mean over processes with equally many views is therefore the mean over all views.
    """
    positions = placed(neighbours, start, moves)
    found, _ = seen(corners, positions, colors, cameras, targets.shape[1:], adjacency)
    miss = found - targets
    square = sad.dot(miss, miss)
    return sad.mean(square / (1.0 + square / (outlier * outlier))), sad.mean(square) / 3.0


class Share(torch.nn.Module):
    """The error of the views of one process.

    Args:
        rank: The rank of the process.
        count: The number of processes, which divide the views evenly.
        size: Pixels along an edge of each view.
    """

    def __init__(self, rank: int, count: int, size: int) -> None:
        super().__init__()
        model = scene.spot(0)
        self.model = replace(model, colors=scene.marbled(model.positions))
        self.start = scene.dented(model.positions)
        turns = 2 * np.pi * np.arange(VIEWS) / VIEWS
        cameras = [scene.orbit(turn, LIFTS[k % 2]) for k, turn in enumerate(turns)]
        self._corners = sad.array(model.corners, dtype=int3)
        self._adjacency = adjacent(self._corners)
        self._neighbours = sad.array(scene.neighbours_of(model.corners), dtype=int)
        self._start = sad.array(self.start, dtype=float3)
        self._true = sad.array(model.positions, dtype=float3)
        self._colors = sad.array(self.model.colors, dtype=float3)
        self._cameras = sad.array(scene.together(cameras[rank::count]), dtype=Camera)
        like = sad.zeros((size, size), float3)
        self._targets, _ = watched(self._corners, self._true, self._colors, self._cameras, like)
        self.moves = torch.nn.Parameter(torch.zeros(len(self.start), 3))
        self._errors = sad.torch.wrap(self._errors_of)

    def _errors_of(self, moves: Any, outlier: Any) -> Any:
        return errors(
            self._corners,
            self._adjacency,
            self._neighbours,
            self._start,
            moves,
            self._colors,
            self._cameras,
            self._targets,
            outlier,
        )

    def forward(self, done: float) -> tuple[torch.Tensor, torch.Tensor]:
        """The error to descend, and the mean square; `done` goes from 0 to 1 during the fit."""
        return self._errors(self.moves, FARTHEST * (NEAREST / FARTHEST) ** done)

    def positions(self) -> np.ndarray[Any, Any]:
        """The positions of the vertices."""
        moves = sad.array(self.moves.detach().cpu().numpy(), dtype=float3)
        return placed(self._neighbours, self._start, moves).numpy()
