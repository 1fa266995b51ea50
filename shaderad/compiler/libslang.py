"""Module text -> code, by the Slang compiler library and its COM-style interface.

The library is part of slangpy's wheel; slangpy itself is never imported. Methods are called by
their slot in the vtable (`slang.h` of the wheel lists them in order). The compiler can crash on
invalid text, so only the child process (`worker.py`) loads it.
"""

from __future__ import annotations

import ctypes
import importlib.util
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from shaderad.compiler.formats import FORMATS
from shaderad.compiler.options import (
    GENERATE_SPIRV_DIRECTLY,
    LINE_DIRECTIVES,
    NO_LINE_DIRECTIVES,
    OPTIONS,
    ROW_MAJOR,
)

# Slots of the vtable; `ISlangUnknown` has the first three.
_RELEASE = 2
_GLOBAL_CREATE_SESSION, _GLOBAL_FIND_PROFILE = 3, 4
_SESSION_LOAD, _SESSION_COMPOSE, _SESSION_LOAD_SOURCE = 4, 6, 20
_COMPONENT_ENTRY_CODE, _COMPONENT_LINK = 6, 10
_MODULE_SERIALIZE, _MODULE_FIND_CHECKED_ENTRY = 20, 25
_BLOB_POINTER, _BLOB_SIZE = 3, 4

_STAGE_COMPUTE = 6
_INT_VALUE = 0
_STRING_VALUE = 1


class _OptionValue(ctypes.Structure):
    _fields_ = (
        ("kind", ctypes.c_int),
        ("int0", ctypes.c_int32),
        ("int1", ctypes.c_int32),
        ("string0", ctypes.c_char_p),
        ("string1", ctypes.c_char_p),
    )


def _option_value(value: int | str) -> _OptionValue:
    if isinstance(value, int):
        return _OptionValue(kind=_INT_VALUE, int0=value)
    return _OptionValue(kind=_STRING_VALUE, string0=value.encode())


class _Option(ctypes.Structure):
    _fields_ = (("name", ctypes.c_int), ("value", _OptionValue))


class _TargetDesc(ctypes.Structure):
    _fields_ = (
        ("size", ctypes.c_size_t),
        ("format", ctypes.c_int),
        ("profile", ctypes.c_uint32),
        ("flags", ctypes.c_uint32),
        ("floating_point_mode", ctypes.c_uint32),
        ("line_directive_mode", ctypes.c_uint32),
        ("force_scalar_layout", ctypes.c_bool),
        ("options", ctypes.c_void_p),
        ("option_count", ctypes.c_uint32),
    )


class _SessionDesc(ctypes.Structure):
    _fields_ = (
        ("size", ctypes.c_size_t),
        ("targets", ctypes.POINTER(_TargetDesc)),
        ("target_count", ctypes.c_ssize_t),
        ("flags", ctypes.c_uint32),
        ("matrix_layout", ctypes.c_uint32),
        ("search_paths", ctypes.POINTER(ctypes.c_char_p)),
        ("search_path_count", ctypes.c_ssize_t),
        ("macros", ctypes.c_void_p),
        ("macro_count", ctypes.c_ssize_t),
        ("file_system", ctypes.c_void_p),
        ("enable_effect_annotations", ctypes.c_bool),
        ("allow_glsl_syntax", ctypes.c_bool),
        ("options", ctypes.POINTER(_Option)),
        ("option_count", ctypes.c_uint32),
        ("skip_spirv_validation", ctypes.c_bool),
    )


def find_library() -> Path | None:
    """The compiler inside the installed slangpy package, without importing it."""
    spec = importlib.util.find_spec("slangpy")
    if spec is None or not spec.submodule_search_locations:
        return None
    patterns = {
        "win32": "slang-compiler.dll",
        "darwin": "libslang-compiler*.dylib",
    }
    pattern = patterns.get(sys.platform, "libslang-compiler.so*")
    for folder in spec.submodule_search_locations:
        for path in sorted(Path(folder).glob(pattern)):
            return path
    return None


def _call(this: int, slot: int, result: Any, *arguments: Any) -> Any:
    """Calls the method in `slot` of the COM object at address `this`."""
    table = ctypes.cast(this, ctypes.POINTER(ctypes.POINTER(ctypes.c_void_p)))[0]
    types: list[Any] = [type(argument) for argument in arguments]
    prototype = ctypes.CFUNCTYPE(result, ctypes.c_void_p, *types)
    return prototype(table[slot])(this, *arguments)


def _release(this: int | None) -> None:
    if this:
        _call(this, _RELEASE, ctypes.c_uint32)


class _Out:
    """A `T**` result of a call."""

    def __init__(self) -> None:
        self.cell = ctypes.c_void_p()
        self.pointer = ctypes.pointer(self.cell)

    def take_bytes(self) -> bytes:
        """The content of the blob, or empty; releases the blob."""
        if not self.cell.value:
            return b""
        start = _call(self.cell.value, _BLOB_POINTER, ctypes.c_void_p)
        size = _call(self.cell.value, _BLOB_SIZE, ctypes.c_size_t)
        content = ctypes.string_at(start, size) if start and size else b""
        _release(self.cell.value)
        self.cell.value = None
        return content

    def take_text(self) -> str:
        return self.take_bytes().rstrip(b"\0").decode("utf-8", "replace")


