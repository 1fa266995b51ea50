"""The output folder: replaced whole or left as it was, and nobody else's files are lost."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from pathlib import Path

import pytest

import shaderad as sad
from shaderad.bundle.write.folder import check_folder, write_folder

FIRST = {"a.txt": b"one", "wgsl/k.wgsl": b"code"}
SECOND = {"a.txt": b"two", "hlsl/k.hlsl": b"code"}


def with_manifest(contents: Mapping[str, bytes]) -> dict[str, bytes]:
    listing = {"schema": "shaderad-manifest", "files": dict.fromkeys(contents, "hash")}
    return {**contents, "manifest.json": json.dumps(listing).encode()}


def files_in(folder: Path) -> dict[str, bytes]:
    paths = (p for p in folder.rglob("*") if p.is_file())
    return {p.relative_to(folder).as_posix(): p.read_bytes() for p in paths}


def leftovers(folder: Path) -> list[str]:
    return [p.name for p in folder.parent.iterdir() if p.name != folder.name]


def test_a_folder_is_made_with_those_above_it(tmp_path: Path) -> None:
    folder = tmp_path / "deep" / "out"
    write_folder(folder, with_manifest(FIRST))
    assert files_in(folder) == with_manifest(FIRST)
    assert leftovers(folder) == []


def test_a_later_build_replaces_an_earlier_one_whole(tmp_path: Path) -> None:
    folder = tmp_path / "out"
    write_folder(folder, with_manifest(FIRST))
    write_folder(folder, with_manifest(SECOND))
    assert files_in(folder) == with_manifest(SECOND)
    assert not (folder / "wgsl").exists()
    assert leftovers(folder) == []


def test_files_of_others_stay_where_they_are(tmp_path: Path) -> None:
    folder = tmp_path / "out"
    write_folder(folder, with_manifest(FIRST))
    (folder / "notes.txt").write_bytes(b"mine")
    (folder / "wgsl" / "mine.wgsl").write_bytes(b"mine")
    write_folder(folder, with_manifest(SECOND))
    mine = {"notes.txt": b"mine", "wgsl/mine.wgsl": b"mine"}
    assert files_in(folder) == {**with_manifest(SECOND), **mine}


@pytest.mark.parametrize("name", ["a.txt", "manifest.json", "hlsl/k.hlsl"])
def test_a_file_of_others_in_the_way_is_kept(tmp_path: Path, name: str) -> None:
    mine = tmp_path / "out" / name
    mine.parent.mkdir(parents=True)
    mine.write_bytes(b"mine")
    with pytest.raises(sad.CompileError) as caught:
        write_folder(tmp_path / "out", with_manifest(SECOND))
    assert caught.value.code == "SR0709"
    assert f"`{name}`" in caught.value.message
    assert files_in(tmp_path / "out") == {name: b"mine"}
    assert leftovers(tmp_path / "out") == []


def test_a_manifest_of_somebody_else_owns_nothing(tmp_path: Path) -> None:
    folder = tmp_path / "out"
    folder.mkdir()
    (folder / "a.txt").write_bytes(b"mine")
    listing = {"schema": "web-app", "files": {"a.txt": "hash"}}
    (folder / "manifest.json").write_text(json.dumps(listing))
    with pytest.raises(sad.CompileError, match="SR0709"):
        write_folder(folder, with_manifest(FIRST))


def test_a_manifest_that_points_outside_removes_nothing_there(tmp_path: Path) -> None:
    outside = tmp_path / "outside.txt"
    outside.write_bytes(b"mine")
    folder = tmp_path / "out"
    folder.mkdir()
    (folder / "kept.txt").write_bytes(b"mine")
    listing = {
        "schema": "shaderad-manifest",
        "files": {"../outside.txt": "hash", str(outside): "hash"},
    }
    (folder / "manifest.json").write_text(json.dumps(listing))
    write_folder(folder, with_manifest(FIRST))
    assert outside.read_bytes() == b"mine"


def test_a_file_where_the_folder_should_be_is_refused(tmp_path: Path) -> None:
    (tmp_path / "out").write_bytes(b"mine")
    with pytest.raises(sad.CompileError, match="SR0708"):
        check_folder(tmp_path / "out")
    with pytest.raises(sad.CompileError, match="SR0708"):
        write_folder(tmp_path / "out" / "below", with_manifest(FIRST))
    assert (tmp_path / "out").read_bytes() == b"mine"


def test_a_write_that_fails_midway_leaves_the_earlier_build(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "out"
    write_folder(folder, with_manifest(FIRST))
    write_bytes = Path.write_bytes

    def full(path: Path, content: bytes) -> int:
        if path.suffix == ".hlsl":
            raise OSError(28, "No space left on device")
        return write_bytes(path, content)

    monkeypatch.setattr(Path, "write_bytes", full)
    with pytest.raises(sad.CompileError, match="No space left") as caught:
        write_folder(folder, with_manifest(SECOND))
    assert caught.value.code == "SR0708"
    assert files_in(folder) == with_manifest(FIRST)
    assert leftovers(folder) == []


def test_a_swap_that_fails_leaves_the_earlier_build(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "out"
    write_folder(folder, with_manifest(FIRST))
    rename = Path.rename

    def busy(path: Path, target: Path) -> Path:
        if target == folder and not path.name.endswith("-old"):
            raise PermissionError(13, "Permission denied")
        return rename(path, target)

    monkeypatch.setattr(Path, "rename", busy)
    monkeypatch.setattr("shaderad.bundle.write.folder._exchange", lambda one, other: False)
    with pytest.raises(sad.CompileError, match="SR0708"):
        write_folder(folder, with_manifest(SECOND))
    assert files_in(folder) == with_manifest(FIRST)
    assert leftovers(folder) == []


@pytest.mark.skipif(os.name != "posix", reason="modes of POSIX")
def test_the_folder_is_readable_as_others_are(tmp_path: Path) -> None:
    write_folder(tmp_path / "out", with_manifest(FIRST))
    (tmp_path / "usual").mkdir()
    assert (tmp_path / "out").stat().st_mode == (tmp_path / "usual").stat().st_mode
