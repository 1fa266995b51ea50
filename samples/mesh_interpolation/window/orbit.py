"""Movements of the mouse -> a camera on a sphere around its target."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from kernels import Camera

RADIANS_PER_PIXEL = 0.008
ZOOM_PER_NOTCH = 0.9
STEEPEST = 1.5
"""In radians; at the pole, a quarter turn, the direction to the right is undefined."""
NEAREST, FARTHEST = 0.4, 4.0
"""As multiples of the first distance."""


@dataclass(frozen=True)
class Orbit:
    """Looks at `center` from `distance`: turned about the y axis, then tilted above its plane."""

    center: np.ndarray[Any, Any]
    distance: float
    turn: float
    tilt: float
    focal: float
    zoom: float = 1.0

    @classmethod
    def of(cls, camera: Camera) -> Orbit:
        """Starts at the position of `camera`, around the point of its axis nearest the origin."""
        eye, forward = (np.array(v, float) for v in (camera.eye, camera.forward))
        distance = -float(eye @ forward)
        x, y, z = -forward
        turn, tilt = float(np.arctan2(x, z)), float(np.arcsin(y))
        return cls(eye + distance * forward, distance, turn, tilt, float(camera.focal))

    def dragged(self, dx: float, dy: float) -> Orbit:
        """The orbit after the pointer has dragged the mesh by pixels to the right and down."""
        tilt = np.clip(self.tilt + RADIANS_PER_PIXEL * dy, -STEEPEST, STEEPEST)
        return replace(self, turn=self.turn - RADIANS_PER_PIXEL * dx, tilt=float(tilt))

    def zoomed(self, notches: float) -> Orbit:
        """The orbit after a zoom: each notch of the wheel away from the user moves it nearer."""
        zoom = np.clip(self.zoom * ZOOM_PER_NOTCH**notches, NEAREST, FARTHEST)
        return replace(self, zoom=float(zoom))

    @property
    def camera(self) -> Camera:
        sine, cosine = np.sin(self.turn), np.cos(self.turn)
        back = np.array([np.cos(self.tilt) * sine, np.sin(self.tilt), np.cos(self.tilt) * cosine])
        right = np.array([cosine, 0.0, -sine])
        eye = self.center + self.zoom * self.distance * back
        return Camera(eye, right, np.cross(back, right), -back, self.focal)
