"""The reference pages name everything that is there, and nothing that is not."""

from __future__ import annotations

import inspect
import pydoc
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from typer.main import get_command

import shaderad as sad
from shaderad.cli import app
from shaderad.diagnostics import MESSAGES
from shaderad.frontend.activations import FORMULAS
from shaderad.functions import public
from shaderad.runtime.texture_formats import FLOAT, TEXTURE_FORMATS
from tests.samples.loading import ROOT, module_of

DOCS = ROOT / "docs"
CODE = re.compile(r"`([^`]*)`")
CALL = re.compile(r"(\w+)\(([^()]*)\)")
ALSO_IN_KERNELS = {
    "detach",
    "min",
    "minimum",
    "max",
    "maximum",
    "any",
    "all",
    "matmul",
    "transpose",
    "clip",
    "dot",
}
"""Functions of kernels that mean more on arrays."""


def text_of(page: str) -> str:
    return (DOCS / page).read_text(encoding="utf-8")


def section(page: str, heading: str) -> str:
    """What stands under a heading, up to the next one of its level."""
    return text_of(page).split(f"\n## {heading}\n")[1].split("\n## ")[0]


def first_cells(text: str) -> Iterator[str]:
    for line in text.splitlines():
        if line.startswith("| `"):
            yield re.split(r"(?<!\\)\|", line)[1]


def test_there_is_a_row_for_every_function_of_kernels() -> None:
    text = text_of("functions.md") + section("kernel_language.md", "Functions")
    named = [name for cell in first_cells(text) for name, _ in CALL.findall(cell)]
    assert sorted(named) == sorted([*sad.INTRINSICS, *sad.FORMS, *FORMULAS])


def test_the_kernel_language_has_every_type_and_no_other() -> None:
    cells = " ".join(first_cells(section("kernel_language.md", "Types")))
    families = set(re.findall(r"\b(float|half|double|int|uint|bool)\b|\b([a-z]+)[2-4]", cells))
    named = {a or b for a, b in families}
    assert named == {"float", "int", "bool"} | {re.sub(r"[\dx]+$", "", t) for t in sad.TYPES}


def test_help_says_what_each_function_is() -> None:
    for name, function in sad.INTRINSICS.items():
        call, _, about = function.__doc__.partition("\n\n")
        assert call.startswith(f"{name}("), name
        assert "erivative" in about, name
    assert "sum of ``a[k] * b[k]``" in pydoc.render_doc(sad.dot)


def function_rows() -> dict[str, str]:
    """Each array function of its page with the arguments shown there, "" where none are."""
    found: dict[str, str] = {}
    for cell in first_cells(text_of("array_functions.md")):
        for code in CODE.findall(cell):
            called = re.fullmatch(r"(\w+)(?:\((.*)\))?", code)
            if called:
                found[called[1]] = called[2] or ""
    return found


def test_the_page_of_array_functions_has_a_row_for_each() -> None:
    operators = {name for name in sad.__all__ if is_operator(name)}
    assert set(function_rows()) == operators | ALSO_IN_KERNELS


def is_operator(name: str) -> bool:
    thing = getattr(sad, name)
    is_current = not (thing.__doc__ or "").startswith("Deprecated")
    return is_current and inspect.isfunction(thing) and hasattr(public, name)


def test_the_page_of_array_functions_shows_all_parameters_with_their_defaults() -> None:
    for name, shown in function_rows().items():
        if shown and is_operator(name):
            parameters = inspect.signature(getattr(sad, name)).parameters.values()
            found = [argument.partition("=")[2] for argument in shown.split(", ")]
            assert found == [default_of(p) for p in parameters], name


@pytest.mark.parametrize("name", sorted(public.__all__))
def test_help_of_an_array_function_names_codes_that_exist_and_its_derivative(name: str) -> None:
    about = inspect.getdoc(getattr(sad, name)) or ""
    if not about.startswith("Deprecated"):
        assert re.search("[Dd]ifferentiable|derivative|reverse mode", about)
        assert name == "checkpoint" or "Raises:" in about
    assert set(re.findall(r"SR\d{4}", about)) <= set(MESSAGES)


