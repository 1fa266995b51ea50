"""The compiler's options for every format, as data: part of each cache key, and read by the child.

The numbers are those of `slang.h`, which never change.
"""

from __future__ import annotations

# `CompilerOptionName`: number and value. 22: no warning about arrays whose size is a link-time
# constant, such as our group memory. 46: -O1, whose SPIR-V naga can read. 52: keeps the names of
# entry points. 144: diagnostics without colour.
OPTIONS: tuple[tuple[int, int | str], ...] = ((22, "31010"), (46, 1), (52, 1), (144, 2))
GENERATE_SPIRV_DIRECTLY = 1 << 10
ROW_MAJOR = 1
# `#line` in HLSL and Metal would contain folders of this machine.
NO_LINE_DIRECTIVES = 1
LINE_DIRECTIVES = 2
"""For messages of validators."""
