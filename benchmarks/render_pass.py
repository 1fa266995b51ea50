"""A render pass of raw wgpu that writes what each pixel shows, by the rasteriser of the device."""

from __future__ import annotations

from typing import Any

import numpy as np
import wgpu
from raw_slang import PROGRAMS
from timing import Floats

from shaderad.compiler.artifact import Program
from shaderad.compiler.compile import compile_program

TEXT = (PROGRAMS / "raster_ids.slang").read_text(encoding="utf-8")


class RenderPass:
    """Triangles in clip space -> face + 1, u, v and depth of each pixel, in a texture of floats."""

    def __init__(self, clip: Floats, triangles: Floats, size: int) -> None:
        self._device = wgpu.gpu.request_adapter_sync().request_device_sync()
        self._size, self._corner_count = (size, size, 1), triangles.size
        self._ids = self._texture("rgba32float", wgpu.TextureUsage.COPY_SRC)
        self._depth = self._texture("depth32float", 0)
        self._pipeline = self._made()
        entries = [
            {"binding": slot, "resource": {"buffer": self._buffer(data), "offset": 0}}
            for slot, data in enumerate((clip, triangles))
        ]
        layout = self._pipeline.get_bind_group_layout(0)
        self._group = self._device.create_bind_group(layout=layout, entries=entries)

    def _texture(self, kind: str, usage: int) -> Any:
        usage |= wgpu.TextureUsage.RENDER_ATTACHMENT
        return self._device.create_texture(size=self._size, format=kind, usage=usage)

    def _buffer(self, data: Floats) -> Any:
        content = np.ascontiguousarray(data)
        return self._device.create_buffer_with_data(data=content, usage=wgpu.BufferUsage.STORAGE)

    def _made(self) -> Any:
        def stage(name: str) -> dict[str, Any]:
            code = compile_program(Program(name, TEXT, (1, 1, 1), ()), "spirv").content
            return {"module": self._device.create_shader_module(code=code), "entry_point": name}

        return self._device.create_render_pipeline(
            layout="auto",
            vertex=stage("vertexMain"),
            primitive={"topology": "triangle-list"},
            depth_stencil={
                "format": "depth32float", "depth_write_enabled": True, "depth_compare": "less",
            },
            fragment={**stage("fragmentMain"), "targets": [{"format": "rgba32float"}]},
        )  # fmt: skip

    def step(self) -> None:
        """One picture, and wait."""
        encoder = self._device.create_command_encoder()
        target = {
            "view": self._ids.create_view(),
            "load_op": "clear", "store_op": "store", "clear_value": (0.0, 0.0, 0.0, 1.0),
        }  # fmt: skip
        depth = {
            "view": self._depth.create_view(),
            "depth_load_op": "clear", "depth_store_op": "store", "depth_clear_value": 1.0,
        }  # fmt: skip
        render = encoder.begin_render_pass(
            color_attachments=[target], depth_stencil_attachment=depth
        )
        render.set_pipeline(self._pipeline)
        render.set_bind_group(0, self._group)
        render.draw(self._corner_count)
        render.end()
        self._device.queue.submit([encoder.finish()])
        self._device._poll_wait()  # pyright: ignore[reportPrivateUsage]

    def face(self) -> Floats:
        """The triangle of each pixel of the last picture, -1 for none."""
        width, height, _ = self._size
        data = self._device.queue.read_texture(
            {"texture": self._ids}, {"bytes_per_row": 16 * width}, self._size
        )
        return np.frombuffer(data, np.float32).reshape(height, width, 4)[..., 0] - 1
