"""The traceback of an error shows the frames of users only."""

from __future__ import annotations

import subprocess
import sys
import traceback
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

import shaderad as sad

ROOT = Path(__file__).parents[2]


@sad.kernel
def copied(i: sad.Index, x: sad.In[float], y: sad.Out[float]):
    y[i] = x[i]


@sad.kernel
def wrong(i: sad.Index, x: sad.In[float], y: sad.Out[float]):
    y[i] = z[i]  # noqa: F821 # pyright: ignore[reportUndefinedVariable]


@sad.graph
def reads_too_far(x: sad.Array[float]) -> sad.Array[float]:
    return sad.gather(x, sad.iota(4) + 4)


def launched(x: sad.Array) -> sad.Array:
    return copied(x, dim=-1)


def applied(x: sad.Array) -> sad.Array:
    return sad.sum(launched(x))


def step(x: sad.Array) -> object:
    adam = sad.optim.Adam(0.1)
    return adam.step(x, (x, x), adam.init(x))


X = np.ones(4)
SHOWN: list[tuple[Callable[[], object], list[str]]] = [
    (lambda: wrong(X, dim=4), []),
    (lambda: sad.grad(wrong)(X, dim=4), []),
    (lambda: sad.grad(applied)(X), ["applied", "launched"]),
    (lambda: sad.vjp(copied, X, dim=4)[1](np.ones(5)), []),
    (lambda: sad.jvp(applied, X, X), ["applied", "launched"]),
    (lambda: sad.map(applied, X), ["applied", "launched"]),
    (lambda: reads_too_far(X).numpy(), []),
    (lambda: sad.array(X) + np.ones(5), []),
    (lambda: sad.array(X)[7], []),
    (lambda: sad.array(X).median, []),
    (lambda: sad.reshape(X, 3), []),
    (lambda: sad.array("text"), []),
    (lambda: sad.dot(sad.array(X), 2.0), []),
    (lambda: sad.open_device("cuda"), []),
    (lambda: sad.load("nowhere"), []),
    (lambda: sad.build("nowhere.py", "out"), []),
    (lambda: sad.kernel(5), []),  # pyright: ignore[reportArgumentType]
    (lambda: sad.leaky_relu(X), []),  # pyright: ignore[reportAttributeAccessIssue]
    (lambda: sad.gradcheck(applied, X), ["applied", "launched"]),
    (lambda: step(sad.array(X)), ["step"]),
]


@pytest.mark.parametrize("number", range(len(SHOWN)))
def test_an_error_shows_the_frames_of_users_only(number: int, device: sad.Device) -> None:
    call, functions = SHOWN[number]
    with pytest.raises(sad.Error) as caught:
        call()
    frames = traceback.extract_tb(caught.value.__traceback__)
    assert {frame.filename for frame in frames} == {__file__}
    assert [frame.name for frame in frames[1:]] == ["<lambda>", *functions]


def test_frames_of_ours_are_shown_on_demand(
    device: sad.Device, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SHADERAD_TRACEBACK", "full")
    with pytest.raises(sad.Error) as caught:
        wrong(X, dim=4)
    files = {frame.filename for frame in traceback.extract_tb(caught.value.__traceback__)}
    assert any("shaderad/frontend" in Path(file).as_posix() for file in files)


def test_a_program_that_ends_by_an_error_prints_its_own_lines(tmp_path: Path) -> None:
    program = tmp_path / "program.py"
    program.write_text("import shaderad as sad\nsad.full((2, 2), 'red')\n")
    ended = subprocess.run([sys.executable, program], cwd=ROOT, capture_output=True, text=True)
    lines = ended.stderr.splitlines()
    assert lines[0] == "Traceback (most recent call last):"
    files = [line for line in lines if line.startswith("  File")]
    assert files == [f'  File "{program}", line 2, in <module>']
