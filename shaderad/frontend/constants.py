"""What a `sad.Const` parameter stands for: a number of the Python program, or an enum's member.

Invariant: a value takes no other type than Python would give it; nothing is rounded or wrapped.
"""

from __future__ import annotations

from collections.abc import Mapping

from shaderad.diagnostics import Span, error
from shaderad.frontend.annotations import ConstType
from shaderad.frontend.captures import known_number
from shaderad.frontend.operators import typed_constant
from shaderad.frontend.values import Known, Member
from shaderad.ir.nodes import Const


def given_constant(
    name: str, wanted: ConstType, values: Mapping[str, object], span: Span
) -> Known | Const:
    """What a kernel's parameter `name` is in a call that gives `values`.

    Raises:
        LanguageError: SR0227 where none was given, or no number; SR0228, SR0303, SR0306 where it
            does not fit.
    """
    known = known_number(values[name], span) if name in values else None
    if known is None:
        found = f"a `{type(values[name]).__name__}`" if name in values else "nothing"
        raise error("SR0227", span, name=name, type=wanted, found=found)
    return fitted(known, wanted, span)


def fitted(known: Known, wanted: ConstType, span: Span) -> Known | Const:
    """`known` as a constant of the type, or member of the enum, that is wanted.

    Raises:
        LanguageError: SR0228 where it is no member, SR0303 and SR0306 where it is another number.
    """
    enum = wanted.enum
    if enum is None:
        return typed_constant(known, wanted.value, span)
    try:
        if isinstance(known, Member) and known.enum is not enum:
            raise ValueError
        member = enum(known.value)
    except ValueError:
        names = ", ".join(f"`{enum.__name__}.{m.name}`" for m in enum)
        raise error("SR0228", span, found=known.value, enum=enum.__name__, known=names) from None
    return Member(member.value, span, enum)
