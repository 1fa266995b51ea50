"""Numbers of the host as arrays without axes, which need no memory on a device."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

from shaderad.arrays.arrays import Array
from shaderad.device.words import storage_of_words, uniform_words
from shaderad.ir.types import BOOL, FLOAT, INT
from shaderad.runtime.buffers import from_storage

if TYPE_CHECKING:
    import numpy as np

    from shaderad.device.devices import Device
    from shaderad.ir.types import Scalar, Type


PLAIN_NUMBERS: dict[type[Any], Scalar] = {float: FLOAT, int: INT, bool: BOOL}
"""The element type of an array that stands for a Python number."""


class HostNumber(Array):
    """A number, vector, matrix or struct of the host.

    Programs get it as words of their constant buffer. It is uploaded if one reads it from memory.

    Attributes:
        words: One word per scalar: see `device/words.py`.
        kind: Other values that become numbers of the same type in its place: Python numbers of a
            class, or whatever converts to an element type; `None` if that is not known.
    """

    __slots__ = ("kind", "words")

    def __init__(
        self, device: Device, element: Type, words: bytes, kind: type[Any] | Type | None = None
    ) -> None:
        super().__init__(device, element, (), None, 0, _uploaded_on_demand)
        self.words = words
        self.kind = kind

    @property
    def content(self) -> np.ndarray[Any, Any]:
        """Its content, for which no device is asked."""
        return from_storage(storage_of_words(self.words, self.element), self.element, ())

    def settle(self) -> None:
        """Uploads it, unless that has happened."""
        if self.is_pending:
            runtime, content = self.device.runtime, storage_of_words(self.words, self.element)
            buffer = runtime.allocate(len(content), zeroed=False)
            runtime.write(buffer, 0, content)
            self.fill_in(buffer)


def _uploaded_on_demand() -> None:
    """Marks numbers that are not uploaded; a method in its place would be a reference cycle."""


def host_number(value: Any, t: Type, name: str, device: Device) -> HostNumber:
    """`value` as an element of type `t`; `name` is what messages call it.

    Raises:
        ShapeError: SR0352 to SR0357, where it is no such element.
    """
    kind = cast("type[Any]", type(value))
    is_plain = PLAIN_NUMBERS.get(kind) == t
    return HostNumber(device, t, uniform_words(value, t, name), kind if is_plain else None)
