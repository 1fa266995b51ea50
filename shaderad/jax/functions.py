"""`wrap`: a function of trees of arrays as one of trees of JAX's arrays."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Hashable, Sequence
from contextlib import suppress
from typing import Any, cast

import jax
import numpy as np

from shaderad.calls.call import device_of
from shaderad.device.devices import Device
from shaderad.diagnostics import LanguageError
from shaderad.diagnostics.tracebacks import api_boundary
from shaderad.jax.calls import FlatCall
from shaderad.jax.primitive import bind
from shaderad.jax.tensors import (
    canonical,
    from_host,
    hollow,
    home_of,
    on_host,
    outline_of,
)
from shaderad.trace.captures import Reads
from shaderad.wrapped.functions import Wrapped
from shaderad.wrapped.parts import Outline, contents
from shaderad.wrapped.primals import Noted, primal_of
from shaderad.wrapped.structures import TENSOR, Leaves, Structure, structure_of_call, tree_of

__all__ = ["wrap"]

_Outlined = tuple[Noted, tuple[Outline, ...]]
_TRACER: Any = cast("Any", jax).core.Tracer
SHAPES = 512
"""Most combinations of shapes and numbers whose outlines are cached."""


class JaxFunction(Wrapped):
    """A function of JAX's arrays; made by `wrap`."""

    def __init__(self, function: Callable[..., Any], call: dict[str, Any]) -> None:
        super().__init__(function, call)
        self._flat = primal_of(function, call)
        self._outlines: OrderedDict[Hashable, tuple[Reads, _Outlined]] = OrderedDict()

    @api_boundary
    def __call__(self, *args: Any, **keywords: Any) -> Any:
        leaves = Leaves()

        def place(leaf: Any) -> Structure | None:
            if not _is_tensor(leaf):
                return leaves.constant(leaf)
            leaves.tensors.append(leaf)
            return TENSOR

        form = self._flat.forms.number(structure_of_call(args, keywords, place))
        is_traced = any(isinstance(x, _TRACER) for x in leaves.tensors)
        called = self._traced if is_traced else self._called
        results, (structure, whole, real) = called(form, leaves)
        return tree_of(structure, iter(results), iter(whole), iter(real))

    def _called(self, form: int, leaves: Leaves) -> tuple[Sequence[Any], Noted]:
        result = self._flat.called(form, leaves.with_content([on_host(x) for x in leaves.tensors]))
        home = home_of(leaves.tensors)
        return [from_host(x, home) for x in contents(result.parts)], result.noted

    def _traced(self, form: int, leaves: Leaves) -> tuple[Sequence[Any], Noted]:
        numbers = form, tuple(leaves.whole), tuple(leaves.real), tuple(leaves.textures)
        device = device_of(self.call.get("device"), leaves.textures)
        noted, outlines = self._outlined(form, leaves, device)
        call = FlatCall(self._flat, *numbers, device, tuple(map(canonical, outlines)))
        return bind(call, leaves.tensors), noted

    def _outlined(self, form: int, leaves: Leaves, device: Device) -> _Outlined:
        """The structure of the result and the outlines of its leaves, from a trace.

        Cached for as long as the values that the function reads are current.
        """
        tensors = tuple(outline_of(x) for x in leaves.tensors)
        # By their serials, so that the cache keeps no texture alive.
        textures = tuple(texture.serial for texture in leaves.textures)
        key = form, tuple(leaves.whole), tuple(leaves.real), textures, device, tensors
        kept = self._outlines.get(key)
        if kept is not None and kept[0].are_current():
            return kept[1]
        reads = None
        with suppress(LanguageError):  # The function captures too much to compare.
            reads = Reads(self.__name__, [(self.__name__, self.function), ("call", self.call)])
        arguments = leaves.with_content([hollow(tensor) for tensor in tensors])
        with device:
            result, outlines = self._flat.outlined(form, arguments)
        outlined = result.noted, tuple(outlines)
        if reads is not None:
            self._outlines[key] = reads, outlined
            if len(self._outlines) > SHAPES:
                self._outlines.popitem(last=False)
        return outlined

    def __repr__(self) -> str:
        return f"sad.jax.wrap({self.function!r})"


def _is_tensor(leaf: Any) -> bool:
    """True for arrays of JAX or NumPy, except those with dtypes of JAX alone, such as PRNG keys."""
    is_array = isinstance(leaf, jax.Array | np.ndarray | np.generic)
    return is_array and isinstance(cast("Any", leaf).dtype, np.dtype)


@api_boundary
def wrap(function: Callable[..., Any], **call: Any) -> JaxFunction:
    """Makes `function` a function of JAX's arrays, which JAX differentiates, compiles and batches.

    It is one primitive to JAX: `jit`, `grad`, `jvp`, `vmap` and what is made of them nest to any
    order. Each call copies an argument to the device once, and a result or gradient back once.

    Args:
        function: A kernel, a graph, an entry of `sad.load`, or any Python function on arrays.
        call: Call keywords of each call, such as ``dim``, and other arguments that stay the same.

    Returns:
        A function of the same arguments, with arrays of JAX in place of arrays, also in tuples,
        lists, dicts, dataclasses and structs. Textures and samplers stay as they are: transforms of
        JAX capture them. Its results are arrays of JAX beside the arguments, on the CPU or another
        device; arrays of structs are dicts of arrays.

    Raises:
        DerivativeError: SR0453 for an array of floats in `call`, SR0466 if `function` is not
            callable; when called, SR0477 for an argument that is neither array nor number,
            SR0483 for a texture that a transform of shaderad differentiates; when differentiated,
            SR0478 for an array from which no derivative flows, SR0472 for forward
            mode through a `custom_vjp`.

    Differentiable in every array of floats of the positional arguments, in both modes.
    """
    return JaxFunction(function, call)
