"""Slang text of a user -> its lines, and the signatures of its entry points.

Invariant: the lines are all of the text, because compiled code is cached by them. Files that
``#include`` names are part of them; a module that ``import`` names is refused.
"""

from __future__ import annotations

import linecache
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from shaderad.compiler.artifact import LIBRARY_MODULES
from shaderad.diagnostics import Span, error
from shaderad.ir.nodes import SlangEntry, SlangParameter

Line = tuple[str, Span]

_SKIPPED = re.compile(r'//[^\n]*|/\*.*?(?:\*/|\Z)|"(?:\\.|[^"\\\n])*"', re.DOTALL)
_INCLUDE = re.compile(r'\s*#\s*include\s*["<]([^">]*)[">]')
_ONCE = re.compile(r"\s*#\s*pragma\s+once\b")
_MODULE = re.compile(
    r"\s*(?:(?:public|__exported)\s+)?(?:(?:import|__include|implementing|module)\s+([\w./\"-]+)"
    r"|#\s*(?:line|import)\b)"
)
_ENTRY_POINT = re.compile(r"\[\s*(?:shader|numthreads)\b")
_FEATURES = {
    "subgroups": re.compile(r"\bWave[A-Z]"),
    "half": re.compile(r"\b(?:half|float16_t)"),
    "double": re.compile(r"\b(?:double|float64_t)"),
}
_DEPTH_LIMIT = 32
"""Maximum depth of files that include files."""
_NO_VARIABLE = re.compile(
    r"\b(?:static|groupshared|typealias|typedef|using|struct|class|enum|interface|extension|func"
    r"|static_assert|associatedtype|__generic)\b"
)
_PARAMETER = re.compile(
    r"(?:(?:in|const|uniform|no_diff)\b\s*)*(?P<type>.+?)\s*\b(?P<name>\w+)\s*"
    r"(?::\s*(?P<semantic>\w+)\s*)?"
)


@dataclass(frozen=True, slots=True)
class SlangSource:
    """The text of a user's kernel, complete."""

    lines: tuple[Line, ...]

    @property
    def features(self) -> frozenset[str]:
        """The features of devices that any part of the text needs."""
        text = _plain("\n".join(text for text, _ in self.lines))
        return frozenset(name for name, used in _FEATURES.items() if used.search(text))

    def entry(self, name: str) -> SlangEntry | None:
        """The function ``void name(...)``; `None` if there is none."""
        text = _plain("\n".join(text for text, _ in self.lines))
        head = re.search(rf"\bvoid\s+{re.escape(name)}\s*\(", text)
        if head is None:
            return None
        parts = _parts(text[head.end() :])
        span = self.lines[text.count("\n", 0, head.start())][1]
        return SlangEntry(name=name, parameters=tuple(map(_parameter, parts)), span=span)


def source_of_file(path: Path) -> SlangSource:
    """The source in a file.

    Raises:
        LanguageError: SR0268 to SR0270, for text that no kernel can contain.
    """
    return _checked(_lines_of_file(path, (), set()))


def source_of_text(text: str, name: str) -> SlangSource:
    """The source that a program holds; messages show its lines as those of a file `name`.

    Raises:
        LanguageError: SR0269, SR0270, for text that no kernel can contain.
    """
    shown = text.splitlines(keepends=True)
    file, number = name, 1
    while linecache.getlines(file) not in ([], shown):  # Another text of the same line of Python.
        number += 1
        file = f"{name} ({number})"
    linecache.cache[file] = (len(text), None, shown, file)
    lines = tuple(_numbered(text, file))
    for line, span in lines:
        if _INCLUDE.match(line):
            raise error("SR0269", span, text=line.strip())
    return _checked(lines)


def _checked(lines: Iterable[Line]) -> SlangSource:
    source = SlangSource(tuple(lines))
    for text, span in source.lines:
        if _ENTRY_POINT.search(_plain(text)):
            raise error("SR0278", span, text=text.strip())
    _check_globals(source.lines)
    return source


