"""``sad.slang_kernel``: kernels whose code is Slang of the user's own.

Invariant: the text is read and its functions are checked where the kernel is defined.
"""

from __future__ import annotations

import math
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, cast

from shaderad.bodies.slang_signatures import (
    Expected,
    Passed,
    backward_parameters,
    forward_parameters,
    primal_parameters,
)
from shaderad.device.lines import user_span
from shaderad.diagnostics import Span, error, text_of
from shaderad.diagnostics.tracebacks import api_boundary
from shaderad.ir.nodes import (
    Buffer,
    Kernel,
    KernelParameter,
    SlangEntry,
    SlangKernel,
    SlangParameter,
    Uniform,
)
from shaderad.ir.pointers import holds_pointers
from shaderad.ir.types import (
    Access,
    BufferType,
    Kind,
    LocalArray,
    Pointer,
    ResourceType,
    Struct,
    Type,
    scalars,
)
from shaderad.language.annotations import ConstType, IndexType, resolve
from shaderad.language.host import LikeFunction, caller_globals
from shaderad.language.signatures import RESERVED, KernelSignature, Launchable
from shaderad.language.slang_source import SlangSource, source_of_file, source_of_text

__all__ = ["slang_kernel"]

_AXES = ("i", "j", "k")
_GROUP_LIMIT = 1024
"""Maximum threads of a workgroup on any device that we know."""
_SYSTEM_VALUES = {
    "SV_DispatchThreadID": ("uint", "uint2", "uint3", "int", "int2", "int3"),
    "SV_GroupID": ("uint", "uint2", "uint3"),
    "SV_GroupThreadID": ("uint", "uint2", "uint3"),
    "SV_GroupIndex": ("uint",),
}
"""The system values that a function may take, and their types."""


class SlangKernelFunction(LikeFunction, Launchable):
    """A kernel in Slang. Calling it runs it: ``blur(x, 0.5, dim=(h, w))``."""

    def __init__(self, kernel: SlangKernel, module: str) -> None:
        self._kernel = kernel
        self.__name__ = self.__qualname__ = kernel.name
        self.__module__ = module

    @api_boundary
    def __call__(self, *args: object, **kwargs: object) -> Any:
        """Runs the kernel over ``dim``; returns the written arrays.

        See `shaderad.calls.run_kernel.call_kernel` for arguments and errors.
        """
        from shaderad.calls.run_kernel import call_kernel

        return call_kernel(self, args, kwargs)

    @property
    def name(self) -> str:
        return self._kernel.name

    @property
    def file(self) -> str:
        """The Python file that defines it."""
        return self._kernel.span.file

    @property
    def signature(self) -> KernelSignature:
        parameters = self._kernel.parameters
        return KernelSignature(
            self._kernel.index_names, parameters, (self._kernel.span,) * len(parameters)
        )

    def specialise(self, const_values: Mapping[str, object]) -> Kernel:
        del const_values  # It has no constants.
        return self._kernel

    def __repr__(self) -> str:
        return f"<kernel {self.name}({', '.join(map(str, primal_parameters(self._kernel)))})>"