def default_of(p: inspect.Parameter) -> str:
    """A default as a page writes it, "" where there is none."""
    if p.default is inspect.Parameter.empty:
        return ""
    return p.default.__name__ if isinstance(p.default, type) else repr(p.default).replace("'", '"')


def test_the_table_of_formats_of_textures_has_every_one() -> None:
    rows = re.findall(r"^\| `([\w-]+)` \| (\d) \| (`\w+`|on request) \| (.*) \|$",
                      section("runtimes.md", "Textures"), re.MULTILINE)  # fmt: skip
    assert [(name, int(count)) for name, count, *_ in rows] == [
        (row.name, row.channel_count) for row in TEXTURE_FORMATS.values()
    ]
    for name, _, dtype, filtered in rows:
        row = TEXTURE_FORMATS[name]
        assert dtype == ("on request" if row.is_srgb else f"`{row.dtype.name}`")
        assert filtered.startswith("by device" if row.dtype == FLOAT else "everywhere")


def test_the_api_page_has_every_public_name_that_no_other_page_has() -> None:
    text = text_of("api.md")
    names = set(re.findall(r"^### (\w+)$", text, re.MULTILINE))
    elsewhere = {*sad.TYPES, *sad.INTRINSICS, *sad.FORMS, *marks(), *errors()}
    elsewhere |= {"jax", "optim", "random", "render", "torch"}
    assert [name for name in sad.__all__ if name not in names | elsewhere] == []


def marks() -> set[str]:
    """In, Out, ...: the annotations, which the kernel language shows."""
    found = set(re.findall(r"sad\.([A-Z]\w+)", text_of("kernel_language.md")))
    return found | set(re.findall(r"sad\.(DifferentialPair)", text_of("derivatives.md")))


def errors() -> set[str]:
    return set(re.findall(r"^\| `(\w+Error)`", text_of("errors.md"), re.MULTILINE)) | {"Error"}


def test_the_error_page_has_every_class_and_every_group() -> None:
    kinds = {kind.__name__ for kind in sad.Error.__subclasses__()} | {
        "UnknownNameError",
        "CallError",
        "NoAxesError",
        "MissingPackageError",
    }
    assert errors() == kinds | {"Error"}
    groups = re.findall(r"<!-- errors: (SR\d\d) -->", text_of("errors.md"))
    assert sorted(groups) == sorted({code[:4] for code in MESSAGES})


@pytest.mark.parametrize(
    "page", ["errors.md", "api.md", "array_functions.md", "coming_from.md", "functions.md"]
)
def test_a_generated_part_is_as_the_code_has_it(page: str) -> None:
    pytest.importorskip("griffe")
    reference = module_of(ROOT / "scripts/docs/reference.py")
    assert page in reference.PAGES
    assert reference.filled(text_of(page)) == text_of(page), "run `scripts/run golden`"


def test_a_table_of_errors_has_every_message_of_its_group() -> None:
    table = section("errors.md", "SR04: derivatives")
    assert re.findall(r"</a>(SR\d+) \|", table) == sorted(
        code for code in MESSAGES if code.startswith("SR04")
    )
    assert '| <a id="SR0459"></a>SR0459 | `DerivativeError` | PRIMALS primals, but TANG' in table
    assert "a step of STEP does not change" in table


@pytest.mark.parametrize("page", sorted(DOCS.glob("*.md")), ids=lambda page: page.stem)
def test_every_code_that_a_page_names_is_a_message(page: Path) -> None:
    named = set(re.findall(r"SR\d{4}", page.read_text(encoding="utf-8")))
    assert named <= set(MESSAGES)


def test_the_options_of_build_are_those_of_the_command() -> None:
    cells = " ".join(first_cells(section("ahead_of_time.md", "Options")))
    command = get_command(app).commands["build"]  # pyright: ignore[reportAttributeAccessIssue]
    options = {option for p in command.params for option in p.opts if option.startswith("--")}
    shown = {word.replace("--no-", "--") for word in re.findall(r"--[a-z-]+", cells)}
    assert shown == options - {"--help"}