def _lines_of_file(path: Path, outer: tuple[Span, ...], once: set[Path]) -> Iterator[Line]:
    """The lines of a file, with those of the files that it includes.

    Args:
        path: The file.
        outer: The lines that include it, outermost first.
        once: Files that are read only once, extended here.
    """
    asked = outer[-1] if outer else None
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as failure:
        raise error("SR0268", asked, path=path, reason=failure) from None
    if path.resolve() in once:
        return
    if len(outer) > _DEPTH_LIMIT:
        raise error("SR0268", asked, path=path, reason="files include each other without end")
    linecache.checkcache(str(path))
    for line, span in _numbered(text, str(path)):
        include = _INCLUDE.match(line)
        if include is not None:
            yield from _lines_of_file(path.parent / include[1], (*outer, span), once)
        elif _ONCE.match(line):
            once.add(path.resolve())
        else:
            yield line, span


def _numbered(text: str, file: str) -> Iterator[Line]:
    """The lines of a text with their places.

    Raises:
        LanguageError: SR0269 for a line that names text elsewhere.
    """
    text = text.removesuffix("\n")
    plain = _plain(text, keeps_strings=True).split("\n")
    for number, (line, code) in enumerate(zip(text.split("\n"), plain, strict=True), start=1):
        span = Span(file, number, len(line) - len(line.lstrip()), len(line.rstrip()))
        module = _MODULE.match(code)
        if module is None:
            yield line, span
        elif module[1] in LIBRARY_MODULES:
            yield "", span  # Generated text imports it.
        else:
            raise error("SR0269", span, text=code.strip())


def _plain(text: str, *, keeps_strings: bool = False) -> str:
    """`text` with spaces in place of comments and strings; places stay the same."""

    def blank(match: re.Match[str]) -> str:
        if keeps_strings and match[0].startswith('"'):
            return match[0]
        return re.sub(r"[^\n]", " ", match[0])

    return _SKIPPED.sub(blank, text)


def _check_globals(lines: tuple[Line, ...]) -> None:
    """Checks that the text declares no parameters of its own, which nobody would bind.

    Raises:
        LanguageError: SR0270 for a global variable that is neither ``static`` nor ``groupshared``.
    """
    depth, statement, start = 0, "", 0
    text = _plain("\n".join("" if text.lstrip().startswith("#") else text for text, _ in lines))
    for place, letter in enumerate(text):
        if not statement.strip():
            start = place
        depth += (letter in "{([") - (letter in "})]")
        if letter == "{" and depth == 1 and re.match(r"\s*namespace\b", statement):
            depth, statement = 0, ""
        elif depth <= 0 and letter == "}":
            depth, statement = 0, f"{statement}{letter}" if "=" in statement else ""
        elif letter in ";{" and depth == (letter == "{") and _is_parameter(statement, letter):
            raise error("SR0270", lines[text.count("\n", 0, start)][1],
                        text=" ".join(statement.split()))  # fmt: skip
        else:
            statement = "" if letter == ";" and depth == 0 else statement + letter


def _is_parameter(statement: str, end: str) -> bool:
    """True for the declaration of a global variable or block that a host would have to set."""
    statement = re.sub(r"^\s*(?:\[[^\]]*\]+\s*)+", "", statement)
    if end == "{":
        return re.match(r"\s*[ct]buffer\b", statement) is not None
    declared = re.split(r"[=:]", statement)[0]
    is_other = _NO_VARIABLE.search(declared) or "(" in declared
    return len(declared.split()) > 1 and not is_other


def _parts(text: str) -> list[str]:
    """The parts of a list between commas, up to the bracket that closes it."""
    parts, depth = [""], 0
    for letter in text:
        if letter == ")" and depth == 0:
            break
        depth += (letter in "<([{") - (letter in ">)]}")
        if letter == "," and depth == 0:
            parts.append("")
        else:
            parts[-1] += letter
    return [part.strip() for part in parts if part.strip()]


def _parameter(text: str) -> SlangParameter:
    match = _PARAMETER.fullmatch(text)
    if match is None:
        return SlangParameter(name=text, type="", semantic="")
    written = re.sub(r"\s+", "", match["type"]).replace(",1>", ">")
    return SlangParameter(name=match["name"], type=written, semantic=match["semantic"] or "")
