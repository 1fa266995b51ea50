"""A trace is reused only if everything that Python read while tracing would read the same now.

The kinds of state, and the ways in which a function reaches it, are multiplied; each pair is
changed, and must be noticed. What a function does not name may change freely.
"""

from __future__ import annotations

import argparse
import array
import collections
import dataclasses
import enum
import functools
import operator
import sys
import threading
import types
import weakref
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest

import shaderad as sad
from shaderad.trace.captures import CONTENT_LIMIT, Reads

Change = Callable[[], None]
GLOBAL: Any = 1.0


class Kind(NamedTuple):
    """State that a function reads: an object, how code reads a number from it, how it changes."""

    held: Any
    read: Callable[[Any], Any]
    change: Change


class Plain:
    rate = 1.0

    def __init__(self, rate: float | None = None) -> None:
        if rate is not None:
            self.rate = rate

    def __call__(self) -> float:
        return self.rate

    def method(self) -> float:
        return self.rate

    @property
    def doubled(self) -> float:
        return 2 * self.rate

    @classmethod
    def of_class(cls) -> float:
        return cls.rate

    def __getitem__(self, _: int) -> float:
        return self.rate

    @functools.cached_property
    def cached(self) -> float:
        return self.rate


class Derived(Plain):
    """Inherits its rate."""


class Slotted:
    __slots__ = ("rate",)

    def __init__(self, rate: float) -> None:
        self.rate = rate


@dataclasses.dataclass
class Data:
    rate: float = 1.0


class Fallback:
    def __init__(self) -> None:
        self._values = {"rate": 1.0}

    def __getattr__(self, name: str) -> float:
        return self._values[name]


class Descriptor:
    def __init__(self) -> None:
        self.value = 1.0

    def __get__(self, instance: object, owner: type | None = None) -> float:
        return self.value


@sad.struct
class Lens:
    focal: float


def _set(owner: Any, name: str, value: Any) -> Change:
    return lambda: setattr(owner, name, value)


def _items(held: Any) -> Kind:
    return Kind(held, lambda one: one[0], lambda: held.__setitem__(0, 2.0))


def _table(held: Any) -> Kind:
    return Kind(held, lambda one: one["rate"], lambda: held.__setitem__("rate", 2.0))


def _attribute(held: Any, owner: Any = None) -> Kind:
    changed = held if owner is None else owner
    return Kind(held, lambda one: one.rate, _set(changed, "rate", 2.0))


def _fresh(base: type) -> type:
    """A class like `base`, which a test may change."""
    own = {k: v for k, v in vars(base).items() if k not in ("__dict__", "__weakref__")}
    return type(base.__name__, base.__bases__, own)


def _function() -> Kind:
    def held() -> None: ...

    held.rate = 1.0  # type: ignore[attr-defined]
    return _attribute(held)


def _module() -> Kind:
    held = types.ModuleType("a_module_of_the_user")
    held.rate = 1.0  # type: ignore[attr-defined]
    return _attribute(held)


def _inherited() -> Kind:
    base = _fresh(Plain)
    held = type("Derived", (base,), {})()
    return _attribute(held, base)


def _shadowed() -> Kind:
    return _attribute(_fresh(Plain)())


def _class() -> Kind:
    return _attribute(_fresh(Plain))


def _method() -> Kind:
    held = Plain(1.0)
    return Kind(held, lambda one: one.method(), _set(held, "rate", 2.0))


def _bound_method() -> Kind:
    held = Plain(1.0)
    return Kind(held.method, lambda one: one(), _set(held, "rate", 2.0))


def _called() -> Kind:
    held = Plain(1.0)
    return Kind(held, lambda one: one(), _set(held, "rate", 2.0))


def _property() -> Kind:
    held = Plain(1.0)
    return Kind(held, lambda one: one.doubled, _set(held, "rate", 2.0))


def _of_class() -> Kind:
    held = _fresh(Plain)
    return Kind(held, lambda one: one.of_class(), _set(held, "rate", 2.0))


def _item_method() -> Kind:
    held = Plain(1.0)
    return Kind(held, lambda one: one[3], _set(held, "rate", 2.0))


def _replaced_method() -> Kind:
    held = _fresh(Plain)
    return Kind(held(1.0), lambda one: one.method(), _set(held, "method", lambda _: 2.0))


def _slot_set_later() -> Kind:
    held = Slotted.__new__(Slotted)
    return Kind(held, lambda one: getattr(one, "rate", 1.0), _set(held, "rate", 2.0))


def _thread_local() -> Kind:
    held = threading.local()
    held.rate = 1.0
    return _attribute(held)


def _attribute_getter() -> Kind:
    held = Plain(1.0)
    return Kind((held, operator.attrgetter("rate")), lambda pair: pair[1](pair[0]),
                _set(held, "rate", 2.0))  # fmt: skip


def _other_class() -> Kind:
    held = _fresh(Plain)()
    other = type("Other", (Plain,), {"rate": 2.0})
    return Kind(held, lambda one: one.rate, _set(held, "__class__", other))


