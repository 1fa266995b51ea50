"""A ``@sad.function`` -> IR without a kernel, for calls from Python on numbers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from shaderad.frontend.body import Unit
from shaderad.frontend.constants import constant_of
from shaderad.frontend.kernels import READERS
from shaderad.frontend.slots import ConstSlot, Slot, ValueSlot
from shaderad.ir.nodes import Function
from shaderad.ir.types import Struct
from shaderad.language.annotations import ConstType
from shaderad.language.captures import Captures
from shaderad.language.host import UserFunction
from shaderad.language.signatures import signature_of


@dataclass(frozen=True)
class Standalone:
    """A function whose parameters are all values or constants."""

    function: Function
    class_by_struct: Mapping[Struct, type]
    """The classes of the structs that it uses."""


def standalone(function: UserFunction, constants: Mapping[str, object]) -> Standalone:
    """The function for these constants and the current captures.

    Raises:
        LanguageError: For code that kernels do not have, at its Python line.
    """

    def fresh() -> tuple[Standalone, Captures]:
        unit = Unit(READERS)
        slots: list[Slot] = []
        for name, t in signature_of(function).parameters:
            if isinstance(t, ConstType):
                constant = constant_of(name, t, constants, function.def_span)
                slots.append(ConstSlot(constant, repr(constant.value)))
            else:
                slots.append(ValueSlot(t))
        specialised = READERS.specialise(unit, function, tuple(slots), function.def_span)
        return Standalone(specialised, unit.structs), unit.captures

    return function.variants.of(constants, fresh)
