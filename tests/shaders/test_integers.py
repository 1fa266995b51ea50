"""Integers, random numbers, tests on bits, and what turns floats into integers, against Python."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from shaderad.compiler.artifact import Binding, BindingAccess, Program
from shaderad.ir import ops
from shaderad.runtime import Runtime

INT_MIN, INT_MAX = -(2**31), 2**31 - 1
PAIRS = [
    (7, 2), (-7, 2), (7, -2), (-7, -2), (6, 3), (-6, 3), (0, 5), (5, 0), (INT_MIN, -1),
    (INT_MIN, 3), (INT_MAX, -1), (1, 33), (-64, 3), (-64, 35), (3, -1), (12345, 678),
]  # fmt: skip
REALS = [0.5, 1.5, 2.5, -0.5, -1.5, -2.5, 0.0, 7.9, -7.9, float("nan"), float("inf"), float("-inf"),
         3e38, -1e-40, 2.4999998, 1e6]  # fmt: skip

TEXT = """
import shaderad;
import safe_math;

[[vk::binding(0, 0)]] StructuredBuffer<int> words;
[[vk::binding(1, 0)]] RWStructuredBuffer<int> results;
[[vk::binding(2, 0)]] RWStructuredBuffer<Atomic<uint>> reports;

public struct Reports : IReport
{
    public static uint count(uint by) { return reports[0].add(by); }
    public static void record(uint offset, uint word) { reports[offset].store(word); }
    public static uint siteBase() { return 100; }
}

