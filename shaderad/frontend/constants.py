"""The values of `sad.Const` parameters: numbers of the Python program, or members of enums.

Invariant: a value keeps the type that Python gives it; nothing is rounded or wrapped.
"""

from __future__ import annotations

from collections.abc import Mapping

from shaderad.diagnostics import Span, error
from shaderad.frontend.operators import typed_constant
from shaderad.ir.nodes import Const
from shaderad.language.annotations import ConstType
from shaderad.language.captures import known_number
from shaderad.language.values import EnumMember, PythonNumber


def constant_of(
    name: str, wanted: ConstType, values: Mapping[str, object], span: Span
) -> PythonNumber | Const:
    """The value of parameter `name` in a call with the constants `values`.

    Raises:
        LanguageError: SR0227 where it is missing or no number; SR0228, SR0303, SR0306 where it
            does not fit.
    """
    number = known_number(values[name], span) if name in values else None
    if number is None:
        found = f"a `{type(values[name]).__name__}`" if name in values else "nothing"
        raise error("SR0227", span, name=name, type=wanted, found=found)
    return fitted(number, wanted, span)


def fitted(number: PythonNumber, wanted: ConstType, span: Span) -> PythonNumber | Const:
    """`number` as a constant of the wanted type, or as a member of the wanted enum.

    Raises:
        LanguageError: SR0228 where it is no member, SR0303 and SR0306 where it does not fit.
    """
    enum = wanted.enum
    if enum is None:
        return typed_constant(number, wanted.value, span)
    try:
        if isinstance(number, EnumMember) and number.enum is not enum:
            raise ValueError
        member = enum(number.value)
    except ValueError:
        names = ", ".join(f"`{enum.__name__}.{m.name}`" for m in enum)
        raise error("SR0228", span, found=number.value, enum=enum.__name__, known=names) from None
    return EnumMember(member.value, span, enum)
