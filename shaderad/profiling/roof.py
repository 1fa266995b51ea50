"""The most that a device can do: bytes per second of a copy, and operations per second.

Both are measured once per device, by its own clock, with kernels that do nothing else.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from shaderad.compiler.artifact import Binding, BindingAccess, Program
from shaderad.device.devices import Device
from shaderad.diagnostics import Error
from shaderad.runtime import DeviceBuffer, Runtime
from shaderad.runtime.base import Pipeline
from shaderad.runtime.clocks.observing import RecordedDispatch, Spending

_RUNS = 4
_ENOUGH_MS = 2.0
"""A run that takes longer is not made longer."""
_FLOAT4_BYTES = 16
_LEAST_BYTES, _MOST_BYTES = 16 << 20, 256 << 20
"""The array that is copied has so many: more than caches hold, where it takes little time."""
_GRIDS = (1, 4, 16)
"""Elements of a thread of the copy; the fastest counts."""
_COPY_GROUP, _FMA_GROUP = 256, 64
_FMA_THREADS = 1 << 16
_FMA_OPERATIONS = 8 * 4 * 2
"""An iteration of a thread has eight vectors of four, each a product and a sum."""

_COPY = Program(
    name="copy_float4",
    slang="""\
struct Parameters { uint count; uint stride; }
[[vk::binding(0, 0)]] ConstantBuffer<Parameters> parameters;
[[vk::binding(1, 0)]] StructuredBuffer<float4> source;
[[vk::binding(2, 0)]] RWStructuredBuffer<float4> target;

[shader("compute")]
[numthreads(256, 1, 1)]
void copy_float4(uint3 thread : SV_DispatchThreadID)
{
    for (uint i = thread.x; i < parameters.count; i += parameters.stride)
        target[i] = source[i];
}
""",
    workgroup=(_COPY_GROUP, 1, 1),
    bindings=(
        Binding(0, "parameters", BindingAccess.UNIFORM),
        Binding(1, "source", BindingAccess.READ),
        Binding(2, "target", BindingAccess.WRITE),
    ),
    parameter_words=("count", "stride"),
)

_FMA = Program(
    name="fma_float4",
    slang="""\
struct Parameters { uint count; float factor; }
[[vk::binding(0, 0)]] ConstantBuffer<Parameters> parameters;
[[vk::binding(1, 0)]] RWStructuredBuffer<float4> target;

[shader("compute")]
[numthreads(64, 1, 1)]
void fma_float4(uint3 thread : SV_DispatchThreadID)
{
    float4 sums[8];
    [ForceUnroll]
    for (uint j = 0; j < 8; j++)
        sums[j] = float4(thread.x + j);
    for (uint k = 0; k < parameters.count; k++)
    {
        [ForceUnroll]
        for (uint j = 0; j < 8; j++)
            sums[j] = mad(sums[j], parameters.factor, float4(0.5));
    }
    float4 total = 0;
    [ForceUnroll]
    for (uint j = 0; j < 8; j++)
        total += sums[j];
    target[thread.x] = total;
}
""",
    workgroup=(_FMA_GROUP, 1, 1),
    bindings=(
        Binding(0, "parameters", BindingAccess.UNIFORM),
        Binding(1, "target", BindingAccess.WRITE),
    ),
    parameter_words=("count", "factor"),
)


@dataclass(frozen=True, slots=True)
class Roof:
    """The most that a device can do; `None` where it was not measured.

    Attributes:
        copy_bytes_per_ms: The bytes that the fastest copy reads and writes.
        operations_per_ms: Of 32-bit floats, a product with a sum being two.
    """

    copy_bytes_per_ms: float | None = None
    operations_per_ms: float | None = None


def roof_of(device: Device) -> Roof:
    """The roof of a device, measured now; called by `Device.kept`."""
    if device.runtime.new_clock() is None:
        return Roof()
    try:
        return Roof(_copy_rate(device), _operation_rate(device))
    except Error:  # A loaded build has no compiler, and small devices have no room.
        return Roof()


class _Unwatched:
    """An observer for dispatches of which only the time matters."""

    def recorded(self, dispatch: RecordedDispatch) -> None: ...

    def spent(self, spending: Spending, seconds: float) -> None: ...


def _milliseconds(
    runtime: Runtime,
    pipeline: Pipeline,
    bound: Mapping[int, DeviceBuffer],
    words: bytes,
    groups: int,
) -> float:
    """The least device time of a few runs."""
    runtime.observe(_Unwatched())
    try:
        for _ in range(_RUNS):
            runtime.dispatch(pipeline, bound, words, (groups, 1, 1))
        runtime.wait()
        times = runtime.milliseconds(_RUNS)
        assert times is not None
        return min(end - start for start, end in times)
    finally:
        runtime.observe(None)


def _copy_rate(device: Device) -> float:
    runtime = device.runtime
    pipeline = runtime.pipeline(_COPY)
    limit = min(_MOST_BYTES, runtime.capabilities.binding_bytes_limit)
    size, rate = min(_LEAST_BYTES, limit), 0.0
    while True:
        source, target = runtime.allocate(size), runtime.allocate(size)
        count, bound = size // _FLOAT4_BYTES, {1: source, 2: target}
        times: list[float] = []
        for groups in _group_counts(device, count):
            words = struct.pack("<II", count, groups * _COPY_GROUP)
            times.append(_milliseconds(runtime, pipeline, bound, words, groups))
        rate = max(rate, 2 * size / min(times))
        if min(times) > _ENOUGH_MS or size == limit:
            return rate
        size = min(4 * size, limit)


def _group_counts(device: Device, count: int) -> Iterable[int]:
    most = device.capabilities.workgroup_count_limit
    return {min(most, -(-count // (_COPY_GROUP * grid))) for grid in _GRIDS}


def _operation_rate(device: Device) -> float:
    runtime = device.runtime
    pipeline = runtime.pipeline(_FMA)
    target = runtime.allocate(_FLOAT4_BYTES * _FMA_THREADS)
    count = 8
    while True:
        words, groups = struct.pack("<If", count, 0.5), _FMA_THREADS // _FMA_GROUP
        time = _milliseconds(runtime, pipeline, {1: target}, words, groups)
        if time > _ENOUGH_MS:
            return _FMA_OPERATIONS * _FMA_THREADS * count / time
        count *= 4
