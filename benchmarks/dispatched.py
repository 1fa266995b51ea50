"""Slang written by hand on the adapter of a device of shaderad, by its runtime and API."""

from __future__ import annotations

from raw_slang import ByHand, Dispatched, RawSlang
from raw_wgpu import RawWgpu

import shaderad as sad


def dispatched(by_hand: ByHand, device: sad.Device) -> Dispatched:
    """The passes by raw wgpu on the same device, or by raw slangpy on one of the same adapter.

    Raises:
        RuntimeError: slangpy lists no such adapter.
    """
    capabilities = device.capabilities
    if capabilities.runtime == "wgpu":
        return RawWgpu(device.runtime.native, *by_hand)
    import slangpy as spy

    api = spy.DeviceType[capabilities.api]
    for adapter in spy.Device.enumerate_adapters(api):
        if adapter.name == capabilities.adapter:
            return RawSlang(*by_hand, spy.create_device(type=api, adapter_luid=adapter.luid))
    raise RuntimeError(f"slangpy has no {capabilities.adapter} by {capabilities.api}")
