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

from shaderad.compiler.artifact import Program
from shaderad.compiler.cache import Cache
from shaderad.compiler.compile import compile_program
from shaderad.diagnostics import CompileError

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
    "nan_maximum": Fault([NAN, 1], {0: (1, NAN)}, [1, 0]),
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


def test_a_function_defined_two_interfaces_up_ends_the_compiler() -> None:
    """Why tags name `IReadable` beside `IInput`, which does not extend it."""
    with pytest.raises(CompileError) as caught:
        code_of("inherited_default", "hlsl")
    assert caught.value.code == "SR0502"
    assert "mended" in code_of("inherited_default", "hlsl", "mended")


def test_every_fault_file_is_run_here_or_named_in_another_test() -> None:
    tested = {*FAULTS, "raw_pointers", "weak_exchange", "infinite_literal", "loop_left_from_switch",
              "pointer_type_in_branch", "pointer_value_in_branch", "negated_sum",
              "pointer_kept_from_loop", "inherited_default"}  # fmt: skip
    assert {path.stem for path in FOLDER.glob("*.slang")} == tested
