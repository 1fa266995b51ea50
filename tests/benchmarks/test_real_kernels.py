"""The real kernels have the gradients that the rules give in float64."""

from __future__ import annotations

from pathlib import Path

import pytest

import shaderad as sad
from tests.agreement import check_against_oracle
from tests.benchmarks.test_benchmarks import imported

pytestmark = pytest.mark.gpu


@pytest.mark.parametrize(
    "name",
    [
        "mlp",
        "wide_mlp",
        "ggx",
        "hash_grid",
        "springs",
        "eigen",
        "many_fields",
        "long_array",
        "long_static",
    ],
)
def test_a_program_agrees_with_the_oracle(
    name: str, device: sad.Device, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    program = imported("real_kernels", monkeypatch).loaded(name, tmp_path)
    with device:
        args, call = program.inputs(3)
        check_against_oracle(program.kernel, *args, rtol=2e-3, **call)


def test_what_fails_in_a_process_of_its_own_is_said(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    real_kernels = imported("real_kernels", monkeypatch)
    found = real_kernels.in_child("nothing_such", "wgpu", 4)
    assert "nothing_such" in found["failure"]
