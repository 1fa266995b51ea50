"""The Slang library's maths against the tables: values, jvp, vjp, second order, singular points."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest

from shaderad.compiler.compile import compile_program
from shaderad.ir import ops
from shaderad.rules import PARTIALS
from shaderad.rules.rows import matrix_product
from shaderad.runtime import Runtime
from tests.shaders import op_programs
from tests.shaders.op_programs import WORKGROUP, Shape, Trial, program, size

Arrays = list[np.ndarray]

BY_COMPONENT = {ops.Rule.FLOATS, ops.Rule.NUMBERS, ops.Rule.POWER, ops.Rule.SELECT}

# Units in the last place of transcendental functions on GPUs, and cancellation in formulas of
# a few terms. Second derivatives are held against differences of the tables in float64.
FIRST = {
    "float": {"rtol": 2e-5, "atol": 2e-5},
    "half": {"rtol": 1e-2, "atol": 1e-2},
    "double": {"rtol": 1e-12, "atol": 1e-12},
}
SECOND = {"rtol": 2e-3, "atol": 5e-4}
STEP = 1e-6
# Drivers compile long programs in more than linear time.
TRIALS_PER_PROGRAM = 6


# -- what is tried ---------------------------------------------------------------------------


def by_component() -> list[Trial]:
    """Every op that acts by component, on scalars."""
    found: list[Trial] = []
    for op in PARTIALS:
        if op.rule not in BY_COMPONENT:
            continue
        if op is ops.POWI:
            found += [Trial(op, ((),), (), n) for n in (-2, -1, 0, 1, 2, 3, 4, 7)]
        else:
            found.append(Trial(op, ((),) * op.arity, ()))
    return found


WHOLE_VALUES = [
    Trial(ops.DOT, ((3,), (3,)), ()),
    Trial(ops.CROSS, ((3,), (3,)), (3,)),
    Trial(ops.LENGTH, ((3,),), ()),
    Trial(ops.DISTANCE, ((2,), (2,)), ()),
    Trial(ops.NORMALIZE, ((3,),), (3,)),
    Trial(ops.REFLECT, ((3,), (3,)), (3,)),
    Trial(ops.REFRACT, ((3,), (3,), ()), (3,)),
    Trial(ops.MATMUL, ((2, 3), (3, 4)), (2, 4)),
    Trial(ops.MATMUL, ((2, 3), (3,)), (2,)),
    Trial(ops.MATMUL, ((3,), (3, 2)), (2,)),
    Trial(ops.TRANSPOSE, ((2, 3),), (3, 2)),
    *(Trial(ops.DETERMINANT, ((n, n),), ()) for n in (2, 3, 4)),
    *(Trial(ops.INVERSE, ((n, n),), (n, n)) for n in (2, 3, 4)),
]
"""The ops that mix components."""

# All ops reach vectors and matrices through the same few functions: one op for each of them.
SHAPED = [
    Trial(op, (shape,) * op.arity, shape)
    for shape in ((3,), (2, 2))
    for op in (ops.SQRT, ops.MIN, ops.LERP)
] + [
    Trial(ops.POWI, ((3,),), (3,), 3),
    Trial(ops.POWI, ((2, 2),), (2, 2), 2),
    Trial(ops.SELECT, ((), (3,), (3,)), (3,)),
    Trial(ops.DIV, ((2, 2), (2, 2)), (2, 2)),
]

# One op for each way in which a second derivative comes about.
SECOND_ORDER = [
    *(
        Trial(op, ((),) * op.arity, ())
        for op in (ops.SQRT, ops.RCP, ops.LOG, ops.ERF, ops.ASIN, ops.MIN, ops.FMOD)
    ),
    *(Trial(op, ((),) * op.arity, ()) for op in (ops.POW, ops.ATAN2, ops.HYPOT, ops.SMOOTHSTEP)),
    Trial(ops.POWI, ((),), (), 3),
    Trial(ops.NORMALIZE, ((3,),), (3,)),
    Trial(ops.REFRACT, ((3,), (3,), ()), (3,)),
    Trial(ops.INVERSE, ((3, 3),), (3, 3)),
]

HALF = [
    *(
        Trial(op, ((),) * op.arity, ())
        for op in (ops.SQRT, ops.LOG, ops.POW, ops.MIN, ops.ROUND, ops.ERF, ops.ATAN2, ops.LERP)
    ),
    Trial(ops.NORMALIZE, ((3,),), (3,)),
]

DOUBLE = [
    *by_component(),
    Trial(ops.SIN, ((3,),), (3,)),
    Trial(ops.POW, ((2, 2), (2, 2)), (2, 2)),
    Trial(ops.NORMALIZE, ((3,),), (3,)),
    Trial(ops.INVERSE, ((3, 3),), (3, 3)),
]

NAN, INF = float("nan"), float("inf")
SINGULAR: dict[ops.Op, list[tuple[float, ...]]] = {
    ops.DIV: [(1.0, 0.0), (-1.0, 0.0), (1.0, -0.0), (0.0, 0.0)],
    ops.ABS: [(0.0,), (-2.0,)],
    ops.SIGN: [(0.0,), (-0.0,), (-2.0,)],
    ops.FLOOR: [(2.0,), (-1.5,), (-0.25,)],
    ops.CEIL: [(2.0,), (-1.5,)],
    ops.TRUNC: [(2.0,), (-1.5,)],
    ops.FRAC: [(2.0,), (-1.25,)],
    ops.ROUND: [(0.5,), (1.5,), (2.5,), (-0.5,), (-1.5,), (-2.5,), (8388609.0,), (0.49999997,)],
    ops.STEP: [(1.0, 1.0), (1.0, 0.5)],
    ops.PRODUCT_ERROR: [(0.0, 3.0), (INF, 2.0), (NAN, 2.0), (1e36, 0.5), (3e30, 3e30)],
    ops.MIN: [(2.0, 2.0), (NAN, 2.0), (2.0, NAN), (3.0, 2.0), (INF, 1.0)],
    ops.MAX: [(2.0, 2.0), (NAN, 2.0), (2.0, NAN), (1.0, 2.0), (-INF, 1.0)],
    ops.CLAMP: [
        (0.0, 0.0, 1.0), (1.0, 0.0, 1.0), (2.0, 3.0, 1.0), (-1.0, 0.0, 1.0), (9.0, 0.0, 1.0),
    ],
    ops.SATURATE: [(0.0,), (1.0,), (-1.0,), (2.0,)],
    ops.SQRT: [(0.0,)],  # -0 is left to the driver, see docs/conventions.md
    ops.RSQRT: [(0.0,)],
    ops.RCP: [(0.0,), (-0.0,)],
    ops.LOG: [(0.0,), (-0.0,)],
    ops.LOG2: [(0.0,), (8.0,)],
    ops.LOG10: [(0.0,)],
    ops.LOG1P: [(-1.0,), (0.0,), (1e-6,), (-1e-6,)],
    ops.EXPM1: [(0.0,), (1e-6,), (-1e-6,), (-20.0,)],
    ops.ERF: [(0.0,), (1e-6,), (5.0,), (-5.0,)],
    ops.ERFC: [(0.0,), (1e-6,), (5.0,), (-5.0,), (INF,), (-INF,), (NAN,)],
    ops.ASIN: [(1.0,), (-1.0,)],
    ops.ACOS: [(1.0,), (-1.0,)],
    ops.ASINH: [(0.0,), (-1e-5,), (-300.0,)],
    ops.ACOSH: [(1.0,)],
    ops.ATANH: [(1.0,), (-1.0,), (0.0,)],
    ops.ATAN2: [(0.0, 0.0), (0.0, -1.0), (0.0, 1.0), (1.0, 0.0), (-1.0, -1.0)],
    ops.HYPOT: [(0.0, 0.0), (0.0, -2.0)],
    ops.COPYSIGN: [(2.0, -0.0), (-2.0, 0.0), (0.0, -1.0), (-3.0, -4.0)],
    ops.POW: [
        (0.0, 0.0), (0.0, 0.5), (0.0, 1.0), (0.0, 2.0), (0.0, -1.0),
        (-2.0, 2.0), (-2.0, 3.0), (-2.0, -1.0), (5e-7, 0.5), (2.0, 0.0),
    ],
    ops.POWI: [(0.0,), (2.0,)],
    ops.FLOOR_DIV: [(-7.0, 2.0), (7.0, -2.0), (6.0, 2.0), (-6.0, 3.0)],
    ops.MOD: [(-7.0, 2.0), (7.0, -2.0), (6.0, 2.0), (-6.0, 3.0), (-1e-3, 2.0)],
    ops.FMOD: [(-7.0, 2.0), (7.0, -2.0), (6.0, 2.0), (-6.0, 3.0)],
    ops.SMOOTHSTEP: [(0.0, 1.0, 0.0), (0.0, 1.0, 1.0), (0.0, 1.0, -1.0), (0.0, 1.0, 2.0)],
}  # fmt: skip
WHOLE_SINGULAR: dict[ops.Op, list[tuple[float, ...]]] = {
    ops.LENGTH: [(0.0,), (1e-25,), (1e25,)],
    ops.DISTANCE: [(0.0, 0.0), (1.0, 1.0)],
    ops.NORMALIZE: [(0.0,)],
}


def corners_of(trial: Trial, kind: str) -> list[tuple[float, ...]]:
    """The singular points of the op that `kind` can hold."""
    largest = {"half": 6e4, "float": 3e38, "double": 1e308}[kind]
    points = {**SINGULAR, **WHOLE_SINGULAR}.get(trial.op, [])
    return [p for p in points if not any(largest < abs(x) < INF for x in p)]


def draw(trial: Trial, kind: str, rng: np.random.Generator) -> list[Arrays]:
    """For every sample: operands, tangents twice, cotangent. Singular points come first."""
    inputs: list[Arrays] = []
    corners = corners_of(trial, kind)
    for sample in range(WORKGROUP):
        if sample < 2 * len(corners):
            # Once with ones, once with zeros, which infinite partials must leave zero.
            point = corners[sample % len(corners)]
            args = [np.full(s, v) for s, v in zip(trial.shapes, point, strict=True)]
            given = 1.0 if sample < len(corners) else 0.0
            rest = [np.full(s, given) for s in trial.inputs[len(args) :]]
        else:
            domain = trial.op.domain[: len(trial.shapes)]
            args = [rng.uniform(*d, s) for d, s in zip(domain, trial.shapes, strict=True)]
            if trial.op in {ops.DETERMINANT, ops.INVERSE}:
                args[0] = args[0] + 5 * np.eye(trial.shapes[0][0])
            rest = [rng.uniform(-1, 1, s) for s in trial.inputs[len(args) :]]
        stored = np.float64 if kind == "double" else {"float": np.float32, "half": np.float16}[kind]
        inputs.append([np.asarray(x, stored) for x in (*args, *rest)])
    return inputs


# -- what is expected, in float64 --------------------------------------------------------------


def evaluate(trial: Trial, args: Arrays) -> np.ndarray:
    function = matrix_product if trial.op is ops.MATMUL else trial.op.numpy
    with np.errstate(all="ignore"):
        return np.asarray(function(*operands(trial, args)), np.float64)


def operands(trial: Trial, args: Arrays) -> Arrays:
    """`args` with the operands that carry no derivative made what the op takes."""
    if trial.exponent is not None:
        return [args[0], np.float64(trial.exponent)]
    if trial.op is ops.SELECT:
        return [args[0] > 0, *args[1:]]
    return args


def tangent(trial: Trial, args: Arrays, dots: Arrays) -> np.ndarray:
    full = operands(trial, args)
    if trial.op is ops.SELECT:
        dots = [np.zeros(()), *dots[1:]]
    padded = [*dots, *(np.zeros(()) for _ in range(len(full) - len(dots)))]
    return PARTIALS[trial.op].jvp(evaluate(trial, args), full, padded)


def first_order(trial: Trial, sample: Arrays) -> Arrays:
    n = len(trial.shapes)
    args, dots, bar = sample[:n], sample[n : 2 * n], sample[-1]
    y = evaluate(trial, args)
    bars = PARTIALS[trial.op].vjp(y, operands(trial, args), bar)[:n]
    if trial.op is ops.SELECT:
        bars = (np.zeros(()), *bars[1:])
    return [y, tangent(trial, args, dots), *bars]


def second_order(trial: Trial, sample: Arrays) -> Arrays:
    """Central differences of the tangent: along the second tangents, and by each operand."""
    n = len(trial.shapes)
    args, dots, more, bar = sample[:n], sample[n : 2 * n], sample[2 * n : 3 * n], sample[-1]

    def slope(direction: Arrays) -> np.ndarray:
        ahead = [x + STEP * d for x, d in zip(args, direction, strict=True)]
        behind = [x - STEP * d for x, d in zip(args, direction, strict=True)]
        return (tangent(trial, ahead, dots) - tangent(trial, behind, dots)) / (2 * STEP)

    bars: Arrays = []
    for k, shape in enumerate(trial.shapes):
        x_bar = np.zeros(shape)
        for index in np.ndindex(*shape):
            direction = [np.zeros(s) for s in trial.shapes]
            direction[k][index] = 1.0
            x_bar[index] = np.sum(bar * slope(direction))
        bars.append(x_bar)
    return [slope(more), *bars]


# -- the runs ----------------------------------------------------------------------------------


def run(
    runtime: Runtime, kind: str, trials: list[Trial], inputs: list[list[Arrays]], second: bool
) -> np.ndarray:
    """The results of all trials, trial by trial and sample by sample."""
    made = program(kind, trials, with_second=second)
    if not made.features <= runtime.capabilities.features:
        pytest.skip(f"{runtime.capabilities.adapter} has no {kind}")
    stored = np.float64 if kind == "double" else np.float32
    parts = [np.ravel(x) for samples in inputs for sample in samples for x in sample]
    words = np.concatenate(parts).astype(stored)
    count = sum(op_programs.output_size(t, second) for t in trials) * WORKGROUP
    results = runtime.allocate(count * words.itemsize)
    taken = runtime.allocate(words.nbytes)
    runtime.write(taken, 0, memoryview(words).cast("B"))
    runtime.dispatch(runtime.pipeline(made), {0: taken, 1: results}, b"", (len(trials), 1, 1))
    (content,) = runtime.read([(results, 0, results.byte_count)])
    return np.frombuffer(content, stored)


def split(row: np.ndarray, shapes: tuple[Shape, ...]) -> Arrays:
    ends = np.cumsum([size([s]) for s in shapes])[:-1]
    return [part.reshape(s) for part, s in zip(np.split(row, ends), shapes, strict=True)]


def disagreements(
    runtime: Runtime, kind: str, trials: list[Trial], second: bool, tolerance: dict[str, float]
) -> list[str]:
    """One line for each trial that is wrong, with the first sample that shows it."""
    found: list[str] = []
    for start in range(0, len(trials), TRIALS_PER_PROGRAM):
        chunk = trials[start : start + TRIALS_PER_PROGRAM]
        found += wrong_in_chunk(runtime, kind, chunk, second, tolerance)
    return found


def wrong_in_chunk(
    runtime: Runtime, kind: str, trials: list[Trial], second: bool, tolerance: dict[str, float]
) -> list[str]:
    rng = np.random.default_rng(11)
    inputs = [draw(t, kind, rng) for t in trials]
    results = run(runtime, kind, trials, inputs, second)
    found: list[str] = []
    at = 0
    for trial, samples in zip(trials, inputs, strict=True):
        width = op_programs.output_size(trial, second)
        skipped = 2 * len(corners_of(trial, kind)) if second else 0
        shapes = trial.outputs if second else trial.outputs[: 2 + len(trial.shapes)]
        for k in range(skipped, WORKGROUP):
            sample = [np.asarray(x, np.float64) for x in samples[k]]
            expected = first_order(trial, sample)
            start = at + k * width
            got = split(results[start : start + width], shapes)
            if second:
                expected = second_order(trial, sample)
                got = got[2 + len(trial.shapes) :]
            if not all(
                np.allclose(g, e, equal_nan=True, **tolerance)
                for g, e in zip(got, expected, strict=True)
            ):
                given = [x.tolist() for x in sample]
                found.append(f"{trial} of {given}: {got}, expected {expected}")
                break
        at += width * WORKGROUP
    return found


@pytest.mark.gpu
def test_float_ops_agree_with_the_tables(runtime: Runtime) -> None:
    assert disagreements(runtime, "float", by_component(), False, FIRST["float"]) == []


# Where the code differs: SPIR-V and WGSL. naga's reading of SPIR-V is covered by the scalars.
@pytest.mark.gpu
@pytest.mark.parametrize("runtime", ["slangpy", "wgpu-wgsl"], indirect=True)
def test_vectors_and_matrices_agree_with_the_tables(runtime: Runtime) -> None:
    assert disagreements(runtime, "float", WHOLE_VALUES + SHAPED, False, FIRST["float"]) == []


@pytest.mark.gpu
@pytest.mark.parametrize("runtime", ["slangpy", "wgpu-wgsl"], indirect=True)
def test_second_derivatives_are_slopes_of_the_first(runtime: Runtime) -> None:
    assert disagreements(runtime, "float", SECOND_ORDER, True, SECOND) == []


@pytest.mark.gpu
def test_the_lost_part_of_a_product_is_exact(runtime: Runtime) -> None:
    """The tables cannot say so: float64 loses nothing that they would notice."""
    trial = Trial(ops.PRODUCT_ERROR, ((), ()), ())
    samples = draw(trial, "float", np.random.default_rng(5))
    corners = 2 * len(corners_of(trial, "float"))
    results = run(runtime, "float", [trial], [samples], False).reshape(WORKGROUP, -1)[corners:, 0]
    a, b = (np.array([s[k] for s in samples[corners:]], np.float32) for k in range(2))
    lost = a.astype(np.float64) * b - (a * b)
    assert np.count_nonzero(lost) > len(lost) // 2
    np.testing.assert_array_equal(results, lost)


@pytest.mark.gpu
@pytest.mark.parametrize(("kind", "trials"), [("half", HALF), ("double", DOUBLE)])
def test_other_precisions_agree_with_the_tables(
    runtime: Runtime, kind: str, trials: list[Trial]
) -> None:
    if kind == "double" and runtime.capabilities.formats == ("wgsl",):
        pytest.skip("WGSL has no double")
    assert disagreements(runtime, kind, trials, False, FIRST[kind]) == []


@pytest.mark.slow
def test_every_op_compiles_to_metal() -> None:
    trials = [*by_component(), *WHOLE_VALUES, *SHAPED]
    assert compile_program(program("float", trials, with_second=False), "metal").content


@pytest.mark.skipif(shutil.which("glslangValidator") is None, reason="glslangValidator is missing")
def test_every_op_becomes_hlsl_that_glslang_reads(tmp_path: Path) -> None:
    trials = [*by_component(), *WHOLE_VALUES, *SHAPED]
    code = compile_program(program("float", trials, with_second=False), "hlsl")
    file = tmp_path / "tryOps.hlsl"
    file.write_bytes(code.content)
    command = ["glslangValidator", "-D", "-S", "comp", "-e", "tryOps", "-V", str(file)]
    ended = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert ended.returncode == 0, ended.stdout
