"""Programs whose kernels `kernel_times.py` times, with their results in NumPy.

The sets are generators, so that the arrays of one program are freed before the next.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import arrays
import numpy as np
from calls_programs import mesh_fit
from compare import CONTESTS, Ours
from many_steps import error_of
from timing import Floats
from workloads import WORKLOADS

import shaderad as sad
from scripts.gpu import numpy_results
from scripts.gpu.benchmarks import SAMPLE_COUNTS, network_gradient, texture_loss
from shaderad import render

SMALLER = 1024
"""Small programs have this part of the elements, and 1/16 of the edge of pictures and matrices."""
TOLERANCE = 1e-4
"""Relative to the largest element: float32, terms in any order."""
SINE_TOLERANCE = 1e-3
"""Vulkan allows an error of 5e-4 in sines."""
EDGE_TOLERANCE = 2e-3
"""The share of pixels on edges of triangles that may fall either way."""


@dataclass(frozen=True)
class TimedProgram:
    """A step, and the check of its results."""

    name: str
    size: str
    step: Callable[[], Any]
    """Records the step without waiting; returns its results."""
    error: Callable[[Any], float]
    """The difference of results from those of NumPy."""
    tolerance: float = TOLERANCE
    byte_count: int = 0
    """Bytes that have to be read and written."""
    operation_count: int = 0
    torch: Callable[[Any], Callable[[], Any]] | None = None
    """The same on CUDA, from the module of PyTorch."""


@dataclass(frozen=True)
class Sizes:
    """Full sizes, or small ones that a software driver runs in milliseconds."""

    is_small: bool

    def count(self, full: int) -> int:
        return full // SMALLER if self.is_small else full

    def edge(self, full: int) -> int:
        return full // 16 if self.is_small else full


def of_graph(
    name: str,
    function: Callable[..., Any],
    inputs: tuple[Floats, ...],
    exact: Callable[..., Any],
    torch: Callable[..., Any] | None = None,
    **fields: Any,
) -> TimedProgram:
    """A function of arrays as one graph; `exact` and `torch` take the same inputs."""
    graph, resident = sad.graph(function), [sad.array(x) for x in inputs]

    def on_cuda(library: Any) -> Callable[[], Any]:
        tensors = [library.from_numpy(x).cuda() for x in inputs]
        assert torch is not None
        return lambda: torch(library, *tensors)

    return TimedProgram(
        name,
        ", ".join(" x ".join(f"{n:,}" for n in x.shape) for x in inputs),
        lambda: graph(*resident),
        lambda results: error_of(results, exact(*inputs)),
        torch=on_cuda if torch is not None else None,
        **fields,
    )


def drawn(*shape: int) -> Floats:
    return np.random.default_rng(0).random(shape, np.float32)


# -- sets ------------------------------------------------------------------------------------------


def workloads(device: sad.Device, sizes: Sizes) -> Iterator[TimedProgram]:
    """The gradients of benchmarks/workloads.py."""
    for name, full in SAMPLE_COUNTS.items():
        count = sizes.count(full) // 10 * 10
        workload = WORKLOADS[name](count)
        yield TimedProgram(
            f"{name} gradient",
            f"{count:,}",
            Ours(CONTESTS[name], workload.inputs, device).record,
            lambda gradient, exact=workload.reference: error_of(gradient, exact),
            SINE_TOLERANCE if name == "W3" else TOLERANCE,
        )


def mesh(device: sad.Device, sizes: Sizes) -> Iterator[TimedProgram]:
    """A step of the mesh sample's fit of colours."""
    edge = sizes.edge(512)
    fit = mesh_fit(edge)
    fit.step()  # Its results are the state, on the device, of the steps that are timed.
    arguments = fit.arguments()
    yield TimedProgram(
        "mesh step",
        f"{edge} x {edge} pixels",
        lambda: fit.graph(*arguments),
        lambda results: mesh_error(arguments, results),
    )


def mesh_error(arguments: Sequence[Any], results: Sequence[Any]) -> float:
    """The error of the loss and gradient of a step with these arguments."""
    import scene

    true_colors = scene.spot(1).colors
    return error_of(results[:2], numpy_results.shaded_gradient(arguments, true_colors))