def _other_dict() -> Kind:
    held = Plain(1.0)
    return Kind(held, lambda one: one.rate, _set(held, "__dict__", {"rate": 2.0}))


def _named_by_text() -> Kind:
    held = Plain(1.0)
    return Kind(held, lambda one: getattr(one, "rate", 3.0), _set(held, "rate", 2.0))


def _named_by_a_variable() -> Kind:
    held = Plain(1.0)
    name = "".join(("ra", "te"))
    return Kind(held, lambda one: getattr(one, name), _set(held, "rate", 2.0))


def _attributes_at_once() -> Kind:
    held = Plain(1.0)
    return Kind(held, lambda one: vars(one)["rate"], _set(held, "rate", 2.0))


def _missing() -> Kind:
    held = types.SimpleNamespace()
    return Kind(held, lambda one: 2.0 if hasattr(one, "rate") else 1.0, _set(held, "rate", 2.0))


def _fallback() -> Kind:
    held = Fallback()
    return Kind(held, lambda one: one.rate, lambda: held._values.update(rate=2.0))


def _descriptor() -> Kind:
    descriptor = Descriptor()
    held = type("Described", (), {"rate": descriptor})()
    return Kind(held, lambda one: one.rate, _set(descriptor, "value", 2.0))


def _metaclass() -> Kind:
    meta = type("Meta", (type,), {"rate": 1.0})
    return _attribute(meta("WithMeta", (), {}), meta)


def _enum() -> Kind:
    settings = types.SimpleNamespace(rate=1.0)
    color = enum.Enum("Color", {"RED": settings})
    return Kind(color.RED, lambda one: one.value.rate, _set(settings, "rate", 2.0))


def _partial() -> Kind:
    held = Plain(1.0)
    return Kind(functools.partial(Plain.method, held), lambda one: one(), _set(held, "rate", 2.0))


def _default() -> Kind:
    def held(rate: float = 1.0) -> float:
        return rate

    return Kind(held, lambda one: one(), _set(held, "__defaults__", (2.0,)))


def _code() -> Kind:
    def held() -> float:
        return 1.0

    def other() -> float:
        return 2.0

    return Kind(held, lambda one: one(), _set(held, "__code__", other.__code__))


def _cell() -> Kind:
    rate = 1.0

    def held() -> float:
        return rate

    def change() -> None:
        nonlocal rate
        rate = 2.0

    return Kind(held, lambda one: one(), change)


def _decorated() -> Kind:
    inner = Plain(1.0)

    def held() -> float:
        return inner.rate

    @functools.wraps(held)
    def wrapped(*args: Any) -> float:
        return held(*args)

    return Kind(functools.lru_cache(wrapped), lambda one: one(), _set(inner, "rate", 2.0))


def _weak() -> Kind:
    inner = Plain(1.0)
    return Kind(weakref.ref(inner), lambda one: one().rate, _set(inner, "rate", 2.0))


def _numpy(change: Callable[[Any], None]) -> Kind:
    held = np.float32([1.0, 5.0])
    return Kind(held, lambda one: one[0], lambda: change(held))


def _reshaped(held: Any) -> None:
    held.shape = (2, 1)


def _tuple_of_arrays() -> Kind:
    held = (np.float32([1.0]), "a text")
    return Kind(held, lambda one: one[0][0], lambda: held[0].__setitem__(0, 2.0))


def _objects_in_numpy() -> Kind:
    inner = Plain(1.0)
    held = np.array([inner, None], dtype=object)
    return Kind(held, lambda one: one[0].rate, _set(inner, "rate", 2.0))


def _optimiser() -> Kind:
    held = sad.optim.SGD(1.0)
    return Kind(held, lambda one: one.lr, _set(held, "lr", 2.0))


def _graph() -> Kind:
    held = Plain(1.0)
    return Kind(sad.graph(lambda x: x * held.rate), lambda one: one, _set(held, "rate", 2.0))


def _kernel_function() -> Kind:
    @sad.function
    def held(x: float) -> float:
        return x * GLOBAL

    return Kind(held, lambda one: one, _set(sys.modules[__name__], "GLOBAL", 2.0))


def _custom_rule() -> Kind:
    held = sad.custom_vjp(lambda x: x)
    held.defvjp(lambda x: (x, ()), lambda _, bar: (bar,))
    return Kind(held, lambda one: one, lambda: held.defvjp(lambda x: (x, ()), lambda _, bar: (2,)))


def _transform() -> Kind:
    held = Plain(1.0)
    return Kind(sad.vmap(sad.grad(lambda x: x * held.rate)), lambda one: one,
                _set(held, "rate", 2.0))  # fmt: skip


def _deque() -> Kind:
    return _items(collections.deque([1.0]))


def _set_of_numbers() -> Kind:
    held = {1.0}
    return Kind(held, lambda one: max(one), lambda: held.add(2.0))


def _user_dict() -> Kind:
    return _table(collections.UserDict(rate=1.0))


def _struct() -> Kind:
    held = Lens(1.0)
    return Kind(held, lambda one: one, _set(held, "focal", 2.0))


