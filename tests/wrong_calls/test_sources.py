"""Kernels whose source is gone, was never there, changed, or is too deep to follow."""

from __future__ import annotations

import importlib.util
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest

import shaderad as sad

KERNEL = """
import shaderad as sad

@sad.kernel
def k(i: sad.Index, x: sad.In[float], y: sad.Out[float]):
    y[i] = {value}
"""
CALL = "import numpy as np\nprint(k(np.ones(2), dim=2).numpy().tolist())\n"


def imported(file: Path, value: str) -> ModuleType:
    file.write_text(KERNEL.format(value=value))
    spec = importlib.util.spec_from_file_location(file.stem, file)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_a_source_file_that_is_gone_after_import_is_not_missed(
    tmp_path: Path, device: sad.Device
) -> None:
    module = imported(tmp_path / "gone.py", "2.0 * x[i]")
    (tmp_path / "gone.py").unlink()
    assert module.k([1.0, 2.0], dim=2).numpy().tolist() == [2.0, 4.0]


def test_a_source_file_that_is_edited_after_import_means_what_it_meant(
    tmp_path: Path, device: sad.Device
) -> None:
    module = imported(tmp_path / "edited.py", "2.0 * x[i]")
    (tmp_path / "edited.py").write_text("# nothing here any more\n")
    assert module.k([1.0, 2.0], dim=2).numpy().tolist() == [2.0, 4.0]


def test_errors_still_show_the_line_of_a_file_that_is_gone(tmp_path: Path) -> None:
    module = imported(tmp_path / "wrong.py", "x")
    (tmp_path / "wrong.py").unlink()
    with pytest.raises(sad.LanguageError, match="SR0238") as caught:
        module.k.specialise({})
    assert caught.value.span is not None
    assert caught.value.span.line == 6


@pytest.mark.parametrize("way", [["-c"], ["-"]], ids=["command line", "standard input"])
def test_a_prompt_has_no_source_and_says_so(way: list[str]) -> None:
    text = KERNEL.format(value="x[i]") + CALL
    arguments = [*way, text] if way == ["-c"] else way
    ran = subprocess.run(
        [sys.executable, *arguments], input=text, capture_output=True, text=True, timeout=60
    )
    assert ran.returncode == 1
    assert "error[SR0101]: the source of `k` is not available" in ran.stderr
    assert "define it in a file" in ran.stderr


@pytest.mark.parametrize("count", [300, 900])
def test_an_expression_too_deep_for_pythons_stack_is_refused(tmp_path: Path, count: int) -> None:
    module = imported(tmp_path / "deep.py", " + ".join(["x[i]"] * count))
    with pytest.raises(sad.LanguageError, match="SR0106") as caught:
        module.k([1.0, 2.0], dim=2)
    assert "`k` nests deeper" in caught.value.message
    assert "several statements" in caught.value.help
