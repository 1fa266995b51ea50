"""The disk cache shared by many processes, killed ones among them."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

import shaderad as sad
from shaderad.compiler.cache import Cache
from tests.stress import writers


def test_sixteen_processes_share_a_folder_and_never_see_a_wrong_entry(tmp_path: Path) -> None:
    assert writers.shared_by_processes(tmp_path, 16, 10) == [0] * 16


def test_a_writer_that_is_killed_leaves_whole_entries_or_none(tmp_path: Path) -> None:
    for seed in range(4):
        wrong, _ = writers.killed_while_writing(tmp_path, seed)
        assert wrong == 0
    cache = Cache(tmp_path)
    for key in writers.KEYS:
        cache.put(key, b"again")
        assert cache.get(key) == b"again"


@pytest.fixture
def open_folder() -> Iterator[Path]:
    """A folder that a process without rights can reach, as pytest's own cannot."""
    folder = Path(tempfile.mkdtemp())
    folder.chmod(0o755)
    yield folder
    shutil.rmtree(folder)


@pytest.mark.skipif(not hasattr(os, "setuid"), reason="root writes to read-only folders")
def test_a_read_only_folder_is_read_and_left_alone(open_folder: Path) -> None:
    key, damaged, absent = writers.KEYS[:3]
    Cache(open_folder).put(key, b"code")
    Cache(open_folder).put(damaged, b"code")
    (path,) = open_folder.glob(f"entries/*/{damaged}")
    path.write_bytes(b"torn")
    os.utime(path, (0, 0))
    for entry in open_folder.rglob("*"):
        entry.chmod(0o755 if entry.is_dir() else 0o444)
    script = f"""
import os
from pathlib import Path
from shaderad.compiler.cache import Cache
if os.geteuid() == 0:
    os.setuid(65534)
cache = Cache(Path({str(open_folder)!r}))
cache.put({absent!r}, b"code")
print([cache.get(key) for key in ({key!r}, {damaged!r}, {absent!r})])
"""
    modes = [(p, p.chmod(0o555)) for p in (open_folder, *open_folder.rglob("*")) if p.is_dir()]
    finished = subprocess.run(
        [sys.executable, "-c", script],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
        capture_output=True,
        check=True,
        text=True,
    )
    for path, _ in modes:
        path.chmod(0o755)
    assert finished.stdout.strip() == "[b'code', None, None]"


@sad.kernel
def doubled(i: sad.Index, x: sad.In[float], y: sad.Out[float]):
    y[i] = 2.0 * x[i]


def test_kernels_run_and_mend_the_cache_when_every_entry_is_damaged(
    device: sad.Device, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cache = Cache(tmp_path)
    monkeypatch.setattr("shaderad.compiler.compile.default_cache", lambda: cache)
    runtime = device.capabilities.runtime
    sound: dict[Path, bytes] = {}
    for _ in range(2):
        opened = sad.open_device(runtime)
        y = doubled(np.arange(3.0), dim=3, device=opened)
        np.testing.assert_array_equal(y.numpy(), [0.0, 2.0, 4.0])
        opened.close()
        entries = [p for p in tmp_path.glob("entries/*/*") if p.is_file()]
        assert entries
        found = {path: path.read_bytes() for path in entries}
        assert sound in ({}, found)
        sound = found
        for path, content in found.items():
            path.write_bytes(content[:-1] + bytes([content[-1] ^ 0x55]))