@api_boundary
def slang_kernel(
    source: str | os.PathLike[str],
    entry: str,
    parameters: Mapping[str, object],
    *,
    group: int | tuple[int, ...],
    backward: str | None = None,
    forward: str | None = None,
) -> SlangKernelFunction:
    """Makes a function in Slang of your own a kernel, which you call as any other.

    Every thread calls ``void entry(...)``. The function takes the `parameters` by their names, in
    any order: ``In<float3, 2> x`` for ``sad.In[float3, 2]``, likewise `Out` and `Add`, and ``float
    k`` for a number. It may also take ``uint3 thread : SV_DispatchThreadID``, `SV_GroupID`,
    `SV_GroupThreadID`, and `SV_GroupIndex`, in which x counts along the last axis of ``dim``.
    Whole workgroups run, so a function must do nothing for threads outside of ``dim``.

    Args:
        source: Slang text, or the path of a file, which is read now. ``#include`` works in files.
        entry: The name of the function.
        parameters: The annotation of each parameter by name, in the order of a call: `sad.In`,
            `sad.Out`, `sad.Add`, numbers, vectors, matrices, and `sad.struct` classes of these.
        group: Threads of a workgroup along each axis of ``dim``; ``(8, 32)`` is
            ``[numthreads(32, 8, 1)]``.
        backward: The function of the pullback. For each result ``y`` it takes the cotangent
            ``In<T> y_bar``, and for each float input ``x`` the gradient ``Add<T> x_bar``.
        forward: The function of the pushforward. For each float input ``x`` it takes the tangent
            ``x_dot``, and for each result ``y`` it writes ``y_dot``.

    Raises:
        LanguageError: SR0268 to SR0278, where the source or a signature is wrong.
        CompileError: SR0510, when it is compiled, at the line of the source.

    Differentiable by `backward` and `forward` alone; nothing checks that they are right but
    `sad.gradcheck`. SR0420 refuses a transform without its function, SR0422 second derivatives.
    """
    span = user_span()
    axes = _checked_group(group, span)
    namespace = caller_globals(3)
    if not isinstance(cast("object", parameters), Mapping):
        raise error("SR0277", span, found=text_of(parameters))
    types = {name: _checked_type(name, resolve(t, namespace, span), span)
             for name, t in parameters.items()}  # fmt: skip
    text = _source(source, entry, span)
    functions = [_function(text, name, span) for name in (entry, backward, forward)]
    primal, pulled, pushed = functions
    assert primal is not None
    kernel = SlangKernel(
        name=entry,
        index_names=_AXES[: len(axes)],
        parameters=tuple(KernelParameter(name=name, type=t) for name, t in types.items()),
        buffers=tuple(Buffer(name=name, path=(name,), type=t, span=span)
                      for name, t in types.items() if isinstance(t, BufferType)),
        uniforms=tuple(Uniform(name=name, path=(name,), type=t, span=span)
                       for name, t in types.items() if not isinstance(t, BufferType)),
        body=(),
        local_types={},
        span=span,
        lines=text.lines,
        features=text.features,
        group=axes,
        primal=primal,
        backward=pulled,
        forward=pushed,
    )  # fmt: skip
    expected = (primal_parameters, backward_parameters, forward_parameters)
    for function, parameters_of in zip(functions, expected, strict=True):
        if function is not None:
            _check_signature(function, parameters_of(kernel), is_whole=function is primal)
    return SlangKernelFunction(kernel, str(namespace.get("__name__", "")))


def _source(source: str | os.PathLike[str], entry: str, span: Span) -> SlangSource:
    if not isinstance(source, str) or ("\n" not in source and source.endswith(".slang")):
        return source_of_file(Path(source))
    return source_of_text(source, f"<Slang of {entry}, {span.file_name}:{span.line}>")


def _function(text: SlangSource, name: str | None, span: Span) -> SlangEntry | None:
    """The function `name`.

    Raises:
        LanguageError: SR0271, if the text has none.
    """
    function = None if name is None else text.entry(name)
    if name is not None and function is None:
        raise error("SR0271", span, name=name)
    return function


def _checked_group(group: object, span: Span) -> tuple[int, ...]:
    """Threads per axis.

    Raises:
        LanguageError: SR0272, where it is no size of a workgroup.
    """
    items = cast("tuple[object, ...]", group if isinstance(group, tuple) else (group,))
    sizes = tuple(n for n in items if isinstance(n, int) and not isinstance(n, bool) and n > 0)
    is_size = len(sizes) == len(items) and 1 <= len(sizes) <= len(_AXES)
    if not is_size or math.prod(sizes) > _GROUP_LIMIT:
        raise error("SR0272", span, found=text_of(items if len(items) != 1 else items[0]))
    return sizes


