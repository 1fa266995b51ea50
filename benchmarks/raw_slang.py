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
ENTRY = "entry"
"""The entry point of a text; in C++, and so for CUDA, `main` is taken."""


@dataclass(frozen=True)
class Pass:
    """One dispatch of the entry point `ENTRY`."""

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


class Dispatched(Protocol):
    """Such a gradient on a device."""

    def step(self) -> None:
        """One gradient, to the end of its computation."""
        ...

    def found(self, name: str) -> Floats:
        """What the last step left in a buffer."""
        ...


class RawSlang:
    """Passes on a device of slangpy, one after the other."""

    def __init__(
        self,
        passes: Sequence[Pass],
        arrays: Mapping[str, Floats],
        added_to: Collection[str],
        device: Any = None,
    ) -> None:
        """Args:
        passes: In their order.
        arrays: What the buffers hold, by name.
        added_to: Those that each step makes zero first.
        device: `None`: the first of Vulkan.
        """
        import slangpy as spy

        self.device = device or spy.create_device(type=spy.DeviceType.vulkan)
        self._shapes = {name: data.shape for name, data in arrays.items()}
        self._added_to = added_to
        self.buffers = {name: self._buffer(data) for name, data in arrays.items()}
        self._passes = [self._made(f"pass_{k}", one) for k, one in enumerate(passes)]

    def _buffer(self, data: Floats) -> Any:
        import slangpy as spy

        usage = spy.BufferUsage
        flags = usage.shader_resource | usage.unordered_access
        flags |= usage.copy_source | usage.copy_destination
        return self.device.create_buffer(
            element_count=data.size, struct_size=4, usage=flags, data=data.ravel()
        )

    def _made(self, name: str, one: Pass) -> tuple[Any, dict[str, Any], list[int]]:
        """The kernel, what it is given, and its threads."""
        module = self.device.load_module_from_source(name, one.text)
        program = self.device.link_program([module], [module.entry_point(ENTRY)])
        bound = {key: self.buffers[key] for key in one.buffers}
        given = {**bound, "parameters": dict(one.parameters)} if one.parameters else bound
        return self.device.create_compute_kernel(program), given, [one.threads, 1, 1]

    def step(self) -> None:
        """One gradient: zero what is added to, dispatch, wait."""
        encoder = self.device.create_command_encoder()
        for name in self._added_to:
            encoder.clear_buffer(self.buffers[name])
        for kernel, given, threads in self._passes:
            kernel.dispatch(thread_count=threads, vars=given, command_encoder=encoder)
        self.device.submit_command_buffer(encoder.finish())
        self.device.wait()

    def found(self, name: str) -> Floats:
        """What the last step left in a buffer."""
        found = self.buffers[name].to_numpy().view(np.float32)
        return found.reshape(self._shapes[name])


class RawCopy:
    """A copy of a buffer by the driver, on slangpy's Vulkan device."""

    def __init__(self, data: Floats) -> None:
        raw = RawSlang((), {"source": data, "target": np.zeros_like(data)}, ())
        self._device, self._size = raw.device, data.nbytes
        self._source, self._target = raw.buffers["source"], raw.buffers["target"]

    def step(self) -> None:
        """One copy, and wait."""
        encoder = self._device.create_command_encoder()
        encoder.copy_buffer(self._target, 0, self._source, 0, self._size)
        self._device.submit_command_buffer(encoder.finish())
        self._device.wait()
