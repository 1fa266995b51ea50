"""`sad.load` to the first gradient against a script of raw wgpu with the same SPIR-V.

    python benchmarks/load_time.py [PAIRS]

Whole processes in turn, from the start of Python to its end. Both read the folder of one build,
run the primal and the backward dispatch of `shade`, and read back the gradients of the triangles
and of the exposure, which must agree. The pair before the first, which warms the disk, is not
counted.
"""

from __future__ import annotations

import json
import statistics
import struct
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

PAIRS = 10
GOAL = 1.25
TOLERANCE = 1e-5
"""Sums of sixteen float32 in any order."""

SHADE = """
import shaderad as sad
from shaderad import float2, float3, float4

@sad.struct
class Triangle:
    v0: float4
    v1: float4
    v2: float4

    def interpolate(self, uv: float2) -> float3:
        return self.v0.xyz * uv.x + self.v1.xyz * uv.y + self.v2.xyz * (1.0 - uv.x - uv.y)

@sad.kernel
def shade(i: sad.Index, triangles: sad.In[Triangle], face: sad.In[int], uv: sad.In[float2],
          exposure: float, color: sad.Out[float3]):
    color[i] = exposure * triangles[face[i]].interpolate(uv[i])
"""

COUNT, TRIANGLES, GROUP = 16, 3, 64
EXPOSURE = 1.5


def inputs() -> tuple[Any, Any, Any]:
    """Triangles as rows of 12 floats, faces, barycentric coordinates."""
    import numpy as np

    draw = np.random.default_rng(0)
    return (
        draw.normal(size=(TRIANGLES, 12)).astype(np.float32),
        (np.arange(COUNT) % TRIANGLES).astype(np.int32),
        draw.uniform(size=(COUNT, 2)).astype(np.float32),
    )


def ours(folder: Path) -> list[float]:
    """The gradients by `sad.load`."""
    import numpy as np

    import shaderad as sad

    rows, face, uv = inputs()
    triangles = {"v0": rows[:, :4], "v1": rows[:, 4:8], "v2": rows[:, 8:]}
    with sad.open_device("wgpu"):
        loaded = sad.load(folder)
        _, pullback = sad.vjp(loaded.shade, triangles, face, uv, EXPOSURE, dim=COUNT)
        found, _, _, exposure = pullback(np.ones((COUNT, 3), np.float32))
        found = found.numpy()
        parts = [found[name].reshape(TRIANGLES, 4) for name in ("v0", "v1", "v2")]
        return [*np.concatenate(parts, axis=1).ravel().tolist(), exposure.item()]


def raw(folder: Path) -> list[float]:
    """The gradients by wgpu alone."""
    import numpy as np
    import wgpu

    rows, face, uv = inputs()
    manifest = json.loads((folder / "manifest.json").read_text(encoding="utf-8"))
    programs = manifest["entries"][0]["targets"]["spirv"]["programs"]
    adapter = wgpu.gpu.request_adapter_sync(power_preference="high-performance")
    device = adapter.request_device_sync(required_features=["shader-float32-atomic", "subgroup"])
    usage = wgpu.BufferUsage.STORAGE | wgpu.BufferUsage.COPY_SRC | wgpu.BufferUsage.COPY_DST
    bars = np.ones((COUNT, 3), np.float32)
    given = {"triangles": rows, "face": face, "uv": uv, "color_bar": bars}
    made = {"color": bars.nbytes, "triangles_bar": rows.nbytes, "uv_bar": uv.nbytes,
            "exposure_bar": 16, "report": 1 << 16}  # fmt: skip
    buffers = {f"{name}_words": device.create_buffer_with_data(data=data, usage=usage)
               for name, data in given.items()}  # fmt: skip
    buffers |= {f"{name}_words": device.create_buffer(size=size, usage=usage)
                for name, size in made.items()}  # fmt: skip
    encoder = device.create_command_encoder()
    for program in programs:  # the primal, then the backward one
        code = (folder / program["file"]).read_bytes()
        pipeline = device.create_compute_pipeline(
            layout="auto",
            compute={
                "module": device.create_shader_module(code=code),
                "entry_point": program["entry_point"],
            },
        )
        words = words_of(program)
        uniform = device.create_buffer_with_data(data=words, usage=wgpu.BufferUsage.UNIFORM)
        entries = [{"binding": 0, "resource": {"buffer": uniform}}]
        entries += [{"binding": r["slot"], "resource": {"buffer": buffers[r["name"]]}}
                    for r in program["resources"]]  # fmt: skip
        group = device.create_bind_group(layout=pipeline.get_bind_group_layout(0), entries=entries)
        compute = encoder.begin_compute_pass()
        compute.set_pipeline(pipeline)
        compute.set_bind_group(0, group)
        compute.dispatch_workgroups(1)
        compute.end()
    device.queue.submit([encoder.finish()])
    found = device.queue.read_buffer(buffers["triangles_bar_words"])
    exposure = device.queue.read_buffer(buffers["exposure_bar_words"])
    return [*found.cast("f"), exposure.cast("f")[0]]


def words_of(program: dict[str, Any]) -> bytes:
    """The constant buffer of one workgroup."""
    known = {"thread_count": COUNT, "group_count_x": 1, "tile": GROUP, "exposure": EXPOSURE,
             "triangles_length": TRIANGLES, "face_length": COUNT, "uv_length": COUNT}  # fmt: skip
    values = [known.get(word, 0) for word in program["parameters"]["words"]]
    words = b"".join(struct.pack("<f" if isinstance(v, float) else "<I", v) for v in values)
    return words + bytes(-len(words) % 16)


SIDES = {"raw": raw, "ours": ours}


def run(side: str, folder: Path) -> tuple[float, list[float]]:
    """How long the process of a side lives, and the gradients it found."""
    command = [sys.executable, __file__, side, str(folder)]
    start = time.perf_counter()
    done = subprocess.run(command, check=True, stdout=subprocess.PIPE)
    return time.perf_counter() - start, json.loads(done.stdout)


def compare(folder: Path, pair_count: int) -> None:
    times: dict[str, list[float]] = {side: [] for side in SIDES}
    for pair in range(pair_count + 1):
        found = {side: run(side, folder) for side in SIDES}
        wanted, gradients = found["raw"][1], found["ours"][1]
        worst = max(abs(a - b) for a, b in zip(wanted, gradients, strict=True))
        assert worst <= TOLERANCE * max(map(abs, wanted)), found
        for side, (seconds, _) in found.items():
            times[side] += [seconds] if pair else []
    for side, seconds in times.items():
        print(f"{side:5} median {statistics.median(seconds):5.2f} s   least {min(seconds):5.2f} s")
    ratio = statistics.median(a / b for a, b in zip(times["ours"], times["raw"], strict=True))
    print(f"ratio {ratio:6.2f}   {f'above the goal of {GOAL}' if ratio > GOAL else ''}".rstrip())


def main() -> None:
    if sys.argv[1:2] and sys.argv[1] in SIDES:
        print(json.dumps(SIDES[sys.argv[1]](Path(sys.argv[2]))))
        return
    import shaderad as sad

    with tempfile.TemporaryDirectory() as name:
        source, folder = Path(name) / "shade.py", Path(name) / "built"
        source.write_text(SHADE, encoding="utf-8")
        sad.build(source, folder, targets=("spirv", "wgsl", "hlsl"), validate=False)
        compare(folder, int(sys.argv[1]) if sys.argv[1:] else PAIRS)


if __name__ == "__main__":
    main()
