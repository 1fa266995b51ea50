"""Checks before a call reaches a device, the same on every runtime.

wgpu and slangpy would abort the process for some invalid calls, and ignore others.
"""

from __future__ import annotations

from collections.abc import Container, Mapping
from dataclasses import dataclass, fields, replace
from typing import Any

from shaderad.compiler.artifact import Access, Program
from shaderad.diagnostics import error
from shaderad.runtime.protocol import Capabilities

WORD_BYTES = 4


@dataclass(frozen=True, slots=True)
class Needs:
    """The buffers and words that a dispatch of a program needs; computed once per pipeline."""

    storage_slots: tuple[int, ...]
    uniform_slot: int | None
    words_bytes: int


def needs_of(program: Program) -> Needs:
    """Splits the bindings of `program` into storage buffers and the constant buffer."""
    uniforms = [b.slot for b in program.bindings if b.access is Access.UNIFORM]
    return Needs(
        storage_slots=tuple(b.slot for b in program.bindings if b.access is not Access.UNIFORM),
        uniform_slot=uniforms[0] if uniforms else None,
        words_bytes=WORD_BYTES * len(program.parameter_words) if uniforms else 0,
    )


def padded(byte_count: int) -> int:
    """`byte_count` rounded up to whole words, the unit of copies and clears."""
    return (byte_count + WORD_BYTES - 1) // WORD_BYTES * WORD_BYTES


def check_program(capabilities: Capabilities, program: Program) -> None:
    """Raises SR0606, SR0607 or SR0608 if the device lacks what `program` needs."""
    missing = program.features - capabilities.features
    if missing:
        raise error(
            "SR0608",
            program=program.name,
            missing=", ".join(sorted(missing)),
            adapter=capabilities.adapter,
        )
    needs = needs_of(program)
    if len(needs.storage_slots) > capabilities.storage_buffer_limit:
        raise error(
            "SR0607",
            program=program.name,
            count=len(needs.storage_slots),
            adapter=capabilities.adapter,
            limit=capabilities.storage_buffer_limit,
        )
    check_bytes(capabilities, needs.words_bytes, capabilities.uniform_bytes_limit)


def check_bytes(capabilities: Capabilities, byte_count: int, limit: int) -> None:
    """Raises SR0606 if an array is larger than `limit`, the range that a shader can reach."""
    if byte_count > limit:
        raise error("SR0606", adapter=capabilities.adapter, byte_count=byte_count, limit=limit)


def check_range(buffer_bytes: int, offset: int, byte_count: int) -> None:
    """Raises SR0618 unless the range is inside the buffer and aligned to words or to its end."""
    end = offset + byte_count
    is_aligned = offset % WORD_BYTES == 0 and (end % WORD_BYTES == 0 or end == buffer_bytes)
    if not (0 <= offset <= end <= buffer_bytes and is_aligned):
        raise error("SR0618", start=offset, end=end, byte_count=buffer_bytes)


def check_dispatch(
    capabilities: Capabilities,
    program: Program,
    needs: Needs,
    slots: Container[int],
    words_bytes: int,
    groups: tuple[int, int, int],
) -> None:
    """Raises SR0611, SR0614 or SR0615 if a dispatch lacks buffers or words, or is too large."""
    limit = capabilities.workgroup_count_limit
    if max(groups) > limit:
        raise error(
            "SR0611",
            program=program.name,
            groups=" x ".join(map(str, groups)),
            adapter=capabilities.adapter,
            limit=limit,
        )
    if words_bytes != needs.words_bytes:
        raise error("SR0615", program=program.name, expected=needs.words_bytes, found=words_bytes)
    missing = [slot for slot in needs.storage_slots if slot not in slots]
    if missing:
        raise error("SR0614", slot=missing[0], program=program.name)


def limited(capabilities: Capabilities, limits: Mapping[str, Any]) -> Capabilities:
    """`capabilities` with the fields in `limits` replaced, for tests and portable builds.

    Raises:
        DeviceError: SR0613, if a name is no field of `Capabilities`; SR0621, if a value has
            another type than the field.
    """
    names = {field.name for field in fields(Capabilities)}
    for name, value in limits.items():
        if name not in names:
            raise error("SR0613", name=name, known=", ".join(sorted(names)))
        current: object = getattr(capabilities, name)
        wanted = type(current)
        if type(value) is not wanted or (isinstance(value, int) and value < 0):
            raise error("SR0621", name=name, found=repr(value), wanted=wanted.__name__)
    forced = replace(capabilities, **limits)
    if forced.atomics != "native":
        return replace(forced, features=forced.features - {"float-atomics"})
    return forced
