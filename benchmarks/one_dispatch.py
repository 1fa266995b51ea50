"""A gradient of one dispatch, written by hand in Slang and run by raw slangpy."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from timing import Floats


@dataclass(frozen=True)
class ByHand:
    """What such a dispatch is given."""

    parameters: Mapping[str, float]
    inputs: Mapping[str, Floats]
    gradients: Mapping[str, tuple[int, ...]]
    """The shapes of the buffers that it adds to."""
    threads: int


class OneDispatch:
    """The entry point `main` of a file."""

    def __init__(self, path: Path, given: ByHand) -> None:
        import slangpy as spy

        self._given = given
        self._device = spy.create_device(type=spy.DeviceType.vulkan)
        usage = spy.BufferUsage
        flags = usage.shader_resource | usage.unordered_access
        flags |= usage.copy_source | usage.copy_destination
        zeros = {name: np.zeros(shape, np.float32) for name, shape in given.gradients.items()}
        self._buffers = {
            name: self._device.create_buffer(
                element_count=data.size, struct_size=4, usage=flags, data=data.ravel()
            )
            for name, data in {**given.inputs, **zeros}.items()
        }
        module = self._device.load_module_from_source(path.stem, path.read_text(encoding="utf-8"))
        program = self._device.link_program([module], [module.entry_point("main")])
        self._kernel: Any = self._device.create_compute_kernel(program)

    def step(self) -> None:
        """One gradient: zero what is added to, dispatch, wait."""
        encoder = self._device.create_command_encoder()
        for name in self._given.gradients:
            encoder.clear_buffer(self._buffers[name])
        bound = {**self._buffers, "parameters": dict(self._given.parameters)}
        self._kernel.dispatch([self._given.threads, 1, 1], vars=bound, command_encoder=encoder)
        self._device.submit_command_buffer(encoder.finish())
        self._device.wait()

    def gradient(self, name: str) -> Floats:
        """What the last step found."""
        found = self._buffers[name].to_numpy().view(np.float32)
        return found.reshape(self._given.gradients[name])
