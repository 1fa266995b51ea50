"""Children that take too long, are killed, or never run: what a request comes to.

A child is killed for what it does, not for how busy the machine is.
"""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from shaderad.compiler import child as child_process
from shaderad.compiler import compile as compiling
from shaderad.compiler.artifact import Program
from shaderad.compiler.cache import Cache
from shaderad.compiler.child import Child, ChildDied, Children, ChildUnavailable, Watchdog
from shaderad.compiler.compile import compile_program
from shaderad.diagnostics import CompileError
from tests.compiler.misbehaving_worker import MODULE

ROOT = Path(__file__).parents[2]
BLOCKED = "import time; time.sleep(600)"


@pytest.fixture
def child(monkeypatch: pytest.MonkeyPatch) -> Iterator[Child]:
    one = Child(MODULE)
    monkeypatch.setattr(compiling, "children", lambda: one)
    yield one
    one.close()


@pytest.fixture
def library(tmp_path: Path) -> Path:
    folder = tmp_path / "library"
    folder.mkdir()
    return folder


def compiled(text: str, library: Path, timeout: float = 60.0) -> bytes:
    """The code of a program whose text tells the child what to do; the cache keeps what it may."""
    program = Program("f_primal", text, (1, 1, 1), ())
    cache = Cache(library.parent / "cache")
    return compile_program(program, "spirv", cache=cache, library=library, timeout=timeout).content


def refused(text: str, library: Path, timeout: float = 60.0) -> CompileError:
    with pytest.raises(CompileError) as caught:
        compiled(text, library, timeout)
    assert not (library.parent / "cache" / "entries").exists()
    return caught.value


def test_time_is_the_childs_processor_time(child: Child, library: Path) -> None:
    # More than twice its limit by the clock, a tenth of it by the processor's.
    assert compiled("creep 5", library, timeout=2.0) == b"crept"


@pytest.mark.parametrize(
    ("text", "excess"), [("spin", "processor time"), ("stand_still", "stood still")]
)
def test_a_time_out_says_who_what_and_how_much(
    text: str, excess: str, child: Child, library: Path
) -> None:
    child.request({"kind": "ping"}, 60.0)  # Its start would be waited for too.
    failure = refused(text, library, timeout=0.5)
    assert failure.code == "SR0503"
    assert failure.message.startswith("the Slang compiler ")
    assert excess in failure.message
    assert f"{len(text)} bytes of Slang" in failure.note
    assert "sad.range" in str(failure)
    assert compiled("creep 0", library) == b"crept"


def test_no_child_goes_on_for_ever(
    child: Child, library: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(child_process, "CLOCK_FACTOR", 0.5)
    failure = refused("creep 600", library, timeout=2.0)
    assert failure.code == "SR0503"
    assert " took " in failure.message


@pytest.mark.parametrize("name", ["SIGKILL", "SIGTERM"])
def test_a_child_that_is_killed_twice_is_no_verdict(name: str, child: Child, library: Path) -> None:
    failure = refused(f"end_by {name}", library)
    assert failure.code == "SR0508"
    assert f"signal {name}" in failure.message
    assert "memory" in str(failure)


def test_a_child_that_is_killed_once_is_asked_again(child: Child, library: Path) -> None:
    assert compiled(f"killed_once {library / 'marker'}", library) == b"second time"


def test_a_child_without_memory_is_no_verdict(child: Child, library: Path) -> None:
    assert refused("without_memory", library).code == "SR0508"


def test_a_crash_is_one(child: Child, library: Path) -> None:
    assert refused("end_by SIGSEGV", library).code == "SR0502"


def test_another_child_is_started_where_one_is_busy_for_long() -> None:
    ours = Children(2, MODULE)
    answers: list[int] = []

    def ask(work: str, count: int) -> None:
        for _ in range(count):
            ours.request({"kind": "compile", "slang": work}, 60.0)
            answers.append(ours.request({"kind": "ping"}, 60.0)["pid"])

    ask("creep 0", 2)
    assert len(set(answers)) == 1
    busy = threading.Thread(target=ask, args=("creep 3", 1))
    busy.start()
    time.sleep(0.5)
    assert ours.request({"kind": "ping"}, 60.0)["pid"] not in answers
    busy.join()
    ours.close()


def test_who_waits_for_a_child_when_the_host_ends_starts_no_other() -> None:
    script = (
        "import threading\n"
        "from shaderad.compiler.child import Child\n"
        f"one = Child({MODULE!r})\n"
        "print(one.request({'kind': 'ping'}, 60.0)['pid'])\n"
        "stand = {'kind': 'compile', 'slang': 'stand_still'}\n"
        "threading.Thread(target=one.request, args=(stand, 60.0), daemon=True).start()\n"
        "while not one.is_busy: pass\n"
    )
    host = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True,
                          check=True, timeout=50.0,
                          env={**os.environ, "PYTHONPATH": str(ROOT)})  # fmt: skip
    with pytest.raises(ProcessLookupError):
        os.kill(int(host.stdout), 0)


def test_an_interrupt_that_reaches_the_child_does_nothing(child: Child, library: Path) -> None:
    assert compiled("end_by SIGINT", library) == b"survived"


