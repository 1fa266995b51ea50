"""Exponentials, logarithms, trigonometry and powers of doubles against mpmath."""

from __future__ import annotations

import re
from functools import cache

import numpy as np
import pytest

from shaderad.compiler.artifact import Program, library_folder
from shaderad.compiler.compile import compile_program
from shaderad.compiler.spirv import instructions, words_of
from shaderad.ir import ops
from shaderad.runtime import Runtime

pytest.importorskip("mpmath")

from tests.shaders.double_polynomials import FITS, fitted
from tests.shaders.doubles import FUNCTIONS, Function, errors, evaluated, exact

# In units in the last place. That of erf has exp(-x^2), where x^2 up to 700 was rounded.
LARGEST_ERROR = 4.0
LARGEST_ERROR_OF_PARTIALS = 700.0
POINTS = 2_000


@cache
def expected(index: int) -> list[tuple[np.ndarray, np.ndarray]]:
    one = FUNCTIONS[index]
    points = one.points(POINTS)
    return [exact(f, points) for f in (one.exact, *one.partials)]


def test_every_function_that_doubles_have_of_their_own_is_held_against_mpmath() -> None:
    own = {op.name for op in ops.TABLE.values() if op.double}
    assert own <= {function.op.name for function in FUNCTIONS}


CALL = 57
"""The opcode of ``OpFunctionCall`` (SPIR-V 1.6, section 3.56.9)."""


def test_the_code_of_a_function_stands_once_however_often_it_is_called() -> None:
    sizes: list[int] = []
    for count in (1, 4):
        calls = [f"    x[{k}] = doublePow(doubleExp(x[{k}]), 0.5lf);" for k in range(count)]
        text = [
            "import shaderad;",
            "import safe_math;",
            "import double_math;",
            "[[vk::binding(0, 0)]]",
            "RWStructuredBuffer<double> x;",
            '[shader("compute")]',
            "[numthreads(1, 1, 1)]",
            "void main_of_calls()",
            "{",
            *calls,
            "}",
        ]
        program = Program("main_of_calls", "\n".join(text), (1, 1, 1), ())
        module = compile_program(program, "spirv").content
        opcodes = [opcode for opcode, _ in instructions(words_of(module))]
        assert opcodes.count(CALL) == 2 * count
        sizes.append(len(module))
    assert sizes[1] < 1.2 * sizes[0]


@pytest.mark.gpu
@pytest.mark.parametrize("index", range(len(FUNCTIONS)), ids=lambda k: FUNCTIONS[k].op.name)
@pytest.mark.parametrize("runtime", ["slangpy", "wgpu-spirv"], indirect=True)
def test_a_function_of_doubles_is_right_to_its_last_bits(runtime: Runtime, index: int) -> None:
    if "double" not in runtime.capabilities.features:
        pytest.skip(f"{runtime.capabilities.adapter} has no double")
    one: Function = FUNCTIONS[index]
    points = one.points(POINTS)
    found = evaluated(runtime, one.op, points)
    for k, error in enumerate(errors(found, expected(index), one.flat)):
        worst = int(np.argmax(error))
        limit = LARGEST_ERROR if k == 0 else LARGEST_ERROR_OF_PARTIALS
        at = [float(x[worst]) for x in points]
        assert error[worst] <= limit, (k, at, found[k][worst], expected(index)[k][0][worst])


@pytest.mark.parametrize("name", FITS)
def test_coefficients_are_those_of_the_best_polynomial(name: str) -> None:
    fit = FITS[name]
    text = (library_folder() / f"{fit.file}.slang").read_text(encoding="utf-8")
    written = {float(x) for x in re.findall(r"(\d[\d.e-]*)lf", text)}
    coefficients, bits = fitted(fit)
    assert {abs(c) for c in coefficients} <= written
    assert bits > fit.bits
