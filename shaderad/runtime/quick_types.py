"""Lets cffi parse the types of wgpu's header twenty times faster, which halves the cold start.

cffi parses a C type such as ``WGPULimits *`` at its first use, and passes pycparser all typedefs,
470 in wgpu's header: 11 ms per type, half a second until the first dispatch. The parser needs only
the typedefs that the type mentions, so only those are passed.
"""

from __future__ import annotations

import re
from typing import Any


def read_types_quickly(ffi: Any) -> None:
    """Narrows the typedefs that the parser of `ffi` sees; does nothing for an unknown cffi."""
    parser = getattr(ffi, "_parser", None)
    slow_parse = getattr(parser, "_parse", None)
    if parser is None or slow_parse is None or not hasattr(parser, "_declarations"):
        return
    if "_parse" in vars(parser):
        return  # It is narrowed already.

    def parse(source: str) -> Any:
        # cffi holds its lock during this call, so no other thread sees the narrowed table.
        every = parser._declarations
        words = set(re.findall(r"\w+", source))
        parser._declarations = {
            name: declared
            for name, declared in every.items()
            if not name.startswith("typedef ") or name.removeprefix("typedef ") in words
        }
        try:
            return slow_parse(source)
        finally:
            parser._declarations = every

    parser._parse = parse
