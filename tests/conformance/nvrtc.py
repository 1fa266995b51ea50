"""CUDA text -> the verdict of NVRTC, the compiler that slangpy's CUDA devices have, as PyPI has it.

It needs no GPU and no driver. `pip install nvidia-cuda-nvrtc nvidia-cuda-runtime`; the latter has
the header of half.
"""

from __future__ import annotations

import ctypes
import importlib.util
from functools import cache
from pathlib import Path
from typing import Any

from shaderad.compiler.artifact import Code
from shaderad.compiler.validate import Judgement, Status

NAME = "NVRTC"
# As `nvcc` in `compiler/validate.py`; functions without a mark run on the device.
OPTIONS = ("-arch=compute_75", "-w", "-default-device")

HALF_HEADER = "cuda_fp16.h"


def judged(code: Code) -> Judgement:
    library = _library()
    if library is None:
        return Judgement(NAME, Status.UNAVAILABLE, "not found", "pip install nvidia-cuda-nvrtc")
    program = ctypes.c_void_p()
    library.nvrtcCreateProgram(ctypes.byref(program), code.content, b"code.cu", 0, None, None)
    options = [option.encode() for option in (*OPTIONS, *_half_options())]
    array = (ctypes.c_char_p * len(options))(*options)
    is_refused = library.nvrtcCompileProgram(program, len(options), array)
    log = _log(library, program)
    library.nvrtcDestroyProgram(ctypes.byref(program))
    if _find(HALF_HEADER) is None and '"__half" is undefined' in log:
        reason = f"{HALF_HEADER} not found"
        return Judgement(NAME, Status.UNAVAILABLE, reason, "pip install nvidia-cuda-runtime")
    return Judgement(NAME, Status.REFUSED if is_refused else Status.ACCEPTED, log)


def _log(library: Any, program: ctypes.c_void_p) -> str:
    size = ctypes.c_size_t()
    library.nvrtcGetProgramLogSize(program, ctypes.byref(size))
    text = ctypes.create_string_buffer(size.value)
    library.nvrtcGetProgramLog(program, text)
    return text.value.decode(errors="replace").strip()


def _half_options() -> list[str]:
    header = _find(HALF_HEADER)
    return [f"-I{header.parent}", "-DSLANG_CUDA_ENABLE_HALF"] if header else []


@cache
def _library() -> Any:
    path = _find("libnvrtc.so.*")
    return None if path is None else ctypes.CDLL(str(path))


@cache
def _find(pattern: str) -> Path | None:
    """A file of NVIDIA's packages."""
    spec = importlib.util.find_spec("nvidia")
    folders = (spec and spec.submodule_search_locations) or ()
    return next((path for folder in folders for path in Path(folder).rglob(pattern)), None)