def elements(device: sad.Device, sizes: Sizes) -> Iterator[TimedProgram]:
    """Elementwise work, sums, and scans of floats."""
    count = sizes.count(1 << 26)
    x = drawn(count)
    yield of_graph(
        "elementwise", lambda x: sad.sqrt(x * x + 1.0), (x,),
        lambda x: np.sqrt(x * x + 1.0), lambda torch, x: torch.clone(x), byte_count=8 * count,
    )  # fmt: skip
    yield of_graph(
        "sum", sad.sum, (x,),
        lambda x: x.sum(dtype=np.float64), lambda _, x: x.sum(), byte_count=4 * count,
    )  # fmt: skip
    yield of_graph(
        "scan", lambda x: sad.scan(sad.add, x), (x,),
        lambda x: x.cumsum(dtype=np.float64), lambda _, x: x.cumsum(0), byte_count=8 * count,
    )  # fmt: skip
    yield of_graph(
        "gradient of sum(sin(x) x)", sad.grad(lambda x: sad.sum(sad.sin(x) * x)), (x,),
        lambda x: np.sin(x) + x * np.cos(x), tolerance=SINE_TOLERANCE, byte_count=8 * count,
    )  # fmt: skip
    y = drawn(sizes.count(1 << 22))
    yield of_graph("sort", sad.sort, (y,), np.sort, lambda torch, y: torch.sort(y))


