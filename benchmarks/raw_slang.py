"""Slang written by hand, dispatched by raw slangpy."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple, Protocol

import numpy as np
from timing import Floats

PROGRAMS = Path(__file__).parent / "programs"
"""Kernels as users write them; some have the same by hand beside them."""


@dataclass(frozen=True)
class Pass:
    """One dispatch of an entry point `main`."""

    text: str
    threads: int
    buffers: Collection[str]
    """The names of those that it declares."""
    parameters: Mapping[str, float] = field(default_factory=dict[str, float])


class ByHand(NamedTuple):
    """A gradient written by hand."""

    passes: Sequence[Pass]
    """In their order."""
    arrays: Mapping[str, Floats]
    """What the buffers hold, by name."""
    added_to: Collection[str]
    """Those that each step makes zero first."""


class Found(Protocol):
    """What such a gradient gave."""

    def found(self, name: str) -> Floats:
        """What the last step left in a buffer."""
        ...


class RawSlang:
    """Passes on slangpy's Vulkan device, one after the other."""

    def __init__(
        self, passes: Sequence[Pass], arrays: Mapping[str, Floats], added_to: Collection[str]
    ) -> None:
        """Args:
        passes: In their order.
        arrays: What the buffers hold, by name.
        added_to: Those that each step makes zero first.
        """
        import slangpy as spy

        self._device = spy.create_device(type=spy.DeviceType.vulkan)
        self._shapes = {name: data.shape for name, data in arrays.items()}
        self._added_to = added_to
        self._buffers = {name: self._buffer(data) for name, data in arrays.items()}
        self._passes = [self._made(f"pass_{k}", one) for k, one in enumerate(passes)]

    def _buffer(self, data: Floats) -> Any:
        import slangpy as spy

        usage = spy.BufferUsage
        flags = usage.shader_resource | usage.unordered_access
        flags |= usage.copy_source | usage.copy_destination
        return self._device.create_buffer(
            element_count=data.size, struct_size=4, usage=flags, data=data.ravel()
        )

    def _made(self, name: str, one: Pass) -> tuple[Any, dict[str, Any], list[int]]:
        """The kernel, what it is given, and its threads."""
        module = self._device.load_module_from_source(name, one.text)
        program = self._device.link_program([module], [module.entry_point("main")])
        bound = {key: self._buffers[key] for key in one.buffers}
        given = {**bound, "parameters": dict(one.parameters)} if one.parameters else bound
        return self._device.create_compute_kernel(program), given, [one.threads, 1, 1]

    def step(self) -> None:
        """One gradient: zero what is added to, dispatch, wait."""
        encoder = self._device.create_command_encoder()
        for name in self._added_to:
            encoder.clear_buffer(self._buffers[name])
        for kernel, given, threads in self._passes:
            kernel.dispatch(thread_count=threads, vars=given, command_encoder=encoder)
        self._device.submit_command_buffer(encoder.finish())
        self._device.wait()

    def found(self, name: str) -> Floats:
        """What the last step left in a buffer."""
        found = self._buffers[name].to_numpy().view(np.float32)
        return found.reshape(self._shapes[name])
