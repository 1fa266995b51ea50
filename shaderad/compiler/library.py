"""The Slang library, and its binary modules on disk, which sessions load in place of its source.

Parsing the source took up to two seconds in every session of every process; loading the modules
took less than a tenth of that. The compiled code is the same byte for byte.

Invariants: a module is used only while its content matches the digest in its folder's name, because
a damaged one crashes the compiler. A folder appears by an atomic rename, so processes may share it.
Without a module, sessions read the source.
"""

from __future__ import annotations

import contextlib
import functools
import hashlib
import importlib.metadata
import os
import re
import shutil
import tempfile
import threading
from collections.abc import Sequence
from pathlib import Path

from shaderad.compiler.artifact import LIBRARY_MODULES, Program, library_folder
from shaderad.compiler.cache import Cache, default_cache, key_of
from shaderad.compiler.child import (
    TIMEOUT_SECONDS,
    ChildDied,
    Children,
    ChildTimedOut,
    ChildUnavailable,
    children,
)
from shaderad.compiler.own_sources import COMPILING, digest_of
from shaderad.diagnostics import Error

_IMPORT = re.compile(r"^import (\w+);", re.MULTILINE)
_KEPT = 8  # folders of up to 8 MB each, for several versions of shaderad


def library_path(
    *,
    cache: Cache | None = None,
    library: Path | None = None,
    modules: Sequence[str] = LIBRARY_MODULES,
) -> list[Path]:
    """The folders that a Slang session searches for the library, first to last.

    The first folders hold `modules` in binary form, if the cache folder can be written.
    """
    cache = cache or default_cache()
    folder = library or library_folder()
    cache_folder = cache.usable(create=True)
    if cache_folder is None:
        return [folder]
    root, digest = cache_folder / "library", library_digest(folder)
    binaries: list[Path] = []
    with _making.lock:
        for module in modules:
            key = key_of("library", module, digest, compiler_version(), digest_of(COMPILING))
            if (folder / f"{module}.slang").is_file():
                path = [*binaries, folder]  # binary modules make its imports cheap
                binary = find_or_make(root, module, path, key, children())
                binaries += [binary] if binary is not None else []
    return [*binaries, folder]


class _Making:
    """The lock that threads hold while they precompile the library."""

    def __init__(self) -> None:
        self.forget()
        if hasattr(os, "register_at_fork"):
            os.register_at_fork(after_in_child=self.forget)

    def forget(self) -> None:
        self.lock = threading.Lock()


_making = _Making()


@functools.cache
def prepare() -> None:
    """Starts to precompile the library in the background, once per process."""
    if compiler_version():
        threading.Thread(target=_make_library, daemon=True).start()


def _make_library() -> None:
    # The first compilation reports faults of the cache.
    with contextlib.suppress(Error, OSError):
        library_path(modules=LIBRARY_MODULES[:2])


def modules_of(program: Program) -> tuple[str, ...]:
    """The modules of the library that `program` imports."""
    imports = frozenset(_IMPORT.findall(program.slang))
    return tuple(module for module in LIBRARY_MODULES if module in imports)


@functools.cache
def compiler_version() -> str:
    """The version of slangpy, whose wheel carries the compiler; empty if it is not installed."""
    try:
        return importlib.metadata.version("slangpy")
    except importlib.metadata.PackageNotFoundError:
        return ""


def library_digest(folder: Path) -> str:
    """The hash of the library in `folder`."""
    with os.scandir(folder) as entries:
        files = [(entry.name, entry.stat()) for entry in entries if entry.name.endswith(".slang")]
    states = sorted((name, status.st_mtime_ns, status.st_size) for name, status in files)
    return _digest_at(folder, tuple(states))


@functools.lru_cache(maxsize=16)
def _digest_at(folder: Path, states: tuple[tuple[str, int, int], ...]) -> str:
    """The hash of files, cached by their names, times and sizes, as every compilation needs it."""
    parts: list[str | bytes] = []
    for name, _, _ in states:
        parts += [name, (folder / name).read_bytes()]
    return key_of(*parts)


def file_of(module: str) -> str:
    """The file name of the binary form of `module`, which Slang prefers to its source."""
    return f"{module}.slang-module"


def find_or_make(
    root: Path, module: str, path: Sequence[Path], key: str, children: Children
) -> Path | None:
    """The folder of a binary module, compiled if it is missing; `None` on failure.

    Args:
        root: The folder that holds all folders of modules.
        module: One of `LIBRARY_MODULES`.
        path: The folders of its source and of the modules that it imports.
        key: The hash of the module's name, the library's content, the compiler and its options.
        children: The processes that compile a missing module.
    """
    try:
        for folder in root.glob(f"{key[:16]}-*"):
            if _is_whole(folder, module):
                return folder
            shutil.rmtree(folder)
        root.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(suffix=".new", dir=root) as scratch:
            folder = _made(Path(scratch), module, path, key, children)
        _drop_all_but_newest(root)
    except (OSError, ChildDied, ChildTimedOut, ChildUnavailable):
        return None
    return folder


def _made(
    scratch: Path, module: str, path: Sequence[Path], key: str, children: Children
) -> Path | None:
    folder = scratch / "module"
    folder.mkdir()
    request = {
        "kind": "library",
        "folders": list(map(str, path)),
        "module": module,
        "path": str(folder / file_of(module)),
    }
    digest = children.request(request, TIMEOUT_SECONDS).get("digest")
    if not digest:
        return None
    target = scratch.parent / f"{key[:16]}-{digest}"
    try:
        folder.rename(target)
    except OSError:  # Another process was faster, or the disk does not allow it.
        return target if _is_whole(target, module) else None
    return target


def _is_whole(folder: Path, module: str) -> bool:
    _, _, digest = folder.name.partition("-")
    try:
        content = (folder / file_of(module)).read_bytes()
    except FileNotFoundError:
        return False
    return hashlib.sha256(content).hexdigest() == digest


def _drop_all_but_newest(root: Path) -> None:
    second_by_folder: dict[Path, float] = {}
    for folder in root.iterdir():
        with contextlib.suppress(OSError):  # Another process has dropped or renamed it.
            second_by_folder[folder] = folder.stat().st_mtime
    newest = sorted(second_by_folder, key=second_by_folder.__getitem__, reverse=True)
    for folder in newest[_KEPT:]:
        shutil.rmtree(folder, ignore_errors=True)
