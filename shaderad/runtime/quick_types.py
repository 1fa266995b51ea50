"""Makes cffi read the types of wgpu's header twenty times faster, which halves the cold start.

cffi reads a C type such as ``WGPULimits *`` when it is first used, and for that hands pycparser
every typedef it has, 470 in wgpu's header: 11 ms a type, half a second until the first dispatch.
Only the typedefs that the type mentions can matter to the parser, so only they are handed over.
"""

from __future__ import annotations

import re
from typing import Any


def read_types_quickly(ffi: Any) -> None:
    """Narrows what `ffi`'s parser is shown; does nothing where cffi is built otherwise."""
    parser = getattr(ffi, "_parser", None)
    slow_parse = getattr(parser, "_parse", None)
    if parser is None or slow_parse is None or not hasattr(parser, "_declarations"):
        return
    if "_parse" in vars(parser):
        return  # Done before.

    def parse(source: str) -> Any:
        # cffi holds its lock around this, so no other thread sees the narrowed table.
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
