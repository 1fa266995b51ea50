"""Deep blocks: long chains lie flat in the text, and what is nested too deep is refused."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest

import shaderad as sad
from shaderad.interpret import interpret
from shaderad.ir.nodes import Chooser
from shaderad.ir.walk import reachable
from shaderad.lower.bindings import Mode, Variant
from shaderad.lower.kernels import lower_kernel
from shaderad.lower.prepare.refusals import DEPTH_LIMIT
from tests.agreement import check_against_oracle
from tests.samples.loading import module_of


def loaded(lines: list[str], folder: Path) -> ModuleType:
    path = folder / "deep.py"
    path.write_text("\n".join(["import shaderad as sad", "", *lines, ""]), encoding="utf-8")
    return module_of(path)


HEAD = ["@sad.kernel", "def deep(i: sad.Index, x: sad.In[float], out: sad.Out[float]):"]


def elif_chain(count: int, pad: str) -> list[str]:
    """A branch for each whole number below `count`."""
    found: list[str] = []
    for k in range(count):
        word = "elif" if k else "if"
        found += [f"{pad}{word} k == {k}:", f"{pad}    y = y * {1 + k / 100} + {k}.0 * v"]
    return [*found, f"{pad}else:", f"{pad}    y = -y"]


def in_a_kernel(count: int) -> list[str]:
    return [*HEAD, "    v = x[i]", "    y = v", "    k = int(v)", *elif_chain(count, "    "),
            "    out[i] = y"]  # fmt: skip


def in_a_loop(count: int) -> list[str]:
    return [*HEAD, "    v = x[i]", "    y = v", "    for j in range(3):", "        k = int(v) + j",
            *elif_chain(count, "        "), "    out[i] = y"]  # fmt: skip


def of_returns(count: int) -> list[str]:
    """A function that returns from each of many branches."""
    head = ["@sad.function", "def chosen(v: float) -> float:", "    k = int(v)"]
    branches = [
        line
        for k in range(count)
        for line in (f"    if k == {k}:", f"        return v * v * {1 + k / 100}")
    ]
    return [*head, *branches, "    return v", "", *HEAD, "    out[i] = chosen(x[i])"]


def of_continues(count: int) -> list[str]:
    """A loop that goes on from each of many branches, and ends early."""
    branches = [
        line
        for k in range(count)
        for line in (
            f"        if k == {k}:",
            f"            y += {1 + k / 100} * v",
            "            continue",
        )
    ]
    return [*HEAD, "    v = x[i]", "    y = v", "    for j in range(3):", "        k = int(v) + j",
            *branches, "        y = y * y", "        if j == 1:", "            break",
            "    out[i] = y"]  # fmt: skip


def of_elements(count: int) -> list[str]:
    """Conditions that read an array, which has a gradient as well."""
    chain = [
        line
        for k in range(count)
        for line in (
            f"    {'elif' if k else 'if'} x[i] < {k}.5 < x[i // 2] + {k + 1}.0:",
            f"        y = {1 + k / 100} * x[i] * x[i]",
        )
    ]
    return [*HEAD, *chain, "    else:", "        y = x[i // 2]", "    out[i] = y"]


FORMS = [in_a_kernel, in_a_loop, of_returns, of_continues, of_elements]


@pytest.mark.gpu
@pytest.mark.parametrize(
    ("form", "count"),
    [
        (in_a_kernel, 300),
        (in_a_loop, 300),
        (of_returns, 100),
        (of_continues, 60),
        (of_elements, 30),
    ],
)
def test_long_chains_have_values_and_derivatives(
    form: Callable[[int], list[str]], count: int, device: sad.Device, tmp_path: Path
) -> None:
    """Beyond 80 branches in each other, lavapipe ended the process."""
    x = np.float32([0.25, 1.5, 15.5, 16.25, 17.5, 29.25, 59.5, 99.0, 298.75, 299.5, 300.25, -4.0])
    with device:
        check_against_oracle(loaded(form(count), tmp_path).deep, x, dim=len(x))


@pytest.mark.parametrize("form", FORMS)
def test_a_chain_that_is_short_stays_as_it_is_written(
    form: Callable[[int], list[str]], tmp_path: Path
) -> None:
    short = loaded(form(16), tmp_path).deep.specialise({})
    assert not [f for f in reachable(short.body) if isinstance(f, Chooser)]
    long = loaded(form(17), tmp_path).deep.specialise({})
    assert [f for f in reachable(long.body) if isinstance(f, Chooser)]


def test_conditions_are_asked_in_order_up_to_the_first_that_holds(tmp_path: Path) -> None:
    chain = [
        line
        for k in range(20)
        for line in (f"    {'elif' if k else 'if'} x[i + {k}] > 0.5:", f"        y = {k}.0")
    ]
    kernel = loaded([*HEAD, "    y = -1.0", *chain, "    out[i] = y"], tmp_path).deep
    x = np.zeros(8, np.float32)
    x[5] = 1.0
    run = interpret(kernel.specialise({}), dim=1, arrays={"x": x})
    assert run.outputs["out"] == [5.0]
    assert not run.reports  # x[8] and what follows it is never read


def test_what_only_some_branches_assign_may_not_be_read(tmp_path: Path) -> None:
    lines = [*HEAD, "    k = int(x[i])", *(
        line
        for k in range(20)
        for line in (f"    {'elif' if k else 'if'} k == {k}:", f"        y = {k}.0")
    ), "    out[i] = y"]  # fmt: skip
    with pytest.raises(sad.LanguageError, match="SR0204"):
        loaded(lines, tmp_path).deep.specialise({})


def nested(count: int) -> list[str]:
    lines = [f"{'    ' * (k + 1)}if x[i] > {-k - 1}.0:" for k in range(count)]
    for k in reversed(range(count)):
        lines.append(f"{'    ' * (k + 2)}y = y * 1.01 + x[i]")
    return [*HEAD, "    y = x[i]", *lines, "    out[i] = y"]


@pytest.mark.gpu
def test_drivers_take_the_deepest_blocks_that_are_allowed(
    device: sad.Device, tmp_path: Path
) -> None:
    x = np.float32([0.5, -2.5, -30.0])
    with device:
        check_against_oracle(loaded(nested(DEPTH_LIMIT), tmp_path).deep, x, dim=3)


def test_what_is_nested_deeper_is_refused_with_the_innermost_line(tmp_path: Path) -> None:
    kernel = loaded(nested(DEPTH_LIMIT + 1), tmp_path).deep.specialise({})
    with pytest.raises(sad.LanguageError, match="SR0288") as caught:
        lower_kernel(kernel, Mode.PRIMAL, Variant(launch_shaped=frozenset({"out"})))
    assert f"{DEPTH_LIMIT + 1} deep" in caught.value.message
    assert caught.value.span.line == 6 + DEPTH_LIMIT


def test_blocks_of_called_functions_count_where_they_are_called(tmp_path: Path) -> None:
    half = DEPTH_LIMIT // 2 + 1
    body = [f"{'    ' * (k + 1)}if v > {-k - 1}.0:" for k in range(half)]
    inner = ["@sad.function", "def inner(v: float) -> float:", "    y = v", *body,
             f"{'    ' * (half + 1)}y = y * v", "    return y"]  # fmt: skip
    outer = [line.replace(" = y * v", " = inner(v)").replace("inner(v: ", "outer(v: ")
             for line in inner]  # fmt: skip
    lines = [*inner, "", *outer, "", *HEAD, "    out[i] = outer(x[i])"]
    kernel = loaded(lines, tmp_path).deep.specialise({})
    with pytest.raises(sad.LanguageError, match="SR0288"):
        lower_kernel(kernel, Mode.PRIMAL, Variant(launch_shaped=frozenset({"out"})))


def test_an_endless_sum_is_refused_with_a_code(tmp_path: Path) -> None:
    kernel = loaded([*HEAD, f"    out[i] = {' + '.join(['x[i]'] * 2000)}"], tmp_path).deep
    with pytest.raises(sad.LanguageError, match="SR0106"):
        kernel.specialise({})
