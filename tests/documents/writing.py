"""Markdown prose -> what a reader would read twice: the patterns that STYLE.md names.

A sentence is found by its full stop, so code, headings, tables, and items of lists end one, too.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

LONGEST = 35
"""Words of a sentence, inline code being one."""

_THINGS = (
    "thread|lane|wave|group|launch|dispatch|call|step|pixel|texel|vertex|triangle|mesh|view|row|column|"
    "element|array|index|argument|parameter|dimension|axis|scalar|byte|word|kernel|program|graph|"
    "device|process|machine|test|case|line|page|file|picture|second|segment|cell|field|run|value"
)
_COUNTED = (
    "bytes|words|floats|numbers|rows|columns|lanes|threads|waves|groups|elements|pixels|texels|"
    "samples|dispatches|operations|instructions|pictures|times"
)
PATTERNS: dict[str, re.Pattern[str]] = {
    "say `per` or `for each`": re.compile(
        r"\b(?:(?:an?|one|two|three|four|\d+) (?!(?:and|that|which|of|is|in|or)\b)\w+|once|twice|"
        rf"{_COUNTED}) an? (?:{_THINGS})\b(?! of)",
        re.IGNORECASE,
    ),
    "begin with the subject": re.compile(
        r"^(?:Refused|Measured|Left out|Not (?!all|every|only)\w+ (?:is|are)|Told|Kept|Counted|"
        r"Of (?:the|a|an|all|what|these|those|two|three|several|arrays|numbers|bools)) "
    ),
    "no clause as a noun": re.compile(r"^(?:What|Whatever|Whoever|Who) [^?]*$"),
    "write `...`": re.compile(r"(?<!\.)\.\.(?![./])"),
}
"""What to do instead of each pattern; a sentence is searched for it."""


@dataclass(frozen=True)
class Finding:
    """A sentence that a reader would read twice."""

    remedy: str
    sentence: str


def findings(text: str) -> list[Finding]:
    """The findings in the prose of a page."""
    found: list[Finding] = []
    for sentence in sentences(text):
        for remedy, pattern in PATTERNS.items():
            if pattern.search(sentence):
                found.append(Finding(remedy, sentence))
        if len(sentence.split()) > LONGEST:
            found.append(Finding(f"at most {LONGEST} words", sentence))
    return found


def sentences(text: str) -> Iterator[str]:
    """The sentences of a page's prose; links are their texts, code and quotes one word."""
    text = re.sub(r"^```.*?^```$", "\n", text, flags=re.MULTILINE | re.DOTALL)
    text = re.sub(r"<!--.*?-->|!\[[^\]]*\]\([^)]*\)", "", text, flags=re.DOTALL)
    text = re.sub(r"^(?:\||#|    ).*$", "\n", text, flags=re.MULTILINE)
    text = re.sub(r"^ *(?:[-*]|\d+\.) ", "\n\n", text, flags=re.MULTILINE)
    text = re.sub(r"`[^`]+`", "code", text)
    text = re.sub(r'"[^"\n]*"', "quote", text)
    text = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", text).replace("**", "").replace("*", "")
    for paragraph in re.split(r"\n\s*\n", text):
        whole = " ".join(paragraph.split())
        for sentence in re.split(r"(?<=[.!?:;])\s+(?=[A-Z\"(]|code)", whole):
            if sentence and not re.match(r"SR\d{4} ", sentence):  # a list of codes
                yield sentence
