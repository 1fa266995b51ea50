"""One opened device per runtime and test module; tests of a device that is not here are skipped.

There are two tiers. ``pytest`` runs the tests that a contributor waits for, ``pytest --all`` those
that CI runs. On the second runtime, CI runs every test of devices, kernels, derivatives, and the
rendering kit, and one in four of all others, whose code is the same for every runtime. A test
marked ``sample(n)`` crosses many parameters and runs one in `n` of its cases; ``pytest --every``
runs them all.
"""

from __future__ import annotations

import gc
import os
import zlib
from collections import defaultdict
from collections.abc import Generator, Iterator
from functools import partial
from pathlib import Path

import pytest

os.environ.setdefault("SHADERAD_VERIFY", "1")  # Read when shaderad is imported.

import shaderad as sad
from tests import processor_time
from tests.devices import entered

ROOT = Path(__file__).parent
BOTH_RUNTIMES = (
    "compiler_faults", "conformance", "device", "differentiate", "profiling", "random_graphs",
    "random_programs", "render", "runtime", "slang_kernels", "textures", "test_doubles.py",
    "test_error_functions.py",
)  # fmt: skip
"""Folders and files whose tests CI runs on both runtimes."""
AGAIN = 4
"""The second runtime runs one in so many of the other tests."""
WHOLE_PROGRAMS = ("benchmarks", "spoiled_builds", "stress")
"""Folders of tests that run whole programs again and again."""


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--all", action="store_true",
                     help="slow tests too, and the second runtime")  # fmt: skip
    parser.addoption("--every", action="store_true",
                     help="all cases of tests that run a sample of their cases")  # fmt: skip
    parser.addoption("--keep-slowest", action="store_true",
                     help="write this run's slowest tests into tests/slowest.json")  # fmt: skip


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leaves out what is not asked for, unless tests are named one by one."""
    if any("::" in name for name in config.args):
        return
    asked = {part for name in config.args for part in Path(name).parts}
    is_left_out = _is_left_out if config.getoption("--all") else partial(_is_added, asked=asked)
    drawn = set(items) if config.getoption("--every") else _drawn(items)
    out = {item: item not in drawn or is_left_out(item) for item in items}
    config.hook.pytest_deselected(items=[item for item in items if out[item]])
    items[:] = [item for item in items if not out[item]]


def pytest_collection_finish() -> None:
    """Spares the garbage collector what lives until the end."""
    gc.freeze()


def _is_added(item: pytest.Item, asked: set[str]) -> bool:
    """True for a test that only `--all` runs."""
    is_whole_program = _folder(item) in WHOLE_PROGRAMS and _folder(item) not in asked
    is_drawn = _folder(item) in BOTH_RUNTIMES and _is_one_in(AGAIN, item)
    is_second = _is_on_second_runtime(item) and not is_drawn
    return bool(item.get_closest_marker("slow")) or is_whole_program or is_second


def _is_left_out(item: pytest.Item) -> bool:
    """True for a test that even `--all` does not run."""
    is_shared = _is_on_second_runtime(item) and _folder(item) not in BOTH_RUNTIMES
    return is_shared and not _is_one_in(AGAIN, item)


def _drawn(items: list[pytest.Item]) -> set[pytest.Item]:
    """The cases in the samples of their tests, and all of other tests.

    Each test keeps at least one case on each runtime that it is asked for. The runtimes draw
    different cases: of a sample of one in two, each case runs on one of them.
    """
    drawn: set[pytest.Item] = set()
    cases: dict[tuple[str, bool], list[pytest.Item]] = defaultdict(list)
    for item in items:
        if item.get_closest_marker("sample") is None:
            drawn.add(item)
        else:
            cases[item.nodeid.partition("[")[0], _is_on_second_runtime(item)].append(item)
    for (_, is_on_second), alike in cases.items():
        mark = alike[0].get_closest_marker("sample")
        assert mark is not None
        count = min(mark.args[0], len(alike))
        # In an order that follows no parameter.
        alike.sort(key=lambda item: zlib.crc32(item.nodeid.replace("slangpy", "wgpu").encode()))
        drawn.update(alike[is_on_second % count :: count])
    return drawn


def _is_one_in(count: int, item: pytest.Item) -> bool:
    """True for one in `count` tests, the same ones in every run."""
    return zlib.crc32(item.nodeid.encode()) % count == 0


def _is_on_second_runtime(item: pytest.Item) -> bool:
    case = getattr(item, "callspec", None)
    return case is not None and "slangpy" in map(str, case.params.values())


def _folder(item: pytest.Item) -> str:
    return item.path.relative_to(ROOT).parts[0]


_SO_FAR = pytest.StashKey[float]()
"""Processor time at the end of the last test."""


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> None:
    if _SO_FAR not in item.config.stash:
        item.config.stash[_SO_FAR] = processor_time.processor_seconds()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Records the processor time of a test, of its fixtures too, in its last report."""
    report = yield
    if call.when == "teardown":
        now = processor_time.processor_seconds()
        report.user_properties.append(("processor_seconds", now - item.config.stash[_SO_FAR]))
        item.config.stash[_SO_FAR] = now
    return report


def pytest_terminal_summary(
    terminalreporter: pytest.TerminalReporter, config: pytest.Config
) -> None:
    """Prints the slowest tests, and what tests recorded as their `summary`, such as counts."""
    seconds_by_test = {
        report.nodeid: seconds
        for report in terminalreporter.getreports("")
        for name, seconds in getattr(report, "user_properties", ())
        if name == "processor_seconds"
    }
    if len(seconds_by_test) > processor_time.SHOWN:
        _show_slowest(terminalreporter, seconds_by_test)
    if config.getoption("--keep-slowest"):
        processor_time.keep(seconds_by_test)
    for report in (*terminalreporter.getreports("passed"), *terminalreporter.getreports("failed")):
        for name, text in getattr(report, "user_properties", ()):
            if name == "summary" and report.when == "call":
                terminalreporter.write_line(str(text))


def _show_slowest(
    terminalreporter: pytest.TerminalReporter, seconds_by_test: dict[str, float]
) -> None:
    terminalreporter.section("slowest tests, seconds of processor time")
    for test, seconds in processor_time.slowest(seconds_by_test).items():
        terminalreporter.write_line(f"{seconds:6.1f} {test}")
    terminalreporter.write_line(f"{sum(seconds_by_test.values()):6.0f} all {len(seconds_by_test)}")
    slower = processor_time.became_slower(seconds_by_test, processor_time.kept_seconds())
    if slower:
        terminalreporter.section("tests that became slower")
        for line in slower:
            terminalreporter.write_line(line)


@pytest.fixture(scope="module", params=["wgpu", "slangpy"])
def device(request: pytest.FixtureRequest) -> Iterator[sad.Device]:
    """Each runtime's device in turn, entered."""
    with entered(request.param) as opened:
        yield opened
