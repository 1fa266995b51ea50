"""Errors as Python objects; their texts are tested where they are raised."""

from __future__ import annotations

import pickle
import re
from pathlib import Path
from string import Formatter

import pytest

import shaderad as sad
from shaderad.diagnostics import MESSAGES, NO_SPAN, Error, Span, error
from shaderad.diagnostics.errors import sentence


def test_an_error_survives_the_way_to_another_process() -> None:
    raised = error("SR0203", Span("kernels.py", 3, 4, 9), name="speed", remedy="")
    copy = pickle.loads(pickle.dumps(raised))
    assert type(copy) is type(raised)
    assert (copy.code, copy.span, copy.help, str(copy)) == (
        raised.code,
        raised.span,
        raised.help,
        str(raised),
    )


def test_a_place_that_is_no_python_line_is_not_shown() -> None:
    raised = error("SR0203", NO_SPAN, name="speed", remedy="")
    assert raised.span is None
    assert raised.at(NO_SPAN).span is None
    assert "<shaderad>" not in str(raised)


@pytest.mark.parametrize("kind", [Error, *Error.__subclasses__()], ids=lambda kind: kind.__name__)
def test_an_error_class_calls_itself_by_its_public_name(kind: type[Error]) -> None:
    assert kind.__module__ == "shaderad"
    assert getattr(sad, kind.__qualname__) is kind


@pytest.mark.parametrize(
    ("count", "wanted"), [(0, "0 axes"), (1, "1 axis"), (2, "2 axes"), ("1 or 2", "1 or 2 axes")]
)
def test_counts_take_the_right_noun(count: object, wanted: str) -> None:
    assert sentence("it has {count:axis|axes}", {"count": count}) == f"it has {wanted}"


def test_every_template_can_be_filled_in() -> None:
    for code, row in MESSAGES.items():
        for template in (row.message, row.label, row.note, row.help):
            names = {name for _, name, _, _ in Formatter().parse(template) if name}
            said = sentence(template, dict.fromkeys(names, 1))
            assert not re.search(r"\{[a-z_]+[:}]|\|[a-z]+\}", said), f"{code}: {said}"


def test_no_template_counts_things_without_a_singular() -> None:
    counted = re.compile(
        r"\{[a-z_]*(count|number|found|wanted)\} "
        r"(indices|axes|elements|values|arguments|entries|extents|[a-z]+ buffers|workgroups)"
    )
    for code, row in MESSAGES.items():
        assert not counted.search(" ".join((row.message, row.label, row.note, row.help))), code


@pytest.mark.parametrize("position", [0, 30, 2000, 3996])
def test_a_long_line_is_shown_around_the_marked_columns(tmp_path: Path, position: int) -> None:
    line = "x" * position + "MARK" + "x" * (3996 - position)
    file = tmp_path / "long.py"
    file.write_text(line + "\n")
    span = Span(str(file), 1, position, position + 4)
    shown = str(error("SR0203", span, name="x", remedy="")).splitlines()
    text, carets = (part.partition("| ")[2] for part in shown[3:5])
    assert text[carets.index("^") : carets.rindex("^") + 1] == "MARK"
    assert len(text) <= 166
    assert text.startswith("...") == (position > 100)
    assert text.endswith("...") == (position < 3900)


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
    assert message == f"name `{'n' * 100}...` is not defined"
    assert "n" * 119 in error("SR0203", None, name="n" * 119, remedy="").message
