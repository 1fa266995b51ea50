"""One opened device a runtime and test module; what cannot be opened here is skipped.

Two tiers: ``pytest`` is what a contributor waits for, ``pytest --all`` is all that CI runs.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

os.environ.setdefault("SHADERAD_VERIFY", "1")  # Read when shaderad is imported.

import shaderad as sad
from tests.devices import entered

ROOT = Path(__file__).parent
ONE_RUNTIME = ("bodies", "frontend", "interpret", "lower", "plan", "rules", "shaders")
"""Folders of tests whose subject is code that is the same for every runtime."""
WHOLE_PROGRAMS = ("benchmarks", "spoiled_builds", "stress")
"""Folders of tests that run whole programs again and again."""


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--all", action="store_true",
                     help="slow tests too, and the second runtime for every test")  # fmt: skip


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leaves what `--all` adds out, unless it is asked for, or tests are named one by one."""
    if config.getoption("--all") or any("::" in name for name in config.args):
        return
    asked = {part for name in config.args for part in Path(name).parts}
    added = {item: _is_added(item, asked) for item in items}
    config.hook.pytest_deselected(items=[item for item in items if added[item]])
    items[:] = [item for item in items if not added[item]]


def _is_added(item: pytest.Item, asked: set[str]) -> bool:
    if item.get_closest_marker("slow"):
        return True
    case = getattr(item, "callspec", None)
    is_second = case is not None and "slangpy" in map(str, case.params.values())
    folder, *_ = item.path.relative_to(ROOT).parts
    is_whole_program = folder in WHOLE_PROGRAMS and folder not in asked
    return is_whole_program or (is_second and folder in ONE_RUNTIME)


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
