"""Long runs of forward and backward steps, with what they keep of memory."""

from __future__ import annotations

import gc
import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np

import shaderad as sad
from shaderad import float3

COUNT = 1024
STATM = Path("/proc/self/statm")


@sad.kernel
def loss_and_peak(
    i: sad.Index,
    x: sad.In[float3],
    index: sad.In[int],
    target: sad.In[float3],
    scale: float,
    loss: sad.Add[float],
    peak: sad.Max[float],
):
    miss = scale * x[index[i]] - target[i]
    square = sad.dot(miss, miss)
    loss[0] += square
    peak[0] = sad.max(peak[0], square)


@dataclass(frozen=True)
class Sample:
    """What the process holds after some steps."""

    step: int
    resident_bytes: int
    """Of the whole process; on a software driver that is the device's memory too."""
    object_count: int
    """Python objects that the collector knows."""
    buffer_count: int
    """Buffers that wgpu-native holds; 0 where another runtime runs."""
    loss: float


def descend(device: sad.Device, count: int, interval: int) -> Iterator[Sample]:
    """Fits `x` by gradient descent, and takes a sample every `interval` steps.

    A step uploads, dispatches forward and backward, does arithmetic on arrays; every tenth one
    reads back.
    """
    rng = np.random.default_rng(0)
    index = sad.array(rng.permutation(COUNT), device=device)
    scale = sad.array(np.float32(1.0), device=device)
    x = sad.array(rng.random((COUNT, 3)), dtype=float3, device=device)
    goal = rng.random((COUNT, 3)).astype(np.float32)
    loss = 0.0
    for step in range(count + 1):
        (total, _), pullback = sad.vjp(
            loss_and_peak, x, index, goal, scale, dim=COUNT, shapes={"loss": (1,), "peak": (1,)}
        )
        x_bar, _, _, scale_bar = pullback((np.ones(1, np.float32), None))
        x = x - 0.01 * x_bar
        scale = scale - 1e-9 * scale_bar
        if step % 10 == 0:
            loss = total.item()
        if step % interval == 0:
            is_wgpu = device.capabilities.runtime == "wgpu"
            yield sample(step, native_buffer_count() if is_wgpu else 0, loss)


def sample(step: int, buffer_count: int, loss: float) -> Sample:
    gc.collect()
    pages = int(STATM.read_text().split()[1])
    resident = pages * os.sysconf("SC_PAGE_SIZE")
    return Sample(step, resident, len(gc.get_objects()), buffer_count, loss)


def native_buffer_count() -> int:
    from wgpu import diagnostics

    return diagnostics.wgpu_native_counts.get_dict()["Buffer"]["count"]
