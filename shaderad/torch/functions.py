"""`wrap`: a function of trees of arrays as one of trees of tensors."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar, cast
from uuid import uuid4

import numpy as np
import torch

from shaderad.diagnostics.tracebacks import api_boundary
from shaderad.torch.operators import PrimalOperator, latest
from shaderad.wrapped.functions import Wrapped
from shaderad.wrapped.primals import primal_of
from shaderad.wrapped.structures import (
    TENSOR,
    Leaves,
    Plain,
    Structure,
    plain,
    structure_from,
    structure_of,
    structure_of_call,
    tree_of,
)

__all__ = ["wrap"]

Operands = tuple[list[torch.Tensor], dict[str, Any]]


C = TypeVar("C", bound=Callable[..., Any])


def _constant(function: C) -> C:
    """Marks a function that PyTorch's compiler calls while tracing, keeping the result."""
    return cast("Any", torch.compiler).assume_constant_result(function)


class WrappedFunction(Wrapped):
    """A function of tensors, one operator to PyTorch; made by `wrap`."""

    def __init__(self, function: Callable[..., Any], call: dict[str, Any]) -> None:
        super().__init__(function, call)
        # The name is unique across processes: PyTorch caches compiled code on disk by operator
        # name, and another process may use the same name for another function.
        name = "".join(c if c.isascii() and c.isalnum() else "_" for c in self.__name__)
        self.operator = PrimalOperator(f"{name}_{uuid4().hex}", primal_of(function, call))

    def __call__(self, *args: Any, **keywords: Any) -> Any:
        results = self.operator(*self.operands(*args, **keywords))
        structure, whole, real = self._latest()
        return tree_of(structure, iter(results), iter(whole), iter(real))

    def operands(self, *args: Any, **keywords: Any) -> Operands:
        """The tensors and keywords with which a call invokes the operator.

        Check it with ``torch.library.opcheck(f.operator.op, (tensors,), keywords)``.
        """
        leaves = Leaves()

        def place(leaf: Any) -> Structure | None:
            if isinstance(leaf, torch.Tensor):
                leaves.tensors.append(leaf)
                return TENSOR
            if isinstance(leaf, np.ndarray):
                leaves.tensors.append(torch.tensor(np.asarray(cast("Any", leaf))))
                return TENSOR
            if isinstance(leaf, torch.nn.ParameterDict):
                return structure_of(dict(leaf.items()), place, "ParameterDict")
            if isinstance(leaf, torch.nn.ParameterList):
                return structure_of(list(leaf), place, "ParameterList")
            return leaves.constant(leaf)

        form = self._number(plain(structure_of_call(args, keywords, place)))
        return leaves.tensors, {
            "whole": leaves.whole,
            "real": leaves.real,
            "textures": [texture.serial for texture in leaves.textures],
            "form": form,
        }

    @_constant
    def _number(self, structure: Plain) -> int:
        return self.operator.flat.forms.number(structure_from(structure))

    @_constant
    def _latest(self) -> tuple[Plain, tuple[int, ...], tuple[float, ...]]:
        structure, whole, real = latest.get()
        return plain(structure), whole, real

    def __repr__(self) -> str:
        return f"sad.torch.wrap({self.function!r})"


@api_boundary
def wrap(function: Callable[..., Any], **call: Any) -> WrappedFunction:
    """Makes `function` a function of PyTorch's tensors, which PyTorch differentiates and compiles.

    It is one operator to PyTorch, and so are its pullback and its pushforward: `backward` and
    forward mode to any order, `torch.func`, `torch.compile` and `torch.utils.checkpoint` work.
    `torch.func.vmap` makes one call per element.
    Each call copies an argument to the device once, and a result or gradient back once.

    Args:
        function: A kernel, a graph, an entry of `sad.load`, or any Python function on arrays.
        call: Call keywords of each call, such as ``dim``, and other arguments that stay the same.

    Returns:
        A function of the same arguments, with tensors in place of arrays, also in tuples, lists,
        dicts, dataclasses and structs. Textures and samplers stay as they are: PyTorch takes them
        for constants. Its results are tensors beside the arguments, on the CPU or another device;
        arrays of structs are dicts of tensors.

    Raises:
        DerivativeError: SR0453 for an array of floats in `call`, SR0466 if `function` is not
            callable; when called, SR0477 for an argument that is neither tensor nor number,
            SR0483 for a texture that a transform of shaderad differentiates, SR0485 for one that no
            longer exists; when differentiated, SR0478 for a tensor from which no derivative
            flows, SR0472 for forward mode through a `custom_vjp`.

    Differentiable in every tensor of floats of the positional arguments, in both modes.
    """
    return WrappedFunction(function, call)
