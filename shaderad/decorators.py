"""``@sad.kernel``, ``@sad.function``, ``@sad.struct``: Python objects that kernels are made from.

Invariants: decorating never parses, resolves or compiles, so definitions may be in any order. A
struct class stays an ordinary Python class whose instances hold the fields. The first call imports
the modules that run it.
"""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable, Mapping
from types import FunctionType, MethodType
from typing import Any, TypeVar, cast

import numpy as np

from shaderad.diagnostics import Error, Span, error, nesting
from shaderad.diagnostics.tracebacks import api_boundary
from shaderad.frontend.kernels import read_kernel
from shaderad.ir.nodes import Kernel
from shaderad.language.annotations import STRUCT_ATTRIBUTE
from shaderad.language.host import PythonFunction, UserFunction, caller_globals, caller_locals
from shaderad.language.intrinsics import is_device_array
from shaderad.language.signatures import UserKernel
from shaderad.language.source import source_of
from shaderad.language.structs import StructInfo, info_of
from shaderad.language.values import Captures, Variants

__all__ = ["function", "kernel", "struct"]

C = TypeVar("C", bound=type)
_REFUSED_MEMBERS: tuple[type, ...] = (staticmethod, classmethod, property)
_DATACLASS_METHODS = frozenset({"__init__", "__repr__", "__eq__", "__hash__", "__post_init__"})


@functools.cache
def _kernel_caller() -> Callable[[KernelFunction, tuple[Any, ...], dict[str, Any]], object]:
    """`call_kernel`, imported once, because an import statement would cost every call a look-up."""
    from shaderad.calls.run_kernel import call_kernel

    return call_kernel


class KernelFunction(UserKernel):
    """A kernel. Calling it runs it: ``shade(triangles, face, uv, 1.5, dim=n)``."""

    def __init__(self, function: Callable[..., object], locals_: Mapping[str, object]) -> None:
        super().__init__(function, locals_)
        self._variants: Variants[Kernel] = Variants()

    @api_boundary
    def __call__(self, *args: object, **kwargs: object) -> Any:
        """Runs the kernel over ``dim``; returns the written arrays.

        See `shaderad.calls.run_kernel.call_kernel` for arguments and errors.
        """
        return _kernel_caller()(self, args, kwargs)

    @api_boundary
    def debug(
        self, *args: object, thread: int | tuple[int, ...] = 0, **kwargs: object
    ) -> dict[str, dict[Any, Any]]:
        """Runs the Python body itself for one thread: ``breakpoint()`` and ``print`` work in it.

        Takes what a call takes, and `thread`: an index, or its row-major number. Values are copied,
        floats round and ints wrap as on a device. An index out of range raises at its line, unless
        ``bounds="ignore"``. The limits of ``while sad.limit(...)`` are not enforced.

        Returns:
            For each written array the elements that the thread wrote, by index.
        """
        from shaderad.debug import debug_kernel

        return debug_kernel(self, args, kwargs, thread)

    def specialise(self, const_values: Mapping[str, object]) -> Kernel:
        """The typed kernel for these constants and the current captures.

        Raises:
            LanguageError: For code that kernels do not have, at its Python line.
        """

        def read() -> tuple[Kernel, Captures]:
            with nesting(self.name, self.source.span):
                return read_kernel(self, const_values)

        return self._variants.of(const_values, read)


class CallableFunction(UserFunction):
    """A function for kernels that Python may call, too."""

    @api_boundary
    def __call__(self, *args: object, **kwargs: object) -> Any:
        """The function on numbers, vectors and structs, in double precision.

        See `shaderad.calls.numbers.call_function` for arguments and errors.
        """
        from shaderad.calls.numbers import call_function

        return call_function(self, args, kwargs)

    def __get__(self, instance: object, owner: type | None = None) -> CallableFunction | MethodType:
        return self if instance is None else MethodType(self, instance)


@api_boundary
def kernel(function: Callable[..., object]) -> KernelFunction:
    """Makes a Python function a kernel: one thread runs it for each index of the launch.

    ``shade(x, dim=n)`` runs n threads and returns the arrays that the kernel writes. The parameters
    say what a thread gets: `sad.Index`, values, arrays to read (`sad.In`), to write (`sad.Out`),
    and to add to or take extremes in (`sad.Add`, `sad.Min`, `sad.Max`). Nothing is compiled before
    the first call.

    Args:
        function: A ``def`` with annotations, in the kernel language (docs/kernel_language.md).

    Raises:
        LanguageError: SR0103 for anything but a ``def``.

    Differentiable in all floats that it reads, through the transforms of `sad`. See
    docs/conventions.md for values without a derivative, and for singular points.
    """
    return KernelFunction(function, caller_locals(3))


