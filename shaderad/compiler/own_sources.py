"""Source files of shaderad -> a digest for cache keys, because results depend on our own code."""

from __future__ import annotations

import functools
import sys
from collections.abc import Iterable
from pathlib import Path

from shaderad.compiler.cache import key_of

PACKAGE = Path(__file__).parents[1]

COMPILING = ("compiler/libslang.py", "compiler/options.py", "compiler/worker.py")
"""The files that, with a request, determine the compiled code."""

VETTING = (
    "compiler/spirv.py",
    "runtime/naga.py",
    "runtime/spirv.py",
    "runtime/wgpu_pipelines.py",
    "runtime/wgpu_vetting.py",
)
"""The files that, with a request, determine the code rewritten for naga and its verdict."""


@functools.cache
def digest_of(names: Iterable[str], package: Path = PACKAGE) -> str:
    """The hash of files, by their names in the package."""
    try:
        return key_of(*((package / name).read_bytes() for name in names))
    except OSError:
        # A frozen program contains no sources; they change with its executable.
        status = Path(sys.executable).stat()
        return key_of(*names, f"{status.st_size} {status.st_mtime_ns}")
