"""The line that says what is being compiled: where it is shown, what it says, that it goes."""

from __future__ import annotations

import io
import os
import re
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest

from shaderad.compiler.background import Background
from shaderad.diagnostics import progress
from shaderad.diagnostics.progress import Work, at_stage

ROOT = Path(__file__).parents[2]


class Terminal(io.StringIO):
    """A stream that a person reads; `line` is what stands in the cursor's line."""

    def isatty(self) -> bool:
        return True

    @property
    def line(self) -> str:
        columns = [" "] * 200
        at = 0
        for character in self.getvalue():
            if character == "\r":
                at = 0
            else:
                columns[at] = character
                at += 1
        return "".join(columns).rstrip()


@pytest.fixture
def terminal(monkeypatch: pytest.MonkeyPatch) -> Terminal:
    one = Terminal()
    # Not `sys.stderr` itself, which pytest replaces between a fixture and its test.
    monkeypatch.setattr(progress, "sys", SimpleNamespace(stderr=one, modules=sys.modules))
    monkeypatch.delenv("SHADERAD_PROGRESS", raising=False)
    monkeypatch.setattr(progress, "SHOWN_AFTER_SECONDS", 0.05)
    return one


def until(holds: Callable[[], object]) -> None:
    deadline = time.monotonic() + 20.0
    while not holds():
        assert time.monotonic() < deadline
        time.sleep(0.01)


def test_the_line_names_kernel_stage_and_seconds_and_disappears(terminal: Terminal) -> None:
    with Work("shade_bwd", "Slang"):
        until(lambda: re.fullmatch(r"compiling `shade_bwd` \(Slang\): \d+ s", terminal.line))
        at_stage("naga")
        until(lambda: "(naga)" in terminal.line)
        at_stage("")
        with Work("other", "driver"):
            until(lambda: "`other` (driver)" in terminal.line)
        until(lambda: "`shade_bwd` (naga)" in terminal.line)
    assert terminal.line == ""
    assert not progress.TERMINAL.locked()


def test_a_wait_for_another_thread_shows_what_that_thread_does(terminal: Terminal) -> None:
    is_seen = [threading.Event() for _ in range(3)]

    def compiles() -> int:
        is_seen[0].wait(20.0)
        with Work("shade_bwd", "Slang"):
            is_seen[1].wait(20.0)
        with Work("shade_bwd", "naga"):
            at_stage("driver")
            is_seen[2].wait(20.0)
        return 7

    background = Background(1)
    with Work("graph", "planning"):
        pending = background.begin(compiles, "shade_bwd")
        result: list[int] = []
        watcher = threading.Thread(target=lambda: _let_on(terminal, is_seen))
        watcher.start()
        until(lambda: "`graph` (planning)" in terminal.line)
        result.append(pending.result())
        until(lambda: "`graph` (planning)" in terminal.line)
        watcher.join()
    assert result == [7]
    assert terminal.line == ""


def _let_on(terminal: Terminal, is_seen: list[threading.Event]) -> None:
    """Lets work go on once the terminal shows what it does."""
    for event, stage in zip(is_seen, ("waiting", "Slang", "driver"), strict=True):
        until(lambda stage=stage: f"`shade_bwd` ({stage})" in terminal.line)
        event.set()


