"""The Slang library as binary modules on disk, which sessions load in place of its source.

Reading the source takes up to two seconds in every session of every process, the modules less than
a tenth; the code that comes out is the same byte for byte.

Invariants: a module is used only while its content has the digest that its folder is named by,
because a damaged one crashes the compiler; a folder appears by an atomic rename, so processes may
share them. Where there is no module, for whatever reason, sessions read the source.
"""

from __future__ import annotations

import hashlib
import shutil
import tempfile
from pathlib import Path

from shaderad.lower.child import ChildDied, Children, ChildTimedOut, ChildUnavailable

MODULES = ("shaderad", "safe_math", "double_math")
"""What the library consists of; not all programs need the last."""

TIMEOUT_SECONDS = 60.0
_KEPT = 8  # Up to 8 MB each; versions of shaderad that are used side by side.


def file_of(module: str) -> str:
    """What Slang looks for at an import of `module` before it looks for source."""
    return f"{module}.slang-module"


def find_or_make(
    root: Path, module: str, library: Path, key: str, children: Children
) -> Path | None:
    """The folder of a module, to be searched before the library's own.

    Args:
        root: Where such folders are kept.
        module: One of `MODULES`.
        library: The folder of its source.
        key: Names the module, the library's content, the compiler and its options.
        children: The processes that make a module where there is none.
    """
    try:
        for folder in root.glob(f"{key[:16]}-*"):
            if _is_whole(folder, module):
                return folder
            shutil.rmtree(folder)
        root.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(suffix=".new", dir=root) as scratch:
            made = _made(Path(scratch), module, library, key, children)
        _drop_all_but_newest(root)
    except (OSError, ChildDied, ChildTimedOut, ChildUnavailable):
        return None
    return made


def _made(scratch: Path, module: str, library: Path, key: str, children: Children) -> Path | None:
    folder = scratch / "module"
    folder.mkdir()
    path = str(folder / file_of(module))
    request = {"kind": "library", "library": str(library), "module": module, "path": path}
    digest = children.request(request, TIMEOUT_SECONDS).get("digest")
    if not digest:
        return None
    made = scratch.parent / f"{key[:16]}-{digest}"
    try:
        folder.rename(made)
    except OSError:  # Another process was faster, or the disk does not allow it.
        return made if _is_whole(made, module) else None
    return made


def _is_whole(folder: Path, module: str) -> bool:
    _, _, digest = folder.name.partition("-")
    try:
        content = (folder / file_of(module)).read_bytes()
    except FileNotFoundError:
        return False
    return hashlib.sha256(content).hexdigest() == digest


def _drop_all_but_newest(root: Path) -> None:
    folders = sorted(root.iterdir(), key=lambda one: one.stat().st_mtime, reverse=True)
    for folder in folders[_KEPT:]:
        shutil.rmtree(folder, ignore_errors=True)
