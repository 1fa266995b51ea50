"""A name in a manifest -> the bytes of a file in its folder.

The name is untrusted. Invariant: only regular files inside the folder are opened, and at most
`LIMIT_BYTES` of them are read.
"""

from __future__ import annotations

import os
import stat
from pathlib import Path

LIMIT_BYTES = 64 << 20


class UnreadableError(Exception):
    """A file that cannot be read; the text is the reason."""


def plain_name(name: str) -> str:
    """`name` with `_` for characters that names of built files may not contain."""
    return "".join(c if c.isprintable() else "_" for c in name)


def plain_path(folder: Path, name: str) -> Path:
    """The path of the file `name` in `folder`, with links resolved.

    Raises:
        UnreadableError: The path leads out of the folder.
    """
    if not name.isprintable():
        raise UnreadableError("its name cannot be printed")
    path, root = map(os.path.realpath, (folder / name, folder))
    if Path(name).is_absolute() or not Path(path).is_relative_to(root):
        raise UnreadableError("it lies outside of the folder")
    return Path(path)


def read_plain(folder: Path, name: str) -> bytes:
    """The bytes of the file `name` of `folder`.

    Raises:
        UnreadableError: It is missing, outside of the folder, no regular file, or too large.
    """
    try:
        path = plain_path(folder, name)
        _check(path.stat())
        # The file may have been replaced since: opening a pipe must not block.
        flags = ("O_NONBLOCK", "O_NOFOLLOW", "O_BINARY")
        descriptor = os.open(path, os.O_RDONLY | sum(getattr(os, flag, 0) for flag in flags))
        with os.fdopen(descriptor, "rb") as file:
            _check(os.fstat(descriptor))
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
