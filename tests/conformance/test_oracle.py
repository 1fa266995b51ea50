"""The catalogue on the interpreter: what every case expects follows from the rules alone.

So a device that disagrees with a case disagrees with the oracle, which judges all other programs.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from shaderad.decorators import KernelFunction
from tests.conformance.cases import Case, Tolerance, decoded
from tests.conformance.checks import case_of, programs_with
from tests.conformance.programs import PROGRAMS
from tests.conformance.programs.program import Program
from tests.oracle import Oracle, oracle

# A loop of a million iterations in one thread, which NumPy runs one by one.
LONG = {"fut-stripmine-1e6"}


def kernels_with(what: str) -> list[str]:
    """Programs that are one kernel; the others compute with arrays in between."""
    names = [name for name in programs_with(what) if name not in LONG]
    return [name for name in names if isinstance(PROGRAMS[name].function, KernelFunction)]


def prepared(name: str) -> tuple[Case, Program, Oracle, Tolerance]:
    case, program = case_of(name), PROGRAMS[name]
    assert isinstance(program.function, KernelFunction)
    judge = oracle(program.function, *program.arguments(case), **program.call)
    return case, program, judge, case.tolerance(program.dtype)


@pytest.mark.parametrize("name", kernels_with("primal"))
def test_results(name: str) -> None:
    case, program, judge, tolerance = prepared(name)
    check(tolerance, program.by_name(judge.out), case.expected["primal"])


@pytest.mark.parametrize("name", kernels_with("vjp"))
def test_gradients(name: str) -> None:
    case, program, judge, tolerance = prepared(name)
    results = program.by_name(judge.out)
    for row in case.expected["vjp"]:
        bars = {
            key: np.reshape(decoded(bar), np.shape(results[key]))
            for key, bar in row["cotangent"].items()
        }
        gradients = judge.vjp(program.structured(bars))
        check(tolerance, dict(zip(program.inputs(case), gradients, strict=True)), row["grads"])


@pytest.mark.parametrize("name", kernels_with("jvp"))
def test_tangents(name: str) -> None:
    case, program, judge, tolerance = prepared(name)
    for row in case.expected["jvp"]:
        given = {key: decoded(dot) for key, dot in row["tangent"].items()}
        found = judge.jvp([given.get(key) for key in program.inputs(case)])
        check(tolerance, program.by_name(found), row["out_tangent"])


def check(tolerance: Tolerance, found: dict[str, Any], expected: dict[str, Any]) -> None:
    for name, value in expected.items():
        tolerance.check(found[name], value, name)
