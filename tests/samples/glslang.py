"""A build's HLSL -> SPIR-V by glslang, as samples/hosts/README.md does it, to be dispatched."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from tests.samples.host_folder import run

PROGRAM = shutil.which("glslangValidator")
SHIFTS = {"b": 0, "t": 16, "u": 32, "s": 48}
"""HLSL numbers each class of registers from 0, Vulkan bindings all together."""
OPTIONS = ("-D", "-V", "--target-env", "vulkan1.1", "-S", "comp", "--hlsl-iomap",
           "--shift-texture-binding", "16", "--shift-uav-binding", "32",
           "--shift-sampler-binding", "48")  # fmt: skip

needed = pytest.mark.skipif(
    PROGRAM is None, reason="no glslangValidator: apt-get install glslang-tools"
)


def assemble(source: Path, entry_point: str) -> Path:
    """Writes SPIR-V beside HLSL."""
    assert PROGRAM
    target = source.with_name(source.name + ".spv")
    run([PROGRAM, *OPTIONS, "-e", entry_point, "-o", target, source])
    return target


def assemble_build(folder: Path) -> None:
    """Makes SPIR-V of all HLSL of a build's kernels, and has the manifest say how to bind it."""
    path = folder / "manifest.json"
    manifest = json.loads(path.read_text(encoding="utf-8"))
    for kernel in manifest["entries"]:
        for program in kernel["targets"]["hlsl"]["programs"]:
            made = assemble(folder / program["file"], program["entry_point"])
            program["file"] = made.relative_to(folder).as_posix()
            for bound in (program["parameters"], *program["resources"]):
                bound["place"] = _slot(bound["place"])
    path.write_text(json.dumps(manifest), encoding="utf-8")


def _slot(place: dict[str, Any]) -> dict[str, Any]:
    if not place:
        return place
    register = place["register"]
    return {"set": 0, "binding": SHIFTS[register[0]] + int(register[1:])}
