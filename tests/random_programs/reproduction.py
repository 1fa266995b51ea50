"""A program as a file of its own: its kernel, its inputs, and what was wrong with it."""

from __future__ import annotations

from typing import Any

import numpy as np

import shaderad as sad
from shaderad.arrays.pointers import HostPointer
from shaderad.runtime.textures import SamplerSettings
from tests.random_programs.programs import KERNEL, Program


def reproduction(program: Program, detail: str) -> str:
    """Python text that defines the kernel and runs it in every mode."""
    shown = "\n".join(f"# {line}".rstrip() for line in detail.splitlines()) or "# no fault known"
    args = ",\n    ".join(_spelled(value) for value in program.values())
    return f"""{shown}
{program.source}

import numpy as np

ARGUMENTS = (
    {args},
)
CALL = {program.call!r}

if __name__ == "__main__":
    out, pullback = sad.vjp({KERNEL}, *ARGUMENTS, **CALL)
    for result in out if isinstance(out, tuple) else (out,):
        print(result.numpy())
"""


def _spelled(value: Any) -> str:
    if isinstance(value, dict):
        return "{" + ", ".join(f"{k!r}: {_spelled(v)}" for k, v in value.items()) + "}"
    if isinstance(value, HostPointer):
        return f"sad.pointer(sad.array({_spelled(value.numpy())}))"
    if isinstance(value, sad.Texture):
        return f"sad.texture({_spelled(value.numpy())})"
    if isinstance(value, SamplerSettings):
        return f"sad.sampler({value.filter!r}, {value.wrap!r})"
    if isinstance(value, np.ndarray):
        return f"np.array({value.tolist()!r}, np.{value.dtype.name})"
    return repr(value)
