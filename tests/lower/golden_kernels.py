"""Kernels whose Slang is kept in ``golden/``; between them they reach most of what is emitted."""

# ruff: noqa: T201

from __future__ import annotations

import sys
from pathlib import Path

import shaderad as sad
from shaderad import float2, float3, int3
from shaderad.decorators import KernelFunction
from shaderad.ir.types import Access, is_differentiable
from shaderad.lower.bindings import Lowered, Mode, Variant
from shaderad.lower.kernels import lower_kernel
from shaderad.lower.prepare.refusals import reachable
from shaderad.rules.transforms import push_kernel

FOLDER = Path(__file__).parent / "golden"


@sad.struct
class Mesh:
    vertices: sad.In[float3]
    faces: sad.In[int3]
    scale: float

    def interpolate(self, face: int, uv: float2) -> float3:
        t = self.faces[face]
        a, b, c = self.vertices[t.x], self.vertices[t.y], self.vertices[t.z]
        return (a * uv.x + b * uv.y + c * (1.0 - uv.x - uv.y)) * self.scale


@sad.kernel
def shade(i: sad.Index, mesh: Mesh, face: sad.In[int], uv: sad.In[float2], color: sad.Out[float3]):
    color[i] = mesh.interpolate(face[i], uv[i])


@sad.kernel
def fit_line(
    i: sad.Index, x: sad.In[float], y: sad.In[float], p: sad.In[float], loss: sad.Add[float]
):
    error = p[0] * x[i] + p[1] - y[i]
    loss[0] += error * error


@sad.kernel
def march(
    i: sad.Index, start: sad.In[float], step: float, depth: sad.Out[float], hit: sad.Out[bool]
):
    t = start[i]
    for _step in sad.range(64, limit=64):
        distance = sad.sin(t) + 1.5
        if distance < 0.6:
            hit[i] = True
            break
        t += step * distance
    depth[i] = t


@sad.kernel
def blur(
    row: sad.Index, column: sad.Index, image: sad.In[float, 2], radius: int, out: sad.Out[float, 2]
):
    total = 0.0
    for offset in range(-radius, radius + 1):
        total += image[row, column + offset]
    out[row, column] = total / float(2 * radius + 1)


@sad.kernel
def split(i: sad.Index, x: sad.In[float3], parts: sad.Out[float], lowest: sad.Min[float]):
    for k in sad.static_range(3):
        parts[3 * i + k] = x[i][k] * float(k + 1)
    lowest[i % 2] = sad.min(lowest[i % 2], x[i].x)


@sad.function
def square(x: float) -> float:
    return x * x


@square.backward_derivative
def square_bwd(x: sad.DifferentialPair[float], d_out: float):
    x.d += 2.0 * x.p * d_out


@square.forward_derivative
def square_fwd(x: sad.DifferentialPair[float]) -> sad.DifferentialPair[float]:
    return sad.diff_pair(square(x.p), 2.0 * x.p * x.d)


@sad.function
def first_root(x: float, bar: float) -> float:
    if x > bar:
        return square(x)
    for k in sad.range(8, limit=8):
        x = x * x + 0.1
        if x > bar:
            return x * float(k)
    return bar


@sad.kernel
def roots(i: sad.Index, x: sad.In[float], y: sad.Out[float]):
    y[i] = first_root(x[i], 2.0) + first_root(x[0], 1.0)


@sad.kernel
def histogram(i: sad.Index, x: sad.In[float], w: sad.In[float], y: sad.Out[float3]):
    bins = sad.LocalArray[float, 4]()
    for k in sad.range(len(w), limit=2000):
        bins[k % 4] = bins[k % 4] * 0.5 + w[k] * x[i]
    y[i].x = bins[i % 4]
    y[i].zy = float2(bins[0], bins[1])


@sad.struct
class Strip:
    points: sad.Pointer[float3]
    width: float


@sad.struct
class Drawing:
    strips: sad.Pointer[Strip]
    scale: float


@sad.function
def stretch(strip: Strip, k: int) -> float:
    return sad.detach(sad.length(strip.points[k]))


@stretch.backward_derivative
def stretch_bwd(strip: sad.DifferentialPair[Strip], k: int, d_out: float):
    strip.d.points[k].x += strip.p.points[k].x * d_out
    strip.d.points[0].zy = float2(d_out)
    strip.d.width += d_out


@sad.kernel
def draw(i: sad.Index, drawing: Drawing, y: sad.Out[float]):
    strip = drawing.strips[i % len(drawing.strips)]
    for k in range(len(strip.points)):
        y[i] += strip.points[k].y * strip.width * drawing.scale + stretch(strip, k)


@sad.function
def traced_square(x: float) -> float:
    print("square", x, end="; ")
    return x * x


@sad.kernel
def trace(i: sad.Index, j: sad.Index, x: sad.In[float3, 2], y: sad.Out[float, 2]):
    v = x[i, j]
    for k in range(2):
        v = v * traced_square(v.x)
        if v.y > 0.5:
            print(f"{k}: {v:.2f}", v.y > 1.0)
    y[i, j] = v.x + v.y


KERNELS = (shade, fit_line, march, blur, split, roots, histogram, draw, trace)


def lowered(kernel: KernelFunction, atomics: str = "native") -> list[Lowered]:
    """Every dispatch of the kernel, all derivatives wanted."""
    ir = kernel.specialise({})
    wanted = {b.name for b in ir.buffers if b.access is Access.IN}
    types = {b.name: b.type.element for b in ir.buffers} | {u.name: u.type for u in ir.uniforms}
    wanted |= {u.name for u in ir.uniforms}
    variant = Variant(
        wanted=frozenset(n for n in wanted if is_differentiable(types[n])),
        launch_shaped=frozenset(b.name for b in ir.buffers if b.access is Access.OUT),
        atomics=atomics,
        storage_buffer_limit=16,
    )
    modes = [Mode.PRIMAL, Mode.BACKWARD, Mode.FORWARD]
    if any(f.backward is not None and f.forward is None for f in reachable(ir.body)):
        modes.remove(Mode.FORWARD)
    return [one for mode in modes for one in lower_kernel(ir, mode, variant)]


def lowered_with_tangents(kernel: KernelFunction, atomics: str = "native") -> list[Lowered]:
    """The backward dispatches of the kernel with tangents of all that it reads."""
    ir = kernel.specialise({})
    wanted = frozenset(b.name for b in ir.buffers if b.access is Access.IN)
    pushed = push_kernel(ir, wanted)
    outs = frozenset(b.name for b in pushed.buffers if b.access is Access.OUT)
    variant = Variant(wanted=wanted, launch_shaped=outs, atomics=atomics, storage_buffer_limit=16)
    return list(lower_kernel(pushed, Mode.BACKWARD, variant))


def text_of(kernel: KernelFunction) -> str:
    """The Slang of all its dispatches, one after the other."""
    return "\n".join(one.program.slang for one in lowered(kernel))


def texts() -> dict[str, str]:
    """What each golden file holds, by its stem."""
    pushed = "\n".join(one.program.slang for one in lowered_with_tangents(roots))
    return {k.name: text_of(k) for k in KERNELS} | {"roots_push": pushed}


def write_golden_files() -> None:
    """Rewrites every golden file, for ``scripts/run golden``."""
    FOLDER.mkdir(exist_ok=True)
    for name, text in texts().items():
        path = FOLDER / f"{name}.slang"
        path.write_text(text, encoding="utf-8", newline="\n")
        sys.stdout.write(f"{path}\n")


if __name__ == "__main__":
    write_golden_files()
