"""Samples and hosts of builds, each by the command that its page gives; their pictures."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from shaderad.deep import Lacking, Trial
from shaderad.runtime.devices import DEVICE_VARIABLE

SAMPLES = Path("samples")
HOSTS = SAMPLES / "hosts"
COMMAND_SECONDS = 140

QUICK_SAMPLES: dict[str, tuple[str, str]] = {
    "cloth": ("--size 8 --steps 20", ""),
    "histogram": ("--size 96 --steps 40", ""),
    "splats": ("--size 48 --count 60 --steps 40", ""),
    "mesh_interpolation": ("--size 128 --steps 40", "overview.png"),
}
"""Options of small runs; the picture in the folder that a sample writes to, if it is a folder."""
SAMPLES_OF_WHOLE_RUN = {
    "cloth": ("", ""),
    "histogram": ("", ""),
    "splats": ("--steps 80", ""),
    "mesh_interpolation": ("--size 256 --steps 100", "overview.png"),
    "smoke": ("--quick", "overview.png"),
    "neural_texture": ("--size 128 --steps 200", "overview.png"),
}
VULKAN_HEADER = Path("/usr/include/vulkan/vulkan.h")


def sample_trials(out: Path, *, is_quick: bool) -> Iterator[Trial]:
    """Each sample on the device that the environment names."""
    for name, (options, picture) in (QUICK_SAMPLES if is_quick else SAMPLES_OF_WHOLE_RUN).items():
        yield name, partial(_sample, name, options.split(), picture, out)


def _sample(name: str, options: Sequence[str], picture: str, out: Path) -> Mapping[str, Any]:
    device = os.environ[DEVICE_VARIABLE].replace(":", "-")
    kept = out / f"{name}-{device}.png"
    folder = out / f"{name}-{device}"
    target = folder if picture else kept
    said = _ran(sys.executable, SAMPLES / name / "main.py", "--out", target, *options)
    if picture:
        shutil.copy(folder / picture, kept)
        shutil.rmtree(folder)
    return {"picture": kept.name, "said": said}


def host_trials(out: Path) -> Iterator[Trial]:
    """Builds in raw wgpu and raw Vulkan, on the devices that these choose."""
    folder = out / "hosts"
    yield "prepare", partial(_said, sys.executable, HOSTS / "prepare.py", folder)
    main = HOSTS / "python_wgpu" / "main.py"
    for target in ("wgsl", "spirv"):
        yield f"python, {target}", partial(_said, sys.executable, main, folder, "--target", target)
    for name in ("mesh", "texture"):
        yield f"c++, {name}", partial(_cpp, name, folder)


def _cpp(name: str, folder: Path) -> Mapping[str, Any]:
    compiler = shutil.which("g++")
    if compiler is None or not VULKAN_HEADER.exists():
        raise Lacking(
            "it takes g++ and Vulkan's headers (Debian: apt-get install g++ libvulkan-dev)"
        )
    program = folder / f"{name}_gradient"
    source = HOSTS / "cpp_vulkan" / f"{name}.cpp"
    _ran(compiler, "-std=c++17", "-O2", "-I", folder / name, source, "-lvulkan", "-o", program)
    return _said(program.resolve(), folder)


def _said(*command: str | Path) -> Mapping[str, Any]:
    return {"said": _ran(*command)}


def _ran(*command: str | Path) -> str:
    """The last line of a command that has to succeed."""
    done = subprocess.run(
        [*map(str, command)],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        errors="replace",
        timeout=COMMAND_SECONDS,
        check=False,
    )
    lines = (done.stdout + done.stderr).strip().splitlines()
    if done.returncode:
        raise AssertionError(f"ended with {done.returncode}: {lines[-1] if lines else ''}")
    return lines[-1] if lines else ""
