"""A picture in device memory -> a canvas of the same device, without a copy through the host.

The fragment shader reads the storage buffer that the kernels wrote. A frame uploads nothing: the
viewport places the picture, and its size is a constant of the pipeline.
"""

from __future__ import annotations

from typing import Any

import wgpu

import shaderad as sad

SHADER = """
@group(0) @binding(0) var<storage, read> picture: array<f32>;
override size: i32;
override is_encoded: bool;

struct Corner { @builtin(position) clip: vec4f, @location(0) uv: vec2f }

@vertex fn corner(@builtin(vertex_index) k: u32) -> Corner {
    // One triangle that covers the viewport: uv (0, 0), (2, 0), (0, 2).
    let uv = vec2f(f32(k & 1u), f32(k >> 1u)) * 2;
    return Corner(vec4f(uv.x * 2 - 1, 1 - uv.y * 2, 0, 1), uv);
}

fn pixel(at: vec2i) -> vec3f {
    let p = clamp(at, vec2i(0), vec2i(size - 1));
    let first = 3 * (p.y * size + p.x);
    return vec3f(picture[first], picture[first + 1], picture[first + 2]);
}

fn encoded(c: vec3f) -> vec3f {
    return select(1.055 * pow(c, vec3f(1 / 2.4)) - 0.055, 12.92 * c, c < vec3f(0.0031308));
}

@fragment fn shown(in: Corner) -> @location(0) vec4f {
    let place = in.uv * f32(size) - 0.5;
    let at = vec2i(floor(place));
    let part = place - floor(place);
    let above = mix(pixel(at), pixel(at + vec2i(1, 0)), part.x);
    let below = mix(pixel(at + vec2i(0, 1)), pixel(at + 1), part.x);
    let color = clamp(mix(above, below, part.y), vec3f(0), vec3f(1));
    return vec4f(select(color, encoded(color), is_encoded), 1);
}
"""

Box = tuple[float, float, float]
"""Left, top and edge of a square, in pixels of the canvas."""


class Presenter:
    """Draws pictures to one canvas, which it configures for `device`."""

    def __init__(self, device: Any, canvas: Any) -> None:
        self.device = device
        self.context = canvas.get_wgpu_context()
        self.format = self.context.get_preferred_format(device.adapter)
        self.context.configure(device=device, format=self.format)
        self.shader = device.create_shader_module(code=SHADER)
        self.pipelines: dict[int, Any] = {}

    def show(self, picture: sad.Array | None, box: Box, background: float) -> None:
        """Fills the canvas: `picture`, square and linear, in `box`, a grey around it."""
        view = self.context.get_current_texture().create_view()
        encoder = self.device.create_command_encoder()
        target = {
            "view": view,
            "load_op": wgpu.LoadOp.clear,
            "store_op": wgpu.StoreOp.store,
            "clear_value": self._encoded(background),
        }
        drawing = encoder.begin_render_pass(color_attachments=[target])
        left, top, edge = box
        if picture is not None and edge >= 1:
            pipeline = self._pipeline(picture.shape[0])
            drawing.set_viewport(left, top, edge, edge, 0, 1)
            drawing.set_pipeline(pipeline)
            drawing.set_bind_group(0, self._bound(pipeline, picture))
            drawing.draw(3)
        drawing.end()
        self.device.queue.submit([encoder.finish()])

    def _encoded(self, grey: float) -> tuple[float, float, float, float]:
        """A grey for clearing, encoded in sRGB here unless the format makes clearing encode it."""
        if not self.format.endswith("srgb"):
            grey = 12.92 * grey if grey < 0.0031308 else 1.055 * grey ** (1 / 2.4) - 0.055
        return grey, grey, grey, 1.0

    def _bound(self, pipeline: Any, picture: sad.Array) -> Any:
        # `Array.native` submits recorded work, so the kernels run before the pass that reads.
        content = {"buffer": picture.native, "offset": picture.offset, "size": picture.byte_count}
        return self.device.create_bind_group(
            layout=pipeline.get_bind_group_layout(0), entries=[{"binding": 0, "resource": content}]
        )

    def _pipeline(self, size: int) -> Any:
        if size not in self.pipelines:
            constants = {"size": size, "is_encoded": not self.format.endswith("srgb")}
            self.pipelines[size] = self.device.create_render_pipeline(
                layout="auto",
                vertex={"module": self.shader, "entry_point": "corner"},
                fragment={
                    "module": self.shader,
                    "entry_point": "shown",
                    "constants": constants,
                    "targets": [{"format": self.format}],
                },
            )
        return self.pipelines[size]
