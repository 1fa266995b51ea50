"""What a device costs beside what a user of this machine would pick instead.

Sides of a benchmark take turns in one process (`benchmarks/timing.py`): ratios are medians over
pairs that ran one after the other. Sizes fit the time of the run and the memory of the device.
"""

from __future__ import annotations

import statistics
import sys
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

import shaderad as sad
from shaderad.deep import Lacking, Trial

sys.path.insert(0, str(Path(__file__).parents[2] / "benchmarks"))  # Its scripts import each other.
import libraries
import many_dispatches
from compare import CONTESTS, Ours
from opponents import Opponent
from timing import alternated, median_ratio, relative_error
from workloads import WORKLOADS

if TYPE_CHECKING:
    from scripts.gpu.parts import Task

QUICK_SHARE = 20
"""A quick run's part of the samples of a workload, as does any run on a software driver."""
ELEMENTS = 100_000_000
COPY_BYTES = 1 << 30
PRODUCT_EDGE = 4096
ROUNDS, QUICK_ROUNDS = 15, 5
ARRAYS_AT_ONCE = 8
"""Arrays of the size of its input that a sort or scan may hold."""


class Side(Protocol):
    def step(self) -> None: ...


def benchmark_trials(task: Task) -> Iterator[Trial]:
    """Each benchmark on the device of the task."""
    assert task.device is not None
    bench = _Bench(task.device, is_small=task.is_quick or not task.device.capabilities.is_parallel)
    for name in WORKLOADS:
        yield f"{name} gradient", partial(bench.gradient, name)
    yield "20 small dispatches", bench.small_dispatches
    yield "copy", bench.copy
    yield "scan", partial(bench.over_elements, lambda x: sad.scan(sad.add, x))
    yield "sort", partial(bench.over_elements, sad.sort)
    yield "matrix product", bench.product


class _Bench:
    def __init__(self, device: sad.Device, *, is_small: bool) -> None:
        self._device = device
        self._is_small = is_small
        self._rounds = QUICK_ROUNDS if is_small else ROUNDS
        self._copied: float | None = None
        """Bytes read and written a second by copies."""

    def _size(self, whole: int, bytes_each: int) -> int:
        """As many as asked for, of those that a buffer of the device can hold."""
        size = max(1000, whole // QUICK_SHARE) if self._is_small else whole
        return min(size, self._device.capabilities.binding_bytes_limit // bytes_each)

    def gradient(self, name: str) -> Mapping[str, Any]:
        """A workload of benchmarks/workloads.py."""
        default = {"W1": 2_000_000, "W2": 4_000_000, "W3": 4_000_000, "W4": 1_000_000}[name]
        workload = WORKLOADS[name](self._size(default, 16) // 1000 * 1000)
        sides, unable = libraries.sides(name, workload.inputs)
        try:
            by_hand = Opponent(name, workload, self._raw_device())
            by_hand.step()
            sides["by hand"] = by_hand
        except (Lacking, RuntimeError) as failure:
            unable["by hand"] = f"{type(failure).__name__}: {failure}".splitlines()[0]
        ours = sides["shaderad"] = Ours(CONTESTS[name], workload.inputs, self._device)
        facts = self._compared(sides)
        errors = {key: relative_error(s.gradient(), workload.reference) for key, s in sides.items()}
        goal = CONTESTS[name].error_goal
        if not errors["shaderad"] <= goal:
            raise AssertionError(f"an error of {errors['shaderad']:.1e}, above {goal:.0e}")
        samples = len(next(reversed(workload.inputs.values())))
        return facts | {
            "errors": errors,
            "unable": unable,
            "dispatches": ours.dispatch_count(),
            "size": f"{samples:,} samples",
        }

    def _raw_device(self) -> Any:
        """A device of slangpy alone on the same adapter."""
        import slangpy as spy

        capabilities = self._device.capabilities
        api = spy.DeviceType[capabilities.api]
        for adapter in spy.Device.enumerate_adapters(api):
            if adapter.name == capabilities.adapter:
                return spy.create_device(type=api, adapter_luid=adapter.luid)
        raise Lacking(f"slangpy has no {capabilities.adapter} by {capabilities.api}")

    def _compared(self, sides: Mapping[str, Side]) -> dict[str, Any]:
        times = alternated({key: side.step for key, side in sides.items()}, self._rounds)
        return {
            "milliseconds": {key: statistics.median(ms) for key, ms in times.items()},
            "ratios": {
                key: median_ratio(times["shaderad"], ms)
                for key, ms in times.items()
                if key != "shaderad"
            },
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
        count = self._size(ELEMENTS, 4 * ARRAYS_AT_ONCE)
        x = sad.array(np.random.default_rng(0).random(count, np.float32))

        def run() -> None:
            function(x)
            self._device.synchronize()

        milliseconds = self._median(run)
        facts = {
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
        ours = _Product(sad.array(a), sad.array(b), self._device)
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

    def _median(self, step: Callable[[], None]) -> float:
        return statistics.median(alternated({"": step}, self._rounds)[""])


class _Product:
    def __init__(self, a: sad.Array, b: sad.Array, device: sad.Device) -> None:
        self._a, self._b, self._device = a, b, device
        self.result = a

    def step(self) -> None:
        self.result = self._a @ self._b
        self._device.synchronize()


class _TorchProduct:
    def __init__(self, a: Any, b: Any) -> None:
        import torch

        place = "cuda" if torch.cuda.is_available() else "cpu"
        self._a, self._b = (torch.from_numpy(x).to(place) for x in (a, b))
        self._wait = torch.cuda.synchronize if place == "cuda" else lambda: None

    def step(self) -> None:
        _ = self._a @ self._b
        self._wait()
