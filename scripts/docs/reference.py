"""Writes the generated parts of pages of docs/.

Run ``python scripts/docs/reference.py``. A part stands between ``<!-- errors: SR02 -->``,
``<!-- api: ... -->``, ``<!-- functions: FLOATS -->``, ``<!-- array functions: layout -->`` or
``<!-- names: Warp -->`` and ``<!-- end -->``. The tables of errors and of names come from
`shaderad.diagnostics`, those of functions from the rows of `shaderad.ir.ops`, the entries of the
API and the tables of array functions from signatures and docstrings, which griffe reads from the
source.
"""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterator, Sequence
from functools import cache
from pathlib import Path
from string import Formatter

import griffe

from shaderad.diagnostics import MESSAGES, Message
from shaderad.diagnostics.foreign_names import LIBRARIES, REMEDY_BY_NAME
from shaderad.ir import ops

ROOT = Path(__file__).parents[2]
PAGES = tuple(
    f"{name}.md"
    for name in ("errors", "api", "array_functions", "coming_from", "functions", "rendering")
)
_PART = re.compile(
    r"(<!-- (errors|api|names|functions|array functions):(.*?)-->\n).*?(<!-- end -->)", re.DOTALL
)


def filled(page: str) -> str:
    """The text of a page with its generated parts written anew."""

    def part(found: re.Match[str]) -> str:
        start, kind, names, end = found.groups()
        if kind == "errors":
            text = table_of(names.strip())
        elif kind == "names":
            text = names_of(names.strip())
        elif kind == "functions":
            text = functions_of([ops.Rule[name] for name in names.split()])
        elif kind == "array functions":
            text = array_functions_of(names.split())
        else:
            text = entries_of(names.split("\n"))
        return f"{start}\n{text}\n\n{end}"

    return _PART.sub(part, page)


# -- errors -----------------------------------------------------------------------------------


def table_of(group: str) -> str:
    """The messages whose codes begin with `group`, by code."""
    codes = sorted(code for code in MESSAGES if code.startswith(group))
    head = ["| Code | Class | What is wrong | What to do |", "|---|---|---|---|"]
    return "\n".join([*head, *(_row(code, MESSAGES[code]) for code in codes)])


def _row(code: str, message: Message) -> str:
    wrong = ": ".join(filter(None, (_told(message.message), _told(message.note))))
    cells = [f'<a id="{code}"></a>{code}', f"`{message.kind.__name__}`", wrong, _told(message.help)]
    return "| " + " | ".join(cells) + " |"


def _told(template: str) -> str:
    """A template with its values as words in capitals; nothing where it is one value alone."""
    parts = list(Formatter().parse(template))
    if not any(text.strip() for text, *_ in parts):
        return ""
    told = "".join(text + (_word(name, form) if name else "") for text, name, form, _ in parts)
    return told.replace("|", "\\|").replace("\n", " ")


def _word(name: str, form: str | None) -> str:
    _, bar, many = (form or "").partition("|")
    return f"{name.upper()} {many}" if bar else name.upper()


# -- names of other libraries -----------------------------------------------------------------


def names_of(library: str) -> str:
    """What its users write, and what to write here."""
    names_by_remedy: dict[str, list[str]] = {}
    for name in LIBRARIES[library].split():
        names_by_remedy.setdefault(REMEDY_BY_NAME[name], []).append(f"`{name}`")
    rows = [
        f"| {', '.join(names)} | {_cell(remedy)} |" for remedy, names in names_by_remedy.items()
    ]
    return "\n".join([f"| {library} | Here |", "|---|---|", *rows])


def _cell(remedy: str) -> str:
    return remedy.removeprefix("write ").replace("|", "\\|")


# -- functions of kernels ---------------------------------------------------------------------


def functions_of(rules: list[ops.Rule]) -> str:
    """The public primitives with these type rules; a single rule is said above them."""
    rows = [op for op in ops.PUBLIC.values() if op.rule in rules]
    if len(rules) == 1:
        head = [rules[0].value, "", "| Function | Value | Derivative |", "|---|---|---|"]
    else:
        head = ["| Function | Types | Value | Derivative |", "|---|---|---|---|"]
    described = [
        *((op, op.signature, op.value) for op in rows),
        *((op, ops.synonym_signature(name), ops.synonym_value(name))
          for name, op in ops.SYNONYMS.items() if op in rows),
    ]  # fmt: skip
    cells = [
        (f"`{signature}`", *([op.rule.value] if rules[1:] else []), value, op.derivative or "none")
        for op, signature, value in described
    ]
    return "\n".join([*head, *(f"| {' | '.join(map(_prose_cell, row))} |" for row in cells)])


def _prose_cell(text: str) -> str:
    return _prose(text).replace("|", "\\|")


# -- the API ----------------------------------------------------------------------------------


def entries_of(lines: list[str]) -> str:
    """One entry a line: ``module.name``, or ``module.Class: member member``.

    ``module.*`` stands for each name that the module lists in `__all__`.
    """
    found: list[str] = []
    for line in filter(None, map(str.strip, lines)):
        path, _, members = line.partition(":")
        if path.endswith(".*"):
            found += (text for thing in _listed(path[:-2]) for text in _entry(thing, thing.name))
            continue
        thing = _package()[path.removeprefix("shaderad.")]
        found += _entry(thing, thing.name)
        for member in members.split():
            found += _entry(thing[member], f"{thing.name}.{member}")
    return "\n".join(found).rstrip()


