"""What the compiler is told, as data: part of each cache key, and read by the child.

Numbers are those of `slang.h`, which promises never to change them.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Format:
    """A target as Slang counts it (`SlangCompileTarget`), and the profile it is held to."""

    number: int
    profile: str = ""
    """Empty: what the target has by default, raised silently where a kernel needs more."""


FORMATS: dict[str, Format] = {
    "spirv": Format(6),
    "hlsl": Format(5, "sm_6_2"),  # The first with 16-bit types.
    "wgsl": Format(28),
    "metal": Format(24),
}

# `CompilerOptionName`: number and value. -O1 is the level whose SPIR-V naga can read (46), entry
# points keep their names (52), diagnostics are never coloured (144). Arrays whose size is chosen
# when modules are linked, as our group memory is, are not warned of (22).
OPTIONS: tuple[tuple[int, int | str], ...] = ((22, "31010"), (46, 1), (52, 1), (144, 2))
GENERATE_SPIRV_DIRECTLY = 1 << 10
ROW_MAJOR = 1
# `#line` in HLSL and Metal would carry this machine's folders into what `build` writes.
NO_LINE_DIRECTIVES = 1
LINE_DIRECTIVES = 2
"""Only to find out which line of the Slang text a validator means."""
