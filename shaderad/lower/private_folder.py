"""A folder of code that will be executed -> nobody but this user, and root, can write to it.

Where files have no owners and modes (Windows), users' folders are apart from the start, and every
folder passes.
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
    """Somebody else can write to a folder; the text says who, with the folder as its subject."""


def make_private(folder: Path) -> None:
    """Makes `folder`, where it is missing, for this user alone.

    Raises:
        OSError: Where that cannot be done.
    """
    folder.mkdir(mode=MODE, parents=True, exist_ok=True)


def check_private(folder: Path, contents: Collection[str]) -> None:
    """Checks that nobody else can write to `folder`.

    A folder of this user that holds nothing but `contents` is closed to others first, and emptied
    where they could write to it. One that holds something else is left as it is.

    Raises:
        UnsafeFolderError: It belongs to somebody else, or others can write to it.
        OSError: It is not there, or out of reach.
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
    """Whether closing it takes nothing from anybody, as it would with ``/tmp``."""
    is_shared = folder.stat().st_mode & stat.S_ISVTX
    return not is_shared and all(path.name in contents for path in folder.iterdir())


def _close(folder: Path, mode: int) -> None:
    folder.chmod(mode & MODE)
    if mode & _OTHERS_WRITE:
        # Some of it may be somebody else's.
        for path in folder.iterdir():
            shutil.rmtree(path, ignore_errors=True)