KINDS: dict[str, Callable[[], Kind]] = {
    "attribute": lambda: _attribute(Plain(1.0)),
    "namespace": lambda: _attribute(types.SimpleNamespace(rate=1.0)),
    "arguments": lambda: _attribute(argparse.Namespace(rate=1.0)),
    "dataclass": lambda: _attribute(Data()),
    "slot": lambda: _attribute(Slotted(1.0)),
    "list": lambda: _items([1.0]),
    "deque": _deque,
    "bytes": lambda: Kind(held := bytearray(b"\1"), lambda one: one[0],
                          lambda: held.__setitem__(0, 2)),
    "array": lambda: _items(array.array("f", [1.0])),
    "dict": lambda: _table({"rate": 1.0}),
    "ordered": lambda: _table(collections.OrderedDict(rate=1.0)),
    "chain": lambda: _table(collections.ChainMap({"rate": 1.0})),
    "user dict": _user_dict,
    "set": _set_of_numbers,
    "proxy": lambda: Kind(types.MappingProxyType(table := {"rate": 1.0}), lambda one: one["rate"],
                          lambda: table.__setitem__("rate", 2.0)),
    "function": _function, "module": _module, "inherited": _inherited, "shadowed": _shadowed,
    "class": _class, "method": _method, "bound method": _bound_method, "called": _called,
    "property": _property, "class method": _of_class, "item method": _item_method,
    "replaced method": _replaced_method, "other class": _other_class, "other dict": _other_dict,
    "text": _named_by_text, "variable": _named_by_a_variable, "vars": _attributes_at_once,
    "missing": _missing, "fallback": _fallback, "descriptor": _descriptor, "partial": _partial,
    "metaclass": _metaclass, "enum": _enum, "slot set later": _slot_set_later,
    "thread local": _thread_local, "attribute getter": _attribute_getter,
    "default": _default, "code": _code, "cell": _cell, "decorated": _decorated, "weak": _weak,
    "numpy": lambda: _numpy(lambda one: one.__setitem__(0, 2.0)),
    "reshaped": lambda: Kind(held := np.float32([1.0, 5.0]), lambda one: one.ravel()[0],
                             lambda: _reshaped(held)),
    "zero of another sign": lambda: Kind(held := np.zeros(1), lambda one: one[0],
                                         lambda: held.__setitem__(0, -0.0)),
    "tuple of arrays": _tuple_of_arrays, "objects in numpy": _objects_in_numpy,
    "optimiser": _optimiser, "graph": _graph, "kernel function": _kernel_function,
    "custom rule": _custom_rule, "transform": _transform, "struct": _struct,
}  # fmt: skip


def _by_global(kind: Kind) -> Callable[..., Any]:
    globals()["HELD"], globals()["READ"] = kind.held, kind.read
    return lambda: READ(HELD)  # type: ignore[name-defined] # noqa: F821


def _by_closure(kind: Kind) -> Callable[..., Any]:
    held, read = kind.held, kind.read
    return lambda: read(held)


def _by_default(kind: Kind) -> Callable[..., Any]:
    def function(held: Any = kind.held, *, read: Any = kind.read) -> Any:
        return read(held)

    return function


def _by_object(kind: Kind) -> Callable[..., Any]:
    class Model:
        def __init__(self) -> None:
            self.part = [{"held": kind.held}]

        def forward(self) -> Any:
            return kind.read(self.part[0]["held"])

    model = Model()
    return lambda: model.forward()


def _by_class(kind: Kind) -> Callable[..., Any]:
    class Model:
        held = (kind.held,)
        read = staticmethod(kind.read)

        def __call__(self) -> Any:
            return self.read(self.held[0])

    return Model()


def _by_module(kind: Kind) -> Callable[..., Any]:
    module = types.ModuleType("settings_of_the_user")
    module.held, module.read = kind.held, kind.read  # type: ignore[attr-defined]
    sys.modules[module.__name__] = module

    def function() -> Any:
        from settings_of_the_user import held, read  # type: ignore[import-not-found]

        return read(held)

    return function


def _by_nested_functions(kind: Kind) -> Callable[..., Any]:
    def inner() -> Any:
        return [kind.read(one) for one in (kind.held,)].pop()

    @functools.wraps(inner)
    def outer() -> Any:
        def nested() -> Any:
            return inner()

        return nested()

    return functools.partial(sad.checkpoint(outer))


def _by_generator(kind: Kind) -> Callable[..., Any]:
    def items() -> Iterator[Any]:
        yield kind.read(kind.held)

    return lambda: next(items())


WAYS = (
    _by_global, _by_closure, _by_default, _by_object, _by_class, _by_module, _by_nested_functions,
    _by_generator,
)  # fmt: skip


@pytest.fixture(autouse=True)
def _restored(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in (("HELD", None), ("READ", None), ("GLOBAL", 1.0)):
        monkeypatch.setitem(globals(), name, value)
    monkeypatch.delitem(sys.modules, "settings_of_the_user", raising=False)


@pytest.mark.parametrize("name", KINDS)
def test_a_change_is_noticed_however_the_state_is_reached(name: str) -> None:
    for way in WAYS:
        sys.modules[__name__].GLOBAL = 1.0
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
