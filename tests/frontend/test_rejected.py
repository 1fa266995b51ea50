"""What the front end refuses: code, line, caret and words stand on the line that is refused.

``# error: SR0206 | i | it is an Index``: the code, the text under the carets (nothing where the
error has no place in the source), and words that the message must say.
"""

from __future__ import annotations

import importlib
import inspect
import re
from collections.abc import Callable
from pathlib import Path
from types import FunctionType

import pytest

import shaderad as sad
from shaderad.decorators import KernelFunction
from shaderad.diagnostics import MESSAGES

MARK = re.compile(r"# error: (?P<code>SR\d{4}) \| (?:(?P<under>.*?) )?\| (?P<words>.*)$")


def _cases() -> dict[str, Callable[..., object]]:
    found: dict[str, Callable[..., object]] = {}
    for path in sorted(Path(__file__).parent.glob("rejected/[a-z]*.py")):
        module = importlib.import_module(f"tests.frontend.rejected.{path.stem}")
        for name, thing in vars(module).items():
            if isinstance(thing, FunctionType) and thing.__module__ == module.__name__:
                found[f"{path.stem}-{name}"] = thing
    return found


CASES = _cases()


@pytest.mark.parametrize("name", CASES)
def test_refused_with_code_line_caret_and_words(name: str) -> None:
    case = CASES[name]
    line, mark = _expectation(case)
    with pytest.raises(sad.LanguageError) as caught:
        _define_and_compile(case)
    failure = caught.value
    said = " ".join([failure.message, failure.label, failure.note, failure.help])
    assert failure.code == mark["code"], str(failure)
    assert mark["words"] in said, str(failure)
    if mark["under"] is None:
        assert failure.span is None
        return
    assert failure.span is not None
    assert failure.span.line == line, str(failure)
    text = failure.span.text()[failure.span.column : failure.span.end_column]
    assert text.partition("  #")[0] == mark["under"], str(failure)


def test_every_code_of_the_front_end_is_named_by_a_test() -> None:
    own = {c for c in MESSAGES if c < "SR0280" or "SR0301" <= c < "SR0350"}
    named: set[str] = set()
    for path in Path(__file__).parents[1].rglob("*.py"):
        named |= set(re.findall(r"SR\d{4}", path.read_text()))
    assert own <= named, f"no test names {sorted(own - named)}"


def _define_and_compile(case: Callable[..., object]) -> None:
    made = case()
    assert isinstance(made, KernelFunction), "nothing was refused"
    made.specialise({})


def _expectation(case: Callable[..., object]) -> tuple[int, re.Match[str]]:
    """The marked line of a case, or of the class that it names by ``marked=``."""
    default = inspect.signature(case).parameters.get("marked")
    lines, start = inspect.getsourcelines(case if default is None else default.default)
    found = [(start + k, m) for k, text in enumerate(lines) if (m := MARK.search(text.rstrip()))]
    assert len(found) == 1, f"{len(found)} marks in {case.__name__}"
    return found[0]
