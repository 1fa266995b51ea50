"""Compiled program -> pipeline -> dispatch, on wgpu or slangpy."""

from __future__ import annotations

from shaderad.runtime.base import Pipeline, Ranges, Runtime
from shaderad.runtime.capabilities import Capabilities
from shaderad.runtime.devices import DeviceInfo, devices, open_runtime
from shaderad.runtime.fill import fill
from shaderad.runtime.idle_buffers import DeviceBuffer
from shaderad.runtime.routes import Route

__all__ = [
    "Capabilities",
    "DeviceBuffer",
    "DeviceInfo",
    "Pipeline",
    "Ranges",
    "Route",
    "Runtime",
    "devices",
    "fill",
    "open_runtime",
]
