"""Fits of vertex attributes of a mesh: arrays on the device, and the graph of a step.

Invariant: only `Fit.loss` reads back, and nothing computes in NumPy after the start of a fit.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, Literal, NamedTuple

import numpy as np

import position_steps
import scene
import shaderad as sad
import steps
from kernels import Camera
from shaderad import float3, int3

GREY = 0.5

Show = Literal["fit", "start", "target", "difference", "gradient"]


def psnr(loss: float) -> float:
    """Peak signal-to-noise ratio in dB of a mean squared error, for a peak of 1."""
    return math.inf if loss == 0.0 else -10.0 * math.log10(loss)


class Look(NamedTuple):
    """The attributes that determine how a mesh looks, at its vertices."""

    positions: sad.Array
    normals: sad.Array
    colors: sad.Array


class Fit(ABC):
    """A fit of one attribute of a mesh, so that its pictures match those of a target.

    Args:
        graph: The graph of a step, which returns the loss, its gradient, and the new attribute and
            state of Adam.
        model: The target.
        start: The attribute before the first step.
        size: Pixels along an edge of each picture.
        views: The cameras of the pictures.
        lr: The learning rate of Adam, in units of the attribute.
    """

    def __init__(
        self,
        graph: Callable[..., Any],
        model: scene.Model,
        start: np.ndarray,
        size: int,
        views: Sequence[Camera],
        lr: float,
    ) -> None:
        self.graph = graph
        self.size = size
        self.views = views
        self.lr = lr
        """The learning rate, which is an argument of the graph and may be set between steps."""
        self.steps_done = 0
        self._corners = sad.array(model.corners, dtype=int3)
        arrays = (model.positions, model.normals, model.colors)
        self._true = Look(*(sad.array(x, dtype=float3) for x in arrays))
        self._start = sad.array(start, dtype=float3)
        self._canvas = sad.array(np.zeros((size, size, 3)), dtype=float3)
        self._targets = [self._seen(self._true, camera) for camera in views]
        self.reset()

    @property
    def triangle_count(self) -> int:
        return len(self._corners)

    @property
    def vertex_count(self) -> int:
        return len(self._start)

    def step(self) -> None:
        """Renders, computes the loss and its gradient, and updates, in one submission."""
        found = self.graph(*self.arguments())
        self._loss, self._gradient, self._fitted, self._state = found
        self.steps_done += 1

    @abstractmethod
    def arguments(self) -> tuple[Any, ...]:
        """The arguments of `graph` for the next step."""

    @abstractmethod
    def _look(self, fitted: sad.Array) -> Look:
        """The mesh with the fitted attribute."""

    def reset(self) -> None:
        """Returns to the state before the first step."""
        self.steps_done = 0
        self._fitted, self._gradient = self._start, 0.0 * self._start
        self._state = steps.ADAM.init(self._start)
        self._loss = sad.array(np.float32(np.inf), device=self._start.device)

    def loss(self) -> float:
        """The mean squared error of a channel before the last step; reads 4 bytes.

        Over the pixels that show the mesh; infinite before the first step.
        """
        return self._loss.item()

    def picture(self, show: Show = "fit", camera: Camera | None = None, view: int = 0) -> sad.Array:
        """Linear colours, ``float3`` of shape ``(size, size)``, on the device.

        Args:
            show: The current mesh, the mesh before the first step, or the true mesh; the difference
                between the current and the true one; or the length of the last gradient at each
                vertex.
            camera: The camera; default: that of `views` at `view`.
            view: The index in `views`.
        """
        if show == "target" and camera is None:
            return self._targets[view]
        if show == "difference":
            found, wanted = (self.picture(one, camera, view) for one in ("fit", "target"))
            return steps.difference(found, wanted)
        looks = {"fit": lambda: self._look(self._fitted), "start": lambda: self._look(self._start),
                 "target": lambda: self._true, "gradient": self._heated}  # fmt: skip
        return self._seen(looks[show](), camera or self.views[view])

    def _heated(self) -> Look:
        # By the true light, which shows the shape.
        colors = steps.heated(self._gradient)
        return self._look(self._fitted)._replace(normals=self._true.normals, colors=colors)

    def _seen(self, look: Look, camera: Camera) -> sad.Array:
        return steps.picture(self._corners, *look, camera, self._canvas)


class SurfaceFit(Fit):
    """A fit of vertices that do not move, to one picture."""

    def __init__(
        self,
        graph: Callable[..., Any],
        model: scene.Model,
        start: np.ndarray,
        size: int,
        lr: float,
    ) -> None:
        super().__init__(graph, model, start, size, (scene.orbit(),), lr)
        # Every pixel shows the same part of the mesh in all steps.
        self._hits = steps.hits_of(self._corners, self._true.positions, self.views[0], self._canvas)

    def arguments(self) -> tuple[Any, ...]:
        _, normals, colors = self._look(self._fitted)
        return (self._corners, normals, colors, self._state, self.views[0], self._hits,
                self._targets[0], self.lr)  # fmt: skip


class ColorFit(SurfaceFit):
    """The colours of all vertices, from grey."""

    def __init__(self, size: int = 512, *, subdivisions: int = 1) -> None:
        model = scene.spot(subdivisions)
        start = np.full_like(model.colors, GREY)
        super().__init__(steps.color_step, model, start, size, lr=0.05)

    def _look(self, fitted: sad.Array) -> Look:
        return self._true._replace(colors=fitted)


class NormalFit(SurfaceFit):
    """The normals of all vertices, by the light on the true colours.

    At first all of them point at the camera, so that the mesh looks flat. They may have any length,
    because pixels normalise them.
    """

    def __init__(self, size: int = 512, *, subdivisions: int = 1) -> None:
        model = scene.spot(subdivisions)
        to_camera = -np.asarray(scene.orbit().forward)
        start = np.broadcast_to(to_camera, model.normals.shape)
        super().__init__(steps.normal_step, model, start, size, lr=0.05)

    def _look(self, fitted: sad.Array) -> Look:
        return self._true._replace(normals=fitted)


class VertexError(NamedTuple):
    """The mean distance of vertices from their true positions."""

    now: float
    start: float


class PositionFit(Fit):
    """The positions of the vertices, from pictures of all sides; `start` is dented.

    The colours at the vertices are known and marbled, because a surface of one colour would not
    reveal the position of a vertex. The fit and `loss` compare colours without light; `picture`
    shows them lit. During the first `COARSE` steps, the moves change from smooth ones of large
    parts to those of small parts. Their length decreases from `lr` to a tenth of it, and the
    threshold for outliers decreases as well.
    """

    COARSE = 200
    SMOOTHEST, ROUGHEST = 30.0, 1.0
    FARTHEST, NEAREST = 0.15, 0.02

    def __init__(self, size: int = 256, *, subdivisions: int = 0) -> None:
        model = scene.spot(subdivisions)
        model = replace(model, colors=scene.marbled(model.positions))
        start, views = scene.dented(model.positions), scene.around()
        super().__init__(position_steps.position_step, model, start, size, views, lr=0.03)
        self._adjacency = position_steps.adjacent(self._corners)
        self._neighbours = sad.array(scene.neighbours_of(model.corners), dtype=int)
        self._cameras = sad.array(scene.together(views), dtype=Camera)
        self._plain_targets, shown = position_steps.watched(
            self._corners, self._true.positions, self._true.colors, self._cameras, self._canvas
        )
        self._seen_twice = scene.seen_by(shown.numpy(), model.corners) >= 2

    def arguments(self) -> tuple[Any, ...]:
        done = min(1.0, self.steps_done / self.COARSE)
        stiffness = self.SMOOTHEST * (self.ROUGHEST / self.SMOOTHEST) ** done
        outlier = self.FARTHEST * (self.NEAREST / self.FARTHEST) ** done
        return (self._corners, self._adjacency, self._neighbours, self._fitted,
                self._true.colors, self._state, self._cameras, self._plain_targets,
                stiffness, outlier, self.lr * 0.1**done)  # fmt: skip

    def vertex_error(self) -> VertexError:
        """The error of vertices that are visible in at least two views; reads the positions."""
        true = self._true.positions.numpy()
        now, start = (
            np.linalg.norm(x.numpy() - true, axis=1)[self._seen_twice].mean()
            for x in (self._fitted, self._start)
        )
        return VertexError(float(now), float(start))

    def _look(self, fitted: sad.Array) -> Look:
        return self._true._replace(positions=fitted)


ATTRIBUTES: dict[str, Callable[..., Fit]] = {
    "colors": ColorFit,
    "normals": NormalFit,
    "positions": PositionFit,
}
"""The fits by the names of their attributes."""


def fit_of(attribute: str, size: int | None = None) -> Fit:
    """One of `ATTRIBUTES`, by default in its own size."""
    make = ATTRIBUTES[attribute]
    return make() if size is None else make(size=size)
