"""Parts of a row that look back find what is before them, also if other parts never start."""

from __future__ import annotations

import numpy as np
import pytest

from shaderad.compiler.artifact import Binding, BindingAccess, Program
from shaderad.runtime import Runtime

THREADS = 64
TEXT = """
import shaderad;

[[vk::binding(0, 0)]] StructuredBuffer<uint> totals;
[[vk::binding(1, 0)]] RWStructuredBuffer<uint> before;
[[vk::binding(2, 0)]] RWStructuredBuffer<Atomic<uint64_t>> words;

export public static const uint groupSize = THREADS;

struct States : IStates
{
    static uint length(int axis) { return 0; }
    static void keep(uint index, uint2 state)
    {
        words[index].max((uint64_t(state.y) << 32) | uint64_t(state.x));
    }
    static uint2 latest(uint index)
    {
        let word = latestOf(words[index]);
        return uint2(uint(word), uint(word >> 32));
    }
}

[shader("compute")]
[numthreads(THREADS, 1, 1)]
void addUpBefore(uint3 group : SV_GroupID, uint thread : SV_GroupIndex)
{
    lane = thread;
    let row = group.x / PARTS;
    let part = group.x % PARTS;
    if (MISSING)
        return;
    int goal = int(part);
    int2 looked = int2(0);
    bool isWaiting = true;
    while (isWaiting)
    {
        GroupMemoryBarrierWithGroupSync();
        let total = totals[row * PARTS + goal];
        looked = lookBack<States, LANES>(row * PARTS, part, uint(goal), total);
        isWaiting = goal != part || looked.x != part;
        goal = looked.x;
    }
    before[group.x * THREADS + thread] = looked.y;
}
"""


def _program(parts: int, missing: str, lanes: str) -> Program:
    text = TEXT.replace("THREADS", str(THREADS)).replace("PARTS", str(parts))
    features = {"int64-atomics", "subgroups"} if lanes == "LookingWave" else {"int64-atomics"}
    return Program(
        name="addUpBefore",
        slang=text.replace("MISSING", missing).replace("LANES", lanes),
        workgroup=(THREADS, 1, 1),
        bindings=(
            Binding(0, "totals", BindingAccess.READ),
            Binding(1, "before", BindingAccess.WRITE),
            Binding(2, "words", BindingAccess.WRITE),
        ),
        features=frozenset(features),
    )


@pytest.mark.gpu
@pytest.mark.parametrize("lanes", ["LookingWave", "LookingThread"])
@pytest.mark.parametrize(
    ("missing", "is_missing"),
    [
        ("false", lambda part: part < 0),
        ("part % 3 == 1", lambda part: part % 3 == 1),
        ("part == 0", lambda part: part == 0),
        ("part < 20", lambda part: part < 20),
        ("part % 7 != 6", lambda part: part % 7 != 6),
    ],
    ids=["none", "every_third", "the_first", "the_first_twenty", "most"],
)
def test_a_total_that_nobody_leaves_is_computed(
    missing: str, is_missing: object, lanes: str, runtime: Runtime
) -> None:
    """Groups that return at once are those that find no place on a device."""
    assert callable(is_missing)
    if not {"int64-atomics", "subgroups"} <= runtime.capabilities.features:
        pytest.skip("no 64-bit atomics, or no waves")
    rows, parts = 3, 45
    totals = np.random.default_rng(5).integers(0, 2**32, (rows, parts), np.uint32)
    zeros = np.zeros(rows * parts, np.uint64)
    size = 4 * rows * parts * THREADS
    buffers = {
        0: runtime.allocate(totals.nbytes),
        1: runtime.allocate(size),
        2: runtime.allocate(zeros.nbytes),
    }
    runtime.write(buffers[0], 0, memoryview(totals.ravel()).cast("B"))
    runtime.write(buffers[2], 0, memoryview(zeros).cast("B"))
    pipeline = runtime.pipeline(_program(parts, missing, lanes))
    runtime.dispatch(pipeline, buffers, b"", (rows * parts, 1, 1))
    (content,) = runtime.read([(buffers[1], 0, size)])
    before = np.frombuffer(content, np.uint32).reshape(rows, parts, THREADS)
    exact = totals.cumsum(1, np.uint32) - totals
    runs = [part for part in range(parts) if not is_missing(part)]
    np.testing.assert_array_equal(before[:, runs], exact[:, runs, None].repeat(THREADS, 2))
