"""A program's result and derivatives on one device, against its case."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import pytest

import shaderad as sad
from tests.conformance.cases import Case, Tolerance, all_cases, decoded
from tests.conformance.programs import PROGRAMS
from tests.conformance.programs.program import Program


def case_of(name: str) -> Case:
    return all_cases()[name.partition("/")[0]]


def programs_with(what: str) -> list[str]:
    """Names of the programs whose case says what to expect of `what`."""
    return [name for name in PROGRAMS if case_of(name).expected.get(what)]


def check_primal(name: str, device: sad.Device) -> None:
    case, program, tolerance = _prepared(name, device)
    out = program.call_plainly(case)
    _check_all(tolerance, program.by_name(out), case.expected["primal"])
    device.synchronize()


def check_vjp(name: str, device: sad.Device) -> None:
    case, program, tolerance = _prepared(name, device)
    out, pullback = sad.vjp(program.function, *program.arguments(case), **program.call)
    results = program.by_name(out)
    for row in case.expected["vjp"]:
        cotangents = _in_form_of(results, row["cotangent"])
        gradients = dict(
            zip(program.inputs(case), pullback(program.structured(cotangents)), strict=True)
        )
        with_gradient = {key for key, gradient in gradients.items() if gradient is not None}
        floats = {name for name in gradients if case.inputs[name].dtype.kind == "f"}
        assert with_gradient == floats
        _check_all(tolerance, gradients, row["grads"])
    device.synchronize()


def check_jvp(name: str, device: sad.Device) -> None:
    case, program, tolerance = _prepared(name, device)
    primals = program.arguments(case)
    for row in case.expected["jvp"]:
        tangent = row["tangent"]
        tangents = [
            decoded(tangent[key]) if key in tangent else None for key in program.inputs(case)
        ]
        out, out_dot = sad.jvp(program.function, primals, tangents, **program.call)
        _check_all(tolerance, program.by_name(out), case.expected["primal"])
        _check_all(tolerance, program.by_name(out_dot), row["out_tangent"])
    device.synchronize()


def check_jacobian(name: str, mode: str, device: sad.Device) -> None:
    case, program, tolerance = _prepared(name, device)
    for result, by_argument in case.expected["jacobian"].items():
        for argument, expected in by_argument.items():
            position = program.inputs(case).index(argument)
            jacobian = sad.jacobian(_only(program, result), argnums=position, mode=mode)
            found = jacobian(*program.arguments(case), **program.call)
            tolerance.check(found.numpy(), expected, f"d {result} / d {argument}")
    device.synchronize()


def _only(program: Program, result: str) -> Callable[..., Any]:
    """The program with one of its results; a program that has one is itself."""
    if len(program.outputs) == 1:
        return program.function
    return lambda *args, **call: program.by_name(program.function(*args, **call))[result]


def _prepared(name: str, device: sad.Device) -> tuple[Case, Program, Tolerance]:
    case, program = case_of(name), PROGRAMS[name]
    if program.needs and program.needs not in device.capabilities.features:
        pytest.skip(f"{device.capabilities.adapter} has no {program.needs}")
    return case, program, case.tolerance(program.dtype)


def _in_form_of(results: Mapping[str, Any], cotangent: Mapping[str, Any]) -> dict[str, Any]:
    """Cotangents in the shapes of the program's results: a number may be an array of one."""
    return {
        name: np.reshape(decoded(value), results[name].numpy().shape)
        for name, value in cotangent.items()
    }


def _check_all(tolerance: Tolerance, found: Mapping[str, Any], expected: Mapping[str, Any]) -> None:
    for name, value in expected.items():
        tolerance.check(found[name].numpy(), value, name)
