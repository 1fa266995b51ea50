"""The reverse of a value runs in the branch that alone uses it; text of adjoints."""

from __future__ import annotations

import re

import pytest

from shaderad.decorators import KernelFunction
from tests.lower import branch_cases
from tests.lower.golden_kernels import text_of


def _depths(kernel: KernelFunction, pattern: str) -> list[int]:
    """The number of blocks around each line of the adjoint that matches `pattern`."""
    text = text_of(kernel)
    start = text.index(f"void {kernel.shown_name}_adjoint")
    adjoint = text[start : text.index("\n}", start)]
    lines = adjoint.split("{", 1)[1].splitlines()
    assert any(re.search(pattern, line) for line in lines)
    return [line.count("    ", 0, len(line) - len(line.lstrip())) - 1
            for line in lines if re.search(pattern, line)]  # fmt: skip


@pytest.mark.parametrize(
    ("kernel", "pattern", "depths"),
    [
        (branch_cases.used_in_one_branch, r"for \(int k_2", [1]),
        (branch_cases.used_in_one_branch, r"-sin\(x_i\)", [1]),
        (branch_cases.used_in_one_branch, r"if \(holds_2\)", [0]),
        (branch_cases.marched, r"for \(int back", [1]),
        (branch_cases.carried, r"x_i \* fresh_bar", [2]),
    ],
)
def test_values_of_one_branch_have_their_reverse_in_it(
    kernel: KernelFunction, pattern: str, depths: list[int]
) -> None:
    assert _depths(kernel, pattern) == depths


@pytest.mark.parametrize(
    ("kernel", "pattern", "depths"),
    [
        # `s` is used behind the branch, `t` in both branches, `u` is a result.
        (branch_cases.used_again, r"part_\d_bar = ", [0, 0, 0]),
        # `m` and an element are assigned between `s`, `r` and the branches that use them.
        (branch_cases.names_between, r"held_bar\[1\] \+= ", [0, 0]),
        # The next iteration adds to the cotangent of what it reads first.
        (branch_cases.carried, r"t_bar = 0.9", [1]),
        # Waves sum what all of their threads add, and the derivative is the user's.
        (branch_cases.with_arrays, r"(bend|square)_bwd\(", [0, 0]),
    ],
)
def test_other_values_have_their_reverse_behind_the_branch(
    kernel: KernelFunction, pattern: str, depths: list[int]
) -> None:
    assert _depths(kernel, pattern) == depths


def test_only_an_element_that_is_taken_once_keeps_its_cotangent() -> None:
    text = text_of(branch_cases.filled_and_read)
    assert not re.search(r"once_bar\[\w+\] = 0\.0", text)
    assert len(re.findall(r"(?:more|chain|turns)_bar\[\w+\] = 0\.0", text)) == 4
