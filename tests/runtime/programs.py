"""Small programs in plain Slang, without the library: they test what carries them, no more."""

from __future__ import annotations

import struct

from shaderad.compiler.artifact import Binding, BindingAccess, Program

SCALE_AND_ADD = Program(
    name="scale_and_add",
    slang="""
struct Parameters { uint count; float factor; float shift; }
[[vk::binding(0, 0)]] ConstantBuffer<Parameters> parameters;
[[vk::binding(1, 0)]] StructuredBuffer<float> x;
[[vk::binding(2, 0)]] StructuredBuffer<float> y;
[[vk::binding(3, 0)]] RWStructuredBuffer<float> z;

[shader("compute")]
[numthreads(64, 1, 1)]
void scale_and_add(uint3 thread : SV_DispatchThreadID)
{
    uint i = thread.x;
    if (i < parameters.count)
        z[i] += parameters.factor * x[i] + y[i] + parameters.shift;
}
""",
    workgroup=(64, 1, 1),
    bindings=(
        Binding(0, "parameters", BindingAccess.UNIFORM),
        Binding(1, "x", BindingAccess.READ),
        Binding(2, "y", BindingAccess.READ),
        Binding(3, "z", BindingAccess.WRITE),
    ),
    parameter_words=("count", "factor", "shift"),
)


def scale_and_add_words(count: int, factor: float, shift: float) -> bytes:
    """The constant buffer of `SCALE_AND_ADD`."""
    return struct.pack("<Iff", count, factor, shift)


ADD_ONE_ATOMICALLY = Program(
    name="add_one",
    slang="""
[[vk::binding(0, 0)]] RWStructuredBuffer<Atomic<float>> total;

[shader("compute")]
[numthreads(64, 1, 1)]
void add_one(uint3 thread : SV_DispatchThreadID)
{
    total[0].add(1.0);
}
""",
    workgroup=(64, 1, 1),
    bindings=(Binding(0, "total", BindingAccess.WRITE),),
    features=frozenset({"float-atomics"}),
)

ADD_ONE_BY_EXCHANGE = Program(
    name="add_one",
    slang="""
[[vk::binding(0, 0)]] RWStructuredBuffer<Atomic<uint>> total;

[shader("compute")]
[numthreads(64, 1, 1)]
void add_one(uint3 thread : SV_DispatchThreadID)
{
    uint carried = asuint(1.0);
    while (carried != 0)
    {
        uint found = total[0].exchange(0);
        carried = total[0].exchange(asuint(asfloat(found) + asfloat(carried)));
    }
}
""",
    workgroup=(64, 1, 1),
    bindings=(Binding(0, "total", BindingAccess.WRITE),),
)

ADD_ONE_BY_COMPARE_EXCHANGE = Program(
    name="add_one",
    slang="""
[[vk::binding(0, 0)]] RWStructuredBuffer<Atomic<uint>> total;

[shader("compute")]
[numthreads(64, 1, 1)]
void add_one(uint3 thread : SV_DispatchThreadID)
{
    uint expected = total[0].load();
    for (;;)
    {
        uint found = total[0].compareExchange(expected, asuint(asfloat(expected) + 1.0));
        if (found == expected)
            break;
        expected = found;
    }
}
""",
    workgroup=(64, 1, 1),
    bindings=(Binding(0, "total", BindingAccess.WRITE),),
)

ADD_ONE_BY = {
    "native": ADD_ONE_ATOMICALLY,
    "exchange": ADD_ONE_BY_EXCHANGE,
    "compare-exchange": ADD_ONE_BY_COMPARE_EXCHANGE,
}

GROUP_NUMBERS = Program(
    name="group_numbers",
    slang="""
struct Parameters { uint width; }
[[vk::binding(0, 0)]] ConstantBuffer<Parameters> parameters;
[[vk::binding(1, 0)]] RWStructuredBuffer<uint> number;

[shader("compute")]
[numthreads(1, 1, 1)]
void group_numbers(uint3 group : SV_GroupID)
{
    number[group.y * parameters.width + group.x] = 1000 * group.y + group.x;
}
""",
    workgroup=(1, 1, 1),
    bindings=(
        Binding(0, "parameters", BindingAccess.UNIFORM),
        Binding(1, "number", BindingAccess.WRITE),
    ),
    parameter_words=("width",),
)

WAVE_SUM = Program(
    name="wave_sum",
    slang="""
[[vk::binding(0, 0)]] RWStructuredBuffer<uint> lanes;

[shader("compute")]
[numthreads(64, 1, 1)]
void wave_sum(uint3 thread : SV_DispatchThreadID)
{
    lanes[thread.x] = WaveActiveSum(1u);
}
""",
    workgroup=(64, 1, 1),
    bindings=(Binding(0, "lanes", BindingAccess.WRITE),),
    features=frozenset({"subgroups"}),
)

UNDEFINED_NAME = Program(
    name="broken",
    slang="""
[[vk::binding(0, 0)]] RWStructuredBuffer<float> z;

[shader("compute")]
[numthreads(64, 1, 1)]
void broken(uint3 thread : SV_DispatchThreadID)
{
    z[thread.x] = missing;
}
""",
    workgroup=(64, 1, 1),
    bindings=(Binding(0, "z", BindingAccess.WRITE),),
)
