"""Numbers, vectors and matrices as arguments: uniforms, on the host or on the device."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from shaderad.arguments.array import as_element
from shaderad.arguments.kinds import ArgumentKind, register
from shaderad.arrays import trees
from shaderad.arrays.arrays import Array
from shaderad.arrays.numbers import host_number
from shaderad.arrays.syntax import SYNTAX
from shaderad.arrays.tape import trace_of
from shaderad.device.devices import check_same
from shaderad.diagnostics import error
from shaderad.ir.types import LocalArray, Matrix, Scalar, Vector

if TYPE_CHECKING:
    from shaderad.device.devices import Device
    from shaderad.ir.types import Type


class NumberKind(ArgumentKind):
    """Values that are the same for the whole launch."""

    def bound(self, value: Any, t: Type, name: str, device: Device) -> Array:
        """An array without axes: a number of the host, or one on the device."""
        value = composed(value, t, name)
        if not isinstance(value, Array):
            return host_number(value, t, name, device)
        bound = as_element(value, t, name)
        if bound.shape:
            raise error("SR0357", name=name, type=t, shape=bound.shape)
        check_same(bound.device, device, name)
        return bound


register(NumberKind(), Scalar, Vector, Matrix, LocalArray)


def composed(value: Any, t: Type, name: str) -> Any:
    """`value`, composed into one array if it is a vector, matrix or struct of traced arrays.

    Raises:
        ShapeError: SR0330 if its parts do not form a `t`.
    """
    if isinstance(value, Array) or trees.children(value) is None:
        return value
    arrays = [leaf for leaf in trees.leaves(value) if isinstance(leaf, Array)]
    return value if trace_of(arrays) is None else SYNTAX.functions.composed(value, t, name)
