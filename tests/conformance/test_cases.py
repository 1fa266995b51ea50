"""Every case that a kernel can say: primal, vjp, jvp and Jacobian, on each runtime."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import shaderad as sad
from tests.conformance.cases import Case, Tolerance, all_cases, decoded
from tests.conformance.programs import PROGRAMS
from tests.conformance.programs.program import Program

pytestmark = pytest.mark.gpu


def programs_with(what: str) -> list[str]:
    """Names of the programs whose case says what to expect of `what`."""
    return [name for name in PROGRAMS if case_of(name).expected.get(what)]


def case_of(name: str) -> Case:
    return all_cases()[name.partition("/")[0]]


def prepared(name: str, device: sad.Device) -> tuple[Case, Program, Tolerance]:
    case, program = case_of(name), PROGRAMS[name]
    if program.needs and program.needs not in device.capabilities.features:
        pytest.skip(f"{device.capabilities.adapter} has no {program.needs}")
    return case, program, case.tolerance(program.dtype)


def in_form_of(results: dict[str, Any], cotangent: dict[str, Any]) -> dict[str, Any]:
    """Cotangents in the shapes of the program's results: a number may be an array of one."""
    return {
        name: np.reshape(decoded(value), results[name].numpy().shape)
        for name, value in cotangent.items()
    }


def check_all(tolerance: Tolerance, found: dict[str, Any], expected: dict[str, Any]) -> None:
    for name, value in expected.items():
        tolerance.check(found[name].numpy(), value, name)


@pytest.mark.parametrize("name", PROGRAMS)
def test_primal(name: str, device: sad.Device) -> None:
    case, program, tolerance = prepared(name, device)
    out = program.function(*program.arguments(case.inputs), **program.call)
    check_all(tolerance, program.by_name(out), case.expected["primal"])
    device.synchronize()


@pytest.mark.parametrize("name", programs_with("vjp"))
def test_vjp(name: str, device: sad.Device) -> None:
    case, program, tolerance = prepared(name, device)
    out, pullback = sad.vjp(program.function, *program.arguments(case.inputs), **program.call)
    names = [given for given in program.inputs if given in case.inputs]
    results = program.by_name(out)
    for row in case.expected["vjp"]:
        cotangents = in_form_of(results, row["cotangent"])
        gradients = dict(zip(names, pullback(program.structured(cotangents)), strict=True))
        assert {key for key in names if gradients[key] is not None} == set(case.differentiable)
        check_all(tolerance, gradients, row["grads"])
    device.synchronize()


@pytest.mark.parametrize("name", programs_with("jvp"))
def test_jvp(name: str, device: sad.Device) -> None:
    case, program, tolerance = prepared(name, device)
    names = [given for given in program.inputs if given in case.inputs]
    primals = program.arguments(case.inputs)
    for row in case.expected["jvp"]:
        tangent = row["tangent"]
        tangents = [decoded(tangent[key]) if key in tangent else None for key in names]
        out, out_dot = sad.jvp(program.function, primals, tangents, **program.call)
        check_all(tolerance, program.by_name(out), case.expected["primal"])
        check_all(tolerance, program.by_name(out_dot), row["out_tangent"])
    device.synchronize()


@pytest.mark.parametrize("mode", ["reverse", "forward"])
@pytest.mark.parametrize("name", programs_with("jacobian"))
def test_jacobian(name: str, mode: str, device: sad.Device) -> None:
    case, program, tolerance = prepared(name, device)
    arguments = program.arguments(case.inputs)
    (result,) = program.outputs
    for argument, expected in case.expected["jacobian"][result].items():
        position = [key for key in program.inputs if key in case.inputs].index(argument)
        jacobian = sad.jacobian(program.function, argnums=position, mode=mode)
        found = jacobian(*arguments, **program.call)
        tolerance.check(found.numpy(), expected, f"d {result} / d {argument}")
    device.synchronize()
