"""A Python file -> its kernels: found by name, imported anew, and its failures at their lines."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

import shaderad as sad
from shaderad.bundle.write.source_file import find_entries, imported, split_source

KERNEL = """
import shaderad as sad


@sad.kernel
def {name}(i: sad.Index, x: sad.In[float], y: sad.Out[float]):
    y[i] = x[i]
"""


def write(path: Path, text: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
    return path


def names_in(path: Path, name: str = "") -> list[str]:
    with imported(path) as module:
        return list(find_entries(module, [name] if name else []).kernels)


def test_a_name_after_the_file_chooses_one_kernel(tmp_path: Path) -> None:
    path = write(tmp_path / "model.py", "")
    assert split_source(str(path)) == (path, "")
    assert split_source(f"{path}:shade") == (path, "shade")


@pytest.mark.skipif(sys.platform == "win32", reason="no such names there")
def test_a_file_with_a_colon_in_its_name_is_a_file(tmp_path: Path) -> None:
    path = write(tmp_path / "model.py:old", "")
    assert split_source(str(path)) == (path, "")


@pytest.mark.parametrize("name", ["missing.py", "missing.py:shade", ".", "model.py:not-a-name"])
def test_no_such_file_is_said(tmp_path: Path, name: str) -> None:
    write(tmp_path / "model.py", "")
    with pytest.raises(sad.LanguageError) as caught:
        split_source(str(tmp_path / name))
    assert caught.value.code == "SR0701"


def test_kernels_come_in_the_order_of_the_file(tmp_path: Path) -> None:
    text = KERNEL.format(name="later") + KERNEL.format(name="earlier")
    assert names_in(write(tmp_path / "model.py", text)) == ["later", "earlier"]


def test_a_kernel_that_is_imported_is_built_only_by_name(tmp_path: Path) -> None:
    write(tmp_path / "base.py", KERNEL.format(name="shade"))
    path = write(tmp_path / "model.py", "from base import shade" + KERNEL.format(name="own"))
    try:
        assert names_in(path) == ["own"]
        assert names_in(path, "shade") == ["shade"]
    finally:
        sys.modules.pop("base", None)


def test_a_kernel_with_two_names_is_built_once(tmp_path: Path) -> None:
    text = KERNEL.format(name="shade") + "\nsame = shade\n"
    assert names_in(write(tmp_path / "model.py", text)) == ["shade"]


def test_a_file_in_a_package_may_import_its_neighbours(tmp_path: Path) -> None:
    write(tmp_path / "scene_package" / "__init__.py", "")
    write(tmp_path / "scene_package" / "size.py", "SIZE = 3")
    text = "from scene_package.size import SIZE" + KERNEL.format(name="shade")
    try:
        assert names_in(write(tmp_path / "scene_package" / "model.py", text)) == ["shade"]
    finally:
        for name in [n for n in sys.modules if n.partition(".")[0] == "scene_package"]:
            del sys.modules[name]


def test_a_file_called_like_a_loaded_module_does_not_replace_it(tmp_path: Path) -> None:
    import json

    path = write(tmp_path / "json.py", KERNEL.format(name="shade"))
    assert names_in(path) == ["shade"]
    assert sys.modules["json"] is json


def test_an_import_leaves_no_trace_and_is_made_anew(tmp_path: Path) -> None:
    search_path, modules = list(sys.path), set(sys.modules)
    path = write(tmp_path / "model_once.py", KERNEL.format(name="first"))
    assert names_in(path) == ["first"]
    write(path, KERNEL.format(name="second_one"))
    assert names_in(path) == ["second_one"]
    assert (sys.path, set(sys.modules)) == (search_path, modules)


@pytest.mark.parametrize(
    ("text", "line", "words"),
    [
        ("x = 1\ndef f(:\n", 2, "SyntaxError"),
        ("import nowhere_at_all\n", 1, "ModuleNotFoundError: No module named 'nowhere_at_all'"),
        ("def f():\n    return 1 / 0\n\nf()\n", 2, "ZeroDivisionError: division by zero"),
        ("import sys\nsys.exit(3)\n", 2, "SystemExit: 3"),
        ('raise ValueError("one\\ntwo")\n', 1, "ValueError: one two"),
        ("assert False\n", 1, "AssertionError"),
    ],
)
def test_a_file_that_cannot_be_imported_is_shown_at_its_line(
    tmp_path: Path, text: str, line: int, words: str
) -> None:
    with pytest.raises(sad.LanguageError) as caught:
        names_in(write(tmp_path / "model.py", text))
    assert caught.value.code == "SR0702"
    assert words in caught.value.message
    assert caught.value.message == " ".join(caught.value.message.split())
    assert caught.value.span is not None
    assert caught.value.span.line == line


def test_an_error_of_ours_without_place_gets_the_line_that_raised_it(tmp_path: Path) -> None:
    path = write(tmp_path / "model.py", "import shaderad as sad\n\ntype_ = sad.InOut\n")
    with pytest.raises(sad.UnknownNameError) as caught:
        names_in(path)
    assert caught.value.span is not None
    assert caught.value.span.line == 3
    assert "type_ = sad.InOut" in str(caught.value)


def test_a_file_without_kernels_is_refused(tmp_path: Path) -> None:
    with pytest.raises(sad.LanguageError) as caught:
        names_in(write(tmp_path / "model.py", "x = 1"))
    assert caught.value.code == "SR0703"


def test_a_name_that_is_no_kernel_lists_those_there_are(tmp_path: Path) -> None:
    path = write(tmp_path / "model.py", KERNEL.format(name="shade"))
    with pytest.raises(sad.LanguageError) as caught:
        names_in(path, "sad")
    assert caught.value.code == "SR0704"
    assert "`shade`" in caught.value.label
