"""Faults of the Slang compiler that we work around are still there, and the way around holds.

A failure here means that a Slang update mended a fault: the workaround may go. Each file holds the
faulty form, whose results stand in `result[0..3]`, and ours, in `result[4..7]`.
"""

from __future__ import annotations

import json
import math
import re
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest

from shaderad.diagnostics import CompileError
from shaderad.lower.artifact import Program
from shaderad.lower.cache import Cache
from shaderad.lower.compile import compile_program

FOLDER = Path(__file__).parent
NAN = math.nan
# The smallest gap between a faulty and a right number below is 30 %.
RELATIVE_TOLERANCE = 1e-4


@dataclass(frozen=True)
class Fault:
    """What `result` holds: the faulty numbers, and the right ones next to ours.

    `mended` is what our form gives at 4 and after; `faulty` maps a position to what Slang gives
    and what would be right.
    """

    inputs: list[float]
    faulty: dict[int, tuple[float, float]]
    mended: list[float]


FAULTS = {
    "empty_accessor_in_loop": Fault([2, 1, 10, 100], {0: (0, 444)}, [444]),
    "aliased_array_reads": Fault([1], {0: (1, 2), 1: (1, 2)}, [2]),
    "nested_loops": Fault([0.4], {0: (-95.40659, -60.93832)}, [-60.93832]),
    "past_max_iters": Fault([0.7, 8], {0: (-4.031912, -2.886454)}, [1.276042]),
    "forward_through_backward_only": Fault([3], {0: (0, 18), 1: (0, 12)}, [18, 12]),
    "stored_cotangent": Fault([3], {0: (2, 7)}, [7]),
    # `outer` once and its backward once: one add of 2 would be right. Then what `.d = 10` becomes.
    "backward_inside_backward": Fault([3, 2], {0: (4, 2), 2: (13, 3)}, [12]),
    "nan_maximum": Fault([NAN, 1], {0: (1, NAN)}, [1, 0]),
    # pow by its base below 0, fmod by its divisor, bits, and pow(1e-7, 1) itself.
    "partials": Fault([-3, 2, 1e-7], {0: (0, -6), 1: (0, -3), 2: (0, 1), 3: (0, 1e-7)}, [-6]),
    # A vector and an array: a * a where its derivative should stand.
    "constant_changed_in_part": Fault([3, 1], {0: (9, 6), 1: (9, 6)}, [6, 6]),
    "traded_places": Fault([0.5, 1], {0: (16, 21)}, [21]),
    "merged_calls": Fault([3], {0: (1, 1.25)}, [1.25]),
    "replayed_effects": Fault([3], {0: (1, 0)}, [6]),
}


@pytest.fixture(scope="module")
def results() -> dict[str, list[float]]:
    """What slangpy's device computes; a crash leaves out the file that crashed and those after."""
    inputs = json.dumps({name: fault.inputs for name, fault in FAULTS.items()})
    files = [str(FOLDER / f"{name}.slang") for name in FAULTS]
    run = subprocess.run(
        [sys.executable, str(FOLDER / "run_faults.py"), inputs, *files],
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    found = dict(json.loads(line) for line in run.stdout.splitlines() if line.startswith("["))
    assert run.returncode == 0, f"after {list(found)}:\n{run.stderr}"
    return found


@pytest.mark.gpu
@pytest.mark.parametrize("name", FAULTS)
def test_the_fault_is_still_there(name: str, results: dict[str, list[float]]) -> None:
    for position, (faulty, right) in FAULTS[name].faulty.items():
        found = results[name][position]
        assert found == pytest.approx(faulty, rel=RELATIVE_TOLERANCE, abs=1e-12)
        assert found != pytest.approx(right, rel=RELATIVE_TOLERANCE, abs=1e-12)


@pytest.mark.gpu
@pytest.mark.parametrize("name", FAULTS)
def test_the_way_around_is_right(name: str, results: dict[str, list[float]]) -> None:
    mended = FAULTS[name].mended
    found = results[name][4 : 4 + len(mended)]
    assert found == pytest.approx(mended, rel=RELATIVE_TOLERANCE)


def code_of(name: str, target: str, entry: str = "fault") -> str:
    program = Program(entry, (FOLDER / f"{name}.slang").read_text(), (1, 1, 1), ())
    code = compile_program(program, target, cache=Cache(None))
    assert code.diagnostics == ()
    return code.content.decode()


def test_a_raw_pointer_becomes_invalid_hlsl_without_a_word() -> None:
    assert "Ptr<float" in code_of("raw_pointers", "hlsl")


def test_a_raw_pointer_becomes_invalid_wgsl_without_a_word() -> None:
    assert "ptr<, f32>" in code_of("raw_pointers", "wgsl")


def test_wgsl_compare_exchange_drops_whether_it_exchanged() -> None:
    text = code_of("weak_exchange", "wgsl")
    assert "atomicCompareExchangeWeak" in text
    assert ".old_value" in text
    assert ".exchanged" not in text


def test_a_negated_sum_of_vectors_has_no_parentheses_in_wgsl() -> None:
    """Why vectors are multiplied by -1."""
    assert re.search(r"vec2<f32>\(0\) - \w+ \*", code_of("negated_sum", "wgsl"))
    assert "f32>(0) -" not in code_of("negated_sum", "wgsl", "mended")


def test_a_pointer_type_in_a_branch_ends_the_compiler() -> None:
    """Why pointers are plain values: a struct that is an `IDifferentiablePtrType` has no zero."""
    with pytest.raises(CompileError) as caught:
        code_of("pointer_type_in_branch", "hlsl")
    assert "zeroMethod" in caught.value.message
    assert "fault" in code_of("pointer_value_in_branch", "hlsl")


def test_a_value_within_a_value_ends_the_compiler_in_the_second_derivative() -> None:
    """Why SR0428 refuses it; side by side the floats are taken."""
    name = "nested_value_forward_then_reverse"
    with pytest.raises(CompileError, match="SR0502"):
        code_of(name, "hlsl")
    assert "mended" in code_of(name, "hlsl", "mended")


@pytest.mark.parametrize("entry", ["fault", "reversed"])
@pytest.mark.parametrize("target", ["spirv", "hlsl"])
def test_a_parameter_without_derivative_in_a_vector_ends_the_compiler(
    entry: str, target: str
) -> None:
    """Why kernels read such a parameter as `detach(u)`."""
    name = "no_diff_in_vector"
    with pytest.raises(CompileError, match="SR0501"):
        code_of(name, target, entry)
    assert "mended" in code_of(name, "hlsl", "mended")


@pytest.mark.parametrize("target", ["spirv", "hlsl"])
def test_a_parameter_spread_in_a_branch_ends_the_compiler_in_reverse(target: str) -> None:
    """Why functions that are differentiated spread names in so many words."""
    with pytest.raises(CompileError, match="SR0502"):
        code_of("spread_parameter", target)
    assert "mended" in code_of("spread_parameter", "hlsl", "mended")


def test_every_fault_file_is_run_here_or_named_in_another_test() -> None:
    tested = {*FAULTS, "raw_pointers", "weak_exchange", "infinite_literal", "loop_left_from_switch",
              "pointer_type_in_branch", "pointer_value_in_branch",
              "nested_value_forward_then_reverse", "no_diff_in_vector",
              "spread_parameter", "negated_sum"}  # fmt: skip
    assert {path.stem for path in FOLDER.glob("*.slang")} == tested
