"""The Python objects that ``@sad.kernel`` and ``@sad.function`` put in place of functions.

Invariant: decorating never parses, resolves or compiles, so definitions may be in any order.
"""

from __future__ import annotations

import ast
import functools
import inspect
import sys
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from types import FunctionType, MethodType
from typing import Any, Self, cast

from shaderad.diagnostics import Span, error
from shaderad.diagnostics.tracebacks import api_boundary
from shaderad.ir.nodes import Function
from shaderad.ir.types import Struct
from shaderad.language.source import BoundNames, Source, source_of
from shaderad.language.values import Variants


@dataclass(frozen=True)
class Standalone:
    """A function whose parameters are all values or constants."""

    function: Function
    class_by_struct: Mapping[Struct, type]
    """The classes of the structs that it uses."""


class LikeFunction:
    """An object that is copied as itself and pickled by its name, like a Python function."""

    __qualname__: str

    def __reduce__(self) -> str:
        return self.__qualname__

    def __copy__(self) -> Self:
        return self

    def __deepcopy__(self, memo: object) -> Self:
        return self


class PythonFunction(LikeFunction):
    """A Python function with its source and the names that its annotations may use."""

    _followed: tuple[str, ...] = ("python",)
    """Attributes that calls read: see `trace/reachable.py`."""

    def __init__(self, function: Callable[..., object], locals_: Mapping[str, object]) -> None:
        self.python = plain_function(function)
        self.source: Source = source_of(self.python)
        self.owner: type | None = None
        """The struct class of a method."""
        self._locals = named_in_annotations(self.python.__annotations__, locals_)
        functools.update_wrapper(cast("Callable[..., object]", self), self.python)

    @property
    def name(self) -> str:
        """``Struct_method`` for methods."""
        own = self.python.__name__
        return own if self.owner is None else f"{self.owner.__name__}_{own}"

    @property
    def shown_name(self) -> str:
        """The name in messages, ``Struct.method`` for methods."""
        own = self.python.__name__
        return own if self.owner is None else f"{self.owner.__name__}.{own}"

    def namespace(self) -> dict[str, object]:
        """The names of annotations: globals, enclosing locals, closure, own class."""
        names = dict(self.python.__globals__)
        names.update(self._locals)
        for name, cell in zip(
            self.python.__code__.co_freevars, self.python.__closure__ or (), strict=True
        ):
            with suppress(ValueError):  # The cell is empty until the name is bound.
                names[name] = cell.cell_contents
        if self.owner is not None:
            names[self.owner.__name__] = self.owner
        return names

    @property
    def file(self) -> str:
        """The Python file that defines it."""
        return self.python.__code__.co_filename

    @functools.cached_property
    def tree(self) -> ast.FunctionDef:
        """The parsed source; raises as `Source.parse`."""
        return self.source.parse()

    @property
    def def_span(self) -> Span:
        """The line of ``def``."""
        return self.source.of(self.tree)

    @functools.cached_property
    def names(self) -> BoundNames:
        return BoundNames(self.tree)

    @property
    def annotations(self) -> dict[str, object]:
        return self.python.__annotations__


class UserFunction(PythonFunction, ABC):
    """``@sad.function`` or a method of a struct: called from kernels, specialised for each."""

    _followed = ("python", "backward", "forward")

    def __init__(self, function: Callable[..., object], locals_: Mapping[str, object]) -> None:
        super().__init__(function, locals_)
        self.variants: Variants[Standalone] = Variants()
        """Its forms outside of kernels, for calls from Python."""
        self.backward: DerivativeFunction | None = None
        self.forward: DerivativeFunction | None = None

    @abstractmethod
    def __call__(self, *args: object, **kwargs: object) -> Any:
        """The function on values of Python."""

    @api_boundary
    def backward_derivative(
        self, function: Callable[..., object] | None = None, *, check: bool = True
    ) -> Callable[..., object]:
        """Makes the decorated function the backward derivative of this one.

        It takes `sad.DifferentialPair[T]` where this function takes a differentiable `T`, other
        parameters as they are, and the cotangent of the result last. With ``check=False``
        `gradcheck` leaves it alone (straight-through estimators).

        Raises:
            LanguageError: SR0234, when a kernel is compiled, where the signatures do not fit.
        """
        if function is None:
            return functools.partial(self.backward_derivative, check=check)
        locals_ = caller_locals(3)
        self.backward = DerivativeFunction(function, locals_, self, is_forward=False, check=check)
        return self.backward

    @api_boundary
    def forward_derivative(self, function: Callable[..., object]) -> Callable[..., object]:
        """Makes the decorated function the forward derivative of this one.

        It takes and returns `sad.DifferentialPair`s where this function takes and returns
        differentiable values.

        Raises:
            LanguageError: SR0234, when a kernel is compiled, where the signatures do not fit.
        """
        locals_ = caller_locals(3)
        self.forward = DerivativeFunction(function, locals_, self, is_forward=True, check=True)
        return self.forward


class DerivativeFunction(PythonFunction):
    """A custom derivative of `primal`."""

    def __init__(
        self,
        function: Callable[..., object],
        locals_: Mapping[str, object],
        primal: UserFunction,
        *,
        is_forward: bool,
        check: bool,
    ) -> None:
        super().__init__(function, locals_)
        self.primal = primal
        self.is_forward = is_forward
        self.check = check

    @api_boundary
    def __call__(self, *args: object, **kwargs: object) -> object:
        raise error("SR0236", self.source.span, name=self.name, found="called",
                    help=f"call `sad.bwd_diff({self.primal.name})` or `sad.fwd_diff`")  # fmt: skip


def plain_function(function: object) -> FunctionType:
    """The function itself, without our wrappers."""
    if isinstance(function, PythonFunction):
        return function.python
    if not isinstance(function, FunctionType):
        if isinstance(function, MethodType):
            method = f"the bound method `{function.__qualname__}`; a kernel has no `self`"
            raise error("SR0103", None, found=method)
        raise error("SR0103", None, found=f"`{function!r}`")
    code = function.__code__
    if hasattr(function, "__wrapped__"):
        raise error("SR0105", None, name=function.__name__)
    span = source_of(function).span
    if function.__name__ == "<lambda>":
        raise error("SR0103", span, found="a lambda")
    if code.co_flags & (inspect.CO_COROUTINE | inspect.CO_ASYNC_GENERATOR):
        raise error("SR0103", span, found="an `async def`")
    if code.co_flags & inspect.CO_GENERATOR:
        raise error("SR0103", span, found="a generator (it says `yield`)")
    return function


def caller_locals(depth: int) -> Mapping[str, object]:
    """Locals of the decorating frame; none at module level, where they are the globals."""
    frame = sys._getframe(depth)  # pyright: ignore[reportPrivateUsage]
    return {} if frame.f_locals is frame.f_globals else frame.f_locals


def caller_globals(depth: int) -> Mapping[str, object]:
    """Globals of the decorating frame, to which later definitions are added."""
    return sys._getframe(depth).f_globals  # pyright: ignore[reportPrivateUsage]


def named_in_annotations(
    annotations: Mapping[str, object], names: Mapping[str, object]
) -> dict[str, object]:
    """The `names` that occur in the annotations that are text."""
    used: set[str] = set()
    for annotation in annotations.values():
        if isinstance(annotation, str):
            with suppress(SyntaxError):
                used.update(compile(annotation, "<annotation>", "eval").co_names)
    return {name: names[name] for name in used if name in names}
