"""The source line that an error shows."""

from __future__ import annotations

from pathlib import Path

import pytest

from shaderad.diagnostics import Span, error


@pytest.mark.parametrize("position", [0, 30, 2000, 3996])
def test_a_long_line_is_shown_around_the_marked_columns(tmp_path: Path, position: int) -> None:
    line = "x" * position + "MARK" + "x" * (3996 - position)
    file = tmp_path / "long.py"
    file.write_text(line + "\n")
    span = Span(str(file), 1, position, position + 4)
    shown = str(error("SR0203", span, name="x", remedy="")).splitlines()
    text, carets = (part.partition("| ")[2] for part in shown[3:5])
    assert text[carets.index("^") : carets.rindex("^") + 1] == "MARK"
    assert len(text) <= 164
    assert text.startswith("..") == (position > 100)
    assert text.endswith("..") == (position < 3900)


def test_a_mark_longer_than_the_excerpt_ends_with_it(tmp_path: Path) -> None:
    file = tmp_path / "long.py"
    file.write_text("x" * 4000 + "\n")
    shown = str(error("SR0203", Span(str(file), 1, 10, 3000), name="x", remedy="")).splitlines()
    assert len(shown[4].rstrip()) <= len(shown[3])


def test_a_file_name_stays_in_its_line() -> None:
    span = Span("folder/a\nb\x1b[2J.py", 3)
    assert str(error("SR0203", span, name="x", remedy="")).splitlines()[1] == (
        " --> folder/a\\nb\\x1b[2J.py:3:1"
    )
    assert span.file_name == "a\\nb\\x1b[2J.py"
    assert Span("C:\\folder\\kernels.py", 1).file_name == "kernels.py"


def test_a_name_that_nobody_reads_to_its_end_is_cut() -> None:
    message = error("SR0203", None, name="n" * 5000, remedy="").message
    assert message == f"name `{'n' * 100}..` is not defined"
    assert "n" * 119 in error("SR0203", None, name="n" * 119, remedy="").message
