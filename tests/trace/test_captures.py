"""A trace is reused only if everything that Python read while tracing would read the same now.

The kinds of state, and the ways in which a function reaches it, are multiplied; each pair is
changed, and must be noticed. What a function does not name may change freely.
"""

from __future__ import annotations

import sys
import types
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import shaderad as sad
from shaderad.trace.captures import CONTENT_LIMIT, Reads
from tests.trace import states
from tests.trace.states import KINDS, WAYS, Kind, Plain


@pytest.fixture(autouse=True)
def _restored(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in (("HELD", None), ("READ", None), ("GLOBAL", 1.0)):
        monkeypatch.setattr(states, name, value, raising=False)
    monkeypatch.delitem(sys.modules, "settings_of_the_user", raising=False)


@pytest.mark.parametrize("name", KINDS)
def test_a_change_is_noticed_however_the_state_is_reached(name: str) -> None:
    for way in WAYS:
        states.GLOBAL = 1.0
        kind = KINDS[name]()
        function = way(kind)
        reads = Reads("f", [("f", function)])
        assert reads.are_current(), way.__name__
        assert reads.are_current(), way.__name__
        kind.change()
        assert not reads.are_current(), way.__name__


class Large:
    """An object with many attributes, of which a function names one."""

    def __init__(self) -> None:
        for number in range(1000):
            setattr(self, f"unused_{number}", [number])
        self.unused = np.zeros(CONTENT_LIMIT, np.float32)
        self.rate = 1.0

    def loss(self) -> float:
        return self.rate


def test_what_no_code_names_is_not_read() -> None:
    held = Large()
    reads = Reads("f", [("f", lambda: held.loss())])
    assert len(reads._then) < 20
    held.unused[0] = 1.0
    held.unused_7 = None  # type: ignore[attr-defined]
    held.new = 1  # type: ignore[attr-defined]
    assert reads.are_current()


def test_what_pytest_puts_into_an_assert_is_not_read() -> None:
    def checked(x: Any) -> Any:
        assert x is not None
        return x

    assert len(Reads("f", [("f", checked)])._then) < 20


def test_equal_values_are_not_traced_again() -> None:
    held = types.SimpleNamespace(
        rate=0.1, name="a", shape=(1, (2.0, "b")), table=np.float32([1, 2]), scalar=np.float32(0.1)
    )

    def function() -> Any:
        return held.rate, held.name, held.shape, held.table, held.scalar

    reads = Reads("f", [("f", function)])
    held.rate = float("0.1")
    held.name = "".join(["a"])
    held.shape = (1, (float("2"), "b"))
    held.table = np.float32([1, 2])
    held.scalar = np.float32(0.1)
    assert reads.are_current()
    for name, other in (
        ("rate", np.float64(0.1)), ("shape", (1, (2, "b"))), ("shape", (True, (2.0, "b"))),
        ("table", np.float64([1, 2])), ("table", np.float32([[1, 2]])), ("scalar", 0.1),
        ("table", sad),
    ):  # fmt: skip
        before = getattr(held, name)
        setattr(held, name, other)
        assert not reads.are_current(), (name, other)
        setattr(held, name, before)
        assert reads.are_current(), name


def test_lengths_that_move_between_lists_are_noticed() -> None:
    first, second = [1.0, 1.0], [1.0]
    reads = Reads("f", [("f", lambda: (first[-1], second[-1]))])
    second.append(first.pop())
    assert not reads.are_current()


def test_a_name_that_hides_a_builtin_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    reads = Reads("f", [("f", lambda: max(1.0, 2.0))])
    monkeypatch.setitem(globals(), "max", min)
    assert not reads.are_current()


def test_an_attribute_that_hides_that_of_the_class_is_noticed() -> None:
    held = Plain()
    reads = Reads("f", [("f", lambda: held.rate)])
    held.rate = 1.0
    assert not reads.are_current()


def test_no_code_of_the_user_runs_while_reads_are_compared() -> None:
    class Watched:
        @property
        def rate(self) -> float:
            raise AssertionError

        def __getattr__(self, name: str) -> float:
            raise AssertionError

        def __eq__(self, other: object) -> bool:
            raise AssertionError

        def __hash__(self) -> int:
            raise AssertionError

    held = Watched()
    assert Reads("f", [("f", lambda: held.rate)]).are_current()


def test_host_arrays_above_the_limit_are_refused_by_name() -> None:
    model = types.SimpleNamespace(images=[np.zeros(CONTENT_LIMIT // 4 + 1, np.float32)])
    with pytest.raises(sad.LanguageError, match=r"SR0339(.|\n)*`model.images\[0\]` has"):
        Reads("f", [("f", lambda: model.images)])
    model.images = [np.zeros(CONTENT_LIMIT // 4, np.float32)]
    assert Reads("f", [("f", lambda: model.images)]).are_current()


# -- callers ---------------------------------------------------------------------------------------

X = np.float32([1.0, 2.0])
Read = Callable[[], Any]


def _scaled(read: Read) -> Callable[[Any], Any]:
    return lambda x: x * read()


def _custom(read: Read) -> Callable[[Any], Any]:
    rule = sad.custom_vjp(_scaled(read))
    rule.defvjp(lambda x: (x * read(), ()), lambda _, bar: (bar * (read() * read()),))
    return rule


def _loop(read: Read) -> Callable[[Any], Any]:
    return lambda x: sad.fori_loop(2, lambda _, y: y * read(), x)


def _gradient(function: Callable[[Any], Any]) -> Callable[[Any], Any]:
    return sad.grad(lambda x: sad.sum(function(x)))


def _in_a_graph(read: Read) -> Callable[[Any], Any]:
    inner = sad.graph(_scaled(read))
    return sad.graph(lambda x: inner(x))


CALLERS: dict[str, tuple[Callable[[Read], Callable[[Any], Any]], Callable[[float], Any]]] = {
    "graph": (lambda read: sad.graph(_scaled(read)), lambda r: r * X),
    "graph in a graph": (_in_a_graph, lambda r: r * X),
    "custom rule": (_custom, lambda r: r * X),
    "custom rule, backward": (lambda read: _gradient(_custom(read)), lambda r: r * r + 0 * X),
    "custom rule in a graph": (
        lambda read: sad.graph(_gradient(_custom(read))), lambda r: r * r + 0 * X,
    ),
    "grad of a graph": (lambda read: _gradient(sad.graph(_scaled(read))), lambda r: r + 0 * X),
    "vmap": (lambda read: sad.graph(sad.vmap(_scaled(read))), lambda r: r * X),
    "checkpoint": (lambda read: sad.graph(sad.checkpoint(_scaled(read))), lambda r: r * X),
    "loop": (lambda read: sad.graph(_loop(read)), lambda r: r * r * X),
}  # fmt: skip
SAMPLED = 6
"""Kinds of state for each caller, drawn at random."""


@pytest.mark.gpu
def test_every_caller_computes_what_a_fresh_trace_does(device: sad.Device) -> None:
    """The caller is made once for each, so that all its states run the same programs."""
    rng = np.random.default_rng(0)
    names = [name for name, make in KINDS.items() if _is_number(make())]
    state: dict[str, Kind] = {}
    with device:
        for caller, (make, expected) in CALLERS.items():
            function = make(lambda: state["kind"].read(state["kind"].held))
            for name in rng.permutation(names)[:SAMPLED]:
                state["kind"] = KINDS[name]()
                for change in (lambda: None, state["kind"].change):
                    change()
                    rate = float(state["kind"].read(state["kind"].held))
                    found = np.asarray(function(sad.array(X)))
                    np.testing.assert_allclose(
                        found, expected(rate), rtol=1e-6, err_msg=f"{caller}, {name}"
                    )


def _is_number(kind: Kind) -> bool:
    return isinstance(kind.read(kind.held), float | int | np.floating)


@pytest.mark.gpu
def test_an_array_that_enters_the_graph_and_is_read_by_numpy_stays_current(
    device: sad.Device,
) -> None:
    v = np.float32([1.0, 5.0])
    with device:
        graph = sad.graph(lambda x: x * v + v[0])
        for number in (1.0, 2.0, 3.0):
            v[0] = number
            np.testing.assert_allclose(graph(sad.array(X)).numpy(), X * v + number)


@pytest.mark.gpu
def test_content_of_the_device_that_python_looks_at_is_compared(device: sad.Device) -> None:
    with device:
        state = {"w": sad.array(2.0)}
        graph = sad.graph(lambda x: x * float(state["w"]))
        for number in (2.0, 3.0):
            state["w"] = sad.array(number)
            np.testing.assert_allclose(graph(sad.array(X)).numpy(), number * X)
        gone = iter([sad.array(2.0)])
        with pytest.raises(sad.LanguageError, match="SR0338"):
            sad.graph(lambda x: x * float(next(gone)))(sad.array(X))


@pytest.mark.gpu
def test_a_custom_rule_that_is_kept_refuses_an_array_that_is_differentiated(
    device: sad.Device,
) -> None:
    with device:
        state = {"w": sad.array(X)}
        rule = sad.custom_vjp(lambda x: x * state["w"])
        rule.defvjp(lambda x: (x * state["w"], ()), lambda _, bar: (bar * state["w"],))
        x = sad.array(X)
        np.testing.assert_allclose(rule(x).numpy(), X * X)
        state["w"] = sad.array(2 * X)
        np.testing.assert_allclose(rule(x).numpy(), 2 * X * X)

        def loss(w: Any) -> Any:
            state["w"] = w
            return sad.sum(rule(x))

        with pytest.raises(sad.DerivativeError, match="SR0474"):
            sad.grad(loss)(sad.array(X))


@pytest.mark.gpu
def test_defaults_that_were_replaced_are_used(device: sad.Device) -> None:
    def function(x: Any, rate: float = 1.0) -> Any:
        return x * rate

    with device:
        graph = sad.graph(function)
        x = sad.array(X)
        np.testing.assert_allclose(graph(x).numpy(), X)
        function.__defaults__ = (2.0,)
        np.testing.assert_allclose(graph(x).numpy(), 2 * X)


@pytest.mark.gpu
def test_a_module_that_the_first_trace_imports_is_followed(
    device: sad.Device, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "settings_on_disk.py").write_text("rate = 1.0\n")
    monkeypatch.syspath_prepend(tmp_path)

    def function(x: Any) -> Any:
        import settings_on_disk  # type: ignore[import-not-found]

        return x * settings_on_disk.rate

    with device:
        graph = sad.graph(function)
        for rate in (1.0, 2.0):
            np.testing.assert_allclose(graph(sad.array(X)).numpy(), rate * X)
            monkeypatch.setattr("settings_on_disk.rate", 2.0)
    monkeypatch.delitem(sys.modules, "settings_on_disk")


def test_a_module_of_the_user_with_the_name_of_one_of_python_is_followed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "sched.py").write_text("rate = 1.0\ndef scaled(x):\n    return rate * x\n")
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, "sched", raising=False)
    import sched

    reads = Reads("f", [("f", lambda x: sched.scaled(x))])  # type: ignore[attr-defined]
    assert reads.are_current()
    monkeypatch.setattr(sched, "rate", 2.0)
    assert not reads.are_current()
    monkeypatch.delitem(sys.modules, "sched")
