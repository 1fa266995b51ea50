"""The disk cache: damage is a miss, a bad folder costs nothing but time, size stays bounded."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from shaderad.compiler.cache import Cache, default_cache, key_of
from shaderad.diagnostics import CompileError


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
    Cache(tmp_path, limit_bytes=1000).put(key_of("b"), b"c" * 100)
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
from shaderad.compiler.cache import Cache, key_of
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


IS_POSIX = hasattr(os, "geteuid")
posix = pytest.mark.skipif(not IS_POSIX, reason="files have no owners and modes here")


def mode_of(folder: Path) -> int:
    return folder.stat().st_mode & 0o7777


def filled(folder: Path, mode: int) -> Path:
    """A folder that a cache left at `mode`."""
    Cache(folder).put(key_of("a"), b"code")
    folder.chmod(mode)
    return folder


@posix
def test_a_folder_is_made_for_its_user_alone(tmp_path: Path) -> None:
    Cache(tmp_path / "new" / "cache").put(key_of("a"), b"code")
    assert mode_of(tmp_path / "new" / "cache") == 0o700


@posix
@pytest.mark.parametrize("mode", [0o755, 0o750, 0o555])
def test_a_folder_that_others_can_read_is_closed_and_kept(tmp_path: Path, mode: int) -> None:
    folder = filled(tmp_path / "cache", mode)
    assert Cache(folder).get(key_of("a")) == b"code"
    assert mode_of(folder) == mode & 0o700
    folder.chmod(0o700)


@posix
@pytest.mark.parametrize("mode", [0o777, 0o775, 0o707])
def test_a_folder_that_others_could_write_to_is_closed_and_emptied(
    tmp_path: Path, mode: int
) -> None:
    folder = filled(tmp_path / "cache", mode)
    assert Cache(folder).get(key_of("a")) is None
    assert mode_of(folder) == 0o700
    assert list(folder.iterdir()) == []


@posix
@pytest.mark.parametrize(("mode", "is_used"), [(0o777, False), (0o1777, False), (0o755, True)])
def test_a_folder_that_holds_something_else_keeps_its_mode(
    tmp_path: Path, mode: int, is_used: bool
) -> None:
    folder = filled(tmp_path / "cache", 0o700)
    (folder / "thesis.tex").write_text("of somebody")
    folder.chmod(mode)
    assert (Cache(folder).get(key_of("a")) == b"code") is is_used
    Cache(folder).put(key_of("b"), b"code")
    assert (Cache(folder).get(key_of("b")) == b"code") is is_used
    assert mode_of(folder) == mode
    assert (folder / "thesis.tex").exists()


@posix
def test_a_shared_folder_for_temporary_files_is_never_closed(tmp_path: Path) -> None:
    tmp_path.chmod(0o1777)
    Cache(tmp_path).put(key_of("a"), b"code")
    assert mode_of(tmp_path) == 0o1777
    assert list(tmp_path.iterdir()) == []


def belonging_to(user: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Makes every folder one of `user`, for whom is not `user`."""
    true_stat = Path.stat

    def stat(path: Path, *, follow_symlinks: bool = True) -> os.stat_result:
        found = list(true_stat(path, follow_symlinks=follow_symlinks))
        return os.stat_result([*found[:4], user, *found[5:]])

    monkeypatch.setattr(Path, "stat", stat)


@posix
@pytest.mark.parametrize(("owner", "is_used"), [(12345, False), (0, True)])
def test_what_somebody_else_wrote_is_not_used_but_what_root_wrote_is(
    owner: int, is_used: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = filled(tmp_path / "cache", 0o700)
    monkeypatch.setattr(os, "geteuid", lambda: 4321)
    belonging_to(owner, monkeypatch)
    cache = Cache(folder)
    assert (cache.get(key_of("a")) == b"code") is is_used
    assert (cache.usable(create=True) is not None) is is_used
    assert ("belongs to user 12345" in cache.fault()) is not is_used


@posix
def test_a_named_folder_that_is_not_safe_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SHADERAD_CACHE", str(tmp_path))
    (tmp_path / "thesis.tex").write_text("of somebody")
    tmp_path.chmod(0o777)
    cache = default_cache.__wrapped__()
    for use in (lambda: cache.get(key_of("a")), lambda: cache.put(key_of("a"), b"code")):
        with pytest.raises(CompileError, match=r"mode 777") as caught:
            use()
        assert caught.value.code == "SR0509"
        assert str(tmp_path) in caught.value.message


def test_without_owners_and_modes_every_folder_serves(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delattr(os, "geteuid", raising=False)
    tmp_path.chmod(0o777)
    Cache(tmp_path).put(key_of("a"), b"code")
    assert Cache(tmp_path).get(key_of("a")) == b"code"
