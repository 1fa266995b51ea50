"""The Slang library as binary modules on disk, which sessions load in place of its source.

Parsing the source takes up to two seconds in every session of every process, the modules take less
than a tenth of that; the compiled code is the same byte for byte.

Invariants: a module is used only while its content has the digest in its folder's name, because a
damaged one crashes the compiler; a folder appears by an atomic rename, so processes may share it.
Without a module, sessions read the source.
"""

from __future__ import annotations

import hashlib
import shutil
import tempfile
from pathlib import Path

from shaderad.compiler.child import ChildDied, Children, ChildTimedOut, ChildUnavailable

MODULES = ("shaderad", "safe_math", "double_math")
"""The modules of the library; few programs import the last."""

TIMEOUT_SECONDS = 60.0
_KEPT = 8  # Folders of up to 8 MB each, for several versions of shaderad.


def file_of(module: str) -> str:
    """The file that Slang prefers to the source of `module`."""
    return f"{module}.slang-module"


def find_or_make(
    root: Path, module: str, library: Path, key: str, children: Children
) -> Path | None:
    """The folder of a binary module, which precedes the library's folder; `None` on failure.

    Args:
        root: The folder of all folders of modules.
        module: One of `MODULES`.
        library: The folder of its source.
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
            folder = _made(Path(scratch), module, library, key, children)
        _drop_all_but_newest(root)
    except (OSError, ChildDied, ChildTimedOut, ChildUnavailable):
        return None
    return folder


def _made(scratch: Path, module: str, library: Path, key: str, children: Children) -> Path | None:
    folder = scratch / "module"
    folder.mkdir()
    path = str(folder / file_of(module))
    request = {"kind": "library", "library": str(library), "module": module, "path": path}
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
    folders = sorted(root.iterdir(), key=lambda path: path.stat().st_mtime, reverse=True)
    for folder in folders[_KEPT:]:
        shutil.rmtree(folder, ignore_errors=True)