def test_what_is_quick_is_not_mentioned(
    terminal: Terminal, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(progress, "SHOWN_AFTER_SECONDS", 600.0)
    with Work("shade_bwd", "Slang"):
        pass
    assert terminal.getvalue() == ""


@pytest.mark.parametrize("reason", ["no terminal", "switched off", "no stream", "closed"])
def test_nothing_is_written_where_nobody_watches(
    reason: str, terminal: Terminal, monkeypatch: pytest.MonkeyPatch
) -> None:
    if reason == "no terminal":
        terminal.isatty = lambda: False  # type: ignore[method-assign]
    elif reason == "switched off":
        monkeypatch.setenv("SHADERAD_PROGRESS", "0")
    elif reason == "no stream":
        monkeypatch.setattr(progress.sys, "stderr", None)
    else:
        terminal.write = terminal.fileno  # type: ignore[method-assign, assignment] # raises
    with Work("shade_bwd", "Slang"):
        time.sleep(0.3)
    assert terminal.getvalue() == ""
    assert not progress.TERMINAL.locked()


def test_an_interrupt_leaves_no_line(terminal: Terminal) -> None:
    def interrupted() -> None:
        with Work("shade_bwd", "Slang"):
            until(lambda: terminal.line)
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        interrupted()
    assert terminal.line == ""


def test_threads_do_not_write_over_each_other(terminal: Terminal) -> None:
    with Work("first", "Slang"):
        until(lambda: "`first`" in terminal.line)
        other = threading.Thread(target=lambda: _work_shortly("second"))
        other.start()
        other.join()
        assert "second" not in terminal.getvalue()
    with Work("third", "Slang"):
        until(lambda: "`third`" in terminal.line)


def _work_shortly(kernel: str) -> None:
    with Work(kernel, "Slang"):
        time.sleep(0.3)


def test_work_that_stops_all_threads_is_announced_where_it_will_take_long(
    terminal: Terminal, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(progress, "SHOWN_AFTER_SECONDS", 600.0)
    for after, shown in ((600.0, ""), (0.0, "compiling `shade` (driver): 0 s")):
        monkeypatch.setattr(progress, "EXPECTED_AFTER_SECONDS", after)
        with Work("shade", "Slang"), Work("shade", "driver", blocks_python=True):
            assert terminal.line == shown
    assert terminal.line == ""


def test_a_narrow_terminal_keeps_to_one_line(
    terminal: Terminal, monkeypatch: pytest.MonkeyPatch
) -> None:
    terminal.fileno = lambda: 2  # type: ignore[method-assign]
    monkeypatch.setattr(os, "get_terminal_size", lambda _file: os.terminal_size((30, 5)))
    with Work("k" * 500, "Slang"):
        until(lambda: terminal.line)
        assert len(terminal.line) == 29


def test_a_notebook_shows_it_by_its_own_means(
    terminal: Terminal, monkeypatch: pytest.MonkeyPatch
) -> None:
    shown: list[Any] = []

    class Handle:
        def update(self, content: Any, *, raw: bool) -> None:
            assert raw
            shown.append(content["text/plain"])

    def display(content: Any, *, raw: bool, display_id: bool) -> Handle:
        assert raw
        assert display_id
        shown.append(content["text/plain"])
        return Handle()

    ipython: Any = ModuleType("IPython")
    ipython.get_ipython = lambda: SimpleNamespace(kernel=object())
    of_display: Any = ModuleType("IPython.display")
    of_display.display = display
    for name, module in (("ipykernel", ModuleType("ipykernel")), ("IPython", ipython),
                         ("IPython.display", of_display)):  # fmt: skip
        monkeypatch.setitem(sys.modules, name, module)
    with Work("shade_bwd", "Slang"):
        until(lambda: len(shown) > 1)
    assert all(re.fullmatch(r"compiling `shade_bwd` \(Slang\): \d+ s", one) for one in shown[:-1])
    assert shown[-1] == ""
    assert terminal.getvalue() == ""


COMPILING = """
import sys
from pathlib import Path
from shaderad.compiler import compile as compiling
from shaderad.diagnostics import progress
from shaderad.compiler.artifact import Program
from shaderad.compiler.cache import Cache
from shaderad.compiler.child import Child
progress.SHOWN_AFTER_SECONDS = 0.1
one = Child("tests.compiler.misbehaving_worker")
compiling.children = lambda: one
program = Program("f_primal", "creep 2", (1, 1, 1), ())
compiling.compile_program(program, "spirv", cache=Cache(None), library=Path(sys.argv[1]))
assert not {"rich", "IPython"} & set(sys.modules)
"""


@pytest.mark.skipif(sys.platform == "win32", reason="needs a pseudo-terminal")
@pytest.mark.parametrize("is_terminal", [True, False])
def test_a_slow_compiler_is_told_of_on_a_terminal_alone(is_terminal: bool, tmp_path: Path) -> None:
    ours, theirs = os.openpty()
    environment = {
        **os.environ,
        "PYTHONPATH": os.pathsep.join([str(ROOT), *filter(None, sys.path)]),
    }
    environment.pop("SHADERAD_PROGRESS", None)
    finished = subprocess.run(
        [sys.executable, "-c", COMPILING, str(tmp_path)],
        stdout=subprocess.PIPE,
        stderr=theirs if is_terminal else subprocess.PIPE,
        env=environment,
        check=False,
    )
    os.close(theirs)
    said = finished.stderr
    if is_terminal:
        said = os.read(ours, 1 << 16)
        assert b"compiling `f_primal` (Slang): 1 s" in said
        assert said.rpartition(b"\r")[0].rpartition(b"\r")[2].strip() == b""
    os.close(ours)
    assert finished.returncode == 0, said
    assert finished.stdout == b""
    assert is_terminal or said == b""
