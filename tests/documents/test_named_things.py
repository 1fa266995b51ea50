"""Functions, methods, error codes and files that pages and docstrings name exist."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

import shaderad as sad
from shaderad import render
from shaderad.arrays.textures import Texture
from shaderad.bundle.read.loading import Loaded
from shaderad.calls.graphs import GraphFunction
from shaderad.check.gradient import GradcheckReport
from shaderad.decorators import CallableFunction, KernelFunction
from shaderad.diagnostics import MESSAGES
from shaderad.functions.custom import CustomVjp
from tests.samples.loading import ROOT

PAGES = [ROOT / "README.md", *(p for d in ("docs", "samples") for p in (ROOT / d).rglob("*.md"))]
MODULES = sorted((ROOT / "shaderad").rglob("*.py"))
TEXTS = [str(p.relative_to(ROOT)) for p in (*PAGES, *MODULES)]
PLACEHOLDERS = {"NAME", "TYPE"}
NO_NAMES = {"js", "slang", "py", "wgsl", "h"}
"""Endings of files called ``sad`` or ``shaderad``."""
MISSING_ON_PURPOSE = {("docs/errors.md", "sad.vec3"), ("docs/coming_from.md", ".clone()")}
"""What an error is shown for, and methods of other libraries."""
CODE = re.compile(r"SR\d{4}")
NAME = re.compile(r"(?<![\w.])sad((?:\.[A-Za-z_]\w*)+)")
RENDER = re.compile(r"(?<![\w.])render\.([A-Za-z_]\w*)")
METHOD = re.compile(r"`\.(\w+)\(")
FILE = re.compile(r"(?<![\w/.*<-])((?:[\w-]+/)+[\w-]+\.(?:py|slang|md|json|cpp|toml|html))\b")
HOLDERS = (
    *(sad.Array, sad.Device, Texture, KernelFunction, CallableFunction, GraphFunction),
    *(CustomVjp, Loaded, GradcheckReport, sad.optim.SGD, sad.optim.Adam, sad.Error, str),
)
FOLDERS = ("", "shaderad", "docs", "tests", "samples")


@cache
def prose(text: str) -> str:
    """A page, or the docstrings and comments of a module."""
    content = (ROOT / text).read_text()
    if not text.endswith(".py"):
        return content
    comments = (line.partition("# ")[2] for line in content.splitlines() if "# " in line)
    return "\n".join([*docstrings(ast.parse(content)), *comments])


def docstrings(tree: ast.AST) -> Iterator[str]:
    """Every string that stands alone in a body: of modules, classes, functions and attributes."""
    for node in ast.walk(tree):
        body = getattr(node, "body", None)  # Of a lambda it is no list.
        for statement in body if isinstance(body, list) else ():
            value = getattr(statement, "value", None)
            if isinstance(value, ast.Constant) and isinstance(value.value, str):
                yield value.value


def is_there(chain: str) -> bool:
    """True if the first name is one of ``sad``, and each next one of the module or class."""
    thing: Any = sad
    for part in chain.split("."):
        if not isinstance(thing, ModuleType | type):
            return True
        if not hasattr(thing, part):
            return False
        thing = getattr(thing, part)
    return True


@pytest.mark.parametrize("ending", [".md", ".py"])
def test_what_pages_and_docstrings_name_exists(ending: str) -> None:
    texts = [text for text in TEXTS if text.endswith(ending)]
    wrong = {(text, thing) for text in texts for thing in missing(text)}
    assert wrong - MISSING_ON_PURPOSE == set()


def missing(text: str) -> list[str]:
    """The codes, names, methods and files that a text names and that do not exist."""
    said = prose(text)
    wrong = [code for code in CODE.findall(said) if code not in MESSAGES]
    for chain in {found.strip(".") for found in NAME.findall(said)}:
        parts = chain.split(".")
        is_name = not {*parts} & (PLACEHOLDERS | NO_NAMES)
        if is_name and not is_there(chain):
            wrong.append(f"sad.{chain}")
    if not text.endswith(".py"):
        wrong += [f"render.{n}" for n in RENDER.findall(said) if not hasattr(render, n)]
        wrong += [f".{n}()" for n in METHOD.findall(said) if not has_method(n)]
    else:
        wrong += [file for file in FILE.findall(said) if not exists(file, ROOT / text)]
    return wrong


def has_method(name: str) -> bool:
    return any(hasattr(holder, name) for holder in HOLDERS)


def exists(file: str, where: Path) -> bool:
    folders = (*(ROOT / folder for folder in FOLDERS), where.parent)
    return any((folder / file).exists() for folder in folders)


def test_missing_things_would_be_seen() -> None:
    assert not is_there("lenght")
    assert not is_there("Array.nump")
    assert is_there("optim.Adam.step")
    assert NAME.findall("`sad.sum`, `sad.random.key(0)`") == [".sum", ".random.key"]
    assert FILE.findall("words of `lower/passes/sizes.py`.") == ["lower/passes/sizes.py"]
    assert not exists("lower/passes/sizes.py", ROOT / "shaderad/execute/sized_words.py")
    assert "Adds" in prose("shaderad/diagnostics/tracebacks.py") or prose("README.md")