def _listed(path: str) -> list[griffe.Object | griffe.Alias]:
    """What a module lists in `__all__`, in the order of its text."""
    module = _package()[path.removeprefix("shaderad.")]
    listed = (module[str(name)] for name in module.exports or ())
    return sorted(listed, key=lambda thing: thing.lineno or 0)


def array_functions_of(files: list[str]) -> str:
    """The functions of files of `shaderad.functions` or others, each by its first sentence."""
    paths = [file if "." in file else f"functions.{file}" for file in files]
    things = [thing for path in paths for thing in _listed(path)]
    rows = [_function_row(thing) for thing in things]
    return "\n".join(["| Function | Result |", "|---|---|", *filter(None, rows)])


def _function_row(thing: griffe.Object | griffe.Alias) -> str:
    """A function with its parameters and their defaults; empty for a deprecated one."""
    about = thing.docstring.value.partition("\n")[0] if thing.docstring else ""
    if about.startswith("Deprecated"):
        return ""
    shown = [_parameter(p) for p in _forms(thing)[0].parameters] if thing.is_function else []
    call = f"{thing.name}({', '.join(shown)})" if shown else thing.name
    return f"| `{call}` | {_prose(about).removesuffix('.')} |"


def _parameter(p: griffe.Parameter) -> str:
    if p.kind is griffe.ParameterKind.var_positional:
        return f"*{p.name}"
    return p.name if p.default is None else f"{p.name}={p.default}".replace("'", '"')


@cache
def _package() -> griffe.Object | griffe.Alias:
    return griffe.load("shaderad", search_paths=[ROOT], docstring_parser="google")


def _entry(thing: griffe.Object | griffe.Alias, name: str) -> Iterator[str]:
    yield f"### {name}\n"
    signatures = [_signature(form, name) for form in _forms(thing)]
    if signatures[0]:
        yield textwrap.indent("\n".join(signatures), "    ") + "\n"
    for section in thing.docstring.parsed if thing.docstring else ():
        yield from _section(section)
    if thing.is_class and "dataclass" in thing.labels:
        yield from _fields(thing)


def _forms(thing: griffe.Object | griffe.Alias) -> Sequence[griffe.Object | griffe.Alias]:
    """The overloads of a function, whose docstring is about the parameters of all; else itself."""
    overloads = (thing.overloads if thing.is_function else None) or []
    if overloads:
        by_name = {p.name: p for overload in overloads for p in overload.parameters}
        thing.parameters = griffe.Parameters(*by_name.values())
    return overloads or [thing]


def _documents_arguments(thing: griffe.Object | griffe.Alias) -> bool:
    sections = thing.docstring.parsed if thing.docstring else ()
    return any(section.kind is griffe.DocstringSectionKind.parameters for section in sections)


def _signature(thing: griffe.Object | griffe.Alias, name: str) -> str:
    """The call, a line a parameter where it is long; empty for classes that users do not call."""
    if thing.is_attribute:
        return f"{name}: {thing.annotation}" if thing.annotation else f"{name} = {thing.value}"
    if thing.is_class and not _documents_arguments(thing):
        return ""
    made = thing.signature(name=name, return_type=not thing.is_class)
    text = made.replace("(self, ", "(").replace("(self)", "()")
    if len(text) <= 88:
        return text
    head, _, rest = text.partition("(")
    inside, close, result = rest.rpartition(") ->")
    if not close:
        inside, close, result = rest.rpartition(")")
    parts = re.split(r", (?![^\[(]*[\])])", inside)
    return "\n".join([f"{head}(", *(f"    {part}," for part in parts), f"{close}{result}"])


def _section(section: griffe.DocstringSection) -> Iterator[str]:
    if section.kind is griffe.DocstringSectionKind.text:
        yield f"{_prose(section.value)}\n"
        return
    yield f"{section.kind.value.replace('parameters', 'arguments').capitalize()}:\n"
    for item in section.value:
        name = item.annotation if section.kind is griffe.DocstringSectionKind.raises else item.name
        head = f"`{name}`: " if name else ""
        yield f"- {head}{_prose(item.description).replace(chr(10), ' ')}"
    yield ""


def _fields(thing: griffe.Object | griffe.Alias) -> Iterator[str]:
    yield "Attributes:\n"
    for name, member in thing.members.items():
        if member.is_attribute and not name.startswith("_"):
            said = f": {_prose(member.docstring.value)}" if member.docstring else ""
            yield f"- `{name}: {member.annotation}`{said}".replace("\n", " ")
    yield ""


def _prose(text: str) -> str:
    """A docstring's text as Markdown, in which single backticks are code."""
    return text.replace("``", "`").strip()


def main() -> None:
    for name in PAGES:
        page = ROOT / "docs" / name
        page.write_text(filled(page.read_text(encoding="utf-8")), encoding="utf-8")


if __name__ == "__main__":
    main()
