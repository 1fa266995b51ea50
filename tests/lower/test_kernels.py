"""Kernels become the Slang that ``golden/`` keeps, which every target's compiler takes."""

from __future__ import annotations

import hashlib
import subprocess
import sys
from pathlib import Path

import pytest

from shaderad.compiler.compile import compile_program
from shaderad.decorators import KernelFunction
from shaderad.lower.bindings import Lowered
from tests.lower.golden_kernels import (
    FOLDER,
    KERNELS,
    lowered,
    lowered_with_tangents,
    split,
    text_of,
    texts,
)

ROOT = Path(__file__).parents[2]
TARGETS = {
    "spirv": "native",
    "wgsl": "exchange",
    "hlsl": "compare-exchange",
    "metal": "compare-exchange",
}


@pytest.mark.parametrize("name", texts())
def test_emitted_slang_is_what_the_golden_file_holds(name: str) -> None:
    golden = (FOLDER / f"{name}.slang").read_text(encoding="utf-8")
    assert texts()[name] == golden, "rewrite with `scripts/run golden`, and review the change"


def test_every_golden_file_has_its_kernel() -> None:
    assert {p.stem for p in FOLDER.glob("*.slang")} == set(texts())


@pytest.mark.parametrize("target", TARGETS)
def test_every_target_takes_a_kernel_with_tangents(target: str) -> None:
    for one in lowered_with_tangents(split, TARGETS[target]):
        code = compile_program(one.program, target)
        assert code.content
        assert code.diagnostics == ()


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("kernel", KERNELS, ids=lambda k: k.name)
def test_every_target_takes_every_entry_point(kernel: KernelFunction, target: str) -> None:
    for one in lowered(kernel, TARGETS[target]):
        code = compile_program(one.program, target)
        assert code.content
        assert code.diagnostics == ()


def test_the_same_kernel_gives_the_same_text_whatever_seeds_hashes() -> None:
    script = (
        "import hashlib\n"
        "from tests.lower.golden_kernels import KERNELS, text_of\n"
        "text = ''.join(map(text_of, KERNELS))\n"
        "print(hashlib.sha256(text.encode()).hexdigest())"
    )
    wanted = hashlib.sha256("".join(map(text_of, KERNELS)).encode()).hexdigest()
    for seed in ("1", "2"):
        run = subprocess.run(
            [sys.executable, "-c", script],
            cwd=ROOT,
            env={"PYTHONHASHSEED": seed, "PYTHONPATH": str(ROOT)},
            capture_output=True,
            text=True,
            check=True,
        )
        assert run.stdout.strip() == wanted


@pytest.mark.parametrize("kernel", KERNELS, ids=lambda k: k.name)
def test_each_line_of_a_body_knows_its_python_line(kernel: KernelFunction) -> None:
    for one in lowered(kernel):
        lines = one.program.slang.splitlines()
        assert len(lines) == len(one.program.spans)
        spans = {s.file for s in one.program.spans if s is not None}
        assert spans <= {kernel.python.__code__.co_filename}


@pytest.mark.parametrize("kernel", KERNELS, ids=lambda k: k.name)
def test_no_slot_is_bound_twice_and_no_pointer_or_infinity_is_emitted(
    kernel: KernelFunction,
) -> None:
    for one in lowered(kernel):
        slots = [b.slot for b in one.program.bindings]
        assert slots == list(range(len(slots)))
        assert {r.slot for r in one.resources} == set(slots[1:])
        body = "".join(line.partition("//")[0] for line in one.program.slang.splitlines())
        assert "->" not in body
        assert "inf" not in body.lower().replace("info", "")


def test_a_backward_module_binds_no_output() -> None:
    backward = [one for k in KERNELS for one in lowered(k) if one.mode.value == "bwd"]
    assert len(backward) == len(KERNELS)
    for one in backward:
        assert "OUTPUT" not in {r.role.name for r in one.resources}, named(one)


def named(one: Lowered) -> str:
    return one.program.name
