"""Kinds of state that a function may read, and the ways in which it reaches them."""

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
from typing import Any, NamedTuple

import numpy as np

import shaderad as sad

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
