"""Folders of executable code to which only this user, and root, can write.

On Windows, where files have no owners and modes and users have separate folders, every folder
passes.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import stat
from collections.abc import Collection
from pathlib import Path

MODE = 0o700
_OTHERS = 0o077
_OTHERS_WRITE = 0o022
_ROOT = 0


class UnsafeFolderError(Exception):
    """Other users can write to a folder; the text is a predicate of the folder."""


def make_private(folder: Path) -> None:
    """Creates `folder`, if it is missing, for this user alone.

    Raises:
        OSError: The folder cannot be created.
    """
    folder.mkdir(mode=MODE, parents=True, exist_ok=True)


def check_private(folder: Path, contents: Collection[str]) -> None:
    """Checks that no other user can write to `folder`.

    A folder of this user that holds nothing but `contents` is closed to others first, and emptied
    if they could write to it. A folder with other files is not changed.

    Raises:
        UnsafeFolderError: The folder belongs to another user, or others can write to it.
        OSError: The folder is missing or cannot be read.
    """
    if not hasattr(os, "geteuid"):
        return
    status, user = folder.stat(), os.geteuid()
    if status.st_uid not in (user, _ROOT):
        raise UnsafeFolderError(f"belongs to user {status.st_uid}, and this is user {user}")
    if status.st_uid == user and status.st_mode & _OTHERS and _is_cache(folder, contents):
        with contextlib.suppress(OSError):
            _close(folder, status.st_mode)
        status = folder.stat()
    if status.st_mode & _OTHERS_WRITE:
        mode = stat.S_IMODE(status.st_mode)
        raise UnsafeFolderError(f"can be written to by other users (mode {mode:o})")


def _is_cache(folder: Path, contents: Collection[str]) -> bool:
    """True if `folder` holds only `contents` and is not shared like ``/tmp``."""
    is_shared = folder.stat().st_mode & stat.S_ISVTX
    return not is_shared and all(path.name in contents for path in folder.iterdir())


def _close(folder: Path, mode: int) -> None:
    folder.chmod(mode & MODE)
    if mode & _OTHERS_WRITE:
        # Other users may have written some of the content.
        for path in folder.iterdir():
            shutil.rmtree(path, ignore_errors=True)
