"""Slang written by hand, compiled to SPIR-V and dispatched by raw wgpu."""

from __future__ import annotations

import re
import struct
from collections.abc import Collection, Mapping, Sequence
from typing import Any

import numpy as np
import wgpu
from raw_slang import ENTRY, Pass
from timing import Floats

from shaderad.compiler.artifact import Program
from shaderad.compiler.compile import compile_program

_KINDS = {
    "ConstantBuffer": "uniform",
    "StructuredBuffer": "read-only-storage",
    "RWStructuredBuffer": "storage",
}
_GROUP = re.compile(r"numthreads\((\d+), 1, 1\)")
_ARRAY = re.compile(
    r"(?:vk::binding\((\d+), 0\)\]\] )?\b(ConstantBuffer|(?:RW)?StructuredBuffer)<.*?>+ (\w+);"
)


class RawWgpu:
    """Passes on a device of wgpu, one after the other.

    Their texts number all bindings, or none.
    """

    def __init__(
        self,
        device: wgpu.GPUDevice,
        passes: Sequence[Pass],
        arrays: Mapping[str, Floats],
        added_to: Collection[str],
    ) -> None:
        """Args:
        device: With the features that the texts ask for.
        passes: In their order.
        arrays: What the buffers hold, by name.
        added_to: Those that each step makes zero first.
        """
        self._device = device
        self._shapes = {name: data.shape for name, data in arrays.items()}
        self._added_to = added_to
        usage = wgpu.BufferUsage.STORAGE | wgpu.BufferUsage.COPY_SRC | wgpu.BufferUsage.COPY_DST
        self._buffers = {
            name: device.create_buffer_with_data(data=np.ascontiguousarray(data), usage=usage)
            for name, data in arrays.items()
        }
        self._passes = [self._made(one) for one in passes]

    def _made(self, one: Pass) -> tuple[Any, Any, int]:
        """The pipeline, its bind group, and its workgroups."""
        device = self._device
        group = int(_GROUP.findall(one.text)[0])
        program = Program(ENTRY, one.text, (group, 1, 1), ())
        module = device.create_shader_module(code=compile_program(program, "spirv").content)
        found = [
            (int(slot or number), _KINDS[kind], name)
            for number, (slot, kind, name) in enumerate(_ARRAY.findall(one.text))
        ]
        layout = device.create_bind_group_layout(
            entries=[
                {"binding": slot, "visibility": wgpu.ShaderStage.COMPUTE, "buffer": {"type": kind}}
                for slot, kind, _ in found
            ]
        )
        entries = [
            {"binding": slot, "resource": {"buffer": self._bound(name, one), "offset": 0}}
            for slot, _, name in found
        ]
        pipeline = device.create_compute_pipeline(
            layout=device.create_pipeline_layout(bind_group_layouts=[layout]),
            compute={"module": module, "entry_point": ENTRY},
        )
        bound = device.create_bind_group(layout=layout, entries=entries)
        return pipeline, bound, -(-one.threads // group)

    def _bound(self, name: str, one: Pass) -> Any:
        if name in self._buffers:
            return self._buffers[name]
        words = [
            struct.pack("i" if isinstance(v, int) else "f", v) for v in one.parameters.values()
        ]
        return self._device.create_buffer_with_data(
            data=b"".join(words), usage=wgpu.BufferUsage.UNIFORM
        )

    def step(self) -> None:
        """One gradient: zero what is added to, dispatch, wait."""
        encoder = self._device.create_command_encoder()
        for name in self._added_to:
            encoder.clear_buffer(self._buffers[name])
        compute = encoder.begin_compute_pass()
        for pipeline, bound, groups in self._passes:
            compute.set_pipeline(pipeline)
            compute.set_bind_group(0, bound)
            compute.dispatch_workgroups(groups)
        compute.end()
        self._device.queue.submit([encoder.finish()])
        self._device._poll_wait()  # pyright: ignore[reportPrivateUsage]

    def found(self, name: str) -> Floats:
        """What the last step left in a buffer."""
        data = self._device.queue.read_buffer(self._buffers[name])
        return np.frombuffer(data, np.float32).reshape(self._shapes[name])
