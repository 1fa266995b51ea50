"""A page of Markdown -> its fenced blocks, in order, with the lines on which they stand."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

_FENCE = re.compile(r'```(\w*)(?: title="([\w./]+)")?')


@dataclass(frozen=True)
class Block:
    """What stands between two fences."""

    language: str
    title: str
    """The file that the block is, where the page gives it a name."""
    first_line: int
    text: str


def blocks_of(page: Path) -> list[Block]:
    lines = iter(enumerate(page.read_text(encoding="utf-8").splitlines(keepends=True), start=1))
    found: list[Block] = []
    for number, line in lines:
        if not line.lstrip().startswith("```"):
            continue
        fence = _FENCE.fullmatch(line.strip())
        assert fence, f"{page.name}:{number}: not a fence that is understood: {line}"
        inside = []
        for _, text in lines:
            if text.strip() == "```":
                break
            inside.append(text)
        found.append(Block(fence[1], fence[2] or "", number + 1, "".join(inside)))
    return found