def _checked_type(name: object, t: Type, span: Span) -> Type:
    """The type of a parameter.

    Raises:
        LanguageError: SR0215 for a reserved name, SR0273 for a type that Slang functions do not
            take.
    """
    if not isinstance(name, str) or not name.isidentifier():
        raise error("SR0273", span, name=text_of(name), type=t, why="its name is no identifier")
    if name in RESERVED:
        raise error("SR0215", span, name=name)
    element = t.element if isinstance(t, BufferType) else t
    why = ""
    if isinstance(t, ResourceType | ConstType | IndexType | LocalArray | Pointer):
        why = "functions take arrays, numbers, vectors, matrices, and structs of these"
    elif isinstance(t, BufferType):
        why = _why_no_array(t)
    if isinstance(element, Struct) and (element.holds_buffers or holds_pointers(element)):
        why = "its fields must be values"
    if not why and not isinstance(t, BufferType) and not [*scalars(t)]:
        why = "it holds no value"
    if why:
        raise error("SR0273", span, name=name, type=t, why=why)
    return t


def _why_no_array(t: BufferType) -> str:
    kinds = {scalar.kind for scalar in scalars(t.element)}
    if t.access in (Access.MIN, Access.MAX):
        return "write the values to an `Out` array, and reduce it with `sad.min` or `sad.max`"
    if t.rank > 4:
        return "arrays of Slang functions have at most 4 axes"
    if t.access is Access.ADD and not (kinds == {Kind.FLOAT} or _is_integer(t.element)):
        return "threads add `float`, vectors and matrices of it, `int`, and `uint`"
    return ""


def _is_integer(t: Type) -> bool:
    return str(t) in ("int", "uint")


# -- signatures -----------------------------------------------------------------------------------


def _check_signature(function: SlangEntry, expected: Sequence[Expected], *, is_whole: bool) -> None:
    """Checks the names and types of the parameters of a function.

    Args:
        function: The user's function.
        expected: The parameters that it may have.
        is_whole: True if it must have all of them. Derivatives take what they need; lowering
            refuses them where a derivative is missing.

    Raises:
        LanguageError: SR0274 for a wrong or missing parameter, SR0275 for two that would have the
            same name.
    """
    by_name = {p.name: p for p in expected}
    if len(by_name) < len(expected):
        names = [p.name for p in expected]
        repeated = next(name for name in names if names.count(name) > 1)
        raise error("SR0275", function.span, function=function.name, name=repeated)
    for p in function.parameters:
        why = _why_not(p, by_name.get(p.name))
        if why:
            raise _wrong_signature(function, expected, why)
    missing = by_name.keys() - {p.name for p in function.parameters if not p.semantic}
    if is_whole and missing:
        first = next(p for p in expected if p.name in missing)
        raise _wrong_signature(function, expected, f"it has no parameter `{first}`")


def _why_not(p: SlangParameter, expected: Expected | None) -> str:
    """The fault of a parameter; empty if it has none."""
    if p.semantic:
        types = _SYSTEM_VALUES.get(p.semantic)
        if types is None:
            return f"`{p.semantic}` is none of {', '.join(_SYSTEM_VALUES)}"
        return "" if p.type in types else f"`{p.semantic}` is no `{p.type}`"
    if expected is None:
        return f"no value is called `{p.name}`"
    wanted = expected.type
    if expected.passed is Passed.TANGENT and isinstance(expected.of, Uniform):
        wanted = str(expected.of.type)
    if p.type != wanted.replace(" ", ""):
        return f"`{p.name}` is `{wanted}`, found `{p.type or p.name}`"
    return ""


def _wrong_signature(function: SlangEntry, expected: Sequence[Expected], why: str) -> Exception:
    names = ", ".join(map(str, expected))
    return error("SR0274", function.span, function=function.name, why=why, wanted=names)