class Compiler:
    """The compiler of one process: a global session, which takes 0.6 s to create."""

    def __init__(self, library: Path) -> None:
        self._slang = ctypes.CDLL(str(library))
        session = _Out()
        result = self._slang.slang_createGlobalSession(ctypes.c_ssize_t(0), session.pointer)
        if result < 0 or not session.cell.value:
            raise OSError(f"slang_createGlobalSession returned {result & 0xFFFFFFFF:#x}")
        self._this = session.cell.value

    def session(
        self, code_format: str, folders: Sequence[str], *, with_lines: bool = False
    ) -> Session:
        """A session for one of `FORMATS`, which searches `folders` for imported modules."""
        form = FORMATS[code_format]
        profile = 0
        if form.profile:
            name = ctypes.c_char_p(form.profile.encode())
            profile = _call(self._this, _GLOBAL_FIND_PROFILE, ctypes.c_uint32, name)
        one_target = _TargetDesc(
            size=ctypes.sizeof(_TargetDesc),
            format=form.number,
            profile=profile,
            flags=GENERATE_SPIRV_DIRECTLY,
            line_directive_mode=LINE_DIRECTIVES if with_lines else NO_LINE_DIRECTIVES,
        )
        options = (_Option * len(OPTIONS))(
            *(_Option(name, _option_value(value)) for name, value in OPTIONS)
        )
        description = _SessionDesc(
            size=ctypes.sizeof(_SessionDesc),
            targets=ctypes.pointer(one_target),
            target_count=1,
            matrix_layout=ROW_MAJOR,
            search_paths=(ctypes.c_char_p * len(folders))(*map(str.encode, folders)),
            search_path_count=len(folders),
            options=options,
            option_count=len(OPTIONS),
        )
        session = _Out()
        result = _call(
            self._this,
            _GLOBAL_CREATE_SESSION,
            ctypes.c_int32,
            ctypes.pointer(description),
            session.pointer,
        )
        if result < 0 or not session.cell.value:
            raise OSError(f"createSession returned {result & 0xFFFFFFFF:#x}")
        return Session(session.cell.value)


class Session:
    """One format and its loaded modules; the library is read once."""

    def __init__(self, this: int) -> None:
        self._this = this
        self.module_count = 0

    def close(self) -> None:
        """Frees the modules; the session must not be used again."""
        _release(self._this)

    def serialised(self, module: str) -> bytes:
        """An imported module in the compiler's binary form; empty on failure."""
        name, log = ctypes.c_char_p(module.encode()), _Out()
        loaded = _call(self._this, _SESSION_LOAD, ctypes.c_void_p, name, log.pointer)
        log.take_bytes()
        return _serialised(loaded) if loaded else b""

    def compile(self, module: str, path: str, text: str, entry: str) -> tuple[bytes, str]:
        """Code (empty on failure) and the compiler's log.

        Without an `entry`, the code is the module in the compiler's binary form.
        """
        loading_log = _Out()
        loaded = _call(
            self._this,
            _SESSION_LOAD_SOURCE,
            ctypes.c_void_p,
            ctypes.c_char_p(module.encode()),
            ctypes.c_char_p(path.encode()),
            ctypes.c_char_p(text.encode()),
            loading_log.pointer,
        )
        self.module_count += 1
        log = loading_log.take_text()
        if not loaded:
            return b"", log
        if not entry:
            return _serialised(loaded), log
        steps = _Steps(log)
        point = steps.make(
            loaded,
            _MODULE_FIND_CHECKED_ENTRY,
            ctypes.c_char_p(entry.encode()),
            ctypes.c_int(_STAGE_COMPUTE),
        )
        parts = (ctypes.c_void_p * 2)(loaded, point)
        whole = point and steps.make(
            self._this,
            _SESSION_COMPOSE,
            ctypes.cast(parts, ctypes.c_void_p),
            ctypes.c_ssize_t(2),
        )
        linked = whole and steps.make(whole, _COMPONENT_LINK)
        blob = linked and steps.make(
            linked, _COMPONENT_ENTRY_CODE, ctypes.c_ssize_t(0), ctypes.c_ssize_t(0)
        )
        code = _Out()
        code.cell.value = blob
        for part in (point, whole, linked):
            _release(part)
        return code.take_bytes(), steps.log


def _serialised(module: int) -> bytes:
    content = _Out()
    _call(module, _MODULE_SERIALIZE, ctypes.c_int32, content.pointer)
    return content.take_bytes()


class _Steps:
    """Calls that return an object and diagnostics; `log` collects the diagnostics."""

    def __init__(self, log: str) -> None:
        self.log = log

    def make(self, this: int, slot: int, *arguments: Any) -> int | None:
        result, log = _Out(), _Out()
        status = _call(this, slot, ctypes.c_int32, *arguments, result.pointer, log.pointer)
        self.log += log.take_text()
        return result.cell.value if status >= 0 else None