[shader("compute")]
[numthreads(16, 1, 1)]
void tryIntegers(uint3 thread : SV_DispatchThreadID)
{
    let a = words[thread.x];
    let b = words[16 + thread.x];
    let x = asfloat(words[32 + thread.x]);
    uint to = thread.x * COUNT;
BODY
    sendReport<Reports>();
}
"""


def wrapped(value: int) -> int:
    return (value + 2**31) % 2**32 - 2**31


def floor_divide(a: int, b: int) -> int:
    return 0 if b == 0 else wrapped(a // b)


def floor_modulo(a: int, b: int) -> int:
    return 0 if b == 0 else a % b


def bits(value: int) -> int:
    return value % 2**32


# Slang's expression of (a, b), and Python's.
OF_INTEGERS: dict[str, Callable[[int, int], int]] = {
    "floorDivide<Reports>(a, b, 7)": floor_divide,
    "floorModulo<Reports>(a, b, 7)": floor_modulo,
    "floorDivide<NoReport>(int2(a, b), int2(b, 3), 7).y": lambda a, b: b // 3,
    "floorModulo<NoReport>(int2(a, b), int2(b, 3), 7).y": lambda a, b: b % 3,
    "int(floorDivide<NoReport>(uint(a), uint(b), 7))": lambda a, b: (
        0 if b == 0 else wrapped(bits(a) // bits(b))
    ),
    "int(floorModulo<NoReport>(uint(a), uint(b), 7))": lambda a, b: (
        0 if b == 0 else wrapped(bits(a) % bits(b))
    ),
    "shiftLeft(a, b)": lambda a, b: wrapped(a << (b % 32)),
    "shiftRight(a, b)": lambda a, b: a >> (b % 32),
    "int(shiftRight(uint(a), uint(b)))": lambda a, b: wrapped(bits(a) >> (b % 32)),
    "shiftLeft(int2(b, a), int2(1, b)).y": lambda a, b: wrapped(a << (b % 32)),
    "powi(a, 3)": lambda a, b: wrapped(a**3),
    "powi(int2(a, b), 0).y": lambda a, b: 1,
    "minFirst(a, b)": min,
    "maxFirst(int2(b, a), int2(a, b)).y": max,
    "clampFirst(a, -3, 3)": lambda a, b: min(max(a, -3), 3),
    "madOf(a, b, a)": lambda a, b: wrapped(a * b + a),
    "absOf(a)": lambda a, b: wrapped(abs(a)),
    "absOf(int2(b, a)).y": lambda a, b: wrapped(abs(a)),
    "signOf(a)": lambda a, b: (a > 0) - (a < 0),
    "signOf(int2(b, a)).y": lambda a, b: (a > 0) - (a < 0),
    "selectOf(a > b, a, b)": max,
    "selectOf(bool2(true, a > b), int2(0, a), int2(0, b)).y": max,
    "selectOf(a > b, int2(0, a), int2(0, b)).y": max,
    "int(pcg(uint(a)))": lambda a, b: wrapped(int(ops.PCG.numpy(np.array([bits(a)]))[0])),  # type: ignore[index]
    "asint(uniform01(uint(a)))": lambda a, b: int(
        np.float32(ops.UNIFORM01.numpy(np.uint32(bits(a)))).view(np.int32)
    ),
}

# Slang's expression of x, and Python's; out-of-range conversions are nobody's promise.
OF_REALS: dict[str, Callable[[float], int]] = {
    "int(isNan(x))": lambda x: int(np.isnan(x)),
    "int(isInfinite(x))": lambda x: int(np.isinf(x)),
    "int(isFinite(x))": lambda x: int(np.isfinite(x)),
    "int(isFinite(float2(1, x)).y)": lambda x: int(np.isfinite(x)),
    "int(isNan(float2(1, x)).y)": lambda x: int(np.isnan(x)),
    "int(isInfinite(float2(1, x)).y)": lambda x: int(np.isinf(x)),
    "isFinite(x) && abs(x) < 2e9 ? roundToInt(x) : 0": lambda x: round(x) if abs(x) < 2e9 else 0,
    "isFinite(x) && abs(x) < 2e9 ? floorToInt(float2(0, x)).y : 0": lambda x: (
        int(np.floor(x)) if abs(x) < 2e9 else 0
    ),
    "isFinite(x) && abs(x) < 1e9 ? ceilToInt(float2(0, x)).y : 0": lambda x: (
        int(np.ceil(x)) if abs(x) < 1e9 else 0
    ),
}


def integers_program() -> Program:
    expressions = [*OF_INTEGERS, *OF_REALS]
    body = "\n".join(f"    results[to + {k}] = {text};" for k, text in enumerate(expressions))
    return Program(
        name="tryIntegers",
        slang=TEXT.replace("COUNT", str(len(expressions))).replace("BODY", body),
        workgroup=(16, 1, 1),
        bindings=(
            Binding(0, "words", BindingAccess.READ),
            Binding(1, "results", BindingAccess.WRITE),
            Binding(2, "reports", BindingAccess.WRITE),
        ),
    )


@pytest.mark.gpu
def test_integers_random_numbers_and_bit_tests_are_those_of_python(runtime: Runtime) -> None:
    words = np.concatenate(
        [
            np.array([a for a, _ in PAIRS], np.int32),
            np.array([b for _, b in PAIRS], np.int32),
            np.array(REALS, np.float32).view(np.int32),
        ]
    )
    width = len(OF_INTEGERS) + len(OF_REALS)
    buffers = {
        0: runtime.allocate(words.nbytes),
        1: runtime.allocate(4 * 16 * width),
        2: runtime.allocate(16),
    }
    runtime.write(buffers[0], 0, memoryview(words).cast("B"))
    runtime.dispatch(runtime.pipeline(integers_program()), buffers, b"", (1, 1, 1))
    content, told = runtime.read([(buffers[1], 0, 4 * 16 * width), (buffers[2], 0, 16)])
    got = np.frombuffer(content, np.int32).reshape(16, width)
    wrong = [
        f"{text} of {pair}: {got[k, column]}, expected {function(*pair)}"
        for column, (text, function) in enumerate(OF_INTEGERS.items())
        for k, pair in enumerate(PAIRS)
        if got[k, column] != function(*pair)
    ]
    stored = [float(np.float32(x)) for x in REALS]
    wrong += [
        f"{text} of {x}: {got[k, column]}, expected {function(x)}"
        for column, (text, function) in enumerate(OF_REALS.items(), len(OF_INTEGERS))
        for k, x in enumerate(stored)
        if got[k, column] != function(x)
    ]
    assert wrong == []
    # One thread divides by zero, twice; it sends its first note.
    assert np.frombuffer(told, np.uint32)[:2].tolist() == [1, 108]
