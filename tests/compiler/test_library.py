"""The library as a binary module: same code, and never a damaged one."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any, cast

import pytest

from shaderad.compiler import library as library_modules
from shaderad.compiler.artifact import LIBRARY_MODULES, library_folder
from shaderad.compiler.cache import Cache
from shaderad.compiler.child import Child, ChildDied
from shaderad.compiler.compile import compile_program
from shaderad.compiler.formats import FORMATS
from shaderad.compiler.library import file_of, find_or_make, library_path
from shaderad.lower.bindings import Mode
from tests.lower.golden_kernels import lowered, march, shade

KEY = "0123456789abcdef0123"


@pytest.fixture(scope="module")
def child() -> Iterator[Child]:
    one = Child()
    yield one
    one.close()


@pytest.fixture
def library(tmp_path: Path) -> Path:
    """A small library, which is quick to read."""
    folder = tmp_path / "shaders"
    folder.mkdir()
    source = "module shaderad;\npublic float twice(float v) { return 2.0 * v; }\n"
    (folder / "shaderad.slang").write_text(source)
    return folder


@pytest.fixture(scope="module")
def cache(tmp_path_factory: pytest.TempPathFactory) -> Cache:
    return Cache(tmp_path_factory.mktemp("cache"))


class Broken:
    """A child that cannot make a module."""

    def request(self, message: dict[str, Any], timeout: float) -> dict[str, Any]:
        raise ChildDied("SIGSEGV", "")


BROKEN = cast("Child", Broken())


@pytest.mark.parametrize("code_format", FORMATS)
def test_the_module_gives_the_code_that_the_source_gives(code_format: str, cache: Cache) -> None:
    for one in lowered(march, "exchange"):
        from_module = compile_program(one.program, code_format, cache=cache)
        assert from_module == compile_program(one.program, code_format, cache=Cache(None))


def test_modules_are_searched_before_the_source(cache: Cache) -> None:
    *folders, source = library_path(cache=cache)
    for folder, module in zip(folders, LIBRARY_MODULES, strict=True):
        assert (folder / file_of(module)).stat().st_size > 1 << 16
    assert source == library_folder()
    assert library_path(cache=Cache(None)) == [library_folder()]


def test_a_damaged_module_is_made_again(tmp_path: Path, library: Path, child: Child) -> None:
    made = find_or_make(tmp_path / "made", "shaderad", [library], KEY, child)
    assert made is not None
    whole = (made / file_of("shaderad")).read_bytes()
    for damaged in (b"", whole[: len(whole) // 2], whole[:-1] + bytes([whole[-1] ^ 1])):
        (made / file_of("shaderad")).write_bytes(damaged)
        again = find_or_make(tmp_path / "made", "shaderad", [library], KEY, child)
        assert again is not None
        assert library_modules._is_whole(again, "shaderad")  # pyright: ignore[reportPrivateUsage]


def test_a_module_that_is_there_is_not_made_again(
    tmp_path: Path, library: Path, child: Child
) -> None:
    made = find_or_make(tmp_path / "made", "shaderad", [library], KEY, child)
    assert made is not None
    assert find_or_make(tmp_path / "made", "shaderad", [library], KEY, BROKEN) == made


def test_another_library_has_another_module(tmp_path: Path, library: Path) -> None:
    cache = Cache(tmp_path / "cache")
    first, _ = library_path(cache=cache, library=library)
    source = library / "shaderad.slang"
    source.write_text(source.read_text().replace("2.0", "3.0"))
    second, _ = library_path(cache=cache, library=library)
    assert first != second


def test_only_modules_that_a_program_imports_are_made(tmp_path: Path) -> None:
    cache = Cache(tmp_path / "cache")
    (program,) = (one.program for one in lowered(shade, "native") if one.mode is Mode.PRIMAL)
    assert "import safe_math;" not in program.slang
    compile_program(program, "wgsl", cache=cache)
    made = (tmp_path / "cache" / "library").glob("*/*")
    assert [path.name for path in made] == [file_of("shaderad")]


def test_without_a_module_the_source_is_read(tmp_path: Path, library: Path, child: Child) -> None:
    assert find_or_make(tmp_path / "made", "shaderad", [library], KEY, BROKEN) is None
    (tmp_path / "file").write_text("")
    assert find_or_make(tmp_path / "file", "shaderad", [library], KEY, child) is None
    (library / "shaderad.slang").write_text("module shaderad;\nthis is no Slang\n")
    assert find_or_make(tmp_path / "made", "shaderad", [library], KEY, child) is None
    assert list((tmp_path / "made").iterdir()) == []


def test_threads_that_make_one_module_share_it(tmp_path: Path, library: Path, child: Child) -> None:
    found: list[Path | None] = []

    def make() -> None:
        found.append(find_or_make(tmp_path / "made", "shaderad", [library], KEY, child))

    threads = [threading.Thread(target=make) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(found) == 4
    assert None not in found


def test_old_modules_are_dropped(tmp_path: Path, library: Path, child: Child) -> None:
    for number in range(10):
        newest = find_or_make(tmp_path / "made", "shaderad", [library], f"{number:016}", child)
    kept = list((tmp_path / "made").iterdir())
    assert len(kept) == 8
    assert newest in kept
