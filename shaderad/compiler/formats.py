"""The formats of code, one row each, with everything that depends on the language of the code.

A build target is a format on a kind of device (`lower/targets.py`).
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass

from shaderad.compiler.artifact import Program
from shaderad.compiler.places import (
    Place,
    hlsl_places,
    metal_places,
    spirv_places,
    wgsl_places,
)

NAGA = "naga"
"""The validator inside wgpu; the others are `TOOLS` of `validate.py`."""
_HLSL_PROFILE = "6_2"  # The first shader model with 16-bit types.


def dxc_options(hlsl: bytes) -> list[str]:
    """The options of dxc for the profile and types of a text."""
    # By default dxc reads `half` as float, which changes the stride of buffers of half.
    has_half = re.search(rb"\bhalf\b", hlsl) is not None
    return ["-T", f"cs_{_HLSL_PROFILE}", *(["-enable-16bit-types"] if has_half else [])]


def _no_options(content: bytes) -> list[str]:
    del content
    return []


@dataclass(frozen=True, slots=True, kw_only=True)
class Format:
    """One language of compiled code."""

    title: str
    """The name in messages."""
    suffix: str
    """The suffix of files."""
    number: int
    """`SlangCompileTarget` of `slang.h`, which never changes."""
    profile: str = ""
    """Slang's profile; empty for the default, which Slang raises if a kernel needs more."""
    is_text: bool = True
    has_line_directives: bool = False
    """True if code can have line directives to the Slang text, for messages of validators."""
    places: Callable[[Program, bytes], dict[str, Place]] | None
    """Reads the bindings of a program from its code; `None` if no target has the format."""
    validators: tuple[str, ...] = ()
    """`NAGA`, or names of `TOOLS`."""
    host_options: Callable[[bytes], list[str]] = _no_options
    """The compiler options that hosts need for the code."""


FORMATS: dict[str, Format] = {
    "spirv": Format(
        title="SPIR-V",
        suffix=".spv",
        number=6,
        is_text=False,
        places=spirv_places,
        validators=("spirv-val",),
    ),
    "hlsl": Format(
        title="HLSL",
        suffix=".hlsl",
        number=5,
        profile=f"sm_{_HLSL_PROFILE}",
        has_line_directives=True,
        places=hlsl_places,
        validators=("glslangValidator", "dxc"),
        host_options=dxc_options,
    ),
    "wgsl": Format(
        title="WGSL",
        suffix=".wgsl",
        number=28,
        places=wgsl_places,
        validators=(NAGA,),
    ),
    "metal": Format(
        title="Metal",
        suffix=".metal",
        number=24,
        has_line_directives=True,
        places=metal_places,
    ),
    # slangpy gives this text to NVRTC.
    "cuda": Format(
        title="CUDA",
        suffix=".cu",
        number=17,
        places=None,
        validators=("nvcc",),
    ),
}