@pytest.mark.parametrize(
    ("python", "reason"),
    [("raise ImportError('no msgspec')", "no msgspec"), ("import os; os.abort()", "SIGABRT")],
)
def test_a_python_that_cannot_run_the_child_is_no_verdict(
    python: str, reason: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "broken_worker.py").write_text(python)
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(ChildUnavailable, match=reason):
        Child("broken_worker").request({"kind": "ping"}, 60.0)


def test_a_request_that_was_broken_off_is_not_answered_later(
    child: Child, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = child.request({"kind": "ping"}, 60.0)["pid"]

    def interrupted(*_arguments: object) -> None:
        raise KeyboardInterrupt

    for name in ("_exchange", "_stop"):  # in the request, and in what tidies up after it
        monkeypatch.setattr(child, name, interrupted)
        with pytest.raises(KeyboardInterrupt):
            child.request({"kind": "compile", "slang": "creep 0"}, 60.0)
    monkeypatch.undo()
    answer = child.request({"kind": "ping"}, 60.0)
    assert answer["pid"] != first


CTRL_C = """
import fcntl, os, signal, sys, termios, time
os.setsid()
fcntl.ioctl(0, termios.TIOCSCTTY, 0)
heard = []
signal.signal(signal.SIGINT, lambda *_: heard.append(time.monotonic()))
from shaderad.compiler.child import Child
child = Child("tests.compiler.misbehaving_worker")
print("ready", flush=True)
answer = child.request({"kind": "compile", "slang": "creep 2"}, 60.0)
pid = child._process.pid
same = child.request({"kind": "ping"}, 60.0)["pid"] == pid
print(answer["code"], same, len(heard) > 0, flush=True)
os._exit(0)  # at its end Python would die of the next
"""


@pytest.mark.skipif(sys.platform == "win32", reason="needs a pseudo-terminal")
def test_ctrl_c_in_a_terminal_does_not_reach_the_child() -> None:
    ours, theirs = os.openpty()
    with subprocess.Popen(
        [sys.executable, "-c", textwrap.dedent(CTRL_C)],
        stdin=theirs,
        stdout=subprocess.PIPE,
        env={**os.environ, "PYTHONPATH": os.pathsep.join([str(ROOT), *filter(None, sys.path)])},
    ) as host:
        os.close(theirs)
        assert host.stdout is not None
        assert host.stdout.readline() == b"ready\n"
        while host.poll() is None:  # from the child's first moment on
            os.write(ours, b"\x03")
            time.sleep(0.05)
        assert host.stdout.read() == b"b'crept' True True\n"
    os.close(ours)
    assert host.returncode == 0


def test_a_crash_of_a_child_that_ran_is_told_with_what_it_printed(child: Child) -> None:
    with pytest.raises(ChildDied, match="SIGABRT") as caught:
        child.request({"kind": "compile", "slang": "end_by SIGABRT"}, 60.0)
    assert not caught.value.was_killed


# -- the watchdog -----------------------------------------------------------------------------


@pytest.fixture
def process() -> Iterator[subprocess.Popen[bytes]]:
    process = subprocess.Popen([sys.executable, "-c", BLOCKED])
    yield process
    process.kill()
    process.wait()


def test_a_child_that_has_used_its_seconds_is_killed(process: subprocess.Popen[bytes]) -> None:
    with Watchdog(process, 60.0) as watching:
        watching.heard(59.0)
        assert watching.excess == ""
        watching.heard(60.0)
        process.wait()
    assert watching.excess == "used 60 s of processor time"


def test_a_child_that_reports_nothing_is_killed(process: subprocess.Popen[bytes]) -> None:
    with Watchdog(process, 0.25) as watching:
        process.wait()
    assert "stood still" in watching.excess


def test_reports_alone_are_no_progress(process: subprocess.Popen[bytes]) -> None:
    start = time.monotonic()
    with Watchdog(process, 0.25) as watching:
        while process.poll() is None:
            watching.heard(1e-4 * (time.monotonic() - start))
            time.sleep(0.05)
    assert "stood still" in watching.excess


def test_a_child_that_waits_for_its_turn_is_left_alone(process: subprocess.Popen[bytes]) -> None:
    start = time.monotonic()
    with Watchdog(process, 0.25) as watching:
        while (passed := time.monotonic() - start) < 1.5:  # three times what may stand still
            watching.heard(0.05 * passed)
            time.sleep(0.02)
        assert process.poll() is None
    assert watching.excess == ""


def test_progress_does_not_go_on_for_ever(
    process: subprocess.Popen[bytes], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(child_process, "CLOCK_FACTOR", 1.0)
    start = time.monotonic()
    with Watchdog(process, 0.5) as watching:
        while process.poll() is None:
            watching.heard(0.05 * (time.monotonic() - start))
            time.sleep(0.02)
    assert watching.excess.startswith("took")


def test_a_watchdog_of_the_past_leaves_the_child_alone(process: subprocess.Popen[bytes]) -> None:
    with Watchdog(process, 0.05) as watching:
        pass
    watching.heard(1.0)
    time.sleep(0.3)
    assert process.poll() is None
    assert watching.excess == ""
