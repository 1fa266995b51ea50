"""Files in memory -> the output folder, written all together or not at all.

Invariant: a file that no earlier build listed in its manifest is never changed or removed, and a
failure leaves the folder unchanged.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import shutil
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path, PurePosixPath

from shaderad.bundle.format.description import FILE
from shaderad.bundle.read.loaded_files import UnreadableError, plain_path, read_plain
from shaderad.bundle.write.manifest import listed_files
from shaderad.diagnostics import error

# Constants of renameat2(2) on Linux.
_AT_FDCWD, _RENAME_EXCHANGE = -100, 2


def check_folder(folder: Path) -> None:
    """Refuses a `folder` that `write_folder` could not write.

    Raises:
        CompileError: SR0708, if `folder` or one of its parents is a file.
    """
    for path in (folder, *folder.parents):
        if path.exists() and not path.is_dir():
            what = "it" if path == folder else f"`{path.name}`"
            raise error("SR0708", folder=folder, reason=f"{what} is a file")


def write_folder(folder: Path, contents: Mapping[str, bytes]) -> None:
    """Replaces the files of an earlier build in `folder` by `contents`, which is keyed by path.

    Raises:
        CompileError: SR0708, if the folder cannot be written; SR0709, if a file that no build
            wrote is in the way.
    """
    folder = folder.resolve()
    check_folder(folder)
    try:
        ours = _files_of_ours(folder)
        _check_nothing_is_in_the_way(folder, contents, ours)
        folder.parent.mkdir(parents=True, exist_ok=True)
        staged = Path(tempfile.mkdtemp(prefix=f".{folder.name}-", dir=folder.parent))
        try:
            _write_all(staged, contents)
            if _all_files(folder) <= ours:
                _swap(staged, folder)
            else:
                _move_in(staged, folder, contents, ours)
        finally:
            shutil.rmtree(staged, ignore_errors=True)
    except OSError as failure:
        raise error("SR0708", folder=folder, reason=failure.strerror or failure) from failure


def _files_of_ours(folder: Path) -> frozenset[str]:
    """The manifest in `folder` and the files it lists, except paths that lead out of `folder`."""
    try:
        listed = listed_files(read_plain(folder, FILE))
    except UnreadableError:
        return frozenset()
    inside = {name for name in listed if _is_inside(folder, name)}
    return frozenset(inside | {FILE}) if listed else frozenset()


def _is_inside(folder: Path, name: str) -> bool:
    with contextlib.suppress(UnreadableError):
        return ".." not in PurePosixPath(name).parts and plain_path(folder, name) != folder
    return False


def _all_files(folder: Path) -> set[str]:
    return {p.relative_to(folder).as_posix() for p in folder.rglob("*") if not p.is_dir()}


def _check_nothing_is_in_the_way(
    folder: Path, contents: Mapping[str, bytes], ours: frozenset[str]
) -> None:
    for name in sorted(contents):
        if name not in ours and (folder / name).exists():
            raise error("SR0709", file=name, folder=folder)


def _write_all(folder: Path, contents: Mapping[str, bytes]) -> None:
    for name, content in contents.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
    # mkdtemp creates a private folder; the result gets the usual permissions.
    umask = os.umask(0)
    os.umask(umask)
    folder.chmod(0o777 & ~umask)


def _swap(staged: Path, folder: Path) -> None:
    """Replaces a folder that holds only files of earlier builds."""
    if not folder.exists():
        staged.rename(folder)
        return
    if _exchange(staged, folder):
        return
    old = staged.with_name(f"{staged.name}-old")
    folder.rename(old)
    try:
        staged.rename(folder)
    except OSError:
        old.rename(folder)
        raise
    shutil.rmtree(old, ignore_errors=True)


def _exchange(left: Path, right: Path) -> bool:
    """Exchanges two folders atomically; false if the system does not support it.

    Only Linux does, and not on every file system.
    """
    rename = getattr(ctypes.CDLL(None), "renameat2", None) if sys.platform == "linux" else None
    if rename is None:
        return False
    paths = os.fsencode(left), os.fsencode(right)
    return rename(_AT_FDCWD, paths[0], _AT_FDCWD, paths[1], _RENAME_EXCHANGE) == 0


def _move_in(
    staged: Path, folder: Path, contents: Mapping[str, bytes], ours: frozenset[str]
) -> None:
    """Moves file by file into a folder that holds other files as well; the manifest last."""
    for name in (*sorted(contents.keys() - {FILE}), FILE):
        target = folder / name
        target.parent.mkdir(parents=True, exist_ok=True)
        (staged / name).replace(target)
    for name in ours - contents.keys():
        stale = folder / name
        stale.unlink(missing_ok=True)
        with contextlib.suppress(OSError):  # The folder is not empty.
            stale.parent.rmdir()