@api_boundary
def function(function: Callable[..., object]) -> CallableFunction:
    """Makes a Python function callable from kernels and other functions.

    It is specialised for the arrays and constants of each call. From Python, it computes on numbers
    in double precision, and on arrays element by element, as `sad.map` does.

    Args:
        function: A ``def`` with annotations, in the kernel language.

    Raises:
        LanguageError: SR0103 for anything but a ``def``.

    Differentiable by the rules of what it calls, or by a derivative of the user's own:
    `UserFunction.backward_derivative`, `UserFunction.forward_derivative`.
    """
    if isinstance(function, KernelFunction):
        raise error("SR0103", function.source.span, found=f"the kernel `{function.name}`")
    return CallableFunction(function, caller_locals(3))


# -- structs ----------------------------------------------------------------------------------


@api_boundary
def struct(cls: Any) -> Any:
    """Makes a class with annotated fields a struct of the kernel language.

    Fields are value types or arrays (``vertices: sad.In[float3]``); methods are functions that
    kernels may call. In Python the class gets a constructor by fields, ``repr`` and ``==``.

    Raises:
        LanguageError: SR0103 for anything but a class, SR0104 for base classes, and for members
            that kernels do not have.
    """
    # Typed as `Any`, so that checkers keep the class and accept any constructor arguments.
    if not isinstance(cls, type):
        raise error("SR0103", None, found=f"`{cls!r}`")
    locals_ = caller_locals(3)
    info = StructInfo(cls, caller_globals(3), locals_)
    if cls.__bases__ != (object,):
        raise _refused(info.span(), cls, "base classes",
                       "repeat the fields, or hold the other struct as a field")  # fmt: skip
    for name, member in list(vars(cls).items()):
        method = _method(cls, name, member, locals_)
        if method is not None:
            info.methods[name] = method
            setattr(cls, name, method)
    cls = _with_constructor(cls, info)
    members = {"__eq__": _equal, "__hash__": None, "__new__": _new, STRUCT_ATTRIBUTE: info}
    for name, member in members.items():
        setattr(cls, name, member)
    return cls


def _method(
    cls: type, name: str, member: object, locals_: Mapping[str, object]
) -> UserFunction | None:
    if isinstance(member, _REFUSED_MEMBERS):
        inner: object = getattr(member, "fget", None) or getattr(member, "__func__", None)
        raise _refused(_span_of(inner), cls, f"a {type(member).__name__}: `{name}`",
                       "write a method, or a `@sad.function` outside of the class")  # fmt: skip
    if name in _DATACLASS_METHODS and isinstance(member, FunctionType):
        raise _refused(_span_of(member), cls, f"its own `{name}`",
                       "structs are made from their fields; "
                       "write a `@sad.function` that returns one")  # fmt: skip
    if not isinstance(member, FunctionType | PythonFunction):
        return None
    method = CallableFunction(member, locals_) if isinstance(member, FunctionType) else member
    if not isinstance(method, UserFunction):
        return None
    method.owner = cls
    return method


def _refused(span: Span | None, cls: type, description: str, help_: str) -> Error:
    return error("SR0104", span, name=cls.__name__, found=description, help=help_)


def _span_of(function: object) -> Span | None:
    return source_of(function).span if isinstance(function, FunctionType) else None


def _with_constructor(cls: C, info: StructInfo) -> C:
    # dataclass would resolve the annotations itself, in other namespaces than `resolve` does.
    cls.__annotations__ = dict.fromkeys(info.annotations, object)
    try:
        return cast("C", dataclasses.dataclass(eq=False)(cls))
    except (TypeError, ValueError) as failure:
        raise _refused(info.span(), cls, str(failure),
                       "give defaults to the last fields only, "
                       "and only numbers") from failure  # fmt: skip
    finally:
        cls.__annotations__ = info.annotations


def _new(cls: Any, *args: object, **fields: object) -> object:
    """An object of the class; from device arrays, an array of structs."""
    if not any(map(is_device_array, (*args, *fields.values()))):
        return object.__new__(cls)
    from shaderad.functions.kernel_names import struct_array

    info = info_of(cls)
    assert info is not None
    named = dict(zip(info.annotations, args, strict=False)) | fields
    array = struct_array(info, {**info.defaults, **named})
    return object.__new__(cls) if array is None else array


def _equal(self: object, other: object) -> bool:
    if type(self) is not type(other):
        return NotImplemented
    info = info_of(self)
    assert info is not None
    return all(np.array_equal(getattr(self, n), getattr(other, n)) for n in info.annotations)
