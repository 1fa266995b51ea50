"""Finished artifacts on disk, by content: a key (sha256) to bytes.

An entry carries the hash of its own payload and appears by an atomic rename, so processes may
share a folder and a torn or damaged entry is a miss, never a wrong answer. A folder that cannot
be read or written costs time only: no failure of the disk leaves this file.
"""

from __future__ import annotations

import contextlib
import functools
import hashlib
import os
import tempfile
import time
from pathlib import Path

_MAGIC = b"shaderad cache 1\n"
_DIGEST_BYTES = 32
_WRITES_PER_PRUNE = 64
_DAY = 86400.0


class Cache:
    """A folder of entries, kept under `limit_bytes` by dropping those not used for longest."""

    def __init__(self, folder: Path | None, limit_bytes: int = 256 << 20) -> None:
        """`folder` is made when first written to; `None` keeps nothing."""
        self.folder = folder
        self._limit_bytes = limit_bytes
        self._write_count = 0

    def get(self, key: str) -> bytes | None:
        """The bytes stored under `key`; a damaged entry is deleted and counts as absent."""
        if self.folder is None:
            return None
        path = self._path(self.folder, key)
        try:
            content = path.read_bytes()
        except OSError:
            return None
        payload = _checked(content)
        with contextlib.suppress(OSError):
            if payload is None:
                path.unlink()
            elif time.time() - path.stat().st_mtime > _DAY:
                os.utime(path)  # Pruning goes by age; a day is fine enough.
        return payload

    def put(self, key: str, payload: bytes) -> None:
        """Stores `payload`, or does nothing where the folder does not allow it."""
        if self.folder is None:
            return
        path = self._path(self.folder, key)
        with contextlib.suppress(OSError):
            path.parent.mkdir(parents=True, exist_ok=True)
            _write_atomically(path, _MAGIC + hashlib.sha256(payload).digest() + payload)
            if self._write_count % _WRITES_PER_PRUNE == 0:
                self._prune(self.folder)
            self._write_count += 1

    @staticmethod
    def _path(folder: Path, key: str) -> Path:
        return folder / "entries" / key[:2] / key

    def _prune(self, folder: Path) -> None:
        """Drops the oldest entries, and what crashed writers left, until the rest fits."""
        found: list[tuple[float, int, Path]] = []
        for path in (folder / "entries").glob("*/*"):
            with contextlib.suppress(OSError):
                status = path.stat()
                found.append((status.st_mtime, status.st_size, path))
        excess = sum(size for _, size, _ in found) - self._limit_bytes
        for age, size, path in sorted(found):
            is_abandoned = path.suffix == ".new" and time.time() - age > _DAY
            if excess <= 0 and not is_abandoned:
                continue
            with contextlib.suppress(OSError):
                path.unlink()
                excess -= size


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
    """One sha256 over `parts`, each framed by its length so that none can run into the next."""
    digest = hashlib.sha256()
    for part in parts:
        content = part.encode() if isinstance(part, str) else part
        digest.update(b"%d:" % len(content))
        digest.update(content)
    return digest.hexdigest()


@functools.cache
def default_cache() -> Cache:
    """The user's cache folder; `SHADERAD_CACHE` names another."""
    chosen = os.environ.get("SHADERAD_CACHE")
    if chosen:
        return Cache(Path(chosen))
    import platformdirs

    return Cache(Path(platformdirs.user_cache_dir("shaderad", appauthor=False)))
