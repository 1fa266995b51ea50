"""The time of a device beside that of what a user of this machine would pick instead.

Sides of a benchmark take turns in one process (`benchmarks/timing.py`): ratios are medians over
pairs that ran one after the other. Sizes fit the time of the run and the memory of the device.
"""

from __future__ import annotations

import os
import statistics
import sys
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any, Protocol

import arrays
import cold_start
import libraries
import many_dispatches
import mesh_step
import numpy as np
from compare import CONTESTS, Ours
from jax_opponent import JaxNetwork
from opponents import Opponent
from timing import alternated, median_ratio, relative_error
from workloads import WORKLOADS

import shaderad as sad
from shaderad import render
from shaderad.deep import Lacking, Trial
from shaderad.runtime.devices import DEVICE_VARIABLE

if TYPE_CHECKING:
    from scripts.gpu.parts import Task

SAMPLE_COUNTS = {"W1": 2_000_000, "W2": 4_000_000, "W3": 4_000_000, "W4": 1_000_000}
SHARE, SHARE_OF_ELEMENTS = 20, 100
"""Quick runs, and all on software drivers, have this part of the samples of a workload; of the
elements of scans and sorts, which take seconds there."""
ELEMENTS = 100_000_000
COPY_BYTES = 1 << 30
PRODUCT_EDGE = 4096
ROUNDS, QUICK_ROUNDS = 15, 5
PERCENTS = ("percent_of_copy", "percent_of_fma")
"""Of rows of a profile."""
ARRAYS_AT_ONCE = 8
"""Arrays of the size of its input that a sort or scan may hold."""


class Side(Protocol):
    def step(self) -> None: ...


def benchmark_trials(task: Task) -> Iterator[Trial]:
    """Each benchmark on the device of the task."""
    assert task.device is not None
    is_small = task.is_quick or not task.device.capabilities.is_parallel
    rounds = 1 if task.is_preparing else QUICK_ROUNDS if is_small else ROUNDS
    bench = _Bench(task.device, rounds, is_small=is_small)
    for name in WORKLOADS:
        yield f"{name} gradient", partial(bench.gradient, name)
    yield "20 small dispatches", bench.small_dispatches
    yield "copy", bench.copy
    yield "scan", partial(bench.over_elements, lambda x: sad.scan(sad.add, x))
    yield "sort", partial(bench.over_elements, sad.sort)
    yield "matrix product", bench.product
    yield "W5 network", bench.network
    yield "texture fit", bench.texture
    yield "mesh step", bench.mesh_step
    yield "cold start", bench.cold_start


