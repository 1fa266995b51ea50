"""What `checks="nan"` watches, and that every target takes modules with checks."""

from __future__ import annotations

import math

import pytest

import shaderad as sad
from shaderad import float3
from shaderad.compiler.compile import compile_program
from shaderad.compiler.formats import FORMATS
from shaderad.lower.bindings import Lowered, Mode, SiteKind, Variant
from shaderad.lower.kernels import lower_kernel


@sad.function
def bent(x: float, steps: int) -> float:
    for _ in sad.range(steps, limit=4):
        x = sad.sqrt(x)
    return x


@sad.kernel
def everything(
    i: sad.Index,
    x: sad.In[float3],
    to: sad.In[int],
    s: float,
    y: sad.Out[float],
    scattered: sad.Out[float3],
    total: sad.Add[float],
    highest: sad.Max[float],
):
    best = -math.inf
    copy = best
    v = x[i]
    if v.x > copy:
        best = v.x * s
    scattered[sad.unique(to[i])] = v / s
    total[0] += bent(v.y + 1.0, to[i])
    highest[i] = sad.max(highest[i], best)
    y[i] = best


def lowered(mode: Mode, checks: str = "nan") -> Lowered:
    variant = Variant(
        wanted=frozenset({"x"}),
        checks=checks,
        atomics="compare-exchange",  # the way that every target compiles
        launch_shaped=frozenset({"y"}),
        storage_buffer_limit=16,
    )
    return lower_kernel(everything.specialise({}), mode, variant)[0 if mode is Mode.PRIMAL else -1]


def test_constants_copies_and_conditions_are_left_alone() -> None:
    lines = lowered(Mode.PRIMAL).program.slang.splitlines()
    body = [line.strip() for line in lines if line.startswith("    ")]
    assert "float copy = best;" in body
    assert any(line.startswith("if (v.x > copy)") for line in body)
    assert not any("watched" in line for line in body if line.startswith("float best"))


def test_results_of_statements_and_arguments_of_calls_are_watched() -> None:
    module = lowered(Mode.PRIMAL)
    assert "ofCotangent" not in module.program.slang
    names = {site.name for site in module.sites if site.kind is SiteKind.FINITE}
    assert names == {"v", "best", "scattered", "total", "x", "x_1"}


def test_backward_modules_watch_what_is_added_to_cotangents() -> None:
    slang = lowered(Mode.BACKWARD).program.slang
    assert "v_bar.x += watched<float, Report>(s * best_bar" in slang
    assert "ofValue" not in slang
    assert "ofTangent" not in slang


def test_forward_modules_watch_tangents() -> None:
    slang = lowered(Mode.FORWARD).program.slang
    assert "best_dot = watched<float, Report>(s * v_dot.x" in slang
    assert "ofValue" not in slang


def test_without_checks_a_module_is_as_if_there_were_none() -> None:
    assert "watched" not in lowered(Mode.BACKWARD, "").program.slang
    assert "Lowest" not in lowered(Mode.BACKWARD, "").program.slang
    assert "_marks" not in lowered(Mode.BACKWARD, "writes").program.slang


@pytest.mark.parametrize("code_format", FORMATS)
@pytest.mark.parametrize(
    ("mode", "checks"), [(Mode.BACKWARD, "nan"), (Mode.FORWARD, "nan"), (Mode.PRIMAL, "writes")]
)
def test_every_format_takes_a_module_with_checks(code_format: str, mode: Mode, checks: str) -> None:
    assert compile_program(lowered(mode, checks).program, code_format).content
