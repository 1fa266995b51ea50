"""Content-addressed cache of compiled artifacts on disk: a key (sha256) -> bytes.

An entry carries the hash of its own payload and appears by an atomic rename, so processes may
share a folder and a torn or damaged entry is a miss, never a wrong answer. A folder that cannot
be read or written costs only time: no failure of the disk leaves this file. Entries are executed,
so a folder to which other users can write is not used, and is an error if the user has named it.
On Windows every folder passes, because files have no owners and modes, and users have separate
folders.
"""

from __future__ import annotations

import contextlib
import functools
import hashlib
import os
import random
import shutil
import stat
import tempfile
import time
from pathlib import Path
from typing import TypeVar

import msgspec

from shaderad.diagnostics import error

T = TypeVar("T")
_MAGIC = b"shaderad cache 1\n"
_DIGEST_BYTES = 32
_PRUNES_PER_LIMIT = 16
"""A process prunes after it has written 1/16 of the limit, because pruning looks at every entry.
Each process starts at a random point of that share, so many short processes together prune as
often as a long one.
"""
_DAY = 86400.0
_CONTENTS = frozenset({"entries", "failed", "library", "slangpy"})
"""All that shaderad keeps in a cache folder."""
_OWN_MODE = 0o700
_OTHERS = 0o077
_OTHERS_WRITE = 0o022
_ROOT = 0


class _UnsafeFolderError(Exception):
    """Other users can write to a folder; the text is a predicate of the folder."""


class Cache:
    """A folder of entries, kept under `limit_bytes` by dropping the least recently used."""

    def __init__(
        self, folder: Path | None, limit_bytes: int = 256 << 20, *, is_named: bool = False
    ) -> None:
        """`folder` is created by the first write; without a folder, nothing is cached.

        `is_named` is true if the user has chosen the folder, so an unsafe one is an error.
        """
        self.folder = folder
        self._limit_bytes = limit_bytes
        self._is_named = is_named
        self._is_private = False
        self._bytes_per_prune = limit_bytes // _PRUNES_PER_LIMIT
        # The generator of `random` is the user's, who may have seeded it.
        self._unpruned_bytes = random.SystemRandom().randrange(self._bytes_per_prune)

    def usable(self, *, create: bool = False) -> Path | None:
        """The folder; `None` if it is missing and not created, or if others can write to it.

        Raises:
            CompileError: SR0509, if other users can write to a folder that the user has named.
        """
        if self.folder is None or self._is_private:
            return self.folder
        if create:
            with contextlib.suppress(OSError):
                self.folder.mkdir(mode=_OWN_MODE, parents=True, exist_ok=True)
        try:
            _check_private(self.folder)
        except OSError:
            return None
        except _UnsafeFolderError as fault:
            if self._is_named:
                raise error("SR0509", folder=self.folder, reason=fault) from None
            return None
        self._is_private = True
        return self.folder

    def fault(self) -> str:
        """The reason not to use an existing folder, or empty."""
        try:
            if self.folder is not None:
                _check_private(self.folder)
        except _UnsafeFolderError as fault:
            return str(fault)
        except OSError:
            pass
        return ""

    def get(self, key: str) -> bytes | None:
        """The bytes stored under `key`; `None` for a damaged entry, which is deleted."""
        folder = self.usable()
        if folder is None:
            return None
        path = self._path(folder, key)
        try:
            content = path.read_bytes()
        except OSError:
            return None
        payload = _checked(content)
        with contextlib.suppress(OSError):
            if payload is None:
                path.unlink()
            elif time.time() - path.stat().st_mtime > _DAY:
                os.utime(path)  # Pruning compares ages in days.
        return payload

    def put(self, key: str, payload: bytes) -> None:
        """Stores `payload`; does nothing if the folder cannot be written."""
        folder = self.usable(create=True)
        if folder is None:
            return
        path = self._path(folder, key)
        with contextlib.suppress(OSError):
            path.parent.mkdir(parents=True, exist_ok=True)
            _write_atomically(path, _MAGIC + hashlib.sha256(payload).digest() + payload)
            self._unpruned_bytes += len(payload)
            if self._unpruned_bytes >= self._bytes_per_prune:
                self._unpruned_bytes = 0
                self._prune(folder)

    def load(self, key: str, form: type[T]) -> T | None:
        """The value stored under `key`; `None` if another version wrote it in another form."""
        payload = self.get(key)
        try:
            return None if payload is None else msgspec.msgpack.decode(payload, type=form)
        except msgspec.MsgspecError:
            return None

    def store(self, key: str, value: object) -> None:
        self.put(key, msgspec.msgpack.encode(value))

    @staticmethod
    def _path(folder: Path, key: str) -> Path:
        return folder / "entries" / key[:2] / key

    def _prune(self, folder: Path) -> None:
        """Evicts the oldest entries until the rest fits, and removes files of crashed writers."""
        entries: list[tuple[float, int, Path]] = []
        for path in (folder / "entries").glob("*/*"):
            with contextlib.suppress(OSError):
                status = path.stat()
                entries.append((status.st_mtime, status.st_size, path))
        excess = sum(size for _, size, _ in entries) - self._limit_bytes
        for changed, size, path in sorted(entries):
            is_abandoned = path.suffix == ".new" and time.time() - changed > _DAY
            if excess <= 0 and not is_abandoned:
                continue
            with contextlib.suppress(OSError):
                path.unlink()
                excess -= size


