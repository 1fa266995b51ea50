"""Pages read as English: none of the patterns that STYLE.md warns of, and no sentence too long."""

from __future__ import annotations

import dataclasses

import pytest

from shaderad.diagnostics import MESSAGES
from tests.documents.writing import findings
from tests.samples.loading import ROOT, module_of

GENERATED = ("errors.md",)
"""Pages made from messages, which are no sentences."""
PAGES = [
    *("README.md", "CONTRIBUTING.md", "STYLE.md", "SECURITY.md", "benchmarks/README.md"),
    *sorted(f"docs/{path.name}" for path in (ROOT / "docs").glob("*.md")
            if path.name not in GENERATED),
]  # fmt: skip


@pytest.mark.parametrize("page", PAGES)
def test_a_page_has_no_sentence_that_is_read_twice(page: str) -> None:
    found = findings((ROOT / page).read_text(encoding="utf-8"))
    assert not found, "\n".join(f"{one.remedy}: {one.sentence}" for one in found)


ALLOWED = {"a transform inside another one uses an array that the outer one does not track"}
"""Sentences that only look like the patterns."""


def test_docstrings_have_no_sentence_that_is_read_twice() -> None:
    house = module_of(ROOT / "scripts/house.py")
    remarks = [
        f"{module.name}: {found.remedy}: {found.sentence}"
        for module in house.House().modules.values()
        if not module.is_to_be_rebuilt
        for text in house.docstrings_of(module.tree)
        for found in findings(text.replace("``", "`"))
    ]
    assert not remarks, "\n".join(remarks)


def test_messages_have_no_sentence_that_is_read_twice() -> None:
    remarks = [
        f"{code}: {found.remedy}: {found.sentence}"
        for code, row in MESSAGES.items()
        for text in dataclasses.astuple(row)
        if isinstance(text, str)
        for found in findings(text)
        if found.sentence not in ALLOWED
    ]
    assert not remarks, "\n".join(remarks)


@pytest.mark.parametrize(
    ("text", "remedy"),
    [
        ("A thread a triangle visits its pixels.", "say `per` or `for each`"),
        ("It keeps 16 bytes a thread.", "say `per` or `for each`"),
        ("- Reads\n  happen once a step.", "say `per` or `for each`"),
        ("Refused are arrays that are large.", "begin with the subject"),
        ("Of the first gradient, checks take 8 %.", "begin with the subject"),
        ("What a loop stores is hoisted.", "no clause as a noun"),
        ("A scan is `x0 op x1`, x2, .. and so on.", "write `...`"),
        (f"This sentence goes on {'and on ' * 20}.", "at most 35 words"),
    ],
)
def test_each_pattern_is_found(text: str, remedy: str) -> None:
    assert [one.remedy for one in findings(text)] == [remedy]


@pytest.mark.parametrize(
    "text",
    [
        "The index is an array. What does it hold?",
        "`x` is a kernel, and [two views](a.md) of a mesh show it.",
        "```text\nWhat a loop stores ..\n```\n\n| What a cell says .. |\n",
        "A path such as ../shared is no ellipsis, and `f(..)` is code.",
    ],
)
def test_plain_english_and_code_are_left_alone(text: str) -> None:
    assert findings(text) == []
