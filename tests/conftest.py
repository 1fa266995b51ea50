"""One opened device a runtime and test module; what cannot be opened here is skipped.

Two tiers: ``pytest`` is what a contributor waits for, ``pytest --all`` is all that CI runs, where
the second runtime runs every test, but one in four of code that is the same for every runtime.
"""

from __future__ import annotations

import os
import zlib
from collections.abc import Iterator
from pathlib import Path

import pytest

os.environ.setdefault("SHADERAD_VERIFY", "1")  # Read when shaderad is imported.

import shaderad as sad
from tests.devices import entered

ROOT = Path(__file__).parent
ONE_RUNTIME = ("bodies", "frontend", "interpret", "lower", "plan", "rules", "shaders")
"""Folders of tests whose subject is code that is the same for every runtime."""
AGAIN = 4
"""Of so many of these tests the second runtime runs one."""
WHOLE_PROGRAMS = ("benchmarks", "spoiled_builds", "stress")
"""Folders of tests that run whole programs again and again."""


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--all", action="store_true",
                     help="slow tests too, and the second runtime")  # fmt: skip


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leaves out what is not asked for, unless tests are named one by one."""
    if any("::" in name for name in config.args):
        return
    asked = {part for name in config.args for part in Path(name).parts}
    has_all = config.getoption("--all")
    out = {item: _is_left_out(item) if has_all else _is_added(item, asked) for item in items}
    config.hook.pytest_deselected(items=[item for item in items if out[item]])
    items[:] = [item for item in items if not out[item]]


def _is_added(item: pytest.Item, asked: set[str]) -> bool:
    """True for what only `--all` runs."""
    is_whole_program = _folder(item) in WHOLE_PROGRAMS and _folder(item) not in asked
    return bool(item.get_closest_marker("slow")) or is_whole_program or _is_again(item)


def _is_left_out(item: pytest.Item) -> bool:
    """True for what even `--all` does not run."""
    return _is_again(item) and zlib.crc32(item.nodeid.encode()) % AGAIN != 0


def _is_again(item: pytest.Item) -> bool:
    """True for a test on the second runtime of code that is the same for every runtime."""
    case = getattr(item, "callspec", None)
    is_second = case is not None and "slangpy" in map(str, case.params.values())
    return is_second and _folder(item) in ONE_RUNTIME


def _folder(item: pytest.Item) -> str:
    return item.path.relative_to(ROOT).parts[0]


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Prints what tests recorded as their `summary`, such as counts."""
    for report in (*terminalreporter.getreports("passed"), *terminalreporter.getreports("failed")):
        for name, text in getattr(report, "user_properties", ()):
            if name == "summary" and report.when == "call":
                terminalreporter.write_line(str(text))


@pytest.fixture(scope="module", params=["wgpu", "slangpy"])
def device(request: pytest.FixtureRequest) -> Iterator[sad.Device]:
    """Each runtime's device in turn, entered."""
    with entered(request.param) as opened:
        yield opened