class _Bench:
    def __init__(self, device: sad.Device, rounds: int, *, is_small: bool) -> None:
        self._device, self._rounds = device, rounds
        self._is_small = is_small
        self._copied: float | None = None
        """Bytes read and written a second by copies."""

    def _size(self, whole: int, bytes_each: int, share: int = SHARE) -> int:
        """As many as asked for, of those that a buffer of the device can hold."""
        size = whole // share if self._is_small else whole
        return min(size, self._device.capabilities.binding_bytes_limit // bytes_each)

    def gradient(self, name: str) -> Mapping[str, Any]:
        """A workload of benchmarks/workloads.py."""
        workload = WORKLOADS[name](self._size(SAMPLE_COUNTS[name], 16) // 1000 * 1000)
        sides, unable = libraries.sides(name, workload.inputs)
        try:
            by_hand = Opponent(name, workload, self._device)
            by_hand.step()
            sides["by hand"] = by_hand
        except (Lacking, RuntimeError, ImportError) as failure:
            unable["by hand"] = f"{type(failure).__name__}: {failure}".splitlines()[0]
        ours = sides["shaderad"] = Ours(CONTESTS[name], workload.inputs, self._device)
        facts = self._compared(sides)
        errors = {key: relative_error(s.gradient(), workload.reference) for key, s in sides.items()}
        # Where Slang by hand is as far off, the driver's functions are.
        goal = max(CONTESTS[name].error_goal, 2 * errors.get("by hand", 0.0))
        if not errors["shaderad"] <= goal:
            raise AssertionError(f"an error of {errors['shaderad']:.1e}, above {goal:.0e}")
        samples = len(next(reversed(workload.inputs.values())))
        return facts | {
            "errors": errors,
            "unable": unable,
            "dispatches": ours.dispatch_count(),
            "size": f"{samples:,} samples",
        }

    def _compared(self, sides: Mapping[str, Side]) -> dict[str, Any]:
        times = alternated({key: side.step for key, side in sides.items()}, self._rounds)
        return self._percents(sides["shaderad"].step) | {
            "milliseconds": {key: statistics.median(ms) for key, ms in times.items()},
            "ratios": {
                key: median_ratio(times["shaderad"], ms)
                for key, ms in times.items()
                if key != "shaderad"
            },
        }

    def _percents(self, step: Callable[[], object]) -> dict[str, Any]:
        """The percent of the fastest copy, and of multiply-adds, that the kernels of a step reach.

        Empty if the device has no timestamps.
        """
        with sad.profile(self._device) as profile:
            step()
        timed = [(row, row.device_ms) for row in profile.rows if row.device_ms]
        whole = sum(milliseconds for _, milliseconds in timed)
        return {
            name: sum((getattr(row, name) or 0.0) * ms for row, ms in timed) / whole
            for name in PERCENTS
            if whole
        }

    def small_dispatches(self) -> Mapping[str, Any]:
        """The step of benchmarks/many_dispatches.py, against the same recorded by hand."""
        ours = many_dispatches.Ours(self._device, many_dispatches.ELEMENTS)
        sides: dict[str, Side] = {
            "shaderad": ours,
            "recorded by hand": many_dispatches.ByHand(ours),
        }
        return self._compared(sides) | {"size": f"{many_dispatches.ELEMENTS:,} elements"}

    def copy(self) -> Mapping[str, Any]:
        """A copy of a buffer: the bandwidth that scans and sorts are held against."""
        size = self._size(COPY_BYTES, 1) // 4 * 4
        runtime = self._device.runtime
        source, target = runtime.allocate(size), runtime.allocate(size)

        def copied() -> None:
            runtime.copy(source, 0, target, 0, size)
            runtime.wait()

        milliseconds = self._median(copied)
        self._copied = 2e3 * size / milliseconds
        return {
            "milliseconds": {"shaderad": milliseconds},
            "gigabytes_a_second": self._copied / 1e9,
            "size": f"{size >> 20:,} MiB",
        }

    def over_elements(self, function: Callable[[sad.Array], sad.Array]) -> Mapping[str, Any]:
        """A function that reads and writes each element at least once."""
        count = self._size(ELEMENTS, 4 * ARRAYS_AT_ONCE, SHARE_OF_ELEMENTS)
        x = sad.array(np.random.default_rng(0).random(count, np.float32))

        def run() -> None:
            function(x)
            self._device.synchronize()

        milliseconds = self._median(run)
        facts = self._percents(run) | {
            "milliseconds": {"shaderad": milliseconds},
            "gigabytes_a_second": 8e-6 * count / milliseconds,
            "size": f"{count:,} elements",
        }
        if self._copied:
            facts["ratios"] = {"copy": milliseconds / (8e3 * count / self._copied)}
        return facts

    def product(self) -> Mapping[str, Any]:
        """A product of two square matrices, against PyTorch: cuBLAS where it has CUDA."""
        edge = PRODUCT_EDGE // 16 if self._is_small else PRODUCT_EDGE
        a, b = np.random.default_rng(0).normal(size=(2, edge, edge)).astype(np.float32)
        x, y = sad.array(a), sad.array(b)
        ours = _Call(lambda: x @ y, self._device)
        sides: dict[str, Side] = {"shaderad": ours}
        unable: dict[str, str] = {}
        try:
            sides["torch"] = _TorchProduct(a, b)
        except ImportError as failure:
            unable["torch"] = str(failure)
        facts = self._compared(sides)
        error = relative_error(ours.result.numpy(), a.astype(np.float64) @ b)
        if not error <= 1e-5:
            raise AssertionError(f"an error of {error:.1e}")
        gigaflops = 2e-6 * edge**3 / facts["milliseconds"]["shaderad"]
        return facts | {"unable": unable, "gigaflops": gigaflops, "size": f"{edge} x {edge}"}

    def network(self) -> Mapping[str, Any]:
        """The loss of the network of benchmarks/arrays.py, with its gradient."""
        count = self._size(arrays.POINTS, 4 * 32)
        inputs = arrays.drawn((count, 2), (count, 3), *arrays.WEIGHTS)
        weights = tuple(range(2, len(inputs)))
        graph = sad.graph(network_gradient)
        given = [sad.array(x) for x in inputs]
        sides: dict[str, Side] = {"shaderad": _Call(lambda: graph(*given), self._device)}
        unable: dict[str, str] = {}
        try:
            sides["jax"] = JaxNetwork(inputs, weights, is_on_cpu=False)
        except ImportError as failure:
            unable["jax"] = str(failure)
        return self._compared(sides) | {"unable": unable, "size": f"{count:,} points"}

    def texture(self) -> Mapping[str, Any]:
        """The gradient of a texture's texels from bilinear lookups, against PyTorch."""
        edge = 256 if self._is_small else 2048
        rng = np.random.default_rng(0)
        texels = rng.random((edge, edge), np.float32)
        uv, target = rng.random((edge * edge, 2), np.float32), rng.random(edge * edge, np.float32)
        given = [sad.array(texels), sad.array(uv, dtype=sad.float2), sad.array(target)]
        run = sad.graph(sad.value_and_grad(texture_loss))
        sides: dict[str, Side] = {"shaderad": _Call(lambda: run(*given), self._device)}
        unable: dict[str, str] = {}
        try:
            sides["torch"] = libraries.TorchTexture(texels, uv, target)
        except ImportError as failure:
            unable["torch"] = str(failure)
        size = f"{edge} x {edge} texels, as many lookups"
        return self._compared(sides) | {"unable": unable, "size": size}

    def mesh_step(self) -> Mapping[str, Any]:
        """A step of the mesh sample's fit of colours, against its kernels alone."""
        sys.path.insert(0, str(mesh_step.SAMPLE))
        import fit

        size, repeats = (128, 10) if self._is_small else (512, mesh_step.REPEATS)
        task = fit.ATTRIBUTES["colors"](size)
        alone = mesh_step.kernels_alone(task, self._device, repeats)
        sides: dict[str, Side] = {
            "shaderad": _Call(lambda: [task.step() for _ in range(repeats)], self._device),
            "its kernels alone": _Call(lambda: [run() for run in alone], self._device),
        }
        facts = self._compared(sides)
        each = {name: took / repeats for name, took in facts["milliseconds"].items()}
        return facts | {"milliseconds": each, "size": f"{size} x {size} pixels"}

    def cold_start(self) -> Mapping[str, Any]:
        """From the start of Python to the first gradient, with the cache of an earlier run."""
        with TemporaryDirectory() as folder:
            script = Path(folder) / "first_gradient.py"
            script.write_text(cold_start.FIRST_GRADIENT, encoding="utf-8")
            runs = 1 if self._is_small else cold_start.RUNS
            seconds = cold_start.seconds(str(script), os.environ[DEVICE_VARIABLE], runs=runs)
        return {
            "milliseconds": {"shaderad": 1e3 * statistics.median(seconds)},
            "size": "one kernel",
        }

    def _median(self, step: Callable[[], None]) -> float:
        return statistics.median(alternated({"": step}, self._rounds)[""])


class _Call:
    """A side that calls a function and waits for the device."""

    def __init__(self, run: Callable[[], Any], device: sad.Device) -> None:
        self._run, self._device = run, device
        self.result: Any = None

    def step(self) -> None:
        self.result = self._run()
        self._device.synchronize()


def texture_loss(texels: Any, uv: Any, target: Any) -> Any:
    miss = render.texture(texels, uv) - target
    return sad.mean(miss * miss)


def network_gradient(
    points: Any, wanted: Any, w1: Any, b1: Any, w2: Any, b2: Any, w3: Any, b3: Any
) -> Any:
    weights = tuple(range(2, 8))
    run = sad.value_and_grad(arrays.loss, argnums=weights)
    return run(points, wanted, w1, b1, w2, b2, w3, b3)


class _TorchProduct:
    def __init__(self, a: Any, b: Any) -> None:
        import torch

        place = "cuda" if torch.cuda.is_available() else "cpu"
        self._a, self._b = (torch.from_numpy(x).to(place) for x in (a, b))
        self._wait = torch.cuda.synchronize if place == "cuda" else lambda: None

    def step(self) -> None:
        _ = self._a @ self._b
        self._wait()
