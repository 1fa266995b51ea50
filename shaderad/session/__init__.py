"""Devices, arrays, and calling kernels: what users touch at run time."""

from __future__ import annotations

from shaderad.session.arrays import Array, array
from shaderad.session.call import call_kernel
from shaderad.session.devices import Device, current_device, open_device

__all__ = ["Array", "Device", "array", "call_kernel", "current_device", "open_device"]
