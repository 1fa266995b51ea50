"""Annotations of functions and kernels -> types of their parameters and results."""

from __future__ import annotations

import ast
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

from shaderad.diagnostics import Span, error, nesting
from shaderad.ir.nodes import Kernel, KernelParameter
from shaderad.ir.pointers import reaches_pointers
from shaderad.ir.types import Pair, Struct, Tuple, Type, Void
from shaderad.language.annotations import ConstType, IndexType, resolve
from shaderad.language.host import PythonFunction
from shaderad.language.structs import info_of

RESERVED = frozenset({"dim", "shapes", "bounds", "checks", "device"})


@dataclass(frozen=True)
class Signature:
    """Names and types of a function's parameters, in order."""

    parameters: tuple[tuple[str, Type], ...]
    result: Type | None
    """`None` where it is not annotated."""
    structs: dict[Struct, type]
    spans: tuple[Span, ...]
    """Source position of each parameter."""


def signature_of(function: PythonFunction) -> Signature:
    """Resolves the annotations of a function.

    Raises:
        LanguageError: SR0302 for a parameter without annotation, SR0214 for stars and defaults,
            SR0301 for an annotation that is no type.
    """
    tree = function.tree
    arguments = tree.args
    _check_plain(function, arguments)
    structs: dict[Struct, type] = {}
    namespace = function.namespace()
    parameters: list[tuple[str, Type]] = []
    spans: list[Span] = []
    for position, node in enumerate((*arguments.posonlyargs, *arguments.args)):
        span = function.source.of(node)
        if node.arg in function.annotations:
            t = resolve(function.annotations[node.arg], namespace, span, structs)
        elif position == 0 and function.owner is not None:
            info = info_of(function.owner)
            assert info is not None
            t = info.ir_type
            structs.update({t: function.owner, **info.nested})
        else:
            raise error("SR0302", span, name=node.arg, help=_annotated(node.arg, position))
        parameters.append((node.arg, t))
        spans.append(span)
    result = None
    if "return" in function.annotations:
        span = function.source.of(tree.returns) if tree.returns is not None else None
        result = resolve(function.annotations["return"], namespace, span, structs)
    return Signature(tuple(parameters), result, structs, tuple(spans))


_SEVERAL = "give every array a name of its own, or put them into the fields of a `@sad.struct`"
_BY_NAME = "remove the star, and give every parameter a name and an annotation"


def _check_plain(function: PythonFunction, arguments: ast.arguments) -> None:
    """Refuses stars, keyword-only parameters and defaults."""
    starred = [("*", arguments.vararg, _SEVERAL), ("**", arguments.kwarg, _SEVERAL)]
    for stars, node, help_ in (*starred, *(("", a, _BY_NAME) for a in arguments.kwonlyargs)):
        if node is not None:
            text = f"`{stars}{node.arg}`"
            raise error("SR0214", function.source.of(node), found=text, help=help_)
    for default in arguments.defaults:
        help_ = "pass the value at each call, or capture a number of the module"
        raise error("SR0214", function.source.of(default), found="a default value", help=help_)


def _annotated(name: str, position: int) -> str:
    if name == "self" and position == 0:
        return (
            "kernels are no methods: take the object as a parameter, such as `mesh: Mesh` with "
            "`@sad.struct class Mesh`, and call its methods"
        )
    return f"annotate it: `{name}: float`, `{name}: sad.In[float]`"


# -- kernels ----------------------------------------------------------------------------------


@dataclass(frozen=True)
class KernelSignature:
    """The parameters of a kernel, known without its body."""

    index_names: tuple[str, ...]
    parameters: tuple[KernelParameter, ...]
    spans: tuple[Span, ...]
    """Source position of each parameter."""

    @cached_property
    def given_names(self) -> tuple[str, ...]:
        """The parameters that a call passes."""
        return tuple(p.name for p in self.parameters if p.is_given)

    @cached_property
    def structs(self) -> tuple[tuple[str, Struct], ...]:
        """The parameters that are structs, with their types."""
        return tuple((p.name, p.type) for p in self.parameters if isinstance(p.type, Struct))

    @cached_property
    def constants(self) -> tuple[str, ...]:
        """The parameters that are constants of the compiled kernel."""
        return tuple(p.name for p in self.parameters if p.is_const)

    @cached_property
    def takes_pointers(self) -> bool:
        """True if a parameter is or holds pointers."""
        return any(map(reaches_pointers, self.variable_types.values()))

    @cached_property
    def variable_types(self) -> dict[str, Type]:
        """The types of the other parameters, by name."""
        return {p.name: p.type for p in self.parameters if not p.is_const}


def kernel_signature(function: PythonFunction) -> KernelSignature:
    """The parameters of a kernel.

    Raises:
        LanguageError: SR0215 for reserved names, SR0225 for an Index after other parameters,
            SR0226 for a result annotation, SR0301 for types that are no kernel parameters.
    """
    signature = signature_of(function)
    index_names: list[str] = []
    parameters: list[KernelParameter] = []
    spans: list[Span] = []
    for (name, t), span in zip(signature.parameters, signature.spans, strict=True):
        if name in RESERVED:
            raise error("SR0215", span, name=name)
        if isinstance(t, IndexType):
            if parameters:
                raise error("SR0225", span, name=name)
            index_names.append(name)
            continue
        parameters.append(_parameter(name, t, span))
        spans.append(span)
    if signature.result is not None and not isinstance(signature.result, Void):
        where = function.tree.returns or function.tree
        raise error("SR0226", function.source.of(where), found=signature.result)
    return KernelSignature(tuple(index_names), tuple(parameters), tuple(spans))


def _parameter(name: str, t: Type, span: Span) -> KernelParameter:
    if isinstance(t, ConstType):
        return KernelParameter(name=name, type=t.value, is_const=True)
    if isinstance(t, Void | Tuple | Pair):
        raise error("SR0301", span, found=str(t), why="no kernel takes it as a parameter")
    return KernelParameter(name=name, type=t)


class Launchable(ABC):
    """A kernel that can be called: decorated, or built."""

    bounds = "raise"
    """Default of the call keyword ``bounds``."""

    @abstractmethod
    def __call__(self, *args: object, **kwargs: object) -> object:
        """Runs the kernel."""

    @property
    @abstractmethod
    def name(self) -> str:
        """The name in messages."""

    @property
    @abstractmethod
    def signature(self) -> KernelSignature:
        """Parameters and types, without the body."""

    @abstractmethod
    def specialise(self, const_values: Mapping[str, object]) -> Kernel:
        """The typed kernel for values of its constants."""


class UserKernel(PythonFunction, Launchable):
    """``@sad.kernel``: a kernel with its Python function."""

    @property
    def signature(self) -> KernelSignature:
        return self._signature

    @cached_property
    def _signature(self) -> KernelSignature:
        with nesting(self.name, self.source.span):
            return kernel_signature(self)
