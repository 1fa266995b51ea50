"""The disk cache: damage is a miss, a bad folder costs nothing but time, size stays bounded."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from shaderad.lower.cache import Cache, default_cache, key_of


def entries(cache: Cache) -> list[Path]:
    assert cache.folder is not None
    return sorted(p for p in (cache.folder / "entries").glob("*/*") if p.is_file())


def test_what_was_put_is_what_one_gets(tmp_path: Path) -> None:
    cache = Cache(tmp_path)
    key = key_of("a")
    assert cache.get(key) is None
    for payload in (b"", b"code", bytes(range(256)) * 999):
        cache.put(key, payload)
        assert cache.get(key) == payload
        assert Cache(tmp_path).get(key) == payload


@pytest.mark.parametrize(
    "damage",
    [
        lambda content: b"",
        lambda content: content[:20],
        lambda content: content[:-1],
        lambda content: content + b"!",
        lambda content: content[:-1] + bytes([content[-1] ^ 1]),
        lambda content: b"\0" * len(content),
    ],
    ids=["empty", "header cut", "one byte short", "one byte long", "one bit", "zeros"],
)
def test_a_damaged_entry_is_deleted_and_counts_as_absent(tmp_path: Path, damage) -> None:
    cache = Cache(tmp_path)
    key = key_of("a")
    cache.put(key, b"code")
    (path,) = entries(cache)
    path.write_bytes(damage(path.read_bytes()))
    assert cache.get(key) is None
    assert entries(cache) == []
    cache.put(key, b"code")
    assert cache.get(key) == b"code"


def test_a_folder_that_cannot_be_made_keeps_nothing_and_raises_nothing(tmp_path: Path) -> None:
    blocked = tmp_path / "file"
    blocked.write_text("not a folder")
    cache = Cache(blocked / "cache")
    cache.put(key_of("a"), b"code")
    assert cache.get(key_of("a")) is None


def test_a_full_disk_leaves_no_part_of_an_entry(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def no_space(self: Path, target: Path) -> Path:
        raise OSError(28, "No space left on device")

    cache = Cache(tmp_path)
    monkeypatch.setattr(Path, "replace", no_space)
    cache.put(key_of("a"), b"code")
    assert cache.get(key_of("a")) is None
    assert entries(cache) == []


def test_the_oldest_entries_go_when_the_folder_is_too_large(tmp_path: Path) -> None:
    full = Cache(tmp_path)
    keys = [key_of(str(number)) for number in range(8)]
    for age, key in enumerate(keys):
        full.put(key, b"x" * 1000)
        (path,) = (p for p in entries(full) if p.name == key)
        os.utime(path, (time.time() - 9000 + age,) * 2)
    pruning = Cache(tmp_path, limit_bytes=5000)
    newest = key_of("newest")
    pruning.put(newest, b"x" * 1000)
    left = [key for key in (*keys, newest) if pruning.get(key) is not None]
    assert left == [*keys[5:], newest]


def test_what_a_crashed_writer_left_goes_after_a_day(tmp_path: Path) -> None:
    cache = Cache(tmp_path)
    cache.put(key_of("a"), b"code")
    (path,) = entries(cache)
    old, young = path.with_name("old.new"), path.with_name("young.new")
    for left in (old, young):
        left.write_bytes(b"half")
    os.utime(old, (time.time() - 100_000,) * 2)
    Cache(tmp_path).put(key_of("b"), b"code")
    assert not old.exists()
    assert young.exists()
    assert cache.get(key_of("a")) == b"code"


def test_an_entry_in_use_stays_young(tmp_path: Path) -> None:
    cache = Cache(tmp_path)
    cache.put(key_of("a"), b"code")
    (path,) = entries(cache)
    os.utime(path, (time.time() - 100_000,) * 2)
    cache.get(key_of("a"))
    assert time.time() - path.stat().st_mtime < 1000


def test_processes_that_write_one_key_never_see_half_an_entry(tmp_path: Path) -> None:
    script = f"""
from pathlib import Path
from shaderad.lower.cache import Cache, key_of
cache, key = Cache(Path({str(tmp_path)!r})), key_of("shared")
for number in range(200):
    cache.put(key, bytes([number]) * 20_000)
    content = cache.get(key)
    assert content is not None and len(content) == 20_000 and len(set(content)) == 1
"""
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    runs = [
        subprocess.Popen([sys.executable, "-c", script], env=environment, stderr=subprocess.PIPE)
        for _ in range(3)
    ]
    for run in runs:
        assert run.communicate()[1] == b""
        assert run.returncode == 0


def test_keys_tell_parts_apart_that_join_alike() -> None:
    assert key_of("ab", "c") != key_of("a", "bc")
    assert key_of("ab") != key_of("ab", "")
    assert key_of("ab") == key_of(b"ab")


def test_an_environment_variable_chooses_the_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SHADERAD_CACHE", str(tmp_path))
    # Past the memo, which belongs to the process and not to this test.
    assert default_cache.__wrapped__().folder == tmp_path
    monkeypatch.delenv("SHADERAD_CACHE")
    folder = default_cache.__wrapped__().folder
    assert folder is not None
    assert folder.name == "shaderad"