def rows(device: sad.Device, sizes: Sizes) -> Iterator[TimedProgram]:
    """Work over a matrix with rows of 256."""
    count = sizes.count(1 << 26)
    m = drawn(count // 256, 256)
    yield of_graph(
        "row sums", lambda m: sad.sum(m, axis=1), (m,),
        lambda m: m.sum(1, dtype=np.float64), lambda _, m: m.sum(1), byte_count=4 * count,
    )  # fmt: skip
    yield of_graph(
        "column sums", lambda m: sad.sum(m, axis=0), (m,),
        lambda m: m.sum(0, dtype=np.float64), lambda _, m: m.sum(0), byte_count=4 * count,
    )  # fmt: skip
    yield of_graph(
        "softmax of rows", lambda m: sad.softmax(m, axis=1), (m,),
        numpy_results.softmax, lambda torch, m: torch.softmax(m, 1), byte_count=8 * count,
    )  # fmt: skip
    yield of_graph(
        "transpose", lambda m: sad.transpose(m) * 1.0, (m,),
        np.transpose, lambda _, m: m.T.contiguous(), byte_count=8 * count,
    )  # fmt: skip


def indices(device: sad.Device, sizes: Sizes) -> Iterator[TimedProgram]:
    """Additions into shared places, and lookups."""
    count, many = sizes.count(1 << 24), sizes.count(1 << 20)
    rng, v = np.random.default_rng(1), drawn(count)
    for place_count in dict.fromkeys((many, 1 << 10)):
        yield histogram(place_count, rng.integers(0, place_count, count).astype(np.int32), v)
    i, table = rng.integers(0, many, count).astype(np.int32), drawn(many)
    yield of_graph(
        "gather", lambda v, i: v[i], (table, i),
        lambda v, i: v[i], lambda _, v, i: v[i.long()],
    )  # fmt: skip
    yield of_graph(
        "gradient of a gather", sad.grad(lambda v, i: sad.sum(v[i] * v[i])), (table, i),
        lambda v, i: 2.0 * v * np.bincount(i, minlength=len(v)),
    )  # fmt: skip


def histogram(place_count: int, i: Any, v: Floats) -> TimedProgram:
    return of_graph(
        f"histogram of {place_count:,} places",
        lambda i, v: sad.segment_reduce(sad.add, 0.0, place_count, i, v), (i, v),
        lambda i, v: np.bincount(i, v, place_count),
        lambda torch, i, v: torch.zeros(place_count, device="cuda").index_add_(0, i, v),
    )  # fmt: skip


def products(device: sad.Device, sizes: Sizes) -> Iterator[TimedProgram]:
    """Matrix products, the gradient of a network, and a convolution."""
    edge, count = sizes.edge(4096), sizes.count(1 << 16)
    for shape in ((edge, edge, edge), (count, 64, 64)):
        yield of_graph(
            "matrix product", lambda a, b: a @ b, (drawn(*shape[:2]), drawn(*shape[1:]) - 0.5),
            lambda a, b: a.astype(np.float64) @ b, lambda _, a, b: a @ b,
            operation_count=2 * shape[0] * shape[1] * shape[2],
        )  # fmt: skip
    inputs = arrays.drawn((count, 2), (count, 3), *arrays.WEIGHTS)
    yield of_graph(
        "W5 network gradient", network_gradient, tuple(inputs), numpy_results.network_gradient
    )
    edge = sizes.edge(1024)
    yield of_graph(
        "convolution", sad.conv, (drawn(1, edge, edge), drawn(1, 1, 7, 7)),
        numpy_results.convolution, lambda torch, x, w: torch.nn.functional.conv2d(x[None], w),
    )  # fmt: skip


def textures(device: sad.Device, sizes: Sizes) -> Iterator[TimedProgram]:
    """The gradient of a texture by its texels."""
    edge = sizes.edge(2048)
    texels, uv, target = drawn(edge, edge), drawn(edge * edge, 2), drawn(edge * edge)
    graph = sad.graph(sad.value_and_grad(texture_loss))
    resident = sad.array(texels), sad.array(uv, dtype=sad.float2), sad.array(target)
    yield TimedProgram(
        "texture gradient",
        f"{edge} x {edge} texels",
        lambda: graph(*resident),
        lambda results: error_of(results, numpy_results.texture_gradient(texels, uv, target)),
    )


def triangles(device: sad.Device, sizes: Sizes) -> Iterator[TimedProgram]:
    """Pictures of spheres of many triangles, and of one triangle that fills the picture."""
    for quads, full in ((54, 512), (700, 1024)):
        positions, corners = sphere(10 if sizes.is_small else quads)
        edge = sizes.edge(full)
        exact = numpy_results.nearest_depths(positions, corners, edge)
        yield rasterized(positions, corners, edge, exact)
    positions = np.array([[-1, -1, 0.5, 1], [3, -1, 0.5, 1], [-1, 3, 0.5, 1]], np.float32)
    edge = sizes.edge(1024)
    yield rasterized(positions, np.array([[0, 1, 2]], np.int32), edge, np.full((edge, edge), 0.5))


def rasterized(positions: Floats, corners: Any, edge: int, exact: Floats) -> TimedProgram:
    graph = sad.graph(lambda p, t: tuple(render.rasterize(p, t, (edge, edge))))
    resident = sad.array(positions, dtype=sad.float4), sad.array(corners, dtype=sad.int3)

    def error(results: Any) -> float:
        face, _, depth, *_ = (x.numpy() for x in results)
        return float(np.mean(abs(np.where(face >= 0, depth, 1.0) - exact) > TOLERANCE))

    size = f"{len(corners):,} triangles, {edge} x {edge} pixels"
    return TimedProgram("rasterize", size, lambda: graph(*resident), error, EDGE_TOLERANCE)


def sphere(quads: int) -> tuple[Floats, Any]:
    """Clip-space positions and triangles of a flattened sphere of `quads` by `quads` quads."""
    u, w = np.meshgrid(
        np.linspace(0, 2 * np.pi, quads + 1), np.linspace(0.01, np.pi - 0.01, quads + 1),
        indexing="ij",
    )  # fmt: skip
    x, y, z = 0.9 * np.cos(u) * np.sin(w), 0.9 * np.cos(w), 0.4 * np.sin(u) * np.sin(w) + 0.5
    positions = np.stack([x, y, z, np.ones_like(u)], -1).reshape(-1, 4).astype(np.float32)
    low = (np.arange(quads)[:, None] * (quads + 1) + np.arange(quads)).ravel()
    upper = np.stack([low, low + 1, low + quads + 1], -1)
    lower = np.stack([low + 1, low + quads + 2, low + quads + 1], -1)
    return positions, np.concatenate([upper, lower]).astype(np.int32)


SETS: dict[str, Callable[[sad.Device, Sizes], Iterator[TimedProgram]]] = {
    "workloads": workloads,
    "mesh": mesh,
    "elements": elements,
    "rows": rows,
    "indices": indices,
    "products": products,
    "textures": textures,
    "triangles": triangles,
}
