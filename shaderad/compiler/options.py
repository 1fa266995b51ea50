"""The compiler's options for every format, as data: part of each cache key, and read by the child.

The numbers are those of `slang.h`, which never change.
"""

from __future__ import annotations

# `CompilerOptionName`: number and value. No warning of arrays whose size is a link-time constant,
# as our group memory is (22); -O1, whose SPIR-V naga can read (46); names of entry points are
# kept (52); diagnostics have no colour (144).
OPTIONS: tuple[tuple[int, int | str], ...] = ((22, "31010"), (46, 1), (52, 1), (144, 2))
GENERATE_SPIRV_DIRECTLY = 1 << 10
ROW_MAJOR = 1
# `#line` in HLSL and Metal would contain folders of this machine.
NO_LINE_DIRECTIVES = 1
LINE_DIRECTIVES = 2
"""For messages of validators."""
