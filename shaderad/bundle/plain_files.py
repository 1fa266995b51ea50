"""A name that a manifest lists -> the bytes of a file in its folder.

The name may come from anywhere. Invariant: only plain files inside the folder are opened, and of
those no more than `LIMIT_BYTES` are read.
"""

from __future__ import annotations

import os
import stat
from pathlib import Path

LIMIT_BYTES = 64 << 20


class UnreadableError(Exception):
    """A file that is not read; its text says why."""


def plain_name(name: str) -> str:
    """`name` without characters that no file of a build may have in its name."""
    return "".join(c if c.isprintable() else "_" for c in name)


def plain_path(folder: Path, name: str) -> Path:
    """Where the file `name` of `folder` lies, links followed.

    Raises:
        UnreadableError: Where it lies outside of the folder.
    """
    if not name.isprintable():
        raise UnreadableError("its name cannot be printed")
    path, root = (os.path.realpath(one) for one in (folder / name, folder))
    if Path(name).is_absolute() or not Path(path).is_relative_to(root):
        raise UnreadableError("it lies outside of the folder")
    return Path(path)


def read_plain(folder: Path, name: str) -> bytes:
    """The bytes of the file `name` of `folder`.

    Raises:
        UnreadableError: Where it is missing, outside of the folder, no plain file, or too large.
    """
    try:
        path = plain_path(folder, name)
        _check(path.stat())
        # It may be another file by now: a pipe must not keep us waiting.
        number = os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0)
                         | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_BINARY", 0))  # fmt: skip
        with os.fdopen(number, "rb") as file:
            _check(os.fstat(number))
            content = file.read(LIMIT_BYTES + 1)
    except OSError as failure:
        raise UnreadableError(failure.strerror or str(failure)) from None
    except ValueError as failure:  # The name of the folder holds a null character.
        raise UnreadableError(str(failure)) from None
    _check_size(len(content))
    return content


def _check(status: os.stat_result) -> None:
    if not stat.S_ISREG(status.st_mode):
        raise UnreadableError("it is no plain file")
    _check_size(status.st_size)


def _check_size(byte_count: int) -> None:
    if byte_count > LIMIT_BYTES:
        raise UnreadableError(f"it has more than {LIMIT_BYTES >> 20} MiB")
