"""Compiled program -> pipeline -> dispatch, on wgpu or slangpy."""

from __future__ import annotations

from shaderad.runtime.devices import DeviceInfo, devices, open_runtime
from shaderad.runtime.fill import fill
from shaderad.runtime.protocol import Buffer, Capabilities, Pipeline, Route, Runtime

__all__ = [
    "Buffer",
    "Capabilities",
    "DeviceInfo",
    "Pipeline",
    "Route",
    "Runtime",
    "devices",
    "fill",
    "open_runtime",
]
