"""Compiled code -> the place at which it binds each resource, with one reader per format.

SPIR-V and WGSL keep the set and slots of the Slang text for resources that the code uses. Slang
numbers HLSL registers per class and Metal buffers in the order of declaration, unless the text
numbers them. All places are read from the code, so the manifest agrees with the compiler.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from shaderad.compiler.artifact import Program
from shaderad.compiler.spirv import instructions, words_of
from shaderad.diagnostics import error

Place = Mapping[str, int | str]
"""Numbers and register by field of `BindingPlace`; empty if the compiler removed the resource."""

_REGISTER = re.compile(r"\b(\w+?)_\d+ : register\(([bstu]\d+)(?:, space(\d+))?\)")
_METAL_INDEX = re.compile(r"\b(\w+?)_\d+ \[\[(buffer|texture|sampler)\((\d+)\)\]\]")
_WGSL_BINDING = re.compile(r"@binding\((\d+)\) @group\((\d+)\)")
_OP_DECORATE, _BINDING, _DESCRIPTOR_SET = 71, 33, 34


def spirv_places(program: Program, content: bytes) -> dict[str, Place]:
    """Sets and bindings of ``OpDecorate`` (SPIR-V 1.6, sections 2.3 and 3.20)."""
    decorations: dict[int, dict[int, int]] = {_BINDING: {}, _DESCRIPTOR_SET: {}}
    for opcode, operands in instructions(words_of(content)):
        if opcode == _OP_DECORATE and operands[1] in decorations:
            decorations[operands[1]][operands[0]] = operands[2]
    sets = decorations[_DESCRIPTOR_SET]
    return _slots(program, {(sets[k], slot) for k, slot in decorations[_BINDING].items()})


def wgsl_places(program: Program, content: bytes) -> dict[str, Place]:
    """Groups and bindings."""
    bindings = _WGSL_BINDING.findall(content.decode())
    return _slots(program, {(int(group), int(slot)) for slot, group in bindings})


def _slots(program: Program, used: set[tuple[int, int]]) -> dict[str, Place]:
    """The slots of the program that are among the (set, binding) pairs of the code."""
    return {
        b.name: {"set": program.space, "binding": b.slot} if (program.space, b.slot) in used else {}
        for b in program.bindings
    }


def hlsl_places(program: Program, content: bytes) -> dict[str, Place]:
    """Registers and spaces.

    Raises:
        CompileError: SR0714, if a register has no binding of its class and space.
    """
    access_by_name = {b.name: b.access for b in program.bindings}
    places: dict[str, Place] = {name: {} for name in access_by_name}
    for name, register, digits in _REGISTER.findall(content.decode()):
        access, space = access_by_name.get(name), int(digits or 0)
        is_right = access is not None and access.register_class == register[0]
        if not is_right or space != program.space:
            raise error("SR0714", program=program.name, register=register, name=name)
        places[name] = {"register": register, "space": space}
    return places


def metal_places(program: Program, content: bytes) -> dict[str, Place]:
    """Indices of buffers, textures and samplers."""
    indices = _METAL_INDEX.findall(content.decode())
    places: dict[str, Place] = {name: {kind: int(index)} for name, kind, index in indices}
    return {b.name: places.get(b.name, {}) for b in program.bindings}