def _check_private(folder: Path) -> None:
    """Checks that no other user can write to `folder`.

    A folder of this user that holds nothing but `_CONTENTS` is first made private, and emptied if
    others could write to it. A folder with other files is not changed.

    Raises:
        _UnsafeFolderError: The folder belongs to another user, or others can write to it.
        OSError: The folder is missing or cannot be read.
    """
    if not hasattr(os, "geteuid"):
        return
    status, user = folder.stat(), os.geteuid()
    if status.st_uid not in (user, _ROOT):
        raise _UnsafeFolderError(f"belongs to user {status.st_uid}, and this is user {user}")
    if status.st_uid == user and status.st_mode & _OTHERS and _is_cache(folder):
        with contextlib.suppress(OSError):
            _close(folder, status.st_mode)
        status = folder.stat()
    if status.st_mode & _OTHERS_WRITE:
        mode = stat.S_IMODE(status.st_mode)
        raise _UnsafeFolderError(f"can be written to by other users (mode {mode:o})")


def _is_cache(folder: Path) -> bool:
    """True if `folder` holds only `_CONTENTS` and is not shared like ``/tmp``."""
    is_shared = folder.stat().st_mode & stat.S_ISVTX
    return not is_shared and all(path.name in _CONTENTS for path in folder.iterdir())


def _close(folder: Path, mode: int) -> None:
    folder.chmod(mode & _OWN_MODE)
    if mode & _OTHERS_WRITE:
        # Other users may have written some of the content.
        for path in folder.iterdir():
            shutil.rmtree(path, ignore_errors=True)


def _checked(content: bytes) -> bytes | None:
    start = len(_MAGIC) + _DIGEST_BYTES
    payload = content[start:]
    if content[:start] != _MAGIC + hashlib.sha256(payload).digest():
        return None
    return payload


def _write_atomically(path: Path, content: bytes) -> None:
    handle, name = tempfile.mkstemp(suffix=".new", dir=path.parent)
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(content)
        Path(name).replace(path)
    except BaseException:
        with contextlib.suppress(OSError):
            Path(name).unlink()
        raise


def key_of(*parts: str | bytes) -> str:
    """The sha256 of `parts`, each preceded by its length."""
    digest = hashlib.sha256()
    for part in parts:
        content = part.encode() if isinstance(part, str) else part
        digest.update(b"%d:" % len(content))
        digest.update(content)
    return digest.hexdigest()


@functools.cache
def default_cache() -> Cache:
    """The cache in the user's cache folder, or in the folder `SHADERAD_CACHE`."""
    chosen = os.environ.get("SHADERAD_CACHE")
    if chosen:
        return Cache(Path(chosen), is_named=True)
    import platformdirs

    return Cache(Path(platformdirs.user_cache_dir("shaderad", appauthor=False)))
