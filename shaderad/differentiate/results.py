"""Derivatives of results in the structure of the results, and gradients added to what exists."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import prod
from typing import Any

import numpy as np

from shaderad.arrays import trees
from shaderad.arrays.arrays import Array, Shape, copied, zeros
from shaderad.device.devices import Device, check_same
from shaderad.diagnostics import error
from shaderad.differentiate import forms
from shaderad.execute.convert import summed
from shaderad.ir import types
from shaderad.runtime import buffers
from shaderad.trace.tape import trace_of


def holds_floats(leaf: Any) -> bool:
    """Whether a leaf is an array that derivatives belong to."""
    return isinstance(leaf, Array) and types.is_differentiable(leaf.element)


def check_keywords(keywords: Mapping[str, Any]) -> None:
    """Raises SR0453 for an array of floats that is given by keyword."""
    for name, value in keywords.items():
        for leaf in trees.leaves(value):
            is_floats = (
                isinstance(leaf, np.ndarray) and buffers.as_numpy(leaf, name).dtype.kind == "f"
            )
            if is_floats or holds_floats(leaf):
                raise error("SR0453", name=name)


def cotangents_of(out: Any, out_bar: Any, name: str = "out_bar") -> list[Array | None]:
    """The cotangent of each leaf of `out`; `None` where nothing is given or nothing flows."""
    found: list[Array | None] = []

    def collect(leaf: Any, given: Any) -> None:
        is_array = isinstance(leaf, Array)
        found.append(forms.cotangent_of(leaf, given, name) if is_array else None)

    trees.mapped(collect, out, out_bar, name=name)
    return found


def tangents_of(out: Any, found: Sequence[Array | None]) -> Any:
    """Tangents of the results in their structure: zeros where nothing flows, `None` for ints."""
    remaining = iter(found)

    def tangent(leaf: Any) -> Array | None:
        known = next(remaining)
        if not isinstance(leaf, Array) or not types.is_differentiable(leaf.element):
            return None
        if known is None:
            return zeros(leaf.device, leaf.element, leaf.shape)
        return forms.in_form(known, leaf.element, leaf.shape)

    return trees.mapped(tangent, out)


def check_sum(total: Any, element: types.Type, shape: Shape, device: Device) -> None:
    """Raises SR0469 for what cannot hold such a gradient, SR0650 where it is elsewhere."""
    wanted = buffers.byte_count(element, prod(shape))
    base = buffers.base_of(element)
    if not isinstance(total, Array):
        found = f"a `{type(total).__name__}`"
    elif buffers.base_of(total.element) != base or total.byte_count != wanted:
        found = repr(total)
    else:
        check_same(total.device, device, "accumulate")
        return
    raise error("SR0469", found=found, wanted=f"an array of `{element}` with shape {shape}")


def accumulated(gradients: list[Any], into: Sequence[Any]) -> list[Any]:
    """Adds `gradients` to the arrays of `into`, in place, and returns those.

    Raises:
        DerivativeError: SR0451 within a transform, which does not follow what changes in place.
    """

    def add(gradient: Any, total: Any) -> Any:
        if total is None or not isinstance(gradient, Array):
            return gradient
        check_sum(total, gradient.element, gradient.shape, gradient.device)
        if trace_of([gradient, total]) is not None:
            raise error("SR0451")
        copied(summed(forms.in_form(gradient, total.element, total.shape), total), total)
        return total

    pairs = zip(gradients, into, strict=True)
    return [trees.mapped(add, gradient, total, name="accumulate") for gradient, total in pairs]
